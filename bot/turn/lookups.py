"""What only the workspace knows of whoever asks: the files and tools of their question, their language, who helps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.thread.conversation import AttachedFile, ThreadKey
from agent.tools.tool import Tool
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.turn.history import Earlier


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLookups:
    """How each is asked. ``offers_human`` tells whether there is anybody to be asked instead of Orion."""

    offers_human: Callable[[ThreadKey], bool]
    language_of: Callable[[str, str], Awaitable[str | None]]
    files_of: Callable[
        [Incoming, Mapping[str, Any] | None, Mapping[str, Any] | None], Awaitable[tuple[AttachedFile, ...]]
    ]
    tools_of: Callable[[Incoming], Awaitable[tuple[Tool, ...]]]

    async def files(self, incoming: Incoming, earlier: Earlier) -> tuple[AttachedFile, ...]:
        """What came with the question, and with what opened its thread. Where Slack's limits forbid a look, a note."""
        unseen = (AttachedFile(name="", trouble="unseen"),)
        if earlier.limited:
            return unseen
        try:
            return await self.files_of(incoming, earlier.first, earlier.asked)
        except DeliveryFailed as failure:
            if not failure.again_s:
                raise
            return unseen

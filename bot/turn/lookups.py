"""What only the workspace knows of whoever asks: the files and tools of their question, their language, who helps."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent.thread.conversation import AttachedFile, ThreadKey
from agent.tools.tool import Tool
from bot.slack.files import no_files
from bot.slack.message import Incoming
from bot.slack.search import no_tools
from bot.slack.web_api import DeliveryFailed
from bot.turn.history import Earlier


def _nobody_helps(_place: ThreadKey) -> bool:
    """No people are configured to be asked."""
    return False


async def _nobody_knows(_team: str, _user: str) -> str | None:
    """Nobody knows what a person uses Slack in."""
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLookups:
    """What only the workspace knows of whoever asks: the files and tools of their question, their language.

    ``offers_human`` tells whether there is anybody to be asked instead of Orion.
    """

    offers_human: Callable[[ThreadKey], bool] = _nobody_helps
    language_of: Callable[[str, str], Awaitable[str | None]] = _nobody_knows
    files_of: Callable[
        [Incoming, Mapping[str, Any] | None, Mapping[str, Any] | None], Awaitable[tuple[AttachedFile, ...]]
    ] = no_files
    tools_of: Callable[[Incoming], Awaitable[tuple[Tool, ...]]] = no_tools

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

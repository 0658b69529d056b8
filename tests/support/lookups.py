"""A workspace that knows nothing more of whoever asks: no files, no tools, no language, nobody who helps."""

from __future__ import annotations

from typing import Any

from agent.thread.conversation import AttachedFile
from agent.tools.tool import Tool
from bot.turn.answer import WorkspaceLookups


async def _no_files(*_: Any) -> tuple[AttachedFile, ...]:
    return ()


async def _no_tools(_: Any) -> tuple[Tool, ...]:
    return ()


async def _no_language(_: str, __: str) -> str | None:
    return None


NO_LOOKUPS = WorkspaceLookups(
    offers_human=lambda _: False, language_of=_no_language, files_of=_no_files, tools_of=_no_tools
)

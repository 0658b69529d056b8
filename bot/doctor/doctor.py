"""`orion doctor`: checks the set-up and says what to do about each fault.

All checks run at once, each within ``within_s`` seconds; one that fails stops no other. Nothing is changed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Final

from agent.tools.builtin.git import answers, repositories
from agent.tools.builtin.web import WebSearchFailed, open_searxng
from agent.tools.mcp.config import McpServer
from bot.doctor import checks, model_checks
from bot.doctor.checks import Check, CheckLine, Found, Wrong
from bot.errors import WrongUse
from bot.settings import Settings, find_unknown_names, unreadable_lines
from bot.turn.tools import RESERVED, mcp_servers

REPLY_TIMEOUT_S = 12.0  # enough for a model that has to be loaded first, short enough to be waited for
_SLACK: Final = frozenset({"SLACK_API_URL"})
_MODEL: Final = frozenset({"OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"})


async def examine(
    settings: Settings, *, faults: Mapping[str, str] | None = None, within_s: float = REPLY_TIMEOUT_S
) -> list[Check]:
    """Every check, in the order in which a message meets the parts. ``within_s`` bounds each wait for somebody else."""
    wrong = faults or {}  # variables that cannot be used: what depends on one of them is not looked at
    lines = (
        CheckLine("Slack", checks.bot_token, _SLACK),
        CheckLine("Slack events", checks.events, _SLACK),
        CheckLine("Redis", checks.redis_keeps),
        CheckLine("Paused", checks.paused),
        CheckLine("Knowledge", checks.knowledge),
        CheckLine("Search by meaning", checks.vectors, frozenset({"ORION_SEMANTIC"})),
        *tool_lines(settings),
        CheckLine("Model", model_checks.model, _MODEL, then=CheckLine("Model context", model_checks.context)),
        CheckLine("Write model", model_checks.write_model, _MODEL),
        CheckLine("Judge", model_checks.judge, _MODEL),
        CheckLine("Langfuse", checks.langfuse, frozenset({"LANGFUSE_HOST"})),
        CheckLine("Hand-off", checks.handoff, _SLACK),
    )
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(line.checks(settings, within_s), name=line.name)
            for line in lines
            if not line.needs & wrong.keys()
        ]
    return [*_settings(wrong), *(check for task in tasks for check in task.result())]


def _settings(wrong: Mapping[str, str]) -> list[Check]:
    """A line for each setting that cannot be used, is none, or is not understood; Orion starts in spite of the last."""
    mend = "Mend it in the environment or in .env; Orion does not start with it."
    found = [(f"{name} {what}", mend) for name, what in wrong.items()]
    remark = "Write NAME=value, or # in front of a remark."
    found += [(f".env, line {number} is not understood", remark) for number in unreadable_lines()]
    for name, nearest in find_unknown_names().items():
        remedy = "See the README for the names." if nearest == "none" else f"Is {nearest} meant?"
        found.append((f"{name} is no setting of Orion", remedy))
    return [Check(name="Settings", ok=False, detail=detail, remedy=remedy) for detail, remedy in found]


def tool_lines(settings: Settings) -> Iterator[CheckLine]:
    """A line for each tool that the settings name."""
    yield CheckLine("Git", _git)
    yield CheckLine("Files", _files)
    yield CheckLine("Web search", _web)
    try:
        for server in mcp_servers(settings):
            yield CheckLine(f"MCP {server.name}", partial(_mcp, server))
    except WrongUse as error:
        yield CheckLine("MCP", partial(_wrong, str(error)))


async def _wrong(detail: str, _settings: Settings, _within_s: float) -> Found:
    return Wrong(detail, "Mend the file, or name another.")


async def _git(settings: Settings, within_s: float) -> Found:
    wrong = []
    for repository in repositories(settings.git) if settings.git else ():
        try:
            async with asyncio.timeout(within_s):
                wrong += [f"{repository.folder}: {fault}"] if (fault := await answers(repository)) else []
        except TimeoutError:
            wrong.append(f"{repository.folder}: git did not answer within {within_s:.0f} s")
    if wrong:
        remedy = "Name folders that are Git repositories in ORION_GIT, and see that Orion may read them."
        return Wrong("; ".join(wrong), remedy)
    count = len(settings.git)
    return f"git_log and git_show read {count} repositor{'y' if count == 1 else 'ies'}" if count else ""


async def _files(settings: Settings, _: float) -> Found:
    if wrong := [str(root) for root in settings.files if not (root.is_dir() and os.access(root, os.R_OK | os.X_OK))]:
        remedy = "Name folders that exist and that Orion may read in ORION_FILES."
        return Wrong(f"cannot be read: {', '.join(wrong)}", remedy)
    return f"file_read reads below {', '.join(map(str, settings.files))}" if settings.files else ""


async def _web(settings: Settings, within_s: float) -> Found:
    if not settings.searxng_url:
        return ""
    remedy = "Check ORION_SEARXNG_URL and that the server runs."
    try:
        async with asyncio.timeout(within_s), open_searxng(settings.searxng_url) as engine:
            await engine.search("test")
    except WebSearchFailed as failure:
        return Wrong(str(failure), f"{remedy} {' '.join(failure.hints)}")
    except TimeoutError:
        return Wrong(f"did not answer within {within_s:.0f} s", remedy)
    return f"web_search: {settings.searxng_url} answers"


async def _mcp(server: McpServer, _settings: Settings, within_s: float) -> Found:
    """Connects as Orion will."""
    from agent.tools.mcp.client import Waits, open_mcp  # noqa: PLC0415 - a third of a second, for those alone who use it

    async with open_mcp([server], RESERVED, Waits(start=within_s, first=within_s)) as tools:
        connected, names = tools.connections[0].connected, sorted(tools())
    if not connected:
        where = "its url and headers" if server.url else "its command, args and env"
        return Wrong("does not answer as an MCP server", f"Check {where} in ORION_MCP_CONFIG. Orion works without it.")
    if not names:
        remedy = "Check its 'allow' in ORION_MCP_CONFIG: no tool of the server is on it, or none can be shown."
        return Wrong("answers, but brings no tool", remedy)
    return f"answers: {', '.join(names)}"

"""Checks in `orion doctor` whether each configured tool answers: repositories, folders, SearXNG, MCP servers (H4)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator
from functools import partial

from agent.tools.builtin.git import answers, repositories
from agent.tools.builtin.web import WebSearchFailed, open_searxng
from agent.tools.mcp.config import McpServer
from bot.doctor.checks import CheckLine, Found, Wrong
from bot.errors import WrongUse
from bot.settings import Settings
from bot.turn.tools import RESERVED, mcp_servers


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

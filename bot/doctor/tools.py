"""Checks in `orion doctor` whether each configured tool answers: repositories, folders, SearXNG, MCP servers (H4)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

from agent.tools.builtin.git import answers, repositories
from agent.tools.builtin.web import WebSearchFailed, open_searxng
from agent.tools.mcp.config import McpServer
from bot.doctor.check import Check
from bot.errors import WrongUse
from bot.settings import Settings
from bot.turn.tools import RESERVED, mcp_servers


async def tool_checks(settings: Settings, within_s: float) -> list[Check]:
    """A line for each tool that the settings name."""
    return [
        *await _git(settings, within_s),
        *_files(settings),
        *await _web(settings, within_s),
        *await _mcp(settings, within_s),
    ]


async def _git(settings: Settings, within_s: float) -> list[Check]:
    if not settings.git:
        return []
    wrong = []
    for repository in repositories(settings.git):
        try:
            async with asyncio.timeout(within_s):
                wrong += [f"{repository.folder}: {fault}"] if (fault := await answers(repository)) else []
        except TimeoutError:
            wrong.append(f"{repository.folder}: git did not answer within {within_s:.0f} s")
    if wrong:
        remedy = "Name folders that are Git repositories in ORION_GIT, and see that Orion may read them."
        return [Check(name="Git", ok=False, detail="; ".join(wrong), remedy=remedy)]
    return [Check(name="Git", ok=True, detail=f"git_log and git_show read {_counted(settings.git, 'repositor')}")]


def _counted(folders: Sequence[object], stem: str) -> str:
    return f"{len(folders)} {stem}{'y' if len(folders) == 1 else 'ies'}"


def _files(settings: Settings) -> list[Check]:
    if not settings.files:
        return []
    wrong = [str(root) for root in settings.files if not (root.is_dir() and os.access(root, os.R_OK | os.X_OK))]
    if wrong:
        remedy = "Name folders that exist and that Orion may read in ORION_FILES."
        return [Check(name="Files", ok=False, detail=f"cannot be read: {', '.join(wrong)}", remedy=remedy)]
    named = ", ".join(str(root) for root in settings.files)
    return [Check(name="Files", ok=True, detail=f"file_read reads below {named}")]


async def _web(settings: Settings, within_s: float) -> list[Check]:
    if not settings.searxng_url:
        return []
    try:
        async with asyncio.timeout(within_s), open_searxng(settings.searxng_url) as engine:
            await engine.search("test")
    except WebSearchFailed as failure:
        remedy = f"Check ORION_SEARXNG_URL and that the server runs. {' '.join(failure.hints)}"
        return [Check(name="Web search", ok=False, detail=str(failure), remedy=remedy)]
    except TimeoutError:
        remedy = "Check ORION_SEARXNG_URL and that the server runs."
        return [Check(name="Web search", ok=False, detail=f"did not answer within {within_s:.0f} s", remedy=remedy)]
    return [Check(name="Web search", ok=True, detail=f"web_search: {settings.searxng_url} answers")]


async def _mcp(settings: Settings, within_s: float) -> list[Check]:
    try:
        servers = mcp_servers(settings)
    except WrongUse as error:
        return [Check(name="MCP", ok=False, detail=str(error), remedy="Mend the file, or name another.")]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_server(server, within_s), name=f"mcp:{server.name}") for server in servers]
    return [task.result() for task in tasks]


async def _server(server: McpServer, within_s: float) -> Check:
    """Connects as Orion will."""
    from agent.tools.mcp.client import Waits, open_mcp  # noqa: PLC0415 - a third of a second, for those alone who use it

    async with open_mcp([server], RESERVED, Waits(start=within_s, first=within_s)) as tools:
        connected, names = tools.connections[0].connected, sorted(tools())
    name = f"MCP {server.name}"
    if not connected:
        where = "its url and headers" if server.url else "its command, args and env"
        remedy = f"Check {where} in ORION_MCP_CONFIG. Orion works without it."
        return Check(name=name, ok=False, detail="does not answer as an MCP server", remedy=remedy)
    if not names:
        remedy = "Check its 'allow' in ORION_MCP_CONFIG: no tool of the server is on it, or none can be shown."
        return Check(name=name, ok=False, detail="answers, but brings no tool", remedy=remedy)
    return Check(name=name, ok=True, detail=f"answers: {', '.join(names)}")

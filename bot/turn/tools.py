"""Build the tools that the settings name besides the documents: repositories, files, web search, MCP servers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.tools.builtin.files import FILE_READ, FileReadTool
from agent.tools.builtin.git import GIT_LOG, GIT_SHOW, GitLogTool, GitShowTool, repositories
from agent.tools.builtin.knowledge import GET_DOCUMENT, LIST_DOCUMENTS, SEARCH
from agent.tools.builtin.llm_generate import NAME as LLM_GENERATE
from agent.tools.builtin.slack_search import SLACK_SEARCH
from agent.tools.builtin.web import WEB_SEARCH, open_searxng
from agent.tools.mcp.config import McpServer, read_servers
from agent.tools.tool import Tool
from bot.errors import WrongUse
from bot.settings import Settings, environment_for_mcp

if TYPE_CHECKING:
    from agent.tools.mcp.tools import McpTools

ACTIONS: Final = ("respond", "ask_user", "finish_step", "complete", "tool_call")
# Names that no server's tool can take, even if Orion's own tool is not configured.
_DOCUMENTS: Final = (SEARCH, LIST_DOCUMENTS, GET_DOCUMENT)
RESERVED: Final = frozenset(
    (*ACTIONS, *_DOCUMENTS, LLM_GENERATE, GIT_LOG, GIT_SHOW, FILE_READ, WEB_SEARCH, SLACK_SEARCH)
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Toolbox:
    """Fixed tools, and those that come and go with their servers."""

    tools: tuple[Tool, ...] = ()
    mcp: McpTools | None = None
    audiences: tuple[str, ...] = ()  # of the servers


@asynccontextmanager
async def open_toolbox(settings: Settings) -> AsyncIterator[Toolbox]:
    """Open the tools that the settings name. Raises ``WrongUse``."""
    async with AsyncExitStack() as stack:
        tools: list[Tool] = []
        if history := repositories(_folders(settings.git, "ORION_GIT"), settings.git_url):
            tools += [GitLogTool(history), GitShowTool(history)]
        if roots := _folders(settings.files, "ORION_FILES"):
            tools.append(FileReadTool(roots))
        if settings.searxng_url:
            tools.append(await stack.enter_async_context(open_searxng(settings.searxng_url)))
        mcp: McpTools | None = None
        if servers := mcp_servers(settings):
            from agent.tools.mcp.tools import open_mcp  # noqa: PLC0415 - a third of a second, for those alone who use it

            mcp = await stack.enter_async_context(open_mcp(servers, RESERVED))
        yield Toolbox(tools=tuple(tools), mcp=mcp, audiences=tuple(server.audience for server in servers))


def mcp_servers(settings: Settings) -> tuple[McpServer, ...]:
    """The servers of ``ORION_MCP_CONFIG``. Raises ``WrongUse``."""
    path = settings.mcp_config
    if path is None:
        return ()
    try:
        return read_servers(path.read_text(encoding="utf-8"), environment_for_mcp())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        message = f"ORION_MCP_CONFIG names {path}, which cannot be read ({reason})."
    except ValueError as error:
        message = f"ORION_MCP_CONFIG names {path}, which cannot be used. {error}"
    raise WrongUse(message)


def _folders(folders: Sequence[Path], variable: str) -> Sequence[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise WrongUse(why=f"{variable} names {folder}, which is not a folder. Name existing folders.")
    return folders

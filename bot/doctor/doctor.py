"""`orion doctor`: checks the set-up and says what to do about each fault.

All checks run at once, each within ``within_s`` seconds; a failing check does not stop the others. The checks change
nothing.
"""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from agent.thread.conversation import NOBODY
from agent.tools.builtin.web import WebSearchFailed, open_searxng
from agent.tools.mcp.config import MAX_ALL_TOOLS
from bot.doctor import checks, model_checks
from bot.doctor.checks import Check, CheckLine, Finding, Problem
from bot.errors import WrongUse
from bot.settings import Settings, find_unknown_names, unreadable_lines
from bot.turn.engine import RESERVED, mcp_servers
from observability.redaction import known_secrets, redact

if TYPE_CHECKING:  # the SDK takes a third of a second to import
    from agent.tools.mcp.client import McpConnection

REPLY_TIMEOUT_S = 12.0  # enough for a model that has to be loaded first, and short enough for a person to wait
_SLACK: Final = frozenset({"SLACK_API_URL"})
_MODEL: Final = frozenset({"OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"})


async def examine(
    settings: Settings, *, faults: Mapping[str, str] | None = None, within_s: float = REPLY_TIMEOUT_S
) -> list[Check]:
    """Run all checks, in the order in which a message passes through the parts. ``within_s`` limits each wait.

    ``faults`` are variables that cannot be used; a check that needs one of them is left out.
    """
    wrong = faults or {}
    lines = (
        CheckLine("Slack", checks.check_bot_token, _SLACK),
        CheckLine("Slack events", checks.check_events, _SLACK),
        CheckLine("Redis", checks.check_redis),
        CheckLine("Knowledge", checks.check_knowledge),
        CheckLine("Search by meaning", model_checks.check_embedding, _MODEL | {"ORION_EMBED_BASE_URL"}),
        *TOOL_CHECKS,
        CheckLine("Model", model_checks.check_model, _MODEL),
        CheckLine("Model context", model_checks.check_context, _MODEL),
        CheckLine("Write model", model_checks.check_write_model, _MODEL),
        CheckLine("Judge", model_checks.check_judge, _MODEL),
        CheckLine("Langfuse", checks.check_langfuse, frozenset({"LANGFUSE_BASE_URL", "LANGFUSE_HOST"})),
        CheckLine("Hand-off", partial(checks.check_places, [settings.handoff], "ORION_HANDOFF"), _SLACK),
        CheckLine("Report", partial(checks.check_places, [settings.report], "ORION_REPORT"), _SLACK),
        CheckLine("Channels", checks.check_channels, _SLACK),
    )
    unusable = [("Settings", problem) for problem in _settings(wrong)]
    return await run_checks([line for line in lines if not line.needs & wrong.keys()], settings, within_s, unusable)


async def run_checks(
    lines: Sequence[CheckLine], settings: Settings, within_s: float, findings: Sequence[tuple[str, Finding]] = ()
) -> list[Check]:
    """Run these checks at the same time, and return those with something to report after earlier ``findings``."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(line.probe(settings, within_s), name=line.name) for line in lines]
    found = list(findings)
    for task in tasks:
        result = task.result()
        found += result.items() if isinstance(result, dict) else [(task.get_name(), result)]
    clean = partial(redact, known=known_secrets(settings.secrets))  # addresses and errors may contain a password
    return [
        Check(name=name, ok=False, detail=clean(finding.detail), remedy=clean(finding.remedy))
        if isinstance(finding, Problem)
        else Check(name=name, ok=True, detail=clean(finding))
        for name, finding in found
        if finding
    ]


def _settings(wrong: Mapping[str, str]) -> Iterator[Problem]:
    """Yield a problem for each setting that cannot be used or is unknown, and for each line that cannot be read."""
    for name, fault in wrong.items():
        yield Problem(f"{name} {fault}", "Fix it in the environment or in .env; Orion does not start with it.")
    for number in unreadable_lines():
        yield Problem(f".env, line {number} is not understood", "Write NAME=value, or # before a remark.")
    for name, nearest in find_unknown_names().items():
        remedy = "See the README for the names." if nearest == "none" else f"Did you mean {nearest}?"
        yield Problem(f"{name} is not a setting of Orion", remedy)


async def _check_web_search(settings: Settings, within_s: float) -> Finding:
    if not settings.searxng_url:
        return ""
    remedy = "Check ORION_SEARXNG_URL and that the server runs."
    try:
        async with asyncio.timeout(within_s), open_searxng(settings.searxng_url) as engine:
            await engine.search("test")
    except WebSearchFailed as failure:
        return Problem(str(failure), f"{remedy} {' '.join(failure.hints)}")
    except TimeoutError:
        return Problem(f"did not answer within {within_s:.0f} s", remedy)
    return f"web_search: {settings.searxng_url} answers"


async def _check_mcp(settings: Settings, within_s: float) -> Finding | dict[str, Finding]:
    """Connect to the MCP servers as Orion does, and return the finding about each by name."""
    try:
        servers = mcp_servers(settings)
    except WrongUse as error:
        return Problem(str(error), "Fix the file, or name another.")
    if not servers:
        return ""
    from agent.tools.mcp.client import Waits  # noqa: PLC0415 - the same
    from agent.tools.mcp.tools import open_mcp  # noqa: PLC0415 - a third of a second, and few use it

    async with open_mcp(servers, RESERVED, Waits(start=within_s, first=within_s)) as tools:
        surplus = tools.left_out()
        return {f"MCP {one.server.name}": _finding(one, surplus) for one in tools.connections}


def _finding(connection: "McpConnection", surplus: Sequence[str]) -> Finding:
    server, names = connection.server, sorted(tool.spec.name for tool in connection.tools)
    if not connection.is_connected:
        where = "its url and headers" if server.url else "its command, args and env"
        why = f" ({connection.trouble})" if connection.trouble else ""
        remedy = f"Check {where} in ORION_MCP_CONFIG. Orion works without it."
        return Problem(f"does not answer as an MCP server{why}", remedy)
    if not names:
        remedy = (
            "Name tools in its 'allow' in ORION_MCP_CONFIG: without it only tools that say that they only read count."
        )
        return Problem(f"answers, but offers no tool{_names('; left out', connection.left_out)}", remedy)
    if server.audience == NOBODY:
        return Problem("answers, but no one may use it", "Give it an 'audience' in ORION_MCP_CONFIG.")
    if over := [name for name in surplus if name in names]:
        remedy = f"Models take at most {MAX_ALL_TOOLS} tools of servers: name fewer in 'allow' in ORION_MCP_CONFIG."
        return Problem(f"answers{_names(', but there is no room for', over)}", remedy)
    return f"answers: {', '.join(names)}{_names('; left out', connection.left_out)}"


def _names(label: str, names: Sequence[str]) -> str:
    return f"{label}: {', '.join(names)}" if names else ""


TOOL_CHECKS: Final = (
    CheckLine("Web search", _check_web_search),
    CheckLine("MCP", _check_mcp),
)

"""What a tool is, and the wall round each call: what goes wrong inside becomes a ``ToolResult`` the model reads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

import structlog

from agent.actions import ToolCall
from agent.budget import ModelCall, Usage
from agent.tools.json_schema import faults
from observability.logging import Length
from verification.types import Source

log = structlog.get_logger()

MAX_FAULTS: Final = 5

Event = TypeVar("Event")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool brought. ``sources`` carry ``id=0``: ``Progress.add_source`` numbers them, and withholds by audience.

    Only ``sources`` are held to an audience: the model reads ``content``, ``error`` and ``hints`` (what to try next)
    whoever asks. A result that is not ``ok`` may bring sources too. The wall fills in ``call_id``, ``tool`` and
    ``input``, what the tool was called with. ``usage`` is what a tool spent on a model that it asked itself, ``call``
    what it asked.
    """

    call_id: str = ""
    tool: str = ""
    ok: bool = True
    content: str = ""
    sources: tuple[Source, ...] = ()
    error: str = ""
    hints: tuple[str, ...] = ()
    input: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)
    call: ModelCall | None = None


class ToolFailed(Exception):  # noqa: N818 - an outcome that tools expect
    """A tool did not do it. The text says why, for the model; ``hints`` say what to try next."""

    hints: tuple[str, ...] = ()

    # Raised as ToolFailed(why="…"): ruff (EM101) forbids a literal as an exception's first positional argument.
    def __init__(self, why: str, *hints: str) -> None:
        super().__init__(why)
        self.hints = hints or self.hints


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """How a tool is shown to the model. ``parameters`` is a JSON Schema object.

    ``takes_s`` is how many seconds a call may take where an admin allowed more than any tool gets.
    """

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    takes_s: float = 0.0


class Tool(Protocol):
    """One ability. ``run`` gets input already checked against ``spec.parameters``."""

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Do it. Whatever is raised becomes a result in the wall: ``ToolFailed`` with its text, the rest as a fault."""


async def call_tool(tools: Mapping[str, Tool], call: ToolCall, *, timeout_s: float, max_chars: int) -> ToolResult:
    """Run one call inside the wall: always a result, within ``timeout_s`` seconds, at most ``max_chars`` of content.

    A tool that was allowed more time by name has that (``ToolSpec.takes_s``).
    Each source's text is held to the same limit, so that what is verified against is what the model saw.
    """
    began = time.monotonic()
    tool = tools.get(call.tool)
    if tool is None:
        known = ", ".join(sorted(tools)) or "none"
        result = _failed("There is no tool of this name.", f"The tools are: {known}.")
    elif wrong := "; ".join(islice(faults(call.input, tool.spec.parameters), MAX_FAULTS)):
        result = _failed(f"Bad parameters: {wrong}.", "Call it again with the parameters mended.")
    else:
        result = _limited(await _run(tool, call, max(timeout_s, tool.spec.takes_s)), max_chars)
    line = log.debug if result.ok else log.info
    line(
        "tool_called",
        # A name that no tool has came from the model and may be any text.
        tool=call.tool if tool else "unknown",
        ok=result.ok,
        latency_ms=round((time.monotonic() - began) * 1000, 1),
        content_length=Length(result.content),
        sources=len(result.sources),
    )
    return replace(result, call_id=call.call_id, tool=call.tool, input=call.input)


async def _run(tool: Tool, call: ToolCall, timeout_s: float) -> ToolResult:
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await tool.run(call.input)
    except ToolFailed as failure:
        return _failed(str(failure), *failure.hints)
    except Exception as error:  # one of the four walls: a tool never ends a turn
        if isinstance(error, TimeoutError) and limit.expired():
            return _failed(f"No result within {timeout_s:g} seconds.", "Ask for less, or try again.")
        failure_id = uuid4().hex[:12]
        log.exception("tool_crashed", tool=call.tool, failure_id=failure_id)
        return _failed(f"The tool failed inside (failure {failure_id}).", "Go on without it, or try other input.")


async def outlived(part: str, run: Callable[[], Awaitable[None]]) -> None:
    """Run what a tool keeps going between its calls (a connection) behind the same wall: its failure ends only it."""
    try:
        await run()
    except Exception as error:  # one of the four walls: a far end never ends Orion
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):  # what a task group packed up
            cause = cause.exceptions[0]
        log.warning("tool_part_ended", part=part, exc_info=cause)


def walled(listener: Callable[[Event], None]) -> Callable[[Event], None]:
    """The listener behind the same wall as a tool: what it raises is logged, and the turn goes on."""

    def heard(event: Event) -> None:
        try:
            listener(event)
        except Exception:  # one of the four walls: a listener never ends a turn
            log.exception("listener_failed", to=type(event).__name__)

    return heard


def _limited(result: ToolResult, max_chars: int) -> ToolResult:
    sources = tuple(s if len(s.text) <= max_chars else replace(s, text=s.text[:max_chars]) for s in result.sources)
    content = result.content
    if len(content) > max_chars:
        content = f"{content[:max_chars]}\n[Cut off: {max_chars} of {len(content)} characters are shown.]"
    if sources != result.sources:
        content += f"\n[Cut off: of a long source only the first {max_chars} characters are shown.]"
    return replace(result, content=content, sources=sources)


def _failed(error: str, *hints: str) -> ToolResult:
    return ToolResult(ok=False, error=error, hints=hints)

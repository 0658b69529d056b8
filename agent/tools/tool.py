"""Tools, and the wall around each call (docs/architecture.md): an error inside becomes a ``ToolResult`` for the model.

Orion's own tools are described in ``specs.toml``, one table per tool. Error messages about a call's input name
parameters, types and limits, and never quote the input.
"""

import asyncio
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol, TypeVar
from uuid import uuid4

import structlog
from jsonschema import Draft202012Validator
from jsonschema.validators import extend

from agent.actions import ToolCall
from agent.budget import ModelCall, Usage
from observability.logging import Length
from verification.types import Source

log = structlog.get_logger()

MAX_FAULTS: Final = 5

Event = TypeVar("Event")
# The schema may come from another server. These keywords can follow links, recurse, backtrack endlessly or fail on NaN,
# so that server has to check them itself.
_LEFT_TO_THE_SERVER: Final = (
    "$ref $dynamicRef multipleOf pattern patternProperties unevaluatedItems unevaluatedProperties"
)
# JSON Schema treats 1.0 as an integer; Python, and so a tool, does not.
_TYPES: Final = Draft202012Validator.TYPE_CHECKER.redefine(
    "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
)
_UNCHECKED: Final = dict.fromkeys(_LEFT_TO_THE_SERVER.split(), lambda *_: None)
_Validator: Final = extend(Draft202012Validator, _UNCHECKED, type_checker=_TYPES)  # type: ignore[no-untyped-call]
_SPECS: Final = tomllib.loads(Path(__file__).with_name("specs.toml").read_text(encoding="utf-8"))


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """Result of a tool. ``call_tool`` adds ``call_id``, ``tool``, ``place`` and ``input`` (the arguments)."""

    call_id: str = ""
    tool: str = ""
    ok: bool = True
    content: str = ""
    # with ``id=0``; only sources have an audience: content and hints are for any asker
    sources: tuple[Source, ...] = ()
    error: str = ""
    hints: tuple[str, ...] = ()  # what to try next
    input: Mapping[str, Any] = field(default_factory=dict)
    usage: Usage = field(default_factory=Usage)  # usage of a model that the tool itself called
    call: ModelCall | None = None  # that model's request
    generated: str = ""  # that model's text: the writer reads all of it, as text that is not a source
    place: str = ""
    away: bool = False  # the tool could not look into its ``place``
    documents_so_far: int | None = None  # number of documents while Orion is still reading them
    found_nothing_new: bool = False  # the turn has all of its sources already


class ToolFailed(Exception):  # noqa: N818 - an outcome that tools expect
    """An expected failure. The text tells the model why, and ``hints`` say what to try next. ``away`` is as above."""

    hints: tuple[str, ...] = ()
    away = False

    # Raised as ToolFailed(why="…"): ruff (EM101) forbids a literal as an exception's first positional argument.
    def __init__(self, why: str, *hints: str) -> None:
        super().__init__(why)
        self.hints = hints or self.hints


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """Description of a tool for the model."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    takes_s: float = 0.0  # the time-out, if an admin allowed more than any tool gets
    place: str = ""  # where it looks: people are told if that fails


class Tool(Protocol):
    """One ability. ``run`` gets input already checked against ``spec.parameters``."""

    @property
    def spec(self) -> ToolSpec:
        """Description for the model."""

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Run it. ``call_tool`` turns ``ToolFailed`` into a result with its text, and other exceptions into a crash."""


async def call_tool(tools: Mapping[str, Tool], call: ToolCall, *, timeout_s: float, max_chars: int) -> ToolResult:
    """Run one call inside the wall. It always returns a result within ``timeout_s`` or ``ToolSpec.takes_s`` seconds.

    ``max_chars`` limits the content and the text of each source: claims are verified against what the model saw.
    """
    began, tool = time.monotonic(), tools.get(call.tool)
    arguments = coerce(call.input, tool.spec.parameters) if tool else {}
    if tool is None:
        known = ", ".join(sorted(tools)) or "none"
        result = _failure("There is no tool of this name.", f"The tools are: {known}.")
    elif wrong := "; ".join(islice(faults(arguments, tool.spec.parameters), MAX_FAULTS)):
        result = _failure(f"Bad parameters: {wrong}.", "Call it again with the parameters corrected.")
    else:
        result = await _run(tool, replace(call, input=arguments), max(timeout_s, tool.spec.takes_s))
        result = _truncate_result(result, max_chars)
    line = log.debug if result.ok else log.info
    line(
        "tool_called",
        # An unknown name came from the model and may be any text.
        tool=call.tool if tool else "unknown",
        ok=result.ok,
        latency_ms=round((time.monotonic() - began) * 1000, 1),
        content_length=Length(result.content),
        sources=len(result.sources),
    )
    place = tool.spec.place if tool else ""
    return replace(result, call_id=call.call_id, tool=call.tool, input=call.input, place=place)


async def _run(tool: Tool, call: ToolCall, timeout_s: float) -> ToolResult:
    try:
        async with asyncio.timeout(timeout_s) as limit:
            return await tool.run(call.input)
    except ToolFailed as failure:
        return replace(_failure(str(failure), *failure.hints), away=failure.away)
    except Exception as error:  # a wall: a tool never ends a turn
        if isinstance(error, TimeoutError) and limit.expired():
            late = _failure(f"No result within {timeout_s:g} seconds.", "Ask for less, or try again.")
            return replace(late, away=True)
        failure_id = uuid4().hex[:12]
        log.exception("tool_crashed", tool=call.tool, failure_id=failure_id)
        crashed = _failure(f"The tool failed inside (failure {failure_id}).", "Go on without it, or try other input.")
        return replace(crashed, away=True)


async def error_of(run: Callable[[], Awaitable[None]]) -> Exception | None:
    """Run inside the same wall. Return the exception, if there was one, without the groups in which tasks wrap it."""
    try:
        await run()
    except Exception as error:  # noqa: BLE001 - a wall (docs/architecture.md): a server never ends Orion, nor a store a turn
        cause: BaseException = error
        while isinstance(cause, BaseExceptionGroup):
            cause = cause.exceptions[0]
        return cause if isinstance(cause, Exception) else error
    return None


def guard_listener(listener: Callable[[Event], None]) -> Callable[[Event], None]:
    """Put the wall around a listener: its exceptions are logged, and the turn continues."""

    def listen(event: Event) -> None:
        try:
            listener(event)
        except Exception:  # a wall (docs/architecture.md): a listener never ends a turn
            log.exception("listener_failed", to=type(event).__name__)

    return listen


def _truncate_result(result: ToolResult, max_chars: int) -> ToolResult:
    sources = tuple(s if len(s.text) <= max_chars else replace(s, text=s.text[:max_chars]) for s in result.sources)
    content = result.content
    if len(content) > max_chars:
        content = f"{content[:max_chars]}\n[Cut off: {max_chars} of {len(content)} characters are shown.]"
    if sources != result.sources:
        content += f"\n[Cut off: of a long source only the first {max_chars} characters are shown.]"
    return replace(result, content=content, sources=sources, generated=result.generated[:max_chars])


def _failure(error: str, *hints: str) -> ToolResult:
    return ToolResult(ok=False, error=error, hints=hints)


def coerce(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as models mean them: drop null for an optional parameter, read 500.0 for an integer as 500."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    coerced: dict[str, Any] = {}
    for name, value in arguments.items():
        parameter = properties.get(name)
        kinds = parameter.get("type", ()) if isinstance(parameter, Mapping) else ()
        if value is None and kinds and "null" not in kinds and name not in required:
            continue
        is_whole = isinstance(value, float) and value.is_integer() and "integer" in kinds and "number" not in kinds
        coerced[name] = int(value) if is_whole else value
    return coerced


def faults(value: object, schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield one sentence per fault, none if ``value`` fits."""
    for error in _Validator(schema).iter_errors(value):
        place = error.json_path.removeprefix("$").removeprefix(".")
        said = error.message.replace(repr(error.instance), f"'{place}'" if place else "the input", 1)
        limit = error.validator_value
        is_named = not isinstance(limit, int) or isinstance(limit, bool) or str(limit) in said
        yield said if is_named else f"{said} ({error.validator}: {limit})"


def spec_of(name: str, **gaps: str) -> ToolSpec:
    """Return the description of a tool. Its input has the properties of ``takes``, others only if it is ``open``."""
    spec = _SPECS[name]
    required = {"required": spec["required"]} if "required" in spec else {}
    closed = {} if spec.get("open") else {"additionalProperties": False}
    parameters = {"type": "object", "properties": spec.get("takes", {}), **required, **closed}
    description = spec["description"].format(**gaps)
    return ToolSpec(name=name, description=description, parameters=parameters, place=spec.get("place", ""))


def parameter(tool: str, name: str) -> Mapping[str, Any]:
    """Return one parameter of a tool: its default and its limits."""
    described: Mapping[str, Any] = _SPECS[tool]["takes"][name]
    return described

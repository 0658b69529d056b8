"""structlog and the standard logging, set up so that no content and no secret is logged.

A field with a text becomes its length, an exception its type and place; debug adds the first 100 characters. Libraries
are logged from WARNING on, each place once a minute, and their texts count as content.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Mapping, MutableMapping, Sequence, Sized
from json import dumps
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, Self, TextIO

import orjson
import structlog
from structlog.typing import EventDict, Processor

from observability.redaction import known_secrets, redact, redact_field

CONTENT = frozenset({
    "answer", "answers", "arguments", "blocks", "body", "chunk", "chunks", "content", "context", "description",
    "detail", "draft", "feedback", "headers", "history", "input", "label", "message", "messages", "mission",
    "output", "passage", "passages", "payload", "preview", "prompt", "query", "question", "reply", "request",
    "response", "result", "results", "snippet", "source", "sources", "summary", "text", "texts", "title", "topic",
    "value", "words",
})  # fmt: skip
SHOWN_IN_DEBUG = 100
# Whatever the field: no fact needs more, and a text that came under another name is cut.
LONGEST = 300
# The innermost ones name the fault; all of them would fill the log with the frameworks.
FRAMES = 6
# A library that fails again and again says the same: once a minute is enough to see it.
AGAIN_S = 60.0
# A library that makes up its lines must not fill the memory; then each is shown once more.
MOST_REMEMBERED = 1_000
# What an operator should make of a library's line whatever it says.
_NOTES = {
    "opentelemetry": "traces may be lost; answers are not affected",
    "slack_bolt": "the connection to Slack; /readyz says whether it stands",
    "slack_sdk": "the connection to Slack; /readyz says whether it stands",
}
# What these say below WARNING may quote tokens, prompts and bodies; a bad signature is logged with its body at INFO.
LIBRARIES = ("slack_bolt", "slack_sdk", "aiohttp", "openai", "httpx", "httpx2", "langfuse", "opentelemetry", "urllib3")


def configure(
    *, json: bool, debug: bool, level: str = "INFO", stream: TextIO | None = None, secrets: Iterable[str] = ()
) -> None:
    """Set up logging for the process: JSON or, for a person at a terminal, aligned text; to standard error.

    ``level`` is that of our own events. ``debug`` shows all of them, with the first 100 characters of texts.
    ``secrets`` are the configured ones, which need not look like any.
    """
    out = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
        _exception(debug=debug),
        protect(debug=debug, known=known_secrets(secrets)),
    ]
    lowest = logging.DEBUG if debug else logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, _renderer(json=json)],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    handler.setLevel(logging.WARNING)
    handler.setFormatter(_LibraryFormatter([*shared, _renderer(json=json)], debug=debug))
    handler.addFilter(_Repeats())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    for name in ("langfuse", "opentelemetry.exporter"):  # each failed request: `langfuse_failing` says it once
        logging.getLogger(name).setLevel(logging.CRITICAL)
    logging.captureWarnings(capture=True)


class Length(int):
    """How long a text is, which is all that an event tells of it: ``prompt_length=Length(prompt)``.

    The text comes along for ``protect``, which adds its first 100 characters as ``prompt`` in debug and only there.
    """

    text: str

    def __new__(cls, text: str) -> Self:
        """The length of ``text``, a whole number for whoever looks at it."""
        length = super().__new__(cls, len(text))
        length.text = text
        return length


def protect(*, debug: bool, known: re.Pattern[str] | None = None) -> Processor:
    """The processor that lets no content and no secret through, none of those that ``known`` finds either."""

    def protected(_: Any, __: str, event: EventDict) -> EventDict:
        kept: EventDict = {}
        for name, value in event.items():
            if name in CONTENT and not isinstance(value, int | float | None):
                kept[f"{name}_length"] = len(value if isinstance(value, Sized) else str(value))
                if debug:
                    kept[name] = _beginning(value, known)
            elif isinstance(value, Length):
                kept[name] = int(value)
                if debug:
                    kept[name.rpartition("_")[0]] = _beginning(value.text, known)
            else:
                kept[name] = _clipped(redact_field(name, value, known=known), LONGEST)
        return kept

    return protected


def _renderer(*, json: bool) -> Processor:
    if not json:
        return structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())

    def rendered(_: Any, __: str, event: MutableMapping[str, Any]) -> str:
        try:
            return orjson.dumps(event).decode()
        except TypeError:  # an integer of more than 64 bits
            return dumps(event)

    return rendered


def _exception(*, debug: bool) -> Processor:
    """An exception becomes its type and its innermost frames: its own text may quote anything."""

    def told(_: Any, __: str, event: EventDict) -> EventDict:
        given = event.pop("exc_info", None)
        given = (*given, None, None)[1] if isinstance(given, tuple) else given
        error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given is True else None
        if error is not None:
            innermost = extract_tb(error.__traceback__)[-FRAMES:]
            event["error_type"] = type(error).__name__
            event["frames"] = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in innermost]
            if debug:
                event["error_text"] = _clipped(str(error), SHOWN_IN_DEBUG)
        return event

    return told


class _Repeats(logging.Filter):
    """Lets each line of a library's source through once a minute; the next one says how many were held back."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: dict[tuple[str, str, int], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this one is to be shown; sets its ``held_back``."""
        line = (record.name, record.pathname, record.lineno)
        then, held = self._shown.get(line, (record.created - AGAIN_S, 0))
        if 0 <= record.created - then < AGAIN_S:
            self._shown[line] = (then, held + 1)
            return False
        if len(self._shown) >= MOST_REMEMBERED:
            self._shown.clear()
        self._shown[line] = (record.created, 0)
        record.held_back = held
        return True


class _LibraryFormatter(logging.Formatter):
    """A library's record as an event: where it was logged, and its text only in debug."""

    def __init__(self, processors: Sequence[Processor], *, debug: bool) -> None:
        super().__init__()
        self._processors = processors
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        text = _message(record)
        event: Any = {
            "event": "library_log",
            "logger": record.name,
            "where": f"{PurePath(record.pathname).name}:{record.lineno}",
            "text_length": len(text),
            "exc_info": record.exc_info,
        }
        if record.args and isinstance(record.msg, str):  # then it is a constant of the library's source
            event["template"] = record.msg
        if note := _NOTES.get(record.name.partition(".")[0]):
            event["note"] = note
        if held := getattr(record, "held_back", 0):
            event["held_back"] = held
        if self._debug:
            event["text"] = text
        for process in self._processors:
            event = process(None, record.levelname.lower(), event)
        return str(event)


def _message(record: logging.LogRecord) -> str:
    """The text; a template that does not fit its arguments is told as it stands."""
    try:
        return record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _beginning(value: object, known: re.Pattern[str] | None) -> Any:
    """What debug shows of a text, or of what holds texts."""
    return _clipped(redact(value if isinstance(value, str) else str(value), known=known), SHOWN_IN_DEBUG)


def _clipped(value: Any, most: int) -> Any:
    """Only what JSON knows, every string in it encodable and of at most ``most`` characters."""
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
        return text if len(text) <= most else f"{text[:most]}…"
    if isinstance(value, Mapping):
        return {key: _clipped(item, most) for key, item in value.items()}
    if isinstance(value, list):
        return [_clipped(item, most) for item in value]
    # Any other object could print a text that it carries.
    return value if isinstance(value, int | float | None) else f"<{type(value).__name__}>"

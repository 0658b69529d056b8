"""structlog and the standard logging, set up so that neither content nor secrets are logged.

A field with a text becomes its length, an exception its type and place; debug adds the first 100 characters. Lines from
libraries are logged from WARNING on, each of them once a minute, and their texts count as content.
"""

import logging
import re
import sys
import time
from collections.abc import Iterable, Mapping, Sequence, Sized
from pathlib import PurePath
from traceback import extract_tb
from typing import Any, Self, TextIO

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
MAX_IN_DEBUG = 100
MAX_VALUE = 300  # maximum characters of a field: no fact needs more, and it truncates texts under unknown names
MAX_FRAMES = 6  # the innermost frames show the fault; all of them would fill the log with frameworks
REPEAT_INTERVAL_S = 60.0
REPEATED = frozenset({
    "slack_signature_refused", "connection_refused",  # anyone can cause them, without a signature
    "redis_unavailable", "cancellations_unheard", "sweep_failed", "beat_failed", "heartbeat_failed",  # in an outage
})  # fmt: skip
MAX_LINES = 1_000  # library lines to remember: a library that generates its lines must not fill the memory
# The meaning of library lines for an operator, who does not see their text.
_SLACK_NOTE = "the connection to Slack (/readyz says if it is up), or an event of a workspace that is not served"
_NOTES = {
    "opentelemetry": "traces may be lost; answers are not affected",
    "slack_bolt": _SLACK_NOTE,
    "slack_sdk": _SLACK_NOTE,
}
# Their lines below WARNING may quote tokens, prompts and bodies; a bad signature is logged with its body at INFO.
LIBRARIES = ("slack_bolt", "slack_sdk", "aiohttp", "openai", "httpx", "httpx2", "langfuse", "opentelemetry", "urllib3")


def configure(
    *, json: bool, debug: bool, level: str = "INFO", stream: TextIO | None = None, secrets: Iterable[str] = ()
) -> None:
    """Set up logging for the process, to standard error: JSON or, for a person at a terminal, aligned text.

    ``level`` is that of our own events. ``debug`` shows all of them, with the first 100 characters of texts.
    ``secrets`` are the configured ones, which may not look like secrets.
    """
    out = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        _exception(debug=debug),
        protect(debug=debug, known=known_secrets(secrets)),
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]
    as_json = structlog.processors.JSONRenderer(ensure_ascii=False, separators=(",", ":"))
    renderer: Processor = as_json if json else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    lowest = logging.DEBUG if debug else logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[_Repeats().limit, *shared, renderer],
        wrapper_class=structlog.make_filtering_bound_logger(lowest),
        logger_factory=structlog.WriteLoggerFactory(out),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(out)
    # Libraries that lower their own level would log texts. The SDK does so only for LANGFUSE_DEBUG.
    handler.addFilter(lambda record: record.levelno >= logging.WARNING or record.name == "langfuse")
    handler.setFormatter(_LibraryFormatter([*shared, renderer], debug=debug))
    handler.addFilter(_Repeats().admit)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    for name in LIBRARIES:
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("opentelemetry.exporter").setLevel(logging.CRITICAL)  # `langfuse_failing` says it once
    logging.captureWarnings(capture=True)


class Length(int):
    """The length of a text, which is all that an event says about it: ``prompt_length=Length(prompt)``.

    It keeps the text for ``protect``, which adds the first 100 characters as ``prompt`` only in debug.
    """

    text: str

    def __new__(cls, text: str) -> Self:
        """Return the length of ``text``, which behaves like an ordinary integer."""
        length = super().__new__(cls, len(text))
        length.text = text
        return length


def protect(*, debug: bool, known: re.Pattern[str] | None = None) -> Processor:
    """Return the processor that removes content and secrets, including those that ``known`` matches."""

    def remove_content(_: Any, __: str, event: EventDict) -> EventDict:
        clean: EventDict = {}
        for name, value in event.items():
            if name in CONTENT and not isinstance(value, int | float | None):
                clean[f"{name}_length"] = len(value if isinstance(value, Sized) else str(value))
                if debug:
                    clean[name] = _preview(value, known)
            elif isinstance(value, Length):
                clean[name] = int(value)
                if debug:
                    clean[name.rpartition("_")[0]] = _preview(value.text, known)
            else:
                clean[name] = _truncate(redact_field(name, value, known=known), MAX_VALUE)
        return clean

    return remove_content


def _exception(*, debug: bool) -> Processor:
    """Return the processor that reduces an exception to type and innermost frames: its text may quote content."""

    def describe(_: Any, __: str, event: EventDict) -> EventDict:
        given = event.pop("exc_info", None)
        given = (*given, None, None)[1] if isinstance(given, tuple) else given
        error = given if isinstance(given, BaseException) else sys.exc_info()[1] if given is True else None
        if error is not None:
            innermost = extract_tb(error.__traceback__)[-MAX_FRAMES:]
            event["error_type"] = type(error).__name__
            event["frames"] = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in innermost]
            if debug:
                event["error_text"] = _truncate(str(error), MAX_IN_DEBUG)
        return event

    return describe


class _Repeats:
    """Lets each line through once a minute, and counts those held back before it."""

    def __init__(self) -> None:
        self._shown: dict[object, tuple[float, int]] = {}

    def count_before(self, line: object, at: float) -> int | None:
        """Return how many were held back before this line, or None if it is held back too."""
        then, held = self._shown.get(line, (at - REPEAT_INTERVAL_S, 0))
        if 0 <= at - then < REPEAT_INTERVAL_S:
            self._shown[line] = (then, held + 1)
            return None
        if len(self._shown) >= MAX_LINES:
            self._shown.clear()
        self._shown[line] = (at, 0)
        return held

    def admit(self, record: logging.LogRecord) -> bool:
        """Decide whether a library's record is shown, and set its ``held_back``."""
        held = self.count_before((record.name, record.pathname, record.lineno), record.created)
        record.held_back = held
        return held is not None

    def limit(self, _: Any, __: str, event: EventDict) -> EventDict:
        """Drop an event that would fill the log, or add its ``held_back``. Each ``cause`` has lines of its own."""
        if event["event"] in REPEATED:
            held = self.count_before((event["event"], event.get("cause")), time.time())
            if held is None:
                raise structlog.DropEvent
            event["held_back"] = held
        return event


class _LibraryFormatter(logging.Formatter):
    """Formats a library's record as an event: where it was logged, and its text only in debug."""

    def __init__(self, processors: Sequence[Processor], *, debug: bool) -> None:
        super().__init__()
        self._processors = processors
        self._debug = debug

    def format(self, record: logging.LogRecord) -> str:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):  # a template that does not fit its arguments
            text = str(record.msg)
        event: Any = {
            "event": "library_log",
            "logger": record.name,
            "where": f"{PurePath(record.pathname).name}:{record.lineno}",
            "text_length": len(text),
            "exc_info": record.exc_info,
        }
        if record.args and isinstance(record.msg, str):  # then it is a constant from the library's source
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


def _preview(value: object, known: re.Pattern[str] | None) -> Any:
    return _truncate(redact(value if isinstance(value, str) else str(value), known=known), MAX_IN_DEBUG)


def _truncate(value: Any, limit: int) -> Any:
    """Return ``value`` in a form that JSON allows, with encodable strings of at most ``limit`` characters."""
    if isinstance(value, str):
        text = value if value.isascii() else value.encode("utf-8", "replace").decode("utf-8")
        return text if len(text) <= limit else f"{text[:limit]}…"
    if isinstance(value, Mapping):
        return {key: _truncate(item, limit) for key, item in value.items()}
    if isinstance(value, list):
        return [_truncate(item, limit) for item in value]
    # Any other object could print a text that it contains.
    return value if isinstance(value, int | float | None) else f"<{type(value).__name__}>"

import io
import json
import logging
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import structlog

from observability.logging import MAX_LINES, Length, configure

TEXT = "the merger is called Bluebird"
TOKEN = "xoxb-1234567890-abcdefghij"


@dataclass
class Carrier:
    text: str


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """The log as JSON lines, without debug, unless a test configures it again."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    root.handlers = []
    stream = io.StringIO()
    configure(json=True, debug=False, stream=stream)
    yield stream
    logging.captureWarnings(capture=False)
    root.handlers, root.level = handlers, level
    structlog.reset_defaults()
    structlog.contextvars.clear_contextvars()


def lines(stream: io.StringIO, logger: str | None = None) -> list[dict[str, Any]]:
    """The lines of one library, or our own: what earlier tests left behind may speak up whenever it is collected."""
    return [told for told in map(json.loads, stream.getvalue().splitlines()) if told.get("logger") == logger]


def test_each_log_line_is_a_json_object_with_the_bound_ids(stream: io.StringIO) -> None:
    with structlog.contextvars.bound_contextvars(thread="T:C:1", trace="abc"):
        structlog.get_logger().info("turn_started", attempt=1, ok=True, rules=("a", "b"))
    structlog.get_logger().debug("not_shown")
    structlog.get_logger().warning("later")
    first, second = lines(stream)
    assert first.pop("at").endswith("Z")
    assert first == {
        "event": "turn_started", "level": "info", "thread": "T:C:1", "trace": "abc", "attempt": 1, "ok": True,
        "rules": ["a", "b"],
    }  # fmt: skip
    assert "thread" not in second


@pytest.mark.parametrize("field", ["text", "prompt", "answer", "question", "body", "message", "context", "mission"])
def test_content_becomes_its_length(stream: io.StringIO, field: str) -> None:
    structlog.get_logger().info("fact", **{field: TEXT})
    structlog.get_logger().info("fact", **{field: {"a": TEXT}})
    structlog.get_logger().info("fact", **{field: 7})
    assert TEXT not in stream.getvalue()
    assert [line.get(f"{field}_length", line.get(field)) for line in lines(stream)] == [len(TEXT), 1, 7]


def test_debug_adds_the_first_hundred_characters_but_no_secret(stream: io.StringIO) -> None:
    configure(json=True, debug=True, stream=stream)
    structlog.get_logger().info("fact", prompt=f"{TOKEN} {TEXT} " + "x" * 200, answer=[TEXT])
    (line,) = lines(stream)
    assert line["prompt"].startswith(f"[redacted] {TEXT}")
    assert len(line["prompt"]) == 101
    assert line["answer"] == f"['{TEXT}']"
    assert TOKEN not in stream.getvalue()


def test_a_length_shows_its_text_only_in_debug(stream: io.StringIO) -> None:
    length = Length(f"{TOKEN} {TEXT} " + "x" * 200)
    for debug in (False, True):
        configure(json=True, debug=debug, stream=stream)
        structlog.get_logger().info("fact", mission_length=length, context_size=Length(TEXT), at_length=len(TEXT))
    told, shown = lines(stream)
    facts = {"mission_length": len(length.text), "context_size": len(TEXT), "at_length": len(TEXT)}
    assert told | {"at": ""} == {"event": "fact", "level": "info", "at": "", **facts}
    assert shown | {"at": ""} == told | {"at": "", "mission": shown["mission"], "context": TEXT}
    assert shown["mission"].startswith(f"[redacted] {TEXT}")
    assert len(shown["mission"]) == 101
    assert TEXT not in f"{length} {length!r}"


def test_secrets_are_redacted_in_every_field_and_long_texts_are_cut(stream: io.StringIO) -> None:
    structlog.get_logger().error("fact", url=f"https://a/{TOKEN}", nested={"k": [TOKEN]}, token="t", odd="y" * 999)
    (line,) = lines(stream)
    assert TOKEN not in stream.getvalue()
    assert line["token"] == "[redacted]"
    assert len(line["odd"]) == 301


def test_a_configured_secret_is_redacted_even_if_it_does_not_look_like_one(stream: io.StringIO) -> None:
    plain, sealing = "8f742231b10e8888abcd99", "correct horse battery"
    configure(json=True, debug=True, stream=stream, secrets=("", "abc", plain, sealing, plain + "yyy"))
    structlog.get_logger().warning(
        "fact", at_all=f"a{plain}b", nested={"k": [sealing]}, mission=plain, n_length=Length(sealing), odd="abc"
    )
    logging.getLogger("asyncio").warning("%s", plain + "yyy")
    assert not any(secret in stream.getvalue() for secret in (plain, sealing))
    (line,) = lines(stream)
    assert (line["at_all"], line["nested"], line["mission"], line["n"], line["odd"]) == (
        "a[redacted]b", {"k": ["[redacted]"]}, "[redacted]", "[redacted]", "abc",
    )  # fmt: skip


def test_an_exception_is_logged_as_its_type_and_place(stream: io.StringIO) -> None:
    log = structlog.get_logger()
    try:
        dict[str, str]()[TEXT]
    except KeyError as error:
        log.exception("crashed")
        log.warning("crashed", exc_info=error)
        log.warning("crashed", exc_info=(type(error), error, error.__traceback__))
    log.warning("crashed", exc_info=True)  # noqa: LOG014 (outside on purpose: there is nothing to tell)
    log.warning("crashed", exc_info=())
    told = lines(stream)
    assert [line.get("error_type") for line in told] == ["KeyError"] * 3 + [None] * 2
    assert told[0]["frames"][0].startswith("test_logging.py:")
    assert TEXT not in stream.getvalue()


def test_debug_adds_the_text_of_an_exception(stream: io.StringIO) -> None:
    configure(json=True, debug=True, stream=stream)
    structlog.get_logger().error("crashed", exc_info=ValueError(TEXT))
    assert lines(stream)[0]["error_text"] == TEXT


def test_libraries_are_heard_from_warning_on_and_without_their_texts(stream: io.StringIO) -> None:
    configure(json=True, debug=False, level="DEBUG", stream=stream)
    library = logging.getLogger("slack_bolt.AsyncApp")
    library.setLevel(logging.DEBUG)
    library.info("body: %s", TEXT)
    library.warning("failed for %s", TEXT)
    library.error(f"failed for {TEXT}")
    try:
        int(TEXT)
    except ValueError:
        library.exception("broken")
    library.error("%d", "no number")
    told = lines(stream, library.name)
    assert [line["level"] for line in told] == ["warning", "error", "error", "error"]
    assert told[0] | {"at": "", "where": ""} == {
        "event": "library_log", "logger": "slack_bolt.AsyncApp", "level": "warning", "template": "failed for %s",
        "text_length": len(TEXT) + 11, "at": "", "where": "", "note": told[0]["note"],
    }  # fmt: skip
    assert "template" not in told[1]
    assert told[2]["error_type"] == "ValueError"
    assert TEXT not in stream.getvalue()


def test_langfuse_logs_its_steps_if_its_sdk_is_set_to_debug(stream: io.StringIO) -> None:
    library = logging.getLogger("langfuse")
    library.setLevel(logging.DEBUG)  # what the SDK does for LANGFUSE_DEBUG
    library.debug("sending %s", TEXT)
    assert [line["template"] for line in lines(stream, "langfuse")] == ["sending %s"]
    assert TEXT not in stream.getvalue()


def test_a_failing_library_logs_one_explained_line_a_minute(stream: io.StringIO) -> None:
    library, moments = logging.getLogger("slack_sdk"), iter([100.0, 101.0, 159.9, 160.0, 161.0, 90.0])

    def log_failure(created: float) -> None:
        record = library.makeRecord("slack_sdk", logging.ERROR, "client.py", 204, "lost %s", (TEXT,), None)
        record.created = created
        library.handle(record)

    for moment in moments:
        log_failure(moment)
    told = lines(stream, library.name)
    assert [line.get("held_back", 0) for line in told] == [0, 2, 1]  # a clock that was set back holds nothing back
    (note,) = {line["note"] for line in told}
    assert "/readyz" in note


def test_an_event_that_would_fill_the_log_has_one_line_a_minute(
    stream: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    for moment in (100.0, 101.0, 159.9, 160.0, 161.0, 90.0):
        monkeypatch.setattr("observability.logging.time.time", lambda moment=moment: moment)
        structlog.get_logger().warning("redis_unavailable", cause="full")
        structlog.get_logger().warning("turn_started")
    structlog.get_logger().warning("redis_unavailable", cause="wrong password")
    shown = [(line["cause"], line["held_back"]) for line in lines(stream) if line["event"] == "redis_unavailable"]
    assert shown == [("full", 0), ("full", 2), ("full", 1), ("wrong password", 0)]
    assert len(lines(stream)) == 4 + 6


def test_the_memory_of_repeated_log_lines_is_bounded(stream: io.StringIO) -> None:
    library = logging.getLogger("somebody")
    for number in [*range(MAX_LINES + 1), 0]:
        library.handle(library.makeRecord("somebody", logging.ERROR, "a.py", number, "failed", (), None))
    assert len(lines(stream, library.name)) == MAX_LINES + 2  # the first was forgotten, not remembered for ever


def test_debug_shows_the_beginning_of_a_librarys_message(stream: io.StringIO) -> None:
    configure(json=True, debug=True, stream=stream)
    logging.getLogger("asyncio").warning("slow")
    assert lines(stream, "asyncio")[-1]["text"] == "slow"


def test_warnings_go_the_same_way(stream: io.StringIO) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.warn(TEXT, UserWarning, stacklevel=1)
    assert lines(stream, "py.warnings")
    assert TEXT not in stream.getvalue()


def test_a_person_at_a_terminal_gets_readable_lines(stream: io.StringIO) -> None:
    configure(json=False, debug=False, stream=stream)
    structlog.get_logger().info("turn_started", text=TEXT, lone="\ud800")
    logging.getLogger("x").warning(TEXT)
    assert "turn_started" in stream.getvalue()
    assert "text_length" in stream.getvalue()
    assert TEXT not in stream.getvalue()


def test_odd_values_never_break_a_line(stream: io.StringIO) -> None:
    structlog.get_logger().info(
        "odd", value=Carrier(text="x" * 2), thing=Carrier(text=TEXT), lone="\ud800", keys={1: "a"}, big=2**70
    )
    assert lines(stream)[0] | {"at": ""} == {
        "event": "odd", "level": "info", "at": "", "thing": "<Carrier>", "lone": "?", "keys": {"1": "a"},
        "big": 2**70, "value_length": 18,
    }  # fmt: skip
    assert TEXT not in stream.getvalue()

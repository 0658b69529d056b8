"""Sizes, blocks and call rates, with Slack's error names. Figures that Slack does not document are marked."""

import json
import math
import time
from collections.abc import Callable, Iterator, Sized
from dataclasses import dataclass, field
from typing import Any, Final

from bot.local.model.errors import ApiError, invalid
from bot.local.model.roster import Json

TEXT_KEPT: Final = 40_000  # longer texts are cut, with the warning ``message_truncated``
UPDATE_TEXT: Final = 4_000  # without blocks in ``chat.update``: undocumented, reported as ``msg_too_long``
MARKDOWN: Final = 12_000  # of all ``markdown`` blocks of a payload together (Slack's page on that block)
BLOCKS_TEXT: Final = 13_200  # all text of blocks: undocumented, measured by others (``msg_blocks_too_long``)
MESSAGE_BLOCKS: Final = 50  # Slack's page on blocks: 50 in a message, 100 in a modal or App Home
VIEW_BLOCKS: Final = 100
METADATA_BYTES: Final = 16_000  # undocumented; answers ``metadata_too_large`` beyond
SECTION_TEXT: Final = 3_000
SECTION_FIELDS: Final = 10
FIELD_TEXT: Final = 2_000
HEADER_TEXT: Final = 150
ID_TEXT: Final = 255
BUTTON_TEXT: Final = 75
BUTTON_VALUE: Final = 2_000
BUTTON_URL: Final = 3_000
TABLE_ROWS: Final = 100
TABLE_COLUMNS: Final = 20
TABLE_TEXT: Final = 10_000  # characters of all cells in a message together
ELEMENTS: Final = {"context": 10, "actions": 25, "context_actions": 5}

Faults = Iterator[tuple[str, str]]  # the faults, each with the JSON pointer of its place

_TIERS: Final = {
    20: (
        *("chat.startStream", "chat.stopStream", "conversations.list", "usergroups.list"),
        *("users.list", "reactions.remove"),
    ),
    50: (
        *("conversations.replies", "conversations.history", "conversations.info", "chat.update", "chat.delete"),
        *("agents.sessions.setStatus", "agents.sessions.rename"),
        *("conversations.open", "reactions.add", "reactions.get", "team.info"),
    ),
    100: (
        *("chat.appendStream", "chat.postEphemeral", "users.info", "views.open", "views.publish", "files.info"),
        *("views.push", "views.update", "conversations.members", "assistant.threads.setTitle"),
    ),
}
"""Methods by their documented calls a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """The rates and times in force, times in seconds."""

    rates: bool = True
    post_burst: int = 5  # posts to one channel before the rate of one a second applies; Slack says only "short bursts"
    post_per_second: float = 1.0
    calls_a_minute: dict[str, int] = field(
        default_factory=lambda: {method: calls for calls, methods in _TIERS.items() for method in methods}
    )
    stream_seconds: float = 300.0  # undocumented: reported by many (python-slack-sdk #1859)
    status_seconds: float = 120.0  # Slack's page on ``assistant.threads.setStatus``
    trigger_seconds: float = 3.0  # as Slack's page on modals says
    ack_seconds: float = 3.0  # Slack's page on the Events API, as for the retries
    retry_delays: tuple[float, ...] = (0.0, 60.0, 300.0)  # at once, a minute and five minutes later


LENIENT = Strictness(rates=False)  # Slack's sizes and names, but no call rates: for tests that ask quickly


def check_blocks(blocks: list[Json]) -> None:
    """Refuse blocks of a message. Raises ``ApiError``: ``invalid_blocks`` or ``msg_blocks_too_long``."""
    if faults := block_faults(blocks, limit=MESSAGE_BLOCKS):
        raise invalid(faults, error="invalid_blocks")
    markdown = sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
    if markdown > MARKDOWN or text_length(blocks) > BLOCKS_TEXT:
        raise ApiError(error="msg_blocks_too_long")


def check_markdown(text: str) -> None:
    """Refuse a ``markdown_text`` over its limit. Raises ``ApiError``: ``msg_too_long``."""
    if len(text) > MARKDOWN:
        raise ApiError(error="msg_too_long")


def check_metadata(value: Any) -> Json:
    """Return the metadata of a message, validated."""
    if not isinstance(value, dict):
        raise ApiError(error="invalid_metadata_format")
    event_type, payload = value.get("event_type"), value.get("event_payload")
    if not isinstance(event_type, str) or not event_type or not isinstance(payload, dict):
        raise ApiError(error="invalid_metadata_schema")
    if len(json.dumps(value).encode()) > METADATA_BYTES:
        raise ApiError(error="metadata_too_large")
    return {"event_type": event_type, "event_payload": payload}


def too_long(value: object, limit: int, at: str) -> Faults:
    """A fault when ``value`` has more than ``limit`` characters."""
    if len(str(value or "")) > limit:
        yield f"must be less than {limit + 1} characters", at


def _too_many(items: Sized, limit: int, at: str) -> Faults:
    if len(items) > limit:
        yield f"no more than {limit} items allowed", at


def _text_object(value: object, limit: int, at: str, *, plain: bool = False) -> Faults:
    if not isinstance(value, dict):
        yield "must provide an object", at
        return
    allowed = ["plain_text"] if plain else ["mrkdwn", "plain_text"]
    if value.get("type") not in allowed:
        yield f"must be one of {allowed}", f"{at}/type"
    text = value.get("text")
    if not isinstance(text, str):
        yield "must be a string", f"{at}/text"
    elif not text:
        yield "must be more than 0 characters", f"{at}/text"
    else:
        yield from too_long(text, limit, f"{at}/text")


def _section(block: Json, at: str) -> Faults:
    text, fields = block.get("text"), block.get("fields") or []
    if not text and not fields:
        yield "missing required field: text or fields", at
    if text:
        yield from _text_object(text, SECTION_TEXT, f"{at}/text")
    yield from _too_many(fields, SECTION_FIELDS, f"{at}/fields")
    for number, one in enumerate(fields):
        yield from _text_object(one, FIELD_TEXT, f"{at}/fields/{number}")
    if accessory := block.get("accessory"):
        yield from _element(accessory, f"{at}/accessory")


def _elements(block: Json, at: str) -> Faults:
    yield from _too_many(block["elements"], ELEMENTS[block["type"]], f"{at}/elements")
    for number, element in enumerate(block["elements"]):
        where = f"{at}/elements/{number}"
        if block["type"] == "context" and element.get("type") in ("mrkdwn", "plain_text"):
            yield from _text_object(element, SECTION_TEXT, where)
        else:
            yield from _element(element, where)


def _element(element: Json, at: str) -> Faults:
    yield from too_long(element.get("action_id"), ID_TEXT, f"{at}/action_id")
    kind = element.get("type")
    if kind == "feedback_buttons":
        for side in ("positive_button", "negative_button"):
            yield from _button(element.get(side) or {}, f"{at}/{side}")
    elif kind in ("button", "icon_button"):
        yield from _button(element, at)
    elif not kind:
        yield "missing required field: type", f"{at}/type"


def _button(element: Json, at: str) -> Faults:
    yield from _text_object(element.get("text"), BUTTON_TEXT, f"{at}/text", plain=True)
    yield from too_long(element.get("value"), BUTTON_VALUE, f"{at}/value")
    yield from too_long(element.get("url"), BUTTON_URL, f"{at}/url")


def _table(block: Json, at: str) -> Faults:
    yield from _too_many(block["rows"], TABLE_ROWS, f"{at}/rows")
    for number, row in enumerate(block["rows"]):
        yield from _too_many(row, TABLE_COLUMNS, f"{at}/rows/{number}")


def _image(block: Json, at: str) -> Faults:
    if not block.get("image_url") and not block.get("slack_file"):
        yield "missing required field: image_url", at
    if not block.get("alt_text"):
        yield "missing required field: alt_text", f"{at}/alt_text"


_CHECKS: Final[dict[str, Callable[[Json, str], Faults]]] = {
    "section": _section,
    "header": lambda block, at: _text_object(block.get("text"), HEADER_TEXT, f"{at}/text", plain=True),
    "context": _elements,
    "actions": _elements,
    "context_actions": _elements,
    "table": _table,
    "image": _image,
    "input": lambda block, at: _text_object(block.get("label"), FIELD_TEXT, f"{at}/label", plain=True),
}
_REQUIRED: Final[dict[str, tuple[str, type]]] = {
    "markdown": ("text", str),  # its size is judged over the whole payload, with an error name of its own
    **dict.fromkeys(ELEMENTS, ("elements", list)),
    "table": ("rows", list),
    "input": ("element", dict),
}
_PARTS_NOT_JUDGED: Final = {
    *("divider", "rich_text", "file", "video", "task_card", "plan", "alert", "card", "container", "carousel")
}
_KINDS: Final = _CHECKS.keys() | _REQUIRED.keys() | _PARTS_NOT_JUDGED


def block_faults(blocks: list[Json], *, limit: int) -> list[str]:
    """Everything wrong with a payload's blocks, each with its JSON pointer; empty when Slack accepts them."""
    return [f"{words} [json-pointer:{at}]" for words, at in _faults(blocks, limit)]


def _faults(blocks: list[Json], limit: int) -> Faults:
    yield from _too_many(blocks, limit, "/blocks")
    for number, block in enumerate(blocks):
        at, kind = f"/blocks/{number}", str(block.get("type", ""))
        if kind not in _KINDS:
            yield f"unsupported type: {block.get('type')}", f"{at}/type"
            continue
        yield from too_long(block.get("block_id"), ID_TEXT, f"{at}/block_id")
        part, wanted = _REQUIRED.get(kind, ("type", str))  # it has a type
        if not block.get(part) or not isinstance(block[part], wanted):
            yield f"missing required field: {part}", f"{at}/{part}"
        elif check := _CHECKS.get(kind):
            yield from check(block, at)
    tables = [block.get("rows") or [] for block in blocks if block.get("type") == "table"]
    if len(tables) > 1:
        yield "only one table allowed", "/blocks"
    if text_length(tables) > TABLE_TEXT:
        yield f"table cells must be less than {TABLE_TEXT + 1} characters", "/blocks"


def text_length(value: object) -> int:
    """The characters of all ``text`` strings below a block, as Slack adds them up."""
    if isinstance(value, list):
        return sum(map(text_length, value))
    if not isinstance(value, dict):
        return 0
    text = value.get("text")
    return sum(map(text_length, value.values())) + (len(text) if isinstance(text, str) else 0)


@dataclass(slots=True)
class RateLimiter:
    """Counts calls and says when to retry. ``clock`` returns monotonic seconds."""

    strictness: Strictness
    clock: Callable[[], float] = time.monotonic
    _tokens: dict[str, tuple[float, float]] = field(default_factory=dict)

    def charge(self, method: str, channel: str) -> None:
        """Count one call. Raises ``ApiError``: ``ratelimited`` (HTTP 429) with the seconds to wait."""
        if not self.strictness.rates:
            return
        if method == "chat.postMessage":
            self._take(f"post:{channel}", self.strictness.post_burst, self.strictness.post_per_second)
        elif calls := self.strictness.calls_a_minute.get(method):
            self._take(method, calls, calls / 60)

    def _take(self, key: str, burst: int, per_second: float) -> None:
        now = self.clock()
        tokens, since = self._tokens.get(key, (burst, now))
        tokens = min(burst, tokens + (now - since) * per_second)
        if tokens < 1:
            # Rounded first: a rounding error must not cost the app an extra second.
            wait = max(1, math.ceil(round((1 - tokens) / per_second, 6)))
            raise ApiError(error="ratelimited", status=429, retry_after=wait)
        self._tokens[key] = (tokens - 1, now)

"""Slack's limits on sizes, blocks and call rates, with its error names. Undocumented figures are marked."""

import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from jsonschema import Draft202012Validator

from bot.local.model.errors import ApiError, invalid
from bot.local.model.roster import Json

TEXT_KEPT: Final = 40_000  # longer texts are cut
UPDATE_TEXT: Final = 4_000  # without blocks in ``chat.update``: undocumented, reported as ``msg_too_long``
MARKDOWN: Final = 12_000  # of all ``markdown`` blocks of a payload together (Slack's page on that block)
BLOCKS_TEXT: Final = 13_200  # all text of blocks: undocumented, measured by others (``msg_blocks_too_long``)
METADATA_BYTES: Final = 16_000  # undocumented; answers ``metadata_too_large`` beyond
TABLE_TEXT: Final = 10_000  # characters of all cells in a message together

_TIERS: Final = {
    20: ("chat.startStream", "chat.stopStream", "conversations.list", "usergroups.list"),
    50: (
        *("conversations.replies", "conversations.history", "conversations.info", "chat.update", "chat.delete"),
        *("agents.sessions.setStatus", "agents.sessions.rename"),
    ),
    100: (
        *("chat.appendStream", "chat.postEphemeral", "users.info", "views.open", "views.publish", "files.info"),
        "users.conversations",
    ),
}
"""Methods by their documented calls a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """The active rates and times, in seconds."""

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
    retry_delays: tuple[float, ...] = (0.0, 60.0, 300.0)  # immediately, after a minute, and after five minutes


LENIENT = Strictness(rates=False)  # Slack's sizes and names, but no call rates: for tests that ask quickly


def _text(limit: int, *kinds: str) -> Json:
    text = {"type": "string", "minLength": 1, "maxLength": limit}
    return {
        "type": "object",
        "required": ["type", "text"],
        "properties": {"type": {"enum": kinds or ("mrkdwn", "plain_text")}, "text": text},
    }


def _list(most: int, items: Json) -> Json:
    return {"type": "array", "minItems": 1, "maxItems": most, "items": items}


def _object(*required: str, **properties: Json) -> Json:
    return {"type": "object", "required": required, "properties": properties}


_ID: Final = {"maxLength": 255}
_ELEMENT: Final = _object(
    "type", action_id=_ID, text=_text(75, "plain_text"), value={"maxLength": 2_000}, url={"maxLength": 3_000}
)
_BLOCKS: Final[Mapping[str, Json]] = {
    "section": _object(text=_text(3_000), fields=_list(10, _text(2_000)), accessory=_ELEMENT)
    | {"anyOf": [{"required": ["text"]}, {"required": ["fields"]}]},
    "header": _object("text", text=_text(150, "plain_text")),
    "markdown": _object("text", text={"type": "string", "minLength": 1}),  # its size has its own error name
    "context": _object("elements", elements=_list(10, _text(3_000))),
    "actions": _object("elements", elements=_list(25, _ELEMENT)),
    "table": _object("rows", rows=_list(100, _list(20, {"type": "object"}))),
    "input": _object("label", "element", label=_text(2_000, "plain_text"), element={"type": "object"}),
    "rich_text": _object("elements"),
    "divider": {},
    "task_card": {},
}
_BLOCK: Final = _object("type", type={"enum": [*_BLOCKS]}, block_id=_ID) | {
    "allOf": [{"if": {"properties": {"type": {"const": kind}}}, "then": then} for kind, then in _BLOCKS.items()]
}
# Slack's page on blocks: 50 in a message, 100 in a modal or App Home.
_MESSAGE: Final = Draft202012Validator({"type": "array", "maxItems": 50, "items": _BLOCK})
_VIEW: Final = _object("blocks", blocks=_list(100, _BLOCK), callback_id=_ID, private_metadata={"maxLength": 3_000})
_VIEWS: Final = {
    "home": Draft202012Validator(_VIEW),
    "modal": Draft202012Validator({"allOf": [_VIEW, _object("title", title=_text(24, "plain_text"))]}),
}


def _faults(validator: Draft202012Validator, value: object, at: str) -> list[str]:
    """Return what is wrong with a payload, each with its JSON pointer."""
    return [
        f"{fault.validator}: {fault.validator_value} [json-pointer:{'/'.join(map(str, (at, *fault.absolute_path)))}]"
        for fault in validator.iter_errors(value)
    ]


def check_blocks(blocks: list[Json]) -> None:
    """Refuse blocks of a message. Raises ``ApiError``: ``invalid_blocks`` or ``msg_blocks_too_long``."""
    faults = _faults(_MESSAGE, blocks, "/blocks")
    tables = [block.get("rows") for block in blocks if block.get("type") == "table"]
    if len(tables) > 1:
        faults.append("only one table allowed [json-pointer:/blocks]")
    if text_length(tables) > TABLE_TEXT:
        faults.append(f"table cells must be less than {TABLE_TEXT + 1} characters [json-pointer:/blocks]")
    if faults:
        raise invalid(faults, error="invalid_blocks")
    markdown = sum(len(block["text"]) for block in blocks if block["type"] == "markdown")
    if markdown > MARKDOWN or text_length(blocks) > BLOCKS_TEXT:
        raise ApiError(error="msg_blocks_too_long")


def check_view(view: Json, kind: str) -> None:
    """Refuse a ``modal`` or ``home``. Raises ``ApiError``: ``invalid_arguments``."""
    faults = _faults(_VIEWS[kind], view, "/view")
    if view.get("type") != kind:
        faults.append(f"must be {kind} [json-pointer:/view/type]")
    if not (faults or view.get("submit")) and any(block["type"] == "input" for block in view["blocks"]):
        faults.append("missing required field: submit [json-pointer:/view]")
    if faults:
        raise invalid(faults)


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
            key, burst, per_second = f"post:{channel}", self.strictness.post_burst, self.strictness.post_per_second
        elif burst := self.strictness.calls_a_minute.get(method, 0):
            key, per_second = method, burst / 60
        else:
            return
        now = self.clock()
        tokens, since = self._tokens.get(key, (burst, now))
        tokens = min(burst, tokens + (now - since) * per_second)
        if tokens < 1:
            # Round first: a rounding error must not cost the app an extra second.
            wait = max(1, math.ceil(round((1 - tokens) / per_second, 6)))
            raise ApiError(error="ratelimited", status=429, retry_after=wait)
        self._tokens[key] = (tokens - 1, now)

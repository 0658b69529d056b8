"""Which Block Kit blocks Slack accepts, and the words of its ``invalid_blocks`` errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from bot.local.model.roster import Json

SECTION_TEXT: Final = 3_000
FIELD_TEXT: Final = 2_000
HEADER_TEXT: Final = 150
ID_TEXT: Final = 255
BUTTON_TEXT: Final = 75
BUTTON_VALUE: Final = 2_000
BUTTON_URL: Final = 3_000
TABLE_ROWS: Final = 100
TABLE_COLUMNS: Final = 20
TABLE_TEXT: Final = 10_000
ELEMENTS: Final = {"context": 10, "actions": 25, "context_actions": 5}

Faults = Iterator[str]


def _too_long(text: object, limit: int, pointer: str) -> Faults:
    """Slack's words for a text over its limit, an empty one, or one that is no text."""
    if not isinstance(text, str):
        yield f"must be a string [json-pointer:{pointer}]"
    elif len(text) > limit:
        yield f"must be less than {limit + 1} characters [json-pointer:{pointer}]"
    elif not text:
        yield f"must be more than 0 characters [json-pointer:{pointer}]"


def _text_object(value: object, limit: int, pointer: str, *, plain: bool = False) -> Faults:
    """Faults of a text object; ``plain`` refuses mrkdwn."""
    if not isinstance(value, dict):
        yield f"must provide an object [json-pointer:{pointer}]"
        return
    allowed = {"plain_text"} if plain else {"plain_text", "mrkdwn"}
    if value.get("type") not in allowed:
        yield f"must be one of {sorted(allowed)} [json-pointer:{pointer}/type]"
    yield from _too_long(value.get("text"), limit, f"{pointer}/text")


def _section(block: Json, pointer: str) -> Faults:
    if not block.get("text") and not block.get("fields"):
        yield f"missing required field: text or fields [json-pointer:{pointer}]"
    if block.get("text"):
        yield from _text_object(block["text"], SECTION_TEXT, f"{pointer}/text")
    fields = block.get("fields") or []
    if len(fields) > 10:  # noqa: PLR2004 - Slack's limit, named by the sentence below
        yield f"no more than 10 items allowed [json-pointer:{pointer}/fields]"
    for number, one in enumerate(fields):
        yield from _text_object(one, FIELD_TEXT, f"{pointer}/fields/{number}")
    if accessory := block.get("accessory"):
        yield from _element(accessory, f"{pointer}/accessory")


def _header(block: Json, pointer: str) -> Faults:
    yield from _text_object(block.get("text"), HEADER_TEXT, f"{pointer}/text", plain=True)


def _markdown(block: Json, pointer: str) -> Faults:
    # The size is judged over the whole payload, with an error name of its own.
    if not isinstance(block.get("text"), str) or not block["text"]:
        yield f"missing required field: text [json-pointer:{pointer}/text]"


def _elements(block: Json, pointer: str) -> Faults:
    elements = block.get("elements")
    if not isinstance(elements, list) or not elements:
        yield f"missing required field: elements [json-pointer:{pointer}/elements]"
        return
    limit = ELEMENTS[block["type"]]
    if len(elements) > limit:
        yield f"no more than {limit} items allowed [json-pointer:{pointer}/elements]"
    for number, element in enumerate(elements):
        where = f"{pointer}/elements/{number}"
        if block["type"] == "context" and element.get("type") in ("mrkdwn", "plain_text"):
            yield from _text_object(element, SECTION_TEXT, where)
        else:
            yield from _element(element, where)


def _element(element: Json, pointer: str) -> Faults:
    """Faults of an interactive element: ids, button texts, values and links."""
    if len(str(element.get("action_id", ""))) > ID_TEXT:
        yield f"must be less than {ID_TEXT + 1} characters [json-pointer:{pointer}/action_id]"
    kind = element.get("type")
    if kind == "feedback_buttons":
        for side in ("positive_button", "negative_button"):
            yield from _button(element.get(side) or {}, f"{pointer}/{side}")
    elif kind in ("button", "icon_button"):
        yield from _button(element, pointer)
    elif not kind:
        yield f"missing required field: type [json-pointer:{pointer}/type]"


def _button(element: Json, pointer: str) -> Faults:
    yield from _text_object(element.get("text"), BUTTON_TEXT, f"{pointer}/text", plain=True)
    if len(str(element.get("value") or "")) > BUTTON_VALUE:
        yield f"must be less than {BUTTON_VALUE + 1} characters [json-pointer:{pointer}/value]"
    if len(str(element.get("url") or "")) > BUTTON_URL:
        yield f"must be less than {BUTTON_URL + 1} characters [json-pointer:{pointer}/url]"


def _table(block: Json, pointer: str) -> Faults:
    rows = block.get("rows")
    if not isinstance(rows, list) or not rows:
        yield f"missing required field: rows [json-pointer:{pointer}/rows]"
        return
    if len(rows) > TABLE_ROWS:
        yield f"no more than {TABLE_ROWS} items allowed [json-pointer:{pointer}/rows]"
    for number, row in enumerate(rows):
        if len(row) > TABLE_COLUMNS:
            yield f"no more than {TABLE_COLUMNS} items allowed [json-pointer:{pointer}/rows/{number}]"


def _image(block: Json, pointer: str) -> Faults:
    if not block.get("image_url") and not block.get("slack_file"):
        yield f"missing required field: image_url [json-pointer:{pointer}]"
    if not block.get("alt_text"):
        yield f"missing required field: alt_text [json-pointer:{pointer}/alt_text]"


def _input(block: Json, pointer: str) -> Faults:
    yield from _text_object(block.get("label"), FIELD_TEXT, f"{pointer}/label", plain=True)
    if not isinstance(block.get("element"), dict):
        yield f"missing required field: element [json-pointer:{pointer}/element]"


def _accepted(block: Json, pointer: str) -> Faults:  # noqa: ARG001 - one signature for all checks
    """For the types whose parts are not judged here."""
    yield from ()


Check = Callable[[Json, str], Faults]
_OTHERS: Final[dict[str, Check]] = dict.fromkeys(
    ("divider", "rich_text", "file", "video", "task_card", "plan", "alert", "card", "container", "carousel"), _accepted
)
_CHECKS: Final[dict[str, Check]] = _OTHERS | {
    "section": _section,
    "header": _header,
    "markdown": _markdown,
    "context": _elements,
    "actions": _elements,
    "context_actions": _elements,
    "table": _table,
    "image": _image,
    "input": _input,
}


def block_faults(blocks: list[Json], *, limit: int) -> list[str]:
    """Everything wrong with a payload's blocks, each with its JSON pointer; empty when Slack accepts them."""
    found: list[str] = []
    if len(blocks) > limit:
        found.append(f"no more than {limit} items allowed [json-pointer:/blocks]")
    for number, block in enumerate(blocks):
        pointer = f"/blocks/{number}"
        check = _CHECKS.get(str(block.get("type", "")))
        if check is None:
            found.append(f"unsupported type: {block.get('type')} [json-pointer:{pointer}/type]")
            continue
        if len(str(block.get("block_id", ""))) > ID_TEXT:
            found.append(f"must be less than {ID_TEXT + 1} characters [json-pointer:{pointer}/block_id]")
        found.extend(check(block, pointer))
    if sum(block.get("type") == "table" for block in blocks) > 1:
        found.append("only one table allowed [json-pointer:/blocks]")
    if _table_text(blocks) > TABLE_TEXT:
        found.append(f"table cells must be less than {TABLE_TEXT + 1} characters [json-pointer:/blocks]")
    return found


def _table_text(blocks: list[Json]) -> int:
    """The characters in all table cells."""
    rows = (row for block in blocks if block.get("type") == "table" for row in block.get("rows") or [])
    return sum(text_length(cell) for row in rows for cell in row)


def text_length(value: object) -> int:
    """The characters of all ``text`` strings below a block, as Slack adds them up."""
    if isinstance(value, list):
        return sum(text_length(item) for item in value)
    if not isinstance(value, dict):
        return 0
    own = value.get("text")
    return (len(own) if isinstance(own, str) else 0) + sum(
        text_length(item) for key, item in value.items() if key != "text" or not isinstance(item, str)
    )

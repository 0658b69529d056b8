"""Messages and views as the page shows them. ``mrkdwn`` has escaped ``html``; the rest is plain text."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from bot.local.model.messages import LocalMessage, MessageLog
from bot.local.model.roster import Json
from bot.local.page.mrkdwn import escape, link_html, markdown_html, mrkdwn_html, plain_html

Names = Mapping[str, str]
_IDS_TO_CHOOSE = {"users_select": "U", "conversations_select": "C"}


def text_html(value: Any, names: Names) -> str:
    """A text object as HTML."""
    if not isinstance(value, dict):
        return ""
    text = str(value.get("text", ""))
    return mrkdwn_html(text, names) if value.get("type") == "mrkdwn" else plain_html(text)


def block_view(block: Json, names: Names) -> Json:
    """One block for the page."""
    view = {"type": block["type"], "block_id": block.get("block_id", "")}
    if part := _PARTS.get(block["type"]):
        view |= part(block, names)
    return view


def _section(block: Json, names: Names) -> Json:
    html, accessory = text_html(block.get("text"), names), block.get("accessory")
    return {"html": html} | ({"accessory": element_view(accessory, names)} if accessory else {})


def _elements(block: Json, names: Names) -> Json:
    return {"elements": [element_view(one, names) for one in block["elements"]]}


def _rich_text(block: Json, names: Names) -> Json:
    # Slack shows each paragraph as a block of its own.
    lines = {"rich_text_section": '<div class="line">{}</div>'}
    parts = (lines.get(one["type"], "{}").format(rich_html(one, names)) for one in block.get("elements", []))
    return {"html": "".join(parts)}


def _input(block: Json, names: Names) -> Json:
    label, optional = plain_html(_text(block, "label")), bool(block.get("optional"))
    return {"label": label, "optional": optional, "element": element_view(block["element"], names)}


_PARTS: Final[Mapping[str, Callable[[Json, Names], Json]]] = {
    "section": _section,
    "header": _section,
    "markdown": lambda block, names: {"html": markdown_html(block["text"], names)},
    "context": _elements,
    "actions": _elements,
    "table": lambda block, names: {"rows": [[_cell(cell, names) for cell in row] for row in block["rows"]]},
    "rich_text": _rich_text,
    "input": _input,
    "task_card": lambda block, _: {key: str(block.get(key) or "") for key in ("title", "status")},
}


def _text(owner: Json, part: str) -> str:
    return str((owner.get(part) or {}).get("text", ""))


def element_view(element: Json, names: Names) -> Json:
    """One element: a button, a text in a context block, an input."""
    kind = element.get("type", "")
    if kind in ("mrkdwn", "plain_text"):
        return {"type": "text", "html": text_html(element, names)}
    view: Json = {
        key: element[key] for key in ("type", "action_id", "value", "style", "url", "multiline") if key in element
    }
    view |= {part: _text(element, part) for part in ("text", "placeholder") if part in element}
    if asked := element.get("confirm"):
        view["confirm"] = {part: str(given.get("text", "")) for part, given in asked.items() if isinstance(given, dict)}
    offered = [{"text": one["text"]["text"], "value": one["value"]} for one in element.get("options") or ()]
    if ids := _IDS_TO_CHOOSE.get(element.get("type", "")):
        offered = [{"text": name, "value": key} for key, name in names.items() if key.startswith(ids)]
    initial = next((element[name] for name in element if name.startswith("initial_")), "")
    chosen = initial.get("value", "") if isinstance(initial, dict) else initial
    return view | {"initial": chosen, **({"options": offered} if offered else {})}


def _cell(cell: Json, names: Names) -> str:
    if cell.get("type") != "rich_text":
        return plain_html(str(cell.get("text", "")))
    return "".join(rich_html(one, names) for one in cell.get("elements", []))


def rich_html(part: Json, names: Names) -> str:
    """A part of a rich text block as HTML."""
    kind = part.get("type", "")
    if kind == "rich_text_list":
        items = "".join(f"<li>{rich_html(one, names)}</li>" for one in part.get("elements", []))
        tag = "ol" if part.get("style") == "ordered" else "ul"
        indented = f' class="indent{min(int(part["indent"]), 4)}"' if part.get("indent") else ""
        start = f' start="{int(part["offset"]) + 1}"' if part.get("offset") else ""
        return f"<{tag}{indented}{start}>{items}</{tag}>"
    inner = "".join(_rich_element(one, names) for one in part.get("elements", []))
    if kind == "rich_text_preformatted":
        return f"<pre><code>{inner}</code></pre>"
    return f"<blockquote>{inner}</blockquote>" if kind == "rich_text_quote" else inner


def _rich_element(element: Json, names: Names) -> str:
    kind = element.get("type", "")
    if kind in ("user", "channel"):
        mention = f"<{'@' if kind == 'user' else '#'}{element.get(f'{kind}_id', '')}>"
        return mrkdwn_html(mention, names).removeprefix('<div class="line">').removesuffix("</div>")
    if kind == "link":
        url = str(element.get("url", ""))
        return _with_style(element, link_html(url, escape(str(element.get("text") or url))))
    return _with_style(element, escape(str(element.get("text", ""))).replace("\n", "<br>"))


def _with_style(element: Json, shown: str) -> str:
    for style, tag in (("code", "code"), ("bold", "strong"), ("italic", "em"), ("strike", "s")):
        if (element.get("style") or {}).get(style):
            shown = f"<{tag}>{shown}</{tag}>"
    return shown


def message_view(message: LocalMessage, log: MessageLog, names: Names) -> Json:
    """One message for the page."""
    shown = log.payload_of(message, metadata=True)
    typed_by_person = [block.get("type") for block in message.blocks] == ["rich_text"] and not message.bot_id
    blocks = [] if typed_by_person else [block_view(block, names) for block in message.blocks]
    metadata = message.metadata or {}
    answered = metadata.get("event_payload", {}) if metadata.get("event_type") == "orion_answer" else {}
    return {
        **{name: getattr(message, name) for name in ("channel", "ts", "thread_ts", "user", "text", "streaming")},
        "name": message.bot_name or names.get(message.user, "Slackbot"),
        "is_bot": bool(message.bot_id),
        "html": "" if blocks else mrkdwn_html(message.text, names),
        "blocks": blocks,
        "edited": bool(message.edited),
        "ephemeral": bool(message.ephemeral_for),
        "tombstone": message.subtype == "tombstone",
        "reactions": [
            {"name": name, "sign": plain_html(f":{name}:"), "count": len(users), "users": users}
            for name, users in message.reactions.items()
        ],
        "files": [{key: one[key] for key in ("id", "name", "size")} for one in message.files],
        "reply_count": shown.get("reply_count", 0),
        "reply_users": shown.get("reply_users", []),
        "latest_reply": shown.get("latest_reply", ""),
        "turn_id": str(answered.get("turn_id", "")),
        "verified": answered.get("verified"),
    }


def modal_view(view: Json, names: Names) -> Json:
    """A modal or App Home for the page."""
    return {
        "id": view["id"],
        "type": view["type"],
        **{part: _text(view, part) for part in ("title", "submit", "close")},
        "blocks": [block_view(block, names) for block in view["blocks"]],
    }

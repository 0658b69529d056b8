"""Messages and views as the page shows them: ``html`` has been escaped by ``mrkdwn``, the rest is plain text."""

from collections.abc import Mapping
from typing import Any

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
    kind = block.get("type", "")
    view: Json = {"type": kind, "block_id": block.get("block_id", "")}
    if kind in ("section", "header"):
        view["html"] = text_html(block.get("text"), names)
        view["fields"] = [text_html(one, names) for one in block.get("fields", [])]
        if accessory := block.get("accessory"):
            view["accessory"] = element_view(accessory, names)
    elif kind == "markdown":
        view["html"] = markdown_html(block["text"], names)
    elif kind in ("context", "actions", "context_actions"):
        view["elements"] = [element_view(one, names) for one in block["elements"]]
    elif kind == "table":
        view["rows"] = [[_cell(cell, names) for cell in row] for row in block["rows"]]
    elif kind == "rich_text":
        # Slack shows each paragraph as a block of its own.
        parts = [(one.get("type"), rich_html(one, names)) for one in block.get("elements", [])]
        view["html"] = "".join(
            f'<div class="line">{part}</div>' if kind == "rich_text_section" else part for kind, part in parts
        )
    else:
        view |= _rarer(block, names)
    return view


def _rarer(block: Json, names: Names) -> Json:
    kind = block.get("type", "")
    if kind == "image":
        return {"html": link_html(str(block.get("image_url", "")), escape(str(block.get("alt_text", "image"))))}
    if kind == "input":
        return {
            "label": plain_html(_text(block, "label")),
            "optional": bool(block.get("optional")),
            "element": element_view(block.get("element", {}), names),
        }
    if kind == "plan":
        return {"title": block.get("title", ""), "tasks": [_task(one, names) for one in block.get("tasks", [])]}
    return _task(block, names) if kind == "task_card" else {}


def _text(owner: Json, part: str) -> str:
    return str((owner.get(part) or {}).get("text", ""))


def _task(task: Json, names: Names) -> Json:
    """Return a task with the text below its title: details and output (Markdown or rich text), and its sources."""
    said = [task[key] for key in ("details", "output") if task.get(key)]
    below = [_rich(one, names) if isinstance(one, dict) else markdown_html(str(one), names) for one in said]
    links = [link_html(str(one.get("url", "")), escape(str(one.get("text", "")))) for one in task.get("sources") or []]
    return {
        **{key: str(task.get(key) or "") for key in ("title", "status")},
        "html": "".join(below) + "".join(f"<p>{link}</p>" for link in links),
    }


def element_view(element: Json, names: Names) -> Json:
    """One element: a button, feedback buttons, a text in a context block, an input."""
    kind = element.get("type", "")
    if kind in ("mrkdwn", "plain_text"):
        return {"type": "text", "html": text_html(element, names)}
    if kind == "image":
        return {"type": "text", "html": escape(str(element.get("alt_text", "")))}
    view: Json = {
        key: element[key] for key in ("type", "action_id", "value", "style", "url", "multiline") if key in element
    }
    view["text"] = _text(element, "text")
    for side in ("positive_button", "negative_button"):
        if given := element.get(side):
            view[side] = {"text": given["text"]["text"], "value": given.get("value", "")}
    if asked := element.get("confirm"):
        view["confirm"] = {part: str(given.get("text", "")) for part, given in asked.items() if isinstance(given, dict)}
    if "placeholder" in element:
        view["placeholder"] = _text(element, "placeholder")
    return view | _choice(element, names)


def _choice(element: Json, names: Names) -> Json:
    """Return the options of an input, and its initial value."""
    offered = [{"text": one["text"]["text"], "value": one["value"]} for one in element.get("options") or ()]
    if ids := _IDS_TO_CHOOSE.get(element.get("type", "")):
        offered = [{"text": name, "value": key} for key, name in names.items() if key.startswith(ids)]
    initial = next((element[name] for name in element if name.startswith("initial_")), "")
    chosen = initial.get("value", "") if isinstance(initial, dict) else initial
    return {"initial": chosen, **({"options": offered} if offered else {})}


def _cell(cell: Json, names: Names) -> str:
    return _rich(cell, names) if cell.get("type") == "rich_text" else plain_html(str(cell.get("text", "")))


def _rich(block: Json, names: Names) -> str:
    return "".join(rich_html(one, names) for one in block.get("elements", []))


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
    if kind == "emoji":
        return plain_html(f":{element.get('name', '')}:")
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
        "broadcast": message.subtype == "thread_broadcast",
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

"""Render an answer as Slack messages: the verified chunks, one line with badges and sources, one row of buttons.

A source's title cannot end its link or start a mention.
"""

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import chain
from typing import Any

from agent.texts.catalogue import age, say, truncate
from bot.delivery.answer_key import AnswerKey
from bot.delivery.rich_text import (
    MAX_LIST_ROWS,
    Block,
    is_native_table,
    list_block,
    rich_text,
    split_tables,
    table_block,
)
from verification.markup.chunks import group_messages
from verification.rules.injection import safe_title
from verification.rules.references import citations
from verification.rules.secrets import mask_secrets
from verification.types import Answer, Source

HELPFUL_ACTION = "orion_feedback"
NOT_HELPFUL_ACTION = "orion_not_helpful"
UNASKED_DISLIKE_ACTION = "orion_unasked_not_helpful"  # under an unasked answer
HAND_OFF_ACTION = "orion_hand_off"
TRUST_ACTION = "orion_trust"
SHARE_ACTION = "orion_share"
MAX_BLOCKS = 50
MAX_MESSAGE_LENGTH = 12_000  # maximum for all blocks of a message together; Slack refuses more as msg_blocks_too_long
MAX_TEXT_LENGTH = 2_900  # Slack allows 3,000 in a text object
_MAX_TITLE_LENGTH = 120
_SEPARATOR = "  ·  "
_VERBATIM: Block = {"verbatim": True}  # so that Slack does not turn hosts into links or names into mentions
_COUNT_ROOM = 40  # characters reserved for the count of sources that were left out
_MAX_CONTEXT_LENGTH = 8_000  # leaves three elements at most, and fits a message


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message: ``text`` for notifications and screen readers, ``blocks`` for display.

    ``plain`` has the same content in blocks that every Slack-compatible server accepts.
    """

    text: str
    blocks: tuple[Block, ...]
    plain: tuple[Block, ...]


def render(answer: Answer, key: AnswerKey, today: date) -> tuple[Post, ...]:
    """Render the answer as one message, or as several if Slack's limits require it. The last one gets the footer."""
    tail, posts = _tail(answer, key, today), list[Post]()
    for chunks in group_messages(answer.chunks) or [[answer.text]]:
        plain, blocks = tuple(map(section, chunks)), tuple(_render_blocks(chunks, answer))
        posts.append(Post(text="\n".join(chunks), blocks=blocks if _fits(blocks) else plain, plain=plain))
    if answer.label:
        first, head = posts[0], context([answer.label])
        text = f"{answer.label}\n{first.text}"
        posts[0] = Post(text=text, blocks=(head, *first.blocks), plain=(head, *first.plain))
    last, plain_tail = posts[-1], tuple(block for block in tail if block["type"] == "context")
    if _fits([*last.blocks, *tail]):
        posts[-1] = replace(last, blocks=(*last.blocks, *tail), plain=(*last.plain, *plain_tail))
    else:
        text = _footer_line(answer, key, today) or say("ask_helpful", key.language)
        posts.append(Post(text=text, blocks=tuple(tail), plain=plain_tail))
    return tuple(posts)


def _render_blocks(chunks: Sequence[str], answer: Answer) -> Iterator[Block]:
    """Yield the chunks' blocks. Slack allows one table per message, so further tables become lists."""
    urls = {str(one.id): one.url for one in answer.sources if one.url.startswith(("https://", "http://"))}
    free = True
    for part in chain.from_iterable(map(split_tables, chunks)):
        if free and part.rows and is_native_table(part.rows):
            free = False
            yield table_block(part.rows, urls)
        elif 1 < len(part.rows) <= MAX_LIST_ROWS:
            yield list_block(part.rows, urls)
        elif (block := rich_text(part.text))["elements"]:
            yield block


def blocks_under_stream(answer: Answer, key: AnswerKey, today: date) -> tuple[Block, ...]:
    """Return the blocks under a streamed answer. The label goes here too."""
    label = [context([answer.label])] if answer.label else []
    return (*label, *_tail(answer, key, today))


def section(text: str) -> Block:
    """Return a mrkdwn section. Its text must be shorter than 3,000 characters."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, **_VERBATIM}, "expand": True}


def context(lines: Sequence[str], language: str | None = None) -> Block:
    """Return the lines as a context block with as few elements as possible. Lines without room are counted, not cut."""
    elements: list[str] = []
    for line in join_lines(lines, _MAX_CONTEXT_LENGTH, language).split("\n"):
        if elements and len(elements[-1]) + len(line) < MAX_TEXT_LENGTH:
            elements[-1] += f"\n{line}"
        else:
            elements.append(line)
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": one, **_VERBATIM} for one in elements]}


def join_lines(lines: Sequence[str], room: int, language: str | None = None, between: str = "\n") -> str:
    """Join whole lines up to ``room`` characters, and end with the number of lines left out."""
    fitting: list[str] = []
    for line in lines:
        room -= len(line) + len(between)
        if room < 0:
            fitting.append(say("and_more", language, n=str(len(lines) - len(fitting))))
            break
        fitting.append(line)
    return between.join(fitting)


def button(text: str, action_id: str, value: str) -> Block:
    """Return a plain button. ``text`` up to 75 characters, ``value`` up to 2,000."""
    return {"type": "button", "text": plain_text(text), "action_id": action_id, "value": value}


def dialog(title: str, blocks: Sequence[Block], language: str | None, **more: str | Block) -> Block:
    """Return a modal view. ``more`` are its other fields, such as ``callback_id`` and ``submit``."""
    closes = {"close": plain_text(say("no", language))}
    return {"type": "modal", "title": plain_text(say(title, language)), **closes, **more, "blocks": list(blocks)}


def input_block(name: str, label: str, element: Block, *, optional: bool = False) -> Block:
    """Return one input of a dialog, whose value has this name."""
    element = {**element, "action_id": name}
    return {"type": "input", "block_id": name, "optional": optional, "label": plain_text(label), "element": element}


def initial_value(text: str) -> Block:
    """Return the field with an input's initial value; no field for an empty text."""
    return {"initial_value": text} if text else {}


def confirmation(language: str | None, text: str, **parts: str) -> Block:
    """Return a button's confirmation dialog. ``parts`` name the texts of its title and buttons."""
    named = {part: plain_text(say(name, language)) for part, name in {"deny": "no", **parts}.items()}
    return {"confirm": {**named, "text": plain_text(text)}}


def plain_text(text: str) -> Block:
    """Return a text object without markup."""
    return {"type": "plain_text", "text": text}


def _tail(answer: Answer, key: AnswerKey, today: date) -> list[Block]:
    """Return the footer line and the buttons; neither for a greeting, a question back or Orion's own messages."""
    turn = key.turn_id
    tail = [context([line])] if (line := _footer_line(answer, key, today)) else []
    if not turn or not (answer.sources or answer.label or key.badges or key.ask_human):
        return tail
    controls = [
        {**button(say(name, key.language), action, value), "accessibility_label": say(f"was_{name}", key.language)}
        for name, action, value in (
            ("helpful", HELPFUL_ACTION, f"good:{turn}"),
            ("not_helpful", UNASKED_DISLIKE_ACTION if "unasked" in key.badges else NOT_HELPFUL_ACTION, f"bad:{turn}"),
        )
    ]
    if answer.verified and answer.sources:
        controls.append(button(say("why_trust", key.language), TRUST_ACTION, turn))
        if key.share_to:
            controls.append(button(say("share", key.language), SHARE_ACTION, f"{turn} {key.share_to}"))
    if key.ask_human:
        # Confirm first: people elsewhere may read the thread afterwards.
        ask = button(say("ask_human", key.language), HAND_OFF_ACTION, turn)
        text = say("hand_off_confirm", key.language, where=key.ask_human)
        controls.append(ask | confirmation(key.language, text, title="ask_human", confirm="yes"))
    return [*tail, {"type": "actions", "elements": controls}]


def _footer_line(answer: Answer, key: AnswerKey, today: date) -> str:
    """Return the badges and the cited sources in one line. Sources without room are counted."""
    lines = [say(f"{badge}_badge", key.language, id=short_id(key.turn_id)) for badge in key.badges]
    if answer.verified and answer.sources and "quotes" not in key.badges:
        if answer.rules_only:
            lines.append(say("rules_badge", key.language))
        elif not set(key.badges) - {"unasked"}:
            lines.append(say("verified", key.language))
    # Orion's own refusal already names the closest documents in its text.
    sources = answer.sources if answer.verified or citations(answer.text) else ()
    lines += list_sources(sources, today, key.language)
    return join_lines(lines, MAX_TEXT_LENGTH - _COUNT_ROOM, key.language, _SEPARATOR)


def short_id(turn_id: str) -> str:
    """Return the part of a turn's id that people see. The log has the whole id."""
    return turn_id[:12]


def _fits(blocks: Sequence[Block]) -> bool:
    return len(blocks) <= MAX_BLOCKS and sum(map(_count_characters, blocks)) <= MAX_MESSAGE_LENGTH


def _count_characters(value: Any) -> int:
    """Count the characters of all texts in a block, as Slack does."""
    if isinstance(value, list):
        return sum(map(_count_characters, value))
    if not isinstance(value, dict):
        return 0
    own = value.get("text")
    return len(own) if isinstance(own, str) else sum(map(_count_characters, value.values()))


def escape(text: str) -> str:
    """Mask secrets, and escape the three characters that Slack treats as control characters."""
    return html.escape(mask_secrets(text), quote=False)


def link(url: str, label: str) -> str:
    """Return ``<url|label>``, or the escaped label alone if the address is not a web address."""
    shown = escape(" ".join(label.split())).replace("|", "¦")
    if not url.startswith(("https://", "http://")):
        return shown
    address = "".join(f"%{ord(c):02X}" if c in '<>|"' or c.isspace() else c for c in url)
    return f"<{address.replace('&', '&amp;')}|{shown}>"


def list_sources(sources: Iterable[Source], today: date, language: str | None = None) -> list[str]:
    """Return ``[n] title · age`` of each source, a link if it has an address. Two parts of one section share a line."""
    sections: dict[tuple[str, str, str], list[int]] = {}
    for source in sources:
        sections.setdefault((source.url, safe_title(source), source.updated_at), []).append(source.id)
    lines: list[str] = []
    for (url, title, updated_at), numbers in sections.items():
        shown = " ".join(f"[{number}]" for number in numbers)
        lines.append(with_age(link(url, f"{shown} {truncate(title, _MAX_TITLE_LENGTH)}"), updated_at, today, language))
    return lines


def with_age(shown: str, updated_at: str, today: date, language: str | None = None) -> str:
    """Append the document's age to its shown title."""
    return " · ".join(filter(None, (shown, age(updated_at, today, language))))

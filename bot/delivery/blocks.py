"""An answer as the messages Slack gets: the verified chunks, one line with mark and sources, one row of buttons."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from agent.texts.catalogue import say
from bot.delivery import tables
from bot.delivery.answer_key import AnswerKey, Mark
from bot.delivery.links import source_line
from verification.markup.chunks import messages
from verification.rules.citations import citations
from verification.types import Answer

Block = dict[str, Any]

HELPFUL_ACTION = "orion_feedback"
NOT_HELPFUL_ACTION = "orion_not_helpful"
HAND_OFF_ACTION = "orion_hand_off"
TRUST_ACTION = "orion_trust"
MOST_BLOCKS = 50
MOST_CHARACTERS = 12_000  # of all blocks of one message together; more is refused as msg_blocks_too_long
LONGEST_TEXT = 2_900  # Slack allows 3,000 in a text object
_BETWEEN = "  ·  "
_FOR_COUNT = 40  # characters that stay free to say how many sources were left out
_MOST_CONTEXT = 8_000  # leaves three elements at most, and fits a message
_MARKS: dict[Mark, str] = {"partial": "partial_mark", "quotes": "quoted_answer_mark", "failed": "failed_mark"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message: ``text`` for notifications and screen readers, ``blocks`` for the eye.

    ``plain`` says the same in blocks that every Slack-compatible server knows.
    """

    text: str
    blocks: tuple[Block, ...]
    plain: tuple[Block, ...]


def render(answer: Answer, key: AnswerKey, today: date) -> tuple[Post, ...]:
    """The answer as one message, or as several where Slack's limits demand it; the tail goes under the last one."""
    groups = [list(group) for group in messages(answer.chunks)] or [[answer.text]]
    tail = _tail(answer, key, today)
    posts = [_post(group, answer) for group in groups]
    if answer.label:
        first, head = posts[0], context([answer.label])
        text = f"{answer.label}\n{first.text}"
        posts[0] = Post(text=text, blocks=(head, *first.blocks), plain=(head, *first.plain))
    last = posts[-1]
    if _fits([*last.blocks, *tail]):
        posts[-1] = replace(last, blocks=(*last.blocks, *tail), plain=(*last.plain, *_wordy(tail)))
    else:
        text = _foot(answer, key, today) or say("ask_helpful", key.language)
        posts.append(Post(text=text, blocks=tuple(tail), plain=_wordy(tail)))
    return tuple(posts)


def _post(chunks: Sequence[str], answer: Answer) -> Post:
    plain = tuple(section(chunk) for chunk in chunks)
    blocks = tuple(_with_tables(chunks, answer))
    return Post(text="\n".join(chunks), blocks=blocks if _fits(blocks) else plain, plain=plain)


def _with_tables(chunks: Sequence[str], answer: Answer) -> Iterator[Block]:
    """The chunks, drawn tables as blocks. Slack takes one table a message; what follows becomes lists."""
    free = True
    for chunk in chunks:
        for part in tables.parts(chunk):
            if free and part.rows and tables.fits_table(part.rows):
                free = False
                yield tables.table(part.rows, answer.sources)
            elif tables.fits_list(part.rows):
                yield tables.as_list(part.rows, answer.sources)
            else:
                yield section(part.text)


def under_stream(answer: Answer, key: AnswerKey, today: date) -> tuple[Block, ...]:
    """What stands under an answer that was streamed: no label can be set above it any more. The mark says "partly"."""
    label = [context([answer.label])] if answer.label and "partial" not in key.marks else []
    return (*label, *_tail(answer, key, today))


def section(text: str) -> Block:
    """A mrkdwn section. Its text must be shorter than 3,000 characters."""
    return {"type": "section", "text": _mrkdwn(text), "expand": True}


def context(lines: Sequence[str], language: str | None = None) -> Block:
    """A context block: the lines in as few elements as the limits allow. What has no room is counted, not cut."""
    elements: list[str] = []
    for line in clipped(lines, _MOST_CONTEXT, language).split("\n"):
        if elements and len(elements[-1]) + len(line) < LONGEST_TEXT:
            elements[-1] += f"\n{line}"
        else:
            elements.append(line)
    return {"type": "context", "elements": [_mrkdwn(element) for element in elements]}


def _mrkdwn(text: str) -> Block:
    """What was verified as plain text stays so: else Slack makes links of hosts and ``#channels``, calls of names."""
    return {"type": "mrkdwn", "text": text, "verbatim": True}


def clipped(lines: Sequence[str], room: int, language: str | None = None, between: str = "\n") -> str:
    """Whole lines up to ``room`` characters; how many were left out is said."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + len(between)
        if room < 0:
            kept.append(say("and_more", language, n=str(len(lines) - len(kept))))
            break
        kept.append(line)
    return between.join(kept)


def button(text: str, action_id: str, value: str) -> Block:
    """A plain button. ``text`` up to 75 characters, ``value`` up to 2,000."""
    return {"type": "button", "text": plain_text(text), "action_id": action_id, "value": value}


def plain_text(text: str) -> Block:
    """A text object without markup."""
    return {"type": "plain_text", "text": text}


def _wordy(blocks: Sequence[Block]) -> tuple[Block, ...]:
    return tuple(block for block in blocks if block["type"] in {"section", "context"})


def _tail(answer: Answer, key: AnswerKey, today: date) -> list[Block]:
    """One line and one row; nothing under what claims nothing (a greeting, a question back)."""
    tail = [context([line])] if (line := _foot(answer, key, today)) else []
    controls = _controls(answer, key)
    return [*tail, {"type": "actions", "elements": controls}] if controls else tail


def _controls(answer: Answer, key: AnswerKey) -> list[Block]:
    """The buttons; none under Orion's own messages, which have no turn."""
    turn = key.turn_id
    if not turn or not (answer.sources or answer.label or key.marks or key.ask_human):
        return []
    controls = [
        {**button(say(name, key.language), action, value), "accessibility_label": say(f"was_{name}", key.language)}
        for name, action, value in (
            ("helpful", HELPFUL_ACTION, f"good:{turn}"),
            ("not_helpful", NOT_HELPFUL_ACTION, f"bad:{turn}"),
        )
    ]
    if answer.verified and answer.sources:
        controls.append(button(say("why_trust", key.language), TRUST_ACTION, turn))
    if key.ask_human:
        # It asks first: what was said here may be read elsewhere afterwards.
        words = {"title": "ask_human", "text": "hand_off_confirm", "confirm": "yes", "deny": "no"}
        confirm = {part: plain_text(say(name, key.language)) for part, name in words.items()}
        controls.append({**button(say("ask_human", key.language), HAND_OFF_ACTION, turn), "confirm": confirm})
    return controls


def _foot(answer: Answer, key: AnswerKey, today: date) -> str:
    """The mark and the sources that the text cites, in one line. What has no room is counted."""
    # Orion's own refusal names the nearest in its text already.
    sources = answer.sources if answer.verified or citations(answer.text) else ()
    lines = [_mark_line(answer, key), *(source_line(source, today, key.language) for source in sources)]
    return clipped([*filter(None, lines)], LONGEST_TEXT - _FOR_COUNT, key.language, _BETWEEN)


def _mark_line(answer: Answer, key: AnswerKey) -> str:
    parts = [say(_MARKS[mark], key.language, id=short_id(key.turn_id)) for mark in key.marks]
    if answer.verified and answer.sources and "quotes" not in key.marks:
        if answer.rules_only:
            parts.append(say("rules_mark", key.language))
        elif not key.marks:
            parts.append(say("verified", key.language))
    return _BETWEEN.join(parts)


def short_id(turn_id: str) -> str:
    """What a person is told of a turn's id; the log holds the whole, which begins so."""
    return turn_id[:12]


def _fits(blocks: Sequence[Block]) -> bool:
    return len(blocks) <= MOST_BLOCKS and sum(map(_characters, blocks)) <= MOST_CHARACTERS


def _characters(value: Any) -> int:
    """The characters of all texts below a block, as Slack adds them up."""
    if isinstance(value, list):
        return sum(map(_characters, value))
    if not isinstance(value, dict):
        return 0
    own = value.get("text")
    return len(own) if isinstance(own, str) else sum(map(_characters, value.values()))

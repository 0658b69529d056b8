"""An answer as the messages Slack gets: section blocks, sources, marks, buttons. Pure.

Promises: what is sent is exactly ``answer.chunks``, in order, none split or joined across a message; every message has
a ``text`` that reads well in a notification or to a screen reader; Slack's limits on blocks hold. Must never add a
claim, nor a link that is not a source's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

from agent.texts.catalogue import say
from bot.delivery.links import source_line
from verification.markup.chunks import messages
from verification.types import Answer

Block = dict[str, Any]
Mark = Literal["partial", "quotes", "failed"]

FEEDBACK_ACTION = "orion_feedback"
HAND_OFF_ACTION = "orion_hand_off"
TRUST_ACTION = "orion_trust"
MOST_BLOCKS = 50
MOST_CHARACTERS = 12_000  # of all blocks of one message together; more is refused as msg_blocks_too_long
LONGEST_TEXT = 2_900  # Slack allows 3,000 in a text object
_MOST_CONTEXT = 8_000  # leaves three elements at most, and fits a message
_VERDICTS: tuple[tuple[str, str, str], ...] = (
    ("helpful", "good", "was_helpful"),
    ("not_helpful", "bad", "was_not_helpful"),
)
_MARKS: dict[Mark, str] = {"partial": "partial_mark", "quotes": "quoted_mark", "failed": "failed_mark"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message: ``text`` for notifications, screen readers and blocks that fail; ``blocks`` for the eye."""

    text: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What stands around an answer, in ``language`` (None: English).

    An empty ``turn_id`` leaves the buttons away (Orion's own messages). ``ask_human`` offers to pass the question on.
    """

    today: date
    turn_id: str = ""
    marks: tuple[Mark, ...] = ()
    language: str | None = None
    ask_human: bool = False


def render(answer: Answer, frame: Frame) -> tuple[Post, ...]:
    """The answer as one message, or as several where Slack's limits demand it; the tail goes under the last one."""
    groups = [list(group) for group in messages(answer.chunks)] or [[answer.text]]
    tail = _tail(answer, frame)
    head = [context([answer.label])] if answer.label else []
    bodies = [[section(chunk) for chunk in group] for group in groups]
    bodies[0] = head + bodies[0]
    texts = ["\n".join(group) for group in groups]
    if answer.label:
        texts[0] = f"{answer.label}\n{texts[0]}"
    if _fits(bodies[-1] + tail):
        bodies[-1] += tail
    else:
        bodies.append(tail)
        texts.append(_tail_text(answer, frame))
    return tuple(Post(text=text, blocks=tuple(body)) for text, body in zip(texts, bodies, strict=True))


def under_stream(answer: Answer, frame: Frame) -> tuple[Block, ...]:
    """What stands under an answer that was streamed: no label can be set above it any more."""
    label = [context([answer.label])] if answer.label else []
    return (*label, *_tail(answer, frame))


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


def clipped(lines: Sequence[str], room: int, language: str | None = None) -> str:
    """Whole lines up to ``room`` characters; how many were left out is said."""
    kept: list[str] = []
    for line in lines:
        room -= len(line) + 1
        if room < 0:
            return "\n".join([*kept, say("and_more", language, n=str(len(lines) - len(kept)))])
        kept.append(line)
    return "\n".join(kept)


def button(text: str, action_id: str, value: str) -> Block:
    """A plain button. ``text`` up to 75 characters, ``value`` up to 2,000."""
    return {"type": "button", "text": {"type": "plain_text", "text": text}, "action_id": action_id, "value": value}


def without_buttons(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks every Slack-compatible server knows: only text. For a server that refused the others."""
    return tuple(block for block in blocks if block["type"] in {"section", "context"})


def _tail(answer: Answer, frame: Frame) -> list[Block]:
    tail: list[Block] = []
    if lines := _source_lines(answer, frame):
        tail.append(context(lines, frame.language))
    if line := _mark_line(answer, frame):
        tail.append(context([line]))
    if frame.turn_id:
        tail.append(_feedback(frame))
    if frame.turn_id and answer.verified:
        trust = button(say("why_trust", frame.language), TRUST_ACTION, frame.turn_id)
        tail.append({"type": "actions", "elements": [trust]})
    if frame.turn_id and frame.ask_human:
        tail.append({"type": "actions", "elements": [_human_button(frame)]})
    return tail


def _source_lines(answer: Answer, frame: Frame) -> list[str]:
    """The sources of a verified answer. A refusal names its nearest documents in its own text already."""
    sources = answer.sources if answer.verified else ()
    return [source_line(source, frame.today, frame.language) for source in sources]


def _tail_text(answer: Answer, frame: Frame) -> str:
    lines = [*_source_lines(answer, frame), _mark_line(answer, frame)]
    return "\n".join(filter(None, lines)) or say("ask_helpful", frame.language)


def _mark_line(answer: Answer, frame: Frame) -> str:
    parts = [say(_MARKS[mark], frame.language, id=short_id(frame.turn_id)) for mark in frame.marks]
    if answer.verified and "partial" not in frame.marks:
        parts.insert(0, say("verified", frame.language))
    if parts and answer.attempts > 1:
        parts.append(say("attempts", frame.language, n=str(answer.attempts)))
    return " · ".join(parts)


def _human_button(frame: Frame) -> Block:
    """It asks first: what was said here may be read elsewhere afterwards."""
    words: dict[str, str] = {"title": "ask_human", "text": "hand_off_confirm", "confirm": "yes", "deny": "no"}
    confirm = {part: {"type": "plain_text", "text": say(name, frame.language)} for part, name in words.items()}
    return {**button(say("ask_human", frame.language), HAND_OFF_ACTION, frame.turn_id), "confirm": confirm}


def short_id(turn_id: str) -> str:
    """What a person is told of a turn's id; the log holds the whole, which begins so."""
    return turn_id[:12]


def _feedback(frame: Frame) -> Block:
    # context_actions takes only feedback_buttons and icon_button: the trust button needs a block of its own.
    good, bad = (
        {
            "text": {"type": "plain_text", "text": say(text, frame.language)},
            "value": f"{verdict}:{frame.turn_id}",
            "accessibility_label": say(label, frame.language),
        }
        for text, verdict, label in _VERDICTS
    )
    element = {
        "type": "feedback_buttons",
        "action_id": FEEDBACK_ACTION,
        "positive_button": good,
        "negative_button": bad,
    }
    return {"type": "context_actions", "elements": [element]}


def _fits(blocks: Sequence[Block]) -> bool:
    return len(blocks) <= MOST_BLOCKS and sum(map(_characters, blocks)) <= MOST_CHARACTERS


def _characters(block: Block) -> int:
    texts = [block["text"]] if block["type"] == "section" else block["elements"]
    return sum(len(text["text"]) for text in texts if isinstance(text.get("text"), str))

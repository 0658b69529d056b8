"""The dialog that saves an answer, and the lists of answers in App Home. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import Final

from agent.knowledge.sources.answers import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS, SavedAnswer
from agent.payload import mapping, string
from agent.texts.catalogue import say, truncate
from agent.thread.conversation import ThreadKey, ThreadMessage
from bot.delivery.blocks import (
    Block,
    button,
    confirmation,
    dialog,
    escape,
    initial_value,
    input_block,
    plain_text,
    section,
)
from bot.slack.history import sort_key

SAVE_ACTION: Final = "orion_save_answer"
SAVE_DIALOG: Final = "orion_answer"
DECISIONS: Final = "orion_answer_"  # beginning of the action ids in App Home
REVIEW_AFTER: Final = timedelta(days=180)
MAX_LISTED: Final = 8
MAX_SHOWN_CHARS: Final = 500
QUESTION, ANSWER, AUDIENCE, OWNER, REVIEW = "question", "answer", "audience", "owner", "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRequest:
    """The subject of a dialog, stored in its ``private_metadata``. ``replaces`` is the key of an answer to change."""

    place: ThreadKey
    link: str = ""
    turn_id: str = ""
    replaces: str = ""

    def to_json(self) -> str:
        """Return the JSON that the dialog carries."""
        return json.dumps(asdict(self))


def audiences_at(place: ThreadKey, user: str, channel: str, language: str | None) -> dict[str, str]:
    """Return the audiences that are no wider than the readers of a place, with their names, the default first."""
    own = {f"{place.team}/{user}": say("save_only_you", language)}
    if place.channel.startswith("D"):
        return own
    return {f"{place.team}/{place.channel}": say("save_channel", language, channel=channel or place.channel), **own}


def draft_of(messages: Sequence[ThreadMessage], ts: str, question: str = "") -> tuple[str, str]:
    """Return the question and the answer that a thread suggests for the message ``ts``.

    Words of Orion's never become an answer: for one of its messages that is what people replied.
    """
    first = [message for message in messages[:1] if message.role == "user"]  # a hand-off post has no question before it
    before = [one for one in messages if one.role == "user" and sort_key(one.ts) < sort_key(ts)]
    question_message = next((one for one in [*reversed(before), *first] if one.addressed), next(iter(first), None))
    since, asker = (sort_key(question_message.ts), question_message.user) if question_message else ((0, 0), "")
    replies = [one for one in messages if one.role == "user" and sort_key(one.ts) > since]
    picked = [one.text for one in replies if one.ts == ts] or [one.text for one in replies if one.user != asker]
    return question or (question_message.text if question_message else ""), "\n\n".join(picked)


def save_dialog(
    request: SaveRequest, answer: SavedAnswer, audiences: Mapping[str, str], language: str | None = None
) -> Block:
    """Return the dialog as a view, with the answer as its first values and the names of possible audiences."""
    options = [{"text": plain_text(truncate(name, 74)), "value": who} for who, name in audiences.items()]
    text = {"type": "plain_text_input"}
    question = initial_value(" ".join(answer.question.split())[:MAX_QUESTION_CHARS])
    words = {"multiline": True, "max_length": MAX_ANSWER_CHARS, **initial_value(answer.answer[:MAX_ANSWER_CHARS])}
    inputs: dict[str, Block] = {
        QUESTION: {**text, "max_length": MAX_QUESTION_CHARS, **question},
        ANSWER: {**text, **words},
        AUDIENCE: {"type": "static_select", "options": options, "initial_option": options[0]},
        OWNER: {"type": "users_select", "initial_user": answer.owner},
        REVIEW: {"type": "datepicker", "initial_date": (answer.confirmed + REVIEW_AFTER).isoformat()},
    }
    blocks = [input_block(name, say(f"save_{name}", language), element) for name, element in inputs.items()]
    carried = {"callback_id": SAVE_DIALOG, "private_metadata": request.to_json()}
    return dialog("save_title", blocks, language, submit=plain_text(say("save_submit", language)), **carried)


def notice_dialog(text: str, language: str | None = None) -> Block:
    """Return a view that says why no dialog opens."""
    return dialog("save_title", [section(text)], language)


def read_submission(body: object, today: date) -> tuple[SaveRequest, SavedAnswer] | None:
    """Read a submitted dialog, without the name of the person who confirms it; None if it is malformed."""
    values = mapping(body, "view", "state", "values")
    picked = string(values, REVIEW, REVIEW, "selected_date")
    try:
        fields = json.loads(string(body, "view", "private_metadata"))
        request = SaveRequest(**fields | {"place": ThreadKey(**fields["place"])})
        return request, SavedAnswer(
            question=" ".join(string(values, QUESTION, QUESTION, "value").split()),
            answer=string(values, ANSWER, ANSWER, "value").replace("\r\n", "\n").strip(),
            audience=string(values, AUDIENCE, AUDIENCE, "selected_option", "value"),
            owner=string(values, OWNER, OWNER, "selected_user"),
            name="",
            confirmed=today,
            review=date.fromisoformat(picked) if picked else None,
            link=request.link,
            turn_id=request.turn_id,
        )
    except (ValueError, TypeError, KeyError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerList:
    """Saved answers that a person may edit, by key, and proposals (proposer and answer) that they may approve."""

    answers: Mapping[str, SavedAnswer] = field(default_factory=dict)
    proposals: Sequence[tuple[str, SavedAnswer]] = ()

    def blocks(self, today: date, language: str | None) -> list[Block]:
        """Return the sections of App Home: what waits for approval, then the answers with the earliest review."""
        entries: list[Block] = []
        for proposer, answer in self.proposals[:MAX_LISTED]:
            words = say("save_proposed", language, who=f"<@{proposer}>", question=escape(answer.question))
            shown = escape(truncate(answer.answer, MAX_SHOWN_CHARS))
            entries += _entry(f"{words}\n{shown}", answer.key, language, ("approve", "reject"))
        latest = sorted(self.answers.items(), key=lambda item: item[1].review or date.max)
        for key, answer in latest[:MAX_LISTED]:
            text = f"{escape(answer.question)}\n_{escape(answer.confirmation(today))}_"
            entries += _entry(text, key, language, ("edit", "withdraw"))
        return [{"type": "divider"}, section(f"*{say('save_heading', language)}*"), *entries] if entries else []


def _entry(text: str, key: str, language: str | None, actions: tuple[str, str]) -> list[Block]:
    controls = [button(say(f"save_{name}", language), f"{DECISIONS}{name}", key) for name in actions]
    if actions[1] == "withdraw":
        text = say("save_withdraw_confirm", language)
        controls[1] |= confirmation(language, text, title="save_withdraw", confirm="save_withdraw")
    return [section(text), {"type": "actions", "elements": controls}]

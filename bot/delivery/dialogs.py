"""The dialogs for feedback, channel settings and saved answers, and their lists in App Home. Pure."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import date, timedelta
from typing import Any, Final, get_args

from agent.json_data import mapping, objects, string
from agent.knowledge.sources.answers import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS, SavedAnswer
from agent.texts.catalogue import LANGUAGES, say, truncate
from agent.thread.conversation import ThreadKey, ThreadMessage
from bot.channel_settings import MAX_INSTRUCTION_CHARS, ChannelSettings, Mode
from bot.delivery.blocks import button, confirmation, dialog, escape, initial_value, input_block, plain_text, section
from bot.delivery.rich_text import Block
from bot.slack.history import sort_key

COMPLAINT: Final = "orion_complaint"
"""The dialog's ``callback_id``. Its ``private_metadata`` is the turn's id and the answer's place."""
REASONS: Final = ("wrong", "outdated", "incomplete", "beside_the_point", "hard_to_read")
REASONS_FIELD, COMMENT_FIELD = "why", "said"
MAX_COMMENT_LENGTH: Final = 1_000


def feedback_modal(about: str, language: str | None = None) -> Block:
    """Return the dialog as a view; ``about`` is returned with the submission."""
    options = [{"text": plain_text(say(f"wrong_{reason}", language)), "value": reason} for reason in REASONS]
    reasons = {"type": "checkboxes", "options": options}
    comment = {"type": "plain_text_input", "multiline": True, "max_length": MAX_COMMENT_LENGTH}
    inputs = [
        input_block(REASONS_FIELD, say("wrong_which", language), reasons, optional=True),
        input_block(COMMENT_FIELD, say("wrong_said", language), comment, optional=True),
    ]
    send = plain_text(say("wrong_send", language))
    return dialog("wrong_title", inputs, language, callback_id=COMPLAINT, private_metadata=about, submit=send)


def read_complaint(body: object) -> tuple[tuple[str, ...], str]:
    """Read the submitted dialog: some of ``REASONS``, and the person's own words."""
    values = mapping(body, "view", "state", "values")
    chosen = {string(option, "value") for option in objects(values, REASONS_FIELD, REASONS_FIELD, "selected_options")}
    comment = string(values, COMMENT_FIELD, COMMENT_FIELD, "value").strip()[:MAX_COMMENT_LENGTH]
    return tuple(reason for reason in REASONS if reason in chosen), comment


EDIT_CHANNEL: Final = "orion_channel"  # its value is the channel's id; empty: the channel is chosen in the dialog
CHANNEL_DIALOG: Final = "orion_channel_settings"
WHICH, DOCUMENTS, INSTRUCTION, MODE = "which", "documents", "instruction", "mode"
HANDOFF, LANGUAGE = "handoff", "language"
_ASKERS: Final = "asker"  # Slack does not accept an empty value for an option
_MAX_LISTED_CHANNELS: Final = 15
_MAX_LINE_CHARS: Final = 300


def channel_blocks(channels: Mapping[str, ChannelSettings], language: str | None) -> list[Block]:
    """Return the section of App Home: a line and a button for each channel, and a button for others."""
    blocks = [section(f"*{say('channel_heading', language)}*")]
    for channel, settings in list(channels.items())[:_MAX_LISTED_CHANNELS]:
        parts = [say(f"channel_{settings.mode}", language), settings.language, settings.handoff]
        parts += [*settings.documents, settings.instruction]
        line = truncate(" · ".join(filter(None, parts)), _MAX_LINE_CHARS)
        change = button(say("save_edit", language), EDIT_CHANNEL, channel)
        blocks.append(section(f"<#{channel}> · {escape(line)}") | {"accessory": change})
    if (more := len(channels) - _MAX_LISTED_CHANNELS) > 0:
        blocks.append(section(say("and_more", language, n=str(more))))
    add = button(say("channel_add", language), EDIT_CHANNEL, "new")
    return [*blocks, {"type": "actions", "elements": [add]}]


def channel_dialog(channel: str, settings: ChannelSettings, language: str | None = None) -> Block:
    """Return the dialog as a view. Without a ``channel`` it asks for one."""
    text = {"type": "plain_text_input"}
    filters = {"include": ["public", "private"], "exclude_bot_users": True}
    modes = {mode: say(f"channel_{mode}", language) for mode in get_args(Mode)}
    languages = {_ASKERS: say("channel_asker", language), **{code: code for code in LANGUAGES}}
    long = {**text, "multiline": True}
    inputs: dict[str, Block] = {
        WHICH: {"type": "conversations_select", "filter": filters},
        DOCUMENTS: {**long, **initial_value("\n".join(settings.documents))},
        INSTRUCTION: {**long, "max_length": MAX_INSTRUCTION_CHARS, **initial_value(settings.instruction)},
        MODE: _select(modes, settings.mode),
        HANDOFF: {**text, **initial_value(settings.handoff)},
        LANGUAGE: _select(languages, settings.language or _ASKERS),
    }
    optional = {DOCUMENTS, INSTRUCTION, HANDOFF}
    blocks = [
        input_block(name, say(f"channel_{name}", language), element, optional=name in optional)
        for name, element in inputs.items()
    ]
    if channel:
        blocks[0] = section(f"<#{channel}>")
    carried = {"callback_id": CHANNEL_DIALOG, "private_metadata": channel}
    return dialog("channel_title", blocks, language, **carried, submit=plain_text(say("save_submit", language)))


def read_channel_dialog(body: object) -> tuple[str, dict[str, Any]]:
    """Read a submitted dialog: the channel, and its table as in the file."""
    values = mapping(body, "view", "state", "values")
    texts = {name: string(values, name, name, "value").strip() for name in (DOCUMENTS, INSTRUCTION, HANDOFF)}
    picked = {name: string(values, name, name, "selected_option", "value") for name in (MODE, LANGUAGE)}
    table: dict[str, Any] = {
        **texts,
        **picked,
        DOCUMENTS: [line.strip() for line in texts[DOCUMENTS].splitlines() if line.strip()],
        LANGUAGE: "" if picked[LANGUAGE] == _ASKERS else picked[LANGUAGE],
    }
    return string(body, "view", "private_metadata") or string(values, WHICH, WHICH, "selected_conversation"), table


def _select(options: Mapping[str, str], chosen: str) -> Block:
    made = {value: {"text": plain_text(text), "value": value} for value, text in options.items()}
    return {"type": "static_select", "options": [*made.values()], "initial_option": made[chosen]}


SAVE_ACTION: Final = "orion_save_answer"
SAVE_DIALOG: Final = "orion_answer"
DECISIONS: Final = "orion_answer_"  # beginning of the action ids in App Home
REVIEW_AFTER: Final = timedelta(days=180)
_MAX_LISTED_ANSWERS: Final = 8
_MAX_SHOWN_CHARS: Final = 500
QUESTION, ANSWER, AUDIENCE, OWNER, REVIEW = "question", "answer", "audience", "owner", "review"


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRequest:
    """The subject of a dialog, stored in its ``private_metadata``. ``replaces`` is the key of an answer to change."""

    place: ThreadKey
    link: str = ""
    turn_id: str = ""
    replaces: str = ""


def audiences_at(place: ThreadKey, user: str, channel: str, language: str | None) -> dict[str, str]:
    """Return the audiences that are not wider than the readers of a place, with their names, the default first."""
    own = {f"{place.team}/{user}": say("save_only_you", language)}
    if place.channel.startswith("D"):
        return own
    return {f"{place.team}/{place.channel}": say("save_channel", language, channel=channel or place.channel), **own}


def draft_of(messages: Sequence[ThreadMessage], ts: str, question: str = "") -> tuple[str, str]:
    """Return the question and the answer that a thread suggests for the message ``ts``.

    Orion's own words never become an answer: for one of its messages, people's replies do.
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
    carried = {"callback_id": SAVE_DIALOG, "private_metadata": json.dumps(asdict(request))}
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
            link=request.link,
            review=date.fromisoformat(picked) if picked else None,
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
        for proposer, answer in self.proposals[:_MAX_LISTED_ANSWERS]:
            words = say("save_proposed", language, who=f"<@{proposer}>", question=escape(answer.question))
            shown = escape(truncate(answer.answer, _MAX_SHOWN_CHARS))
            entries += _entry(f"{words}\n{shown}", answer.key, language, ("approve", "reject"))
        latest = sorted(self.answers.items(), key=lambda item: item[1].review or date.max)
        for key, answer in latest[:_MAX_LISTED_ANSWERS]:
            text = f"{escape(answer.question)}\n_{escape(answer.confirmation(today))}_"
            entries += _entry(text, key, language, ("edit", "withdraw"))
        return [{"type": "divider"}, section(f"*{say('save_heading', language)}*"), *entries] if entries else []


def _entry(text: str, key: str, language: str | None, actions: tuple[str, str]) -> list[Block]:
    controls = [button(say(f"save_{name}", language), f"{DECISIONS}{name}", key) for name in actions]
    if actions[1] == "withdraw":
        consequence = say("save_withdraw_confirm", language)
        controls[1] |= confirmation(language, consequence, title="save_withdraw", confirm="save_withdraw")
    return [section(text), {"type": "actions", "elements": controls}]

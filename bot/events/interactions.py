"""Clicks, dialogs and shortcuts as values; None for a malformed payload. Pure."""

from dataclasses import dataclass

from agent.knowledge.slack_message import read_message, shared_files
from agent.payload import mapping, objects, string
from agent.thread.conversation import ThreadKey
from bot.delivery.feedback import COMMENT_FIELD, MAX_COMMENT_LENGTH, REASONS, REASONS_FIELD
from bot.slack.message import Incoming


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One click on a feedback button. ``place`` is where to say thank you. The trigger lives for three seconds."""

    turn_id: str
    good: bool
    user: str
    place: ThreadKey
    trigger_id: str = ""

    @property
    def private_metadata(self) -> str:
        """Metadata of the dialog: ``turn channel thread``."""
        return f"{self.turn_id} {self.place.channel} {self.place.thread_ts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What was wrong with an answer: some of ``REASONS``, and the person's own words."""

    turn_id: str
    user: str
    place: ThreadKey
    reasons: tuple[str, ...]
    said: str


def read_feedback(body: object) -> Feedback | None:
    """Read a ``block_actions`` payload of the feedback buttons."""
    verdict, _, turn_id = button_value(body).partition(":")
    user, place, _ = click_location(body)
    if verdict not in {"good", "bad"} or not (turn_id and user and place.channel):
        return None
    trigger = string(body, "trigger_id")
    return Feedback(turn_id=turn_id, good=verdict == "good", user=user, place=place, trigger_id=trigger)


def read_complaint(body: object) -> Complaint | None:
    """Read a ``view_submission`` payload of the dialog that asks what was wrong."""
    turn_id, channel, thread_ts, *_ = [*string(body, "view", "private_metadata").split(" "), "", "", ""]
    user, values = string(body, "user", "id"), mapping(body, "view", "state", "values")
    if not (turn_id and channel and thread_ts and user):
        return None
    chosen = {string(option, "value") for option in objects(values, REASONS_FIELD, REASONS_FIELD, "selected_options")}
    return Complaint(
        turn_id=turn_id,
        user=user,
        place=ThreadKey(team=string(body, "team", "id"), channel=channel, thread_ts=thread_ts),
        reasons=tuple(reason for reason in REASONS if reason in chosen),
        said=string(values, COMMENT_FIELD, COMMENT_FIELD, "value").strip()[:MAX_COMMENT_LENGTH],
    )


def read_hand_off(body: object) -> Incoming | None:
    """Read a click on "Ask a human" as a message, the same one for every click on one answer."""
    turn_id, (user, place, ts) = button_value(body), click_location(body)
    if not (turn_id and user and place.channel and ts):
        return None
    return Incoming(
        kind="hand_off",
        thread=place,
        user=user,
        ts=ts,
        addressed="direct",
        text=turn_id,
        event_ids=(f"hand_off:{place.team}:{turn_id}",),
    )


def read_shortcut(body: object) -> Incoming | None:
    """Read a ``message_action``: the message becomes a question of the person who used the shortcut, in its thread."""
    team, channel, user = string(body, "team", "id"), string(body, "channel", "id"), string(body, "user", "id")
    message = mapping(body, "message")
    ts, files = string(message, "ts") or string(body, "message_ts"), bool(shared_files(message))
    text = read_message(message).text
    if not (team and channel and user and ts) or not (text or files):
        return None
    return Incoming(
        kind="question",
        thread=ThreadKey(team=team, channel=channel, thread_ts=string(message, "thread_ts") or ts),
        user=user,
        ts=ts,
        addressed="mention",
        text=text,
        event_ids=(f"msg:{team}:{channel}:{ts}",),
        files="some" if files else "none",
    )


def button_value(body: object) -> str:
    """Return the value of the button that was pressed."""
    return string(next(iter(objects(body, "actions")), {}), "value")


def click_location(body: object) -> tuple[str, ThreadKey, str]:
    """Return who pressed a button, in which thread, and the ts of the message with the button."""
    channel = string(body, "channel", "id") or string(body, "container", "channel_id")
    thread_ts = string(body, "message", "thread_ts") or string(body, "container", "thread_ts")
    place = ThreadKey(team=string(body, "team", "id"), channel=channel, thread_ts=thread_ts or channel)
    return string(body, "user", "id"), place, string(body, "message", "ts") or string(body, "container", "message_ts")

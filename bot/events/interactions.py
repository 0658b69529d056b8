"""What people press and send: feedback, "Why trust this?", App Home. Pure; malformed payloads are ignored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent.thread.conversation import ThreadKey
from bot.delivery.feedback import LONGEST_SAID, REASONS, SAID, WHY
from bot.slack.message import Ignored, Incoming
from bot.slack.payload import mapping, objects, string
from bot.slack.text import app_text, plain_text, whole_text


@dataclass(frozen=True, slots=True, kw_only=True)
class Feedback:
    """One click on a feedback button. ``ts`` is the message that was judged, ``place`` where to say thank you.

    The trigger opens a dialog within three seconds.
    """

    turn_id: str
    good: bool
    user: str
    place: ThreadKey
    ts: str
    trigger_id: str = ""

    @property
    def about(self) -> str:
        """What the dialog that asks what was wrong carries: ``turn channel thread``."""
        return f"{self.turn_id} {self.place.channel} {self.place.thread_ts}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Complaint:
    """What a person said was wrong with an answer: some of ``REASONS``, and words of their own."""

    turn_id: str
    user: str
    place: ThreadKey
    reasons: tuple[str, ...]
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustClick:
    """One click on "Why trust this?". The trigger opens a modal within three seconds."""

    turn_id: str
    trigger_id: str
    user: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanAsked:
    """One click on "Ask a human". ``ts`` is the answer that was none, ``place`` its thread."""

    turn_id: str
    user: str
    place: ThreadKey
    ts: str

    def incoming(self) -> Incoming:
        """The click as a message to its thread: the same one for every click on this answer."""
        keys = (f"hand_off:{self.place.team}:{self.turn_id}",)
        return Incoming(
            kind="hand_off",
            thread=self.place,
            user=self.user,
            ts=self.ts,
            addressed="direct",
            text=self.turn_id,
            event_ids=keys,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeOpened:
    """Somebody opened Orion's page. ``channel`` is their direct chat with Orion."""

    user: str
    channel: str
    tab: Literal["home", "messages"]


def read_feedback(body: object) -> Feedback | Ignored:
    """A ``block_actions`` payload of the feedback buttons."""
    verdict, _, turn_id = string(_action(body), "value").partition(":")
    user, channel = string(body, "user", "id"), _channel(body)
    ts = string(body, "message", "ts") or string(body, "container", "message_ts")
    if verdict not in {"good", "bad"} or not (turn_id and user and channel):
        return Ignored(reason="malformed")
    thread_ts = string(body, "message", "thread_ts") or string(body, "container", "thread_ts")
    place = ThreadKey(team=string(body, "team", "id"), channel=channel, thread_ts=thread_ts or channel)
    trigger = string(body, "trigger_id")
    return Feedback(turn_id=turn_id, good=verdict == "good", user=user, place=place, ts=ts, trigger_id=trigger)


def read_complaint(body: object) -> Complaint | Ignored:
    """A ``view_submission`` payload of the dialog that asks what was wrong."""
    turn_id, channel, thread_ts, *_ = [*string(body, "view", "private_metadata").split(" "), "", "", ""]
    user, values = string(body, "user", "id"), mapping(body, "view", "state", "values")
    if not (turn_id and channel and thread_ts and user):
        return Ignored(reason="malformed")
    chosen = {string(option, "value") for option in objects(mapping(values, WHY, WHY), "selected_options")}
    return Complaint(
        turn_id=turn_id,
        user=user,
        place=ThreadKey(team=string(body, "team", "id"), channel=channel, thread_ts=thread_ts),
        reasons=tuple(reason for reason in REASONS if reason in chosen),
        said=string(values, SAID, SAID, "value").strip()[:LONGEST_SAID],
    )


def read_trust(body: object) -> TrustClick | Ignored:
    """A ``block_actions`` payload of the trust button."""
    turn_id, trigger_id = string(_action(body), "value"), string(body, "trigger_id")
    if not (turn_id and trigger_id):
        return Ignored(reason="malformed")
    return TrustClick(turn_id=turn_id, trigger_id=trigger_id, user=string(body, "user", "id"))


def read_human_asked(body: object) -> HumanAsked | Ignored:
    """A ``block_actions`` payload of the button for people."""
    found = read_feedback(_as_feedback(body))
    if isinstance(found, Ignored) or not found.ts:
        return Ignored(reason="malformed")
    return HumanAsked(turn_id=found.turn_id, user=found.user, place=found.place, ts=found.ts)


def _as_feedback(body: object) -> Mapping[str, Any]:
    """The same click as one on a feedback button: who, where and what stand in the same fields."""
    return {**mapping(body), "actions": [{"value": f"good:{string(_action(body), 'value')}"}]}


def read_try(body: object) -> str:
    """The question on a button of App Home; empty for the button that only says hello."""
    value = string(_action(body), "value")
    return "" if value == "home" else value


def read_shortcut(body: object) -> Incoming | Ignored:
    """A ``message_action``: the message becomes a question of the person who used the shortcut, in its own thread."""
    team, channel, user = string(body, "team", "id"), string(body, "channel", "id"), string(body, "user", "id")
    message = mapping(body, "message")
    ts = string(message, "ts") or string(body, "message_ts")
    shared = plain_text(app_text(message)) if string(message, "bot_id") else whole_text(message)
    if not (team and channel and user and ts) or not (shared or any(objects(message, "files"))):
        return Ignored(reason="malformed")
    return Incoming(
        kind="question",
        thread=ThreadKey(team=team, channel=channel, thread_ts=string(message, "thread_ts") or ts),
        user=user,
        ts=ts,
        addressed="mention",
        text=shared,
        event_ids=(f"msg:{team}:{channel}:{ts}",),
        files="some" if any(objects(message, "files")) else "none",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Invited:
    """Orion was invited to a channel by somebody. ``ts`` is when."""

    inviter: str
    place: ThreadKey
    ts: str


def read_invited(body: object, own_user: str) -> Invited | Ignored:
    """A ``member_joined_channel`` event of Orion itself."""
    event = mapping(body, "event")
    channel, ts = string(event, "channel"), string(event, "event_ts")
    if string(event, "user") != own_user or not (own_user and channel and ts):
        return Ignored(reason="somebody_else")
    place = ThreadKey(team=string(body, "team_id"), channel=channel, thread_ts=channel)
    return Invited(inviter=string(event, "inviter"), place=place, ts=ts)


def read_home(body: object) -> HomeOpened | Ignored:
    """An ``app_home_opened`` event."""
    event = mapping(body, "event")
    user, tab = string(event, "user"), string(event, "tab")
    if not user or tab not in {"home", "messages"}:
        return Ignored(reason="malformed")
    return HomeOpened(user=user, channel=string(event, "channel"), tab="home" if tab == "home" else "messages")


def _action(body: object) -> Mapping[str, Any]:
    return next(iter(objects(body, "actions")), {})


def _channel(body: object) -> str:
    return string(body, "channel", "id") or string(body, "container", "channel_id")

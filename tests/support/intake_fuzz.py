"""Made-up events against intake.

Each payload has a shape that Slack sends, and most are then damaged: fields dropped, moved, of another type, huge. What
intake makes of one is compared with ``answer_due``, which says from the specification alone, without a look at
intake's code, whether an answer is due.
"""

from __future__ import annotations

import copy
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from bot.events.intake import apply_thread_mode, parse_event
from bot.slack.message import Access, BotIdentity, Ignored, Incoming, ThreadMode

OWN = BotIdentity(user="UORION", bot="BORION")
OPEN = Access()
CHOSEN = Access(allow_bots=frozenset({"BFRIEND"}))
STANDINGS: tuple[ThreadMode, ...] = ("unknown", "engaged", "muted", "lost")
ANSWERED = {"question", "help", "edit"}
Json = dict[str, Any]

TEXTS = (
    *("how do we release?", "<@UORION> how do we release?", "hello <@UORION|orion>", "<@UORION>", "stop", "mute"),
    *("Stop.", "<@UORION> stop", "<@UORION> mute!", "<@UBEN> can you?", "<@UORION> ask <@UBEN>", "<!here> look"),
    *("<!channel>", "", "<!subteam^S1|@team> look", "see <https://a.example|this> &amp; that", "x" * 50_000),
    *("<@UORION> " * 50, "\ud83d", "　", "&lt;@UORION&gt; in code", "<@U", "<@>", "<<@UORION>>", "\u202e<@UORION>"),
    *("<#C1|general> what?", "止まれ", "[" * 20_000, "[x](" * 5_000, "` <@UORION> `", "&gt; <@UORION> said"),
)
USERS = ("UANN", "UBEN", "UORION", "USLACKBOT", "W0GRID")
CHANNELS = (("C1", "channel"), ("G1", "group"), ("D1", "im"), ("G2", "mpim"), ("C2", None))
SUBTYPES = (
    *(None, None, None, None, "file_share", "thread_broadcast", "bot_message", "channel_join", "channel_topic"),
    *("message_changed", "message_deleted", "me_message", "reminder_add", "bot_add", "no_such_subtype"),
)
JUNK: tuple[Any, ...] = (
    *(None, True, 0, -1, 1.5, [], {}, [1], {"a": {}}, "", " ", "\x00", "\ud800", "9" * 30),
    "x" * 5_000,
)


@dataclass(slots=True)
class Findings:
    """What a run found. ``wrong`` holds (number, what, payload) of the first faults."""

    count: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    wrong: list[tuple[int, str, str]] = field(default_factory=list)


def payloads(count: int, seed: int) -> Iterator[tuple[object, ThreadMode, Access]]:
    """Envelopes, each with a thread's mode and the admin's choice."""
    dice = random.Random(seed)
    for _ in range(count):
        envelope: object = _envelope(dice)
        for _ in range(dice.choice((0, 0, 1, 1, 2, 5))):
            _damage(envelope, dice)
        if dice.random() < 0.01:
            envelope = dice.choice(JUNK)
        yield envelope, dice.choice(STANDINGS), dice.choice((OPEN, CHOSEN))


def _envelope(dice: random.Random) -> Json:
    channel, kind = dice.choice(CHANNELS)
    shape = dice.choice((_said, _said, _said, _mentioned, _edited, _deleted, _stopped, _other))
    event = shape(dice, channel, kind)
    return {
        "type": "event_callback",
        "team_id": "T1",
        "event_id": f"Ev{dice.randrange(10**6)}",
        "authorizations": dice.choice(([{"team_id": "T1", "user_id": "UORION"}], [], None, [{"team_id": "T2"}])),
        "is_ext_shared_channel": dice.choice((False, False, False, None)),
        "event": event,
    }


def _message(dice: random.Random) -> Json:
    made: Json = {"user": dice.choice(USERS), "text": dice.choice(TEXTS), "ts": f"17{dice.randrange(10**8):08}.000100"}
    if dice.random() < 0.5:
        made["thread_ts"] = "1700000000.000100"
    if dice.random() < 0.2:
        made["bot_id"] = dice.choice(("BORION", "BOTHER", "BFRIEND", ""))
    return made


def _said(dice: random.Random, channel: str, kind: str | None) -> Json:
    event = {"type": "message", "channel": channel, "event_ts": "1700000009.1", **_message(dice)}
    if kind:
        event["channel_type"] = kind
    if subtype := dice.choice(SUBTYPES):
        event["subtype"] = subtype
    return event


def _mentioned(dice: random.Random, channel: str, kind: str | None) -> Json:
    return {"type": "app_mention", "channel": channel, "event_ts": "1700000009.1", **_message(dice)}


def _edited(dice: random.Random, channel: str, kind: str | None) -> Json:
    now, before = _message(dice), _message(dice)
    before |= {name: now[name] for name in ("user", "ts") if dice.random() < 0.9}
    if dice.random() < 0.7:
        now["edited"] = {"user": now["user"], "ts": "1700000010.000000"}
    if dice.random() < 0.1:
        now["subtype"] = dice.choice(("tombstone", "bot_message"))
    event = {"type": "message", "subtype": "message_changed", "channel": channel, "ts": "1700000011.1"}
    return {**event, **({"channel_type": kind} if kind else {}), "message": now, "previous_message": before}


def _deleted(dice: random.Random, channel: str, kind: str | None) -> Json:
    event = {"type": "message", "subtype": "message_deleted", "channel": channel, "deleted_ts": "1700000000.1"}
    return {**event, **({"channel_type": kind} if kind else {}), "previous_message": _message(dice)}


def _stopped(dice: random.Random, channel: str, kind: str | None) -> Json:
    stop = {"type": "agent_session_stopped", "channel": channel, "thread_ts": "1700000000.1", "event_ts": "1.2"}
    return {**stop, "user": dice.choice(USERS)}


def _other(dice: random.Random, channel: str, kind: str | None) -> Json:
    names = ("reaction_added", "team_join", "link_shared", "member_joined_channel", "", "app_mention ", "MESSAGE")
    return {**_said(dice, channel, kind), "type": dice.choice(names)}


def _damage(value: object, dice: random.Random) -> None:
    """Breaks one field somewhere below: gone, of another type, or in another place."""
    places = list(_places(value))
    if not places:
        return
    holder, name = dice.choice(places)
    match dice.randrange(3):
        case 0:
            del holder[name]
        case 1:
            holder[name] = copy.deepcopy(dice.choice(JUNK))
        case _:
            other, where = dice.choice(places)
            if where in other:
                holder[name] = copy.deepcopy(other[where])


def _places(value: object) -> Iterator[tuple[Json, str]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield value, name
            yield from _places(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _places(inner)


# --- what the specification says -------------------------------------------------------------------------------------

_STAMP = re.compile(r"\d{1,20}(\.\d{1,10})?")
_QUOTED = re.compile(r"`[^`\n]+`|^&gt;[^\n]*")
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def answer_due(envelope: object, thread_mode: ThreadMode, access: Access) -> bool:
    """Return whether a person asked Orion something that it must answer."""
    event = _object(envelope, "event")
    message, edit = event, False
    if _text(event, "type") == "message" and _text(event, "subtype") == "message_changed":
        message, edit = _object(event, "message"), True
    if _text(event, "type") not in ("message", "app_mention") or not _well_formed(envelope, event, message):
        return False
    if not _by_somebody(event, message, access, edit=edit) or (edit and not _by_hand(event, message)):
        return False
    shared = envelope.get("is_ext_shared_channel") if isinstance(envelope, dict) else None
    if shared or _word(message) in (
        "stop",
        "mute",
        "unmute",
    ):  # no one is answered in a channel shared with strangers
        return False
    by_app = _text(message, "bot_id") and not _text(message, "client_msg_id") and not _listed(message, access)
    if by_app and not _addressed(event, message):
        return False  # who that is Slack must be asked, which is done for what is said to Orion only
    return _to_orion(event, message, thread_mode, edit=edit)


def _listed(message: Json, access: Access) -> bool:
    return bool({_text(message, name) for name in ("user", "bot_id", "app_id")} & access.allow_bots)


def _by_somebody(event: Json, message: Json, access: Access, *, edit: bool) -> bool:
    """A person, or a bot that the admin lists; no join, no topic, no deletion, never Orion itself."""
    author, bot, listed = _text(message, "user"), _text(message, "bot_id"), _listed(message, access)
    if author == OWN.user or bot == OWN.bot or ((author == "USLACKBOT" or (bot and not author)) and not listed):
        return False
    subtype = _text(message, "subtype")
    if edit:
        return subtype != "tombstone"
    if _text(event, "subtype") == "message_deleted":
        return False
    return subtype in ("", "file_share", "thread_broadcast", "me_message") or listed


def _by_hand(event: Json, message: Json) -> bool:
    """An edit that a person made, and that changed the words. Slack also reports its own."""
    before = _object(event, "previous_message")
    changed = not before or _text(before, "text") != _text(message, "text")
    return bool(_text(_object(message, "edited"), "ts")) and changed


def _to_orion(event: Json, message: Json, thread_mode: ThreadMode, *, edit: bool) -> bool:
    """Mentioned, written to directly, or a follow-up to nobody else where Orion was addressed and not muted."""
    text, thread, kind = _text(message, "text"), _text(message, "thread_ts"), _kind(event)
    mentions = _mentions(message)
    quoted = OWN.user in "".join(_QUOTED.findall(text)) and OWN.user not in mentions
    if OWN.user in mentions or (_text(event, "type") == "app_mention" and not quoted):
        return True
    if _rerun(event, message, edit=edit):
        return kind == "im" or thread_mode in ("engaged", "muted")
    if kind == "im":
        return thread_mode != "muted"
    bare = edit and bool(_text(_object(message, "edited"), "ts"))  # Orion's name alone stood here, and opened a thread
    if not (thread or bare) or mentions or re.search(r"<!(?:subteam\^|here|channel|everyone)", text):
        return False
    # A follow-up without a word asks nothing that would be worth looking for a lost thread.
    return thread_mode == "engaged" or (thread_mode == "lost" and bool(_word(message)))


def _mentions(message: Json) -> set[str]:
    return set(re.findall(r"<@([A-Za-z0-9_-]+)(?:\|[^<>]*)?>", _QUOTED.sub(" ", _text(message, "text"))))


def _kind(event: Json) -> str:
    return _text(event, "channel_type") or {"D": "im", "G": "group"}.get(_text(event, "channel")[:1], "channel")


def _addressed(event: Json, message: Json) -> bool:
    quoted = OWN.user in "".join(_QUOTED.findall(_text(message, "text"))) and OWN.user not in _mentions(message)
    reported = _text(event, "type") == "app_mention" and not quoted
    return OWN.user in _mentions(message) or reported or _kind(event) == "im"


def _rerun(event: Json, message: Json, *, edit: bool) -> bool:
    """A3: an edit re-runs a question; where only Orion's name stood before, nothing was asked yet."""
    if not _text(_object(message, "edited"), "ts"):
        return False
    before = _object(event, "previous_message")
    named = re.search(rf"<@{OWN.user}(?:\|[^<>]*)?>", _text(before, "text"))
    return not (edit and named and not _spoken(before))


def _well_formed(envelope: object, event: Json, message: Json) -> bool:
    """Without a team, a place, an author and a time nobody can be answered."""
    listed = envelope.get("authorizations") if isinstance(envelope, dict) else None
    first = next((one for one in listed if isinstance(one, dict)), {}) if isinstance(listed, list) else {}
    team = _text(first, "team_id") or _text(envelope, "team_id")
    author = _text(message, "user") or _text(message, "bot_id")
    names = (team, _text(event, "channel"), author)
    if not all(_NAME.fullmatch(name) for name in names) or not _STAMP.fullmatch(_text(message, "ts")):
        return False
    thread = _text(message, "thread_ts") or _text(event, "thread_ts")
    return not thread or thread == _text(event, "channel") or bool(_STAMP.fullmatch(thread))


def _spoken(message: Json) -> str:
    """What a message says beside Orion's name."""
    return re.sub(rf"<@{OWN.user}(?:\|[^<>]*)?>", "", _text(message, "text")).strip()


def _word(message: Json) -> str:
    """The one word that a message is."""
    return _spoken(message).rstrip(".!").casefold()


def _object(value: object, name: str) -> Json:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _text(value: object, name: str) -> str:
    found = value.get(name) if isinstance(value, dict) else None
    return found if isinstance(found, str) else ""


# --- the run ---------------------------------------------------------------------------------------------------------


def run(count: int, seed: int, decide: Callable[..., Incoming | Ignored] = parse_event) -> Findings:
    """Try ``count`` payloads. ``decide`` stands for intake's ``read``, so that the oracle itself can be tried out."""
    findings = Findings()
    for number, (envelope, thread_mode, access) in enumerate(payloads(count, seed)):
        findings.count += 1
        try:
            found = decide(envelope, OWN, access)
            settled = apply_thread_mode(found, thread_mode) if isinstance(found, Incoming) else found
            if isinstance(settled, Incoming) and not _survives(settled):
                _note(findings, number, "a letter that changes when stored", envelope)
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, UnicodeError) as error:
            _note(findings, number, f"crashed: {type(error).__name__}", envelope)
            continue
        fate = settled.kind if isinstance(settled, Incoming) else settled.reason
        findings.kinds[fate] += 1
        due = answer_due(envelope, thread_mode, access)
        answered = isinstance(settled, Incoming) and fate in ANSWERED and settled.addressed != "overheard"
        if answered != due:
            what = (
                f"{'no answer, but one is due' if due else 'an answer that nobody asked for'} ({fate}, {thread_mode})"
            )
            _note(findings, number, what, envelope)
    return findings


def _survives(incoming: Incoming) -> bool:
    """Whether a stored message reads back as it was, but for the token that is kept elsewhere."""
    return Incoming.from_json(incoming.to_json()) == replace(incoming, action_token="")


def _note(findings: Findings, number: int, what: str, envelope: object) -> None:
    findings.wrong.append((number, what, json.dumps(envelope)[:1_500]))

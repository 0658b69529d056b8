"""Made-up events: each has a shape that Slack sends, and most are then damaged.

Fields are dropped, moved, of another type, or huge.
"""

import copy
import random
from collections.abc import Iterator
from typing import Any

from bot.slack.message import Access, BotIdentity, ThreadMode

OWN = BotIdentity(user="UORION", bot="BORION")
OPEN = Access()
CHOSEN = Access(allow_bots=frozenset({"BFRIEND"}))
STANDINGS: tuple[ThreadMode, ...] = ("unknown", "engaged", "muted", "lost")
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
    return {
        "type": "event_callback",
        "team_id": "T1",
        "event_id": f"Ev{dice.randrange(10**6)}",
        "authorizations": dice.choice(([{"team_id": "T1", "user_id": "UORION"}], [], None, [{"team_id": "T2"}])),
        "is_ext_shared_channel": dice.choice((False, False, False, None)),
        "event": _event(dice),
    }


def _message(dice: random.Random) -> Json:
    made: Json = {"user": dice.choice(USERS), "text": dice.choice(TEXTS), "ts": f"17{dice.randrange(10**8):08}.000100"}
    if dice.random() < 0.5:
        made["thread_ts"] = "1700000000.000100"
    if dice.random() < 0.2:
        made["bot_id"] = dice.choice(("BORION", "BOTHER", "BFRIEND", ""))
    return made


def _event(dice: random.Random) -> Json:
    """A message, a mention, an edit, a deletion, a stop, or an event that Orion does not know."""
    channel, kind = dice.choice(CHANNELS)
    here = {"channel": channel, "event_ts": "1700000009.1"}
    typed = {"type": "message", **here, **({"channel_type": kind} if kind else {})}
    plain, now, before = {**typed, **_message(dice)}, _message(dice), _message(dice)
    if subtype := dice.choice(SUBTYPES):
        plain["subtype"] = subtype
    mention = {"type": "app_mention", **here, **now}
    stop = {"type": "agent_session_stopped", **here, "thread_ts": "1700000000.1", "user": dice.choice(USERS)}
    before |= {name: now[name] for name in ("user", "ts") if dice.random() < 0.9}
    if dice.random() < 0.7:
        now["edited"] = {"user": now["user"], "ts": "1700000010.000000"}
    if dice.random() < 0.1:
        now["subtype"] = dice.choice(("tombstone", "bot_message"))
    changed = {**typed, "previous_message": before}
    edit = {**changed, "subtype": "message_changed", "ts": "1700000011.1", "message": now}
    deletion = {**changed, "subtype": "message_deleted", "deleted_ts": "1700000000.1"}
    names = ("reaction_added", "team_join", "link_shared", "member_joined_channel", "", "app_mention ", "MESSAGE")
    other = {**plain, "type": dice.choice(names)}
    return dice.choice((plain, plain, plain, mention, edit, deletion, stop, other))


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

"""`orion forget`: deletes everything that Orion keeps of a person or a thread (A12).

What runs for them is cancelled first, so that nothing is written back. A conversation that names the person goes as a
whole; the next message rebuilds it from Slack. Event ids stay for their day, or the same event would count as new.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import structlog
from redis.asyncio import Redis

from agent.packing import unpacked
from agent.thread.conversation import ThreadKey
from bot.errors import WrongUse
from bot.events.catch_up import Served
from bot.events.enqueue import DELETED
from bot.queue.queue import Cancellation, Mailbox
from bot.queue.scripts import script, split_entry
from bot.slack.message import Incoming
from bot.stores.direct_chats import DirectChats

log = structlog.get_logger()

Wanted = Callable[[Incoming | None, str], bool]
"""Whether a stored message (None: it cannot be read) of this thread is meant."""
PATIENCE_S: Final = 30.0
"""How long a running turn is waited for: longer than the lease of a worker that died."""
AGAIN_S: Final = 0.1
_PERMALINK: Final = re.compile(
    r"https?://[^/\s]+/archives/(?P<channel>[A-Z0-9]+)/p(?P<s>\d{10})(?P<us>\d{6})(?P<q>\?\S*)?"
)
_ROOT: Final = re.compile(r"[?&]thread_ts=(?P<ts>\d{10}\.\d{6})")
_THREAD: Final = re.compile(r"[A-Z0-9]+:[A-Z0-9]+:[A-Z0-9.]+")
_USER: Final = re.compile(r"[UWB][A-Z0-9]{2,}")
_KINDS: Final[Mapping[str, str]] = {
    "state": "conversations",
    "mark": "marks and answers waiting to be posted",
    "turn": "turn records",
    **dict.fromkeys(("standing", "stranger", "standing_at", "action_token", "stop", "gone"), "notes about threads"),
    **dict.fromkeys(("person", "told"), "notes about the person"),
}
_TEXTS: Final = ("state", "mark", "turn")
_FEEDBACK: Final = ("complaint", "feedback")
_BAD_THREAD: Final = (
    "--thread must be a message's link (https://….slack.com/archives/C…/p…) or team:channel:ts, such as "
    "T024BE7LD:C024BE91L:1700000000.000100."
)
_BAD_USER: Final = "--user must be a Slack user id, such as U024BE7LH (profile, ⋮, Copy member ID)."


@dataclass(slots=True, kw_only=True)
class Forgotten:
    """What went, by kind, and threads whose turn did not end in time: another run takes care of those."""

    counts: Counter[str] = field(default_factory=Counter)
    running: list[str] = field(default_factory=list)


class Key(NamedTuple):
    """One of Orion's keys in Redis: ``kind`` of thing, and what it is about."""

    name: str
    kind: str
    about: str


def langfuse_user(user: str) -> str:
    """The id under which a person's traces stand in Langfuse."""
    return hashlib.sha256(user.encode()).hexdigest()


async def forget(redis: Redis, *, user: str, thread: str, prefix: str) -> Forgotten:
    """Forget the person ``user``, else the ``thread``. Raises ``WrongUse`` and ``RedisError``."""
    if user and not _USER.fullmatch(user):
        raise WrongUse(_BAD_USER)
    mailbox = Mailbox(redis, prefix=prefix)
    try:
        forgetting = Forgetting(redis, mailbox, prefix=prefix)
        return await (forgetting.person(user) if user else forgetting.thread(thread))
    finally:
        await mailbox.aclose()


class Forgetting:
    """Over one Redis; ``prefix`` is Orion's there. Every method raises ``RedisError``."""

    def __init__(
        self, redis: Redis, mailbox: Mailbox, *, prefix: str = "orion", patience_s: float = PATIENCE_S
    ) -> None:
        self._redis = redis
        self._mailbox = mailbox
        self._prefix = prefix
        self._patience_s = patience_s
        self._drop = script(redis, "forget")
        self._served = Served(redis, prefix=prefix)
        self._direct = DirectChats(redis, prefix=prefix)

    async def person(self, user: str) -> Forgotten:
        """What is kept of a person: their questions, what was said to them, what they pressed, what they spent."""
        # The borders keep U12 from being found in U123.
        found, named = Forgotten(), re.compile(rf"(?<![A-Z0-9]){re.escape(user)}(?![A-Z0-9])")
        await self._messages(found, lambda incoming, _: incoming is not None and incoming.user == user)
        chats: set[str] = set()
        async for key in self._keys():
            if key.kind in _TEXTS and named.search(await self._text(key)):
                if key.kind == "state" and ":D" in key.about:
                    chats.add(key.about)
                await self._forget(key, found)
            elif key.kind in {"person", "told"} and user in key.about.split(":"):
                await self._forget(key, found)
            elif key.kind in _FEEDBACK:
                found.counts["feedback"] += int(await self._redis.hdel(key.name, user))
            elif key.kind == "tokens":
                found.counts["days of spending"] += int(await self._redis.hdel(key.name, f"user:{user}"))
        for chat in chats:
            await self._thread(chat, found, whole_chat=True)
        return found

    async def thread(self, reference: str) -> Forgotten:
        """What is kept of a thread, named by ``team:channel:ts`` or by a message's link. Raises ``WrongUse``."""
        found = Forgotten()
        for thread in await self._named(reference):
            await self._messages(found, lambda _, place, wanted=thread: place == wanted)  # type: ignore[misc]  # bound now
            await self._thread(thread, found)
        return found

    async def _named(self, reference: str) -> list[str]:
        if _THREAD.fullmatch(reference):
            return [reference]
        link = _PERMALINK.fullmatch(reference.strip())
        if link is None:
            raise WrongUse(_BAD_THREAD)
        root = _ROOT.search(link["q"] or "")
        ts = root["ts"] if root else f"{link['s']}.{link['us']}"
        # A link does not tell the team, and a direct chat is one conversation whatever message the link names.
        ends = (f":{link['channel']}:{ts}", f":{link['channel']}:{link['channel']}")
        known = {":".join(key.about.split(":")[:3]) async for key in self._keys() if key.kind in {*_KINDS, "mb"}}
        return sorted(thread for thread in known if thread.endswith(ends))

    async def _messages(self, found: Forgotten, wanted: Wanted) -> None:
        """Questions that wait, run or were given up."""
        async for key in self._keys():
            if key.kind == "mb":
                entries: list[str] = [str(entry) for entry in await self._redis.lrange(key.name, 0, -1)]
                for entry in reversed(entries):  # the one in hand last: none of the others shall be begun
                    if wanted(_read(entry), key.about):
                        await self._drop_letter(key, entry, found)
            elif key.kind == "dead":
                rows: Any = await self._redis.xrange(key.name)
                for entry_id, fields in rows:
                    if wanted(_read(fields["entry"]), fields["thread"]):
                        found.counts["dead letters"] += int(await self._redis.xdel(key.name, entry_id))

    async def _drop_letter(self, key: Key, entry: str, found: Forgotten) -> None:
        """Take a message out; one that is being worked on is cancelled, and its end waited for."""
        tag, cancelled = key.name.partition("}")[0] + "}", False
        try:
            async with asyncio.timeout(self._patience_s):
                while (gone := int(await self._drop(keys=[tag], args=[key.about, entry]))) < 0:
                    wish = Cancellation(thread=key.about, reason=DELETED, message_id=split_entry(entry)[0])
                    await self._mailbox.cancel(wish)
                    cancelled = True
                    await asyncio.sleep(AGAIN_S)
        except TimeoutError:
            log.warning("turn_still_running", thread=key.about)
            found.running.append(key.about)
        else:
            ended = cancelled and not gone  # its worker took it out
            found.counts["turns cancelled" if ended else "questions"] += 1 if ended else gone

    async def _thread(self, thread: str, found: Forgotten, *, whole_chat: bool = False) -> None:
        """All that stands under the thread's own name; ``whole_chat``: and of the direct chat that it stands in."""
        team, channel, ts = thread.split(":", 2)
        place = ThreadKey(team=team, channel=channel, thread_ts=ts)
        await self._direct.forget(place, chat=whole_chat)
        found.counts["notes about threads"] += int(await self._redis.zrem(self._served.key, thread))
        if whole_chat:
            await self._served.forget(replace(place, thread_ts=channel))
        async for key in self._keys():
            own = key.kind in _KINDS and (key.about == thread or key.about.startswith(f"{thread}:"))
            if own or (key.kind == "turn" and f'"thread":"{thread}"' in await self._text(key)):
                await self._forget(key, found)
            elif whole_chat and key.kind == "pace" and key.about.endswith(f":{channel}"):
                await self._redis.delete(key.name)

    async def _forget(self, key: Key, found: Forgotten) -> None:
        found.counts[_KINDS[key.kind]] += int(await self._redis.delete(key.name))
        if key.kind == "turn":  # and what people pressed and said about its answer
            for kind in _FEEDBACK:
                found.counts["feedback"] += int(await self._redis.delete(f"{self._prefix}:{kind}:{key.about}"))

    async def _text(self, key: Key) -> str:
        stored = await (self._redis.hget(key.name, "state") if key.kind == "state" else self._redis.get(key.name))
        return unpacked(str(stored or ""))

    async def _keys(self) -> AsyncIterator[Key]:
        """Every key of this Orion; ``{prefix:shard}`` and ``prefix`` alike begin one."""
        for pattern in (f"{self._prefix}:*", f"{{{self._prefix}:*"):
            async for name in self._redis.scan_iter(match=pattern, count=500):
                rest = name.partition("}:")[2] if name.startswith("{") else name.removeprefix(f"{self._prefix}:")
                kind, _, about = rest.partition(":")
                yield Key(name=name, kind=kind, about=about)


def _read(entry: str) -> Incoming | None:
    """A stored message; None where it cannot be read."""
    try:
        return Incoming.from_json(split_entry(entry)[2])
    except ValueError:
        return None

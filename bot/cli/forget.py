"""`orion forget`: deletes everything that Orion stores about a person or a thread.

Running turns are cancelled first, so that nothing is written back. A conversation that names the person is deleted as a
whole; the next message rebuilds it from Slack. Event ids stay for a day, because otherwise a repeated event would count
as new.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import structlog
from redis.asyncio import Redis

from agent.json_data import decompress
from agent.thread.conversation import ThreadKey
from bot.errors import WrongUse
from bot.events.intake import DELETED
from bot.queue.claim import Cancellation, now
from bot.queue.queue import Mailbox, load_script, split_entry
from bot.slack.message import Incoming
from bot.stores.stores import DirectMessages, Served

log = structlog.get_logger()

Matches = Callable[[Incoming | None, str], bool]  # a message (None: unreadable) and its thread
CANCEL_INTERVAL_S: Final = 0.1
# Slack's links have the ts without its point.
_PERMALINK: Final = re.compile(
    r"https?://[^/\s]+/archives/(?P<channel>[A-Z0-9]+)/p(?P<s>\d{10})(?P<us>\d{6})(?P<q>\?\S*)?"
)
_ROOT: Final = re.compile(r"[?&]thread_ts=(?P<ts>\d{10}\.\d{6})")
_THREAD: Final = re.compile(r"[A-Z0-9]+:[A-Z0-9]+:[A-Z0-9.]+")
_USER: Final = re.compile(r"[UWB][A-Z0-9]{2,}")  # people (W… on Enterprise Grid) and bots
_KINDS: Final[Mapping[str, str]] = {
    "state": "conversations",
    "mark": "marks and answers waiting to be posted",
    "turn": "turn records",
    **dict.fromkeys(
        ("standing", "stranger", "standing_at", "action_token", "stop", "gone", "handed"), "notes about threads"
    ),
    **dict.fromkeys(("person", "told"), "notes about the person"),
}
_TEXTS: Final = ("state", "mark", "turn", "handed")
_FEEDBACK: Final = ("complaint", "feedback")
_BAD_THREAD: Final = (
    "--thread must be a message's link (https://….slack.com/archives/C…/p…) or team:channel:ts, such as "
    "T024BE7LD:C024BE91L:1700000000.000100."
)


class Key(NamedTuple):
    """One of Orion's keys in Redis, with its ``kind`` and subject."""

    name: str
    kind: str
    about: str


async def forget(redis: Redis, *, user: str, thread: str, prefix: str) -> "Forgetting":
    """Forget the person ``user``, or else the ``thread``. Raises ``WrongUse`` and ``RedisError``."""
    if user and not _USER.fullmatch(user):
        raise WrongUse(why="--user must be a Slack user id, such as U024BE7LH (profile, ⋮, Copy member ID).")
    async with aclosing(Mailbox(redis, prefix=prefix)) as mailbox:
        forgetting = Forgetting(redis, mailbox, prefix=prefix)
        await (forgetting.person(user) if user else forgetting.thread(thread))
    return forgetting


@dataclass(slots=True)
class Forgetting:
    """Forgets over one Redis. Every method raises ``RedisError``."""

    redis: Redis
    mailbox: Mailbox
    prefix: str = "orion"
    patience_s: float = 30.0  # how long to wait for a running turn: longer than a dead worker's lease
    counts: Counter[str] = field(default_factory=Counter)  # deleted things by kind
    running: list[str] = field(default_factory=list)  # threads whose turn did not end in time

    async def person(self, user: str) -> None:
        """Delete a person's questions, answers, clicks and token use."""
        # With these boundaries U12 does not match in U123.
        mention = re.compile(rf"(?<![A-Z0-9]){re.escape(user)}(?![A-Z0-9])")
        await self._messages(lambda incoming, _: incoming is not None and incoming.user == user)
        chats: set[str] = set()
        async for key in self._keys():
            if key.kind in _TEXTS and mention.search(await self._text(key)):
                if key.kind == "state" and ":D" in key.about:  # a direct message's id begins with D
                    chats.add(key.about)
                await self._forget(key)
            elif key.kind in {"person", "told"} and user in key.about.split(":"):
                await self._forget(key)
            else:
                await self._forget_fields(key, user, mention)
        for chat in chats:
            await self._thread(chat, whole_chat=True)

    async def _forget_fields(self, key: Key, user: str, mention: re.Pattern[str]) -> None:
        """Delete a person's part of what is stored for several people."""
        names, what = [user], "feedback"
        if key.kind == "tokens":
            names, what = [f"user:{user}"], "days of spending"
        elif key.kind == "proposals":
            stored: Any = await self.redis.hgetall(key.name)
            names, what = [name for name, text in stored.items() if mention.search(text)], "proposed answers"
        elif key.kind not in _FEEDBACK:
            return
        for name in names:
            self.counts[what] += int(await self.redis.hdel(key.name, name))

    async def thread(self, reference: str) -> None:
        """Delete a thread, given as ``team:channel:ts`` or as a message's link. Raises ``WrongUse``."""
        for thread in await self._threads_of(reference):
            await self._messages(lambda _, place, mine=thread: place == mine)  # type: ignore[misc]  # bound now
            await self._thread(thread)

    async def _threads_of(self, reference: str) -> list[str]:
        if _THREAD.fullmatch(reference):
            return [reference]
        link = _PERMALINK.fullmatch(reference.strip())
        if link is None:
            raise WrongUse(_BAD_THREAD)
        root = _ROOT.search(link["q"] or "")
        ts = root["ts"] if root else f"{link['s']}.{link['us']}"
        # A link does not contain the team, and all direct messages with a person are one conversation.
        ends = (f":{link['channel']}:{ts}", f":{link['channel']}:{link['channel']}")
        known = {":".join(key.about.split(":")[:3]) async for key in self._keys() if key.kind in {*_KINDS, "mb"}}
        return sorted(thread for thread in known if thread.endswith(ends))

    async def _messages(self, matches: Matches) -> None:
        async for key in self._keys():
            if key.kind == "mb":
                entries = [str(entry) for entry in await self.redis.lrange(key.name, 0, -1)]
                for entry in reversed(entries):  # the running one last, so that no other one starts
                    if matches(Incoming.from_body(split_entry(entry).body), key.about):
                        await self._drop_letter(key, entry)
            elif key.kind == "dead":
                rows: Any = await self.redis.xrange(key.name)
                for entry_id, fields in rows:
                    if matches(Incoming.from_body(split_entry(fields["entry"]).body), fields["thread"]):
                        self.counts["dead letters"] += int(await self.redis.xdel(key.name, entry_id))

    async def _drop_letter(self, key: Key, entry: str) -> None:
        """Remove a message. If a worker has it, cancel its turn and wait for the end."""
        drop, tag, cancelled = load_script(self.redis, "forget"), key.name.partition("}")[0] + "}", False
        # Not `asyncio.timeout`: a library may swallow its only cancellation (see `raise_if_cancelled`).
        until = now() + self.patience_s
        while (gone := int(await drop(keys=[tag], args=[key.about, entry]))) < 0:
            if now() >= until:
                log.warning("turn_still_running", thread=key.about)
                self.running.append(key.about)
                return
            wish = Cancellation(thread=key.about, reason=DELETED, message_id=split_entry(entry).id)
            await self.mailbox.cancel(wish)
            cancelled = True
            await asyncio.sleep(CANCEL_INTERVAL_S)
        ended = cancelled and not gone  # its worker removed it
        self.counts["turns cancelled" if ended else "questions"] += 1 if ended else gone

    async def _thread(self, thread: str, *, whole_chat: bool = False) -> None:
        """Delete all keys of a thread; with ``whole_chat`` also all direct messages with that person."""
        team, channel, ts = thread.split(":", 2)
        place = ThreadKey(team=team, channel=channel, thread_ts=ts)
        served = Served(self.redis, prefix=self.prefix)
        await DirectMessages(self.redis, prefix=self.prefix).forget(place, chat=whole_chat)
        self.counts["notes about threads"] += int(await self.redis.zrem(served.key("served"), thread))
        if whole_chat:
            await served.forget(replace(place, thread_ts=channel))
        async for key in self._keys():
            own = key.kind in _KINDS and (key.about == thread or key.about.startswith(f"{thread}:"))
            if own or (key.kind == "turn" and f'"thread":"{thread}"' in await self._text(key)):
                await self._forget(key)
            elif whole_chat and key.kind == "pace" and key.about.endswith(f":{channel}"):
                await self.redis.delete(key.name)  # how fast a person wrote is personal data too

    async def _forget(self, key: Key) -> None:
        self.counts[_KINDS[key.kind]] += int(await self.redis.delete(key.name))
        if key.kind == "turn":  # and people's clicks and comments on its answer
            for kind in _FEEDBACK:
                self.counts["feedback"] += int(await self.redis.delete(f"{self.prefix}:{kind}:{key.about}"))

    async def _text(self, key: Key) -> str:
        stored = await (self.redis.hget(key.name, "state") if key.kind == "state" else self.redis.get(key.name))
        return decompress(str(stored or ""))

    async def _keys(self) -> AsyncIterator[Key]:
        """All keys of this Orion. Keys of a thread have ``{shard}`` after the prefix."""
        start = f"{self.prefix}:"
        async for name in self.redis.scan_iter(match=f"{start}*", count=500):
            rest = name.removeprefix(start)
            kind, _, about = (rest.partition("}:")[2] if rest.startswith("{") else rest).partition(":")
            yield Key(name=name, kind=kind, about=about)

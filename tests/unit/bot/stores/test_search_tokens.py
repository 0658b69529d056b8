"""The token of a question is kept for minutes, and nowhere beside where it is looked for (D3, I5)."""

from __future__ import annotations

from typing import Any

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.events.enqueue import Reception
from bot.gates.stop import StopDesk, Stops
from bot.queue.queue import Mailbox
from bot.slack.message import Access, Incoming
from bot.slack.users import KnownPeople
from bot.stores.search_tokens import KEPT_S
from bot.stores.stores import memory_over

PLACE = ThreadKey(team="T1", channel="C1", thread_ts="1.0")


def letter(**more: Any) -> Incoming:
    fields: dict[str, Any] = {"action_token": "xact-secret", **more}
    return Incoming(kind="question", thread=PLACE, user="U1", ts="1.0", addressed="mention", text="?", **fields)


async def everything(redis: Redis) -> dict[str, str]:
    """What stands under every key, as text."""
    found = {}
    async for key in redis.scan_iter():
        match await redis.type(key):
            case "string":
                found[key] = str(await redis.get(key))
            case "list":
                found[key] = str(await redis.lrange(key, 0, -1))
            case "stream":
                found[key] = str(await redis.xrange(key))
            case "hash":
                found[key] = str(await redis.hgetall(key))
            case other:
                found[key] = f"a {other!r}"
    return found


async def test_d3_a_token_is_in_no_mailbox_and_no_dead_letter(redis_client: Redis) -> None:
    mailbox = Mailbox(redis_client)
    memory = memory_over(redis_client, mailbox)
    desk = StopDesk(Stops(memory, mailbox.cancel), memory, access=Access(), known=KnownPeople(redis_client))
    await Reception(memory, mailbox.cancel, stop_desk=desk).receive(letter())
    (claimed,) = await mailbox.claim("w", 1)
    assert await memory.tokens.of(Incoming.from_json(claimed.body)) == "xact-secret"
    await mailbox.done(claimed, "dead", reason="given up")
    holding = [key for key, text in (await everything(redis_client)).items() if "xact-secret" in text]
    assert holding == [memory.tokens.key(letter())]
    assert 0 < await redis_client.ttl(holding[0]) <= KEPT_S
    await mailbox.aclose()


async def test_d3_each_version_of_a_message_has_its_own(redis_client: Redis) -> None:
    tokens = memory_over(redis_client, Mailbox(redis_client)).tokens
    await tokens.keep(letter())
    assert await tokens.of(letter(action_token="", edited_ts="2.0")) == ""
    await tokens.keep(letter(action_token=""))
    assert await tokens.of(letter(action_token="")) == "xact-secret"
    assert await tokens.of(letter(action_token="its own")) == "its own", "as an older version stored it"

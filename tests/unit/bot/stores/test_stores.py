"""The facts that a turn begins with, and the outbox of decided answers."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey, ThreadMessage
from agent.thread.state import ThreadState
from bot.events.intake import Intake
from bot.queue.queue import Mailbox
from bot.slack.message import Access, Incoming
from bot.stores.stores import TOKEN_TTL_S, OutboxEntry, Stores, read_entry, read_facts
from tests.support.local_slack import local_slack
from tests.support.services import workspaces_of
from verification.types import Answer, Repair, Source, Violation

words = st.text(max_size=30)
answers = st.builds(
    Answer,
    text=words,
    chunks=st.lists(words, max_size=3).map(tuple),
    sources=st.lists(st.builds(Source, id=st.integers(1, 9), title=words, url=words, text=words), max_size=2).map(
        tuple
    ),
    verified=st.booleans(),
    attempts=st.integers(0, 3),
    repairs=st.lists(st.builds(Repair, kind=words, count=st.integers(1, 9)), max_size=2).map(tuple),
    violations=st.lists(
        st.builds(Violation, rule=st.just("not_empty"), severity=st.just("error"), words=words), max_size=2
    ).map(tuple),
    label=words,
)


@given(answers, words)
def test_an_entry_is_read_back_as_it_was_written(answer: Answer, said: str) -> None:
    state = ThreadState(mission=said, history=(ThreadMessage(role="user", text=said),))
    entry = OutboxEntry(outcome="answered", answer=answer, state=state)
    assert read_entry(entry.to_json()) == entry


@pytest.mark.parametrize(
    "stored", [None, "", "{", "[]", '{"outcome": "answered"}', '{"outcome":1,"answer":{},"state":""}']
)
def test_what_cannot_be_read_counts_as_none(stored: str | None) -> None:
    assert read_entry(stored) is None


PLACE = ThreadKey(team="T1", channel="C1", thread_ts="1.0")


def incoming(**more: Any) -> Incoming:
    fields: dict[str, Any] = {"action_token": "xact-secret", **more}
    return Incoming(kind="question", thread=PLACE, user="U1", ts="1.0", addressed="mention", text="?", **fields)


async def token_of(stores: Stores, incoming: Incoming) -> str:
    """The token as the message's turn finds it."""
    return (await read_facts(stores, incoming, "t")).token


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


async def test_token_is_in_no_mailbox_and_no_dead_letter(redis_client: Redis) -> None:
    mailbox = Mailbox(redis_client)
    stores = Stores(redis_client, mailbox)
    async with local_slack() as slack:
        await Intake(stores, mailbox.cancel, Access(), workspaces_of(slack, redis_client)).receive(incoming())
    (claimed,) = await mailbox.claim("w", 1)
    assert await token_of(stores, Incoming.from_json(claimed.body)) == "xact-secret"
    await mailbox.finish(claimed, "dead", reason="given up")
    holding = [key for key, text in (await everything(redis_client)).items() if "xact-secret" in text]
    assert holding == [stores.token_key(incoming())]
    assert 0 < await redis_client.ttl(holding[0]) <= TOKEN_TTL_S
    await mailbox.aclose()


async def test_each_version_of_a_message_has_its_own(redis_client: Redis) -> None:
    stores = Stores(redis_client, Mailbox(redis_client))
    await stores.save_token(incoming())
    assert await token_of(stores, incoming(action_token="", edited_ts="2.0")) == ""
    await stores.save_token(incoming(action_token=""))
    assert await token_of(stores, incoming(action_token="")) == "xact-secret"

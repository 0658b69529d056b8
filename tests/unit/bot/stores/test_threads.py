"""The mode of a thread, and the threads of a direct chat."""

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.slack.message import Incoming
from bot.stores.threads import DIRECT_CHAT_TTL_S, MAX_CONTEXT_AGE_S, STRANGER_TTL_S, DirectChats, ThreadModes

BEGAN = 1_795_000_000.0
OLD = ThreadKey(team="T1", channel="C1", thread_ts="1794999999.000100")
NEW = ThreadKey(team="T1", channel="C1", thread_ts="1795000001.000100")
DIRECT = ThreadKey(team="T1", channel="D1", thread_ts="D1")


def modes_of(redis: Redis) -> ThreadModes:
    return ThreadModes(redis, clock=lambda: BEGAN)


async def test_thread_older_than_the_memory_may_be_lost_until_somebody_looked(redis_client: Redis) -> None:
    thread_modes = modes_of(redis_client)
    assert [await thread_modes.get(thread) for thread in (OLD, NEW, DIRECT)] == ["lost", "unknown", "unknown"]
    await thread_modes.mark_stranger(OLD)
    assert await thread_modes.get(OLD) == "unknown"
    assert 0 < await redis_client.ttl(f"orion:stranger:{OLD}") <= STRANGER_TTL_S
    await thread_modes.engage(OLD)
    assert await thread_modes.get(OLD) == "engaged"


async def test_the_memory_begins_with_the_first_mention_that_redis_took(redis_client: Redis) -> None:
    thread_modes = modes_of(redis_client)
    asked = Incoming(kind="question", thread=OLD, user="U1", ts=OLD.thread_ts, addressed="mention")
    lost, taken = redis_client.pipeline(transaction=False), redis_client.pipeline(transaction=False)
    thread_modes.record_message(lost, asked, new=True)  # Redis was away: Slack sends it again
    thread_modes.record_message(taken, asked, new=True)
    await taken.execute()
    assert float(str(await redis_client.get(thread_modes.since_key()))) == BEGAN


async def test_the_memory_begins_once(redis_client: Redis) -> None:
    await modes_of(redis_client).get(NEW)
    later = ThreadModes(redis_client, clock=lambda: BEGAN + 3_600)
    assert await later.get(NEW) == "unknown"
    assert await later.get(OLD) == "lost"


def thread(seconds: int, channel: str = "D1") -> ThreadKey:
    return ThreadKey(team="T1", channel=channel, thread_ts=f"{1_700_000_000 + seconds}.000100")


async def test_the_thread_before_is_the_one_last_used_within_half_an_hour(redis_client: Redis) -> None:
    chats = DirectChats(redis_client)
    first, second, channel = thread(0), thread(60), thread(0, "C1")
    async with redis_client.pipeline() as pipe:
        for said in (first, second, channel):
            chats.record(pipe, said, said.thread_ts)
        chats.record(pipe, first, thread(90).thread_ts)  # somebody went on in the first one
        await pipe.execute()

    async def before(seconds: int, channel: str = "D1") -> ThreadKey | None:
        opened = thread(seconds, channel)
        return await chats.previous_thread(opened, opened.thread_ts)

    assert [await before(seconds) for seconds in (100, 70, 0)] == [first, second, None]
    assert [await before(seconds) for seconds in (90 + MAX_CONTEXT_AGE_S - 1, 90 + MAX_CONTEXT_AGE_S)] == [first, None]
    assert await chats.previous_thread(second, thread(100).thread_ts) is None, "a reply goes on where it stands"
    assert await before(100, "C1") is None
    assert 0 < await redis_client.ttl(chats.key(first)) <= DIRECT_CHAT_TTL_S

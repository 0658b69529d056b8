"""The threads of a direct chat, and the one before."""

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.stores.places import DIRECT_CHAT_TTL_S, MAX_CONTEXT_AGE_S, DirectChats


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

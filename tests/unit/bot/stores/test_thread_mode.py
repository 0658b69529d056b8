"""Where Orion stands in a thread: addressed, muted, neither, or forgotten with an earlier Redis."""

from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.slack.message import Incoming
from bot.stores.thread_mode import STRANGER_TTL_S, ThreadModes

BEGAN = 1_795_000_000.0
OLD = ThreadKey(team="T1", channel="C1", thread_ts="1794999999.000100")
NEW = ThreadKey(team="T1", channel="C1", thread_ts="1795000001.000100")
DIRECT = ThreadKey(team="T1", channel="D1", thread_ts="D1")


def standings_of(redis: Redis) -> ThreadModes:
    return ThreadModes(redis, clock=lambda: BEGAN)


async def test_standing_changes_and_expires(redis_client: Redis, no_leaked_keys: list[str]) -> None:
    thread_modes = standings_of(redis_client)
    no_leaked_keys.append(thread_modes.since_key())
    assert await thread_modes.get(NEW) == "unknown"
    await thread_modes.engage(NEW)
    assert await thread_modes.get(NEW) == "engaged"
    await thread_modes.mute(NEW)
    assert await thread_modes.get(NEW) == "muted"
    assert await redis_client.ttl(thread_modes.key(NEW)) > 0


async def test_thread_older_than_the_memory_may_be_lost_until_somebody_looked(redis_client: Redis) -> None:
    thread_modes = standings_of(redis_client)
    assert [await thread_modes.get(thread) for thread in (OLD, NEW, DIRECT)] == ["lost", "unknown", "unknown"]
    await thread_modes.mark_stranger(OLD)
    assert await thread_modes.get(OLD) == "unknown"
    assert 0 < await redis_client.ttl(f"orion:stranger:{OLD}") <= STRANGER_TTL_S
    await thread_modes.engage(OLD)
    assert await thread_modes.get(OLD) == "engaged"


async def test_the_memory_begins_with_the_first_mention_that_redis_took(redis_client: Redis) -> None:
    thread_modes = standings_of(redis_client)
    asked = Incoming(kind="question", thread=OLD, user="U1", ts=OLD.thread_ts, addressed="mention")
    lost, taken = redis_client.pipeline(transaction=False), redis_client.pipeline(transaction=False)
    thread_modes.record_message(lost, asked, new=True)  # Redis was away: Slack sends it again
    thread_modes.record_message(taken, asked, new=True)
    await taken.execute()
    assert float(str(await redis_client.get(thread_modes.since_key()))) == BEGAN


async def test_the_memory_begins_once(redis_client: Redis) -> None:
    await standings_of(redis_client).get(NEW)
    later = ThreadModes(redis_client, clock=lambda: BEGAN + 3_600)
    assert await later.get(NEW) == "unknown"
    assert await later.get(OLD) == "lost"

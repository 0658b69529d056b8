"""Several Orions on one Redis: whose keys are whose, and the keys of an older version."""

import asyncio
from pathlib import Path

import pytest
from pydantic import SecretStr
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.errors import WrongUse
from bot.install.identity import Identity, find_prefix, identify, join_redis, list_orions, recall_identity
from bot.local.server import LocalWorkspace
from bot.queue.queue import Mailbox
from bot.stores.stores import Served
from tests.support.orion_running import settings_in

A = Identity(prefix="orion:T0A:U0A", name="Team A as orion", team="T0A", token="a")
B = Identity(prefix="orion:T0B:U0B", name="Team B as orion", team="T0B", token="b")
THREADS = {"T0A": ["T0A:C1:1.000001", "T0A:D1:D1"], "T0B": ["T0B:C1:1.000001"]}


async def store_as_before(redis: Redis) -> None:
    """Store questions, a dead letter, a state and a place of both teams under the names of the version before."""
    mailbox = Mailbox(redis)
    for thread in [thread for threads in THREADS.values() for thread in threads]:
        await mailbox.enqueue(thread, f"dead {thread}", event_ids=[f"evt:{thread[:3]}:dead{thread}"])
    for claimed in await mailbox.claim("w", 9):
        await mailbox.finish(claimed, "dead", reason="r")
    for thread in [thread for threads in THREADS.values() for thread in threads]:
        await mailbox.enqueue(thread, f"body {thread}", event_ids=[f"evt:{thread[:3]}:{thread}"])
        await redis.hset(f"orion:{{0}}:state:{thread}", "state", thread)
        await redis.zadd("orion:served", {thread: 1})
    await mailbox.claim("an old worker", 1)
    await redis.set("orion:turn:0a", "{}", ex=60)
    await mailbox.aclose()
    for key in map(str, await redis.keys("orion:{0}:*")):
        await redis.rename(key, key.replace("orion:{0}", "{orion:0}"))


async def claimed_by(redis: Redis, orion: Identity) -> dict[str, str]:
    mailbox = Mailbox(redis, prefix=orion.prefix)
    claimed = {one.thread: one.body for one in await mailbox.claim("w", 9)}
    await mailbox.aclose()
    return claimed


async def test_each_team_takes_over_its_own_old_keys_once(redis_client: Redis) -> None:
    await store_as_before(redis_client)
    await asyncio.gather(join_redis(redis_client, A), join_redis(redis_client, A))  # noqa: TID251 - two processes start
    assert await claimed_by(redis_client, A) == {thread: f"body {thread}" for thread in THREADS["T0A"]}
    assert not [key for key in map(str, await redis_client.keys("*")) if "T0A" in key and not key.startswith(A.prefix)]
    await join_redis(redis_client, B)
    for orion in (A, B):
        own = set(THREADS[orion.team])
        assert set(await claimed_by(redis_client, orion)) == (own if orion is B else set())  # A's are leased already
        dead = await redis_client.xrange(f"{orion.prefix}:{{0}}:dead")
        assert {fields["thread"] for _, fields in dead} == own  # type: ignore[index,union-attr]  # redis-py's union
        assert set(map(str, await Served(redis_client, prefix=orion.prefix).latest(9))) == own
        for thread in own:
            assert await redis_client.hget(f"{orion.prefix}:{{0}}:state:{thread}", "state") == thread
        ids = [f"evt:{orion.team}:{thread}" for thread in own]
        assert not await Mailbox(redis_client, prefix=orion.prefix).enqueue("x:y:z", "again", event_ids=ids)
    assert await redis_client.get(f"{A.prefix}:turn:0a") == "{}"
    # Without waiting messages, other keys that appear under an old name later are not looked for again.
    await redis_client.set("orion:paused", "1", ex=60)
    await join_redis(redis_client, A)
    assert await redis_client.get("orion:paused") == "1"


@pytest.mark.parametrize("working", [False, True])
async def test_questions_of_an_undone_upgrade_are_taken_over_behind_those_that_wait(
    redis_client: Redis,
    working: bool,  # noqa: FBT001 - a parameter
) -> None:
    await join_redis(redis_client, A)
    mailbox, thread = Mailbox(redis_client, prefix=A.prefix), "T0A:C1:1.000001"
    await mailbox.enqueue(thread, "before", event_ids=["a"])
    older = Mailbox(redis_client)
    await older.enqueue(thread, "meanwhile", event_ids=["b"])
    if working:
        await older.claim("an old worker that was killed", 1)
    for key in map(str, await redis_client.keys("orion:{0}:*")):
        await redis_client.rename(key, key.replace("orion:{0}", "{orion:0}"))
    await join_redis(redis_client, A)
    for body in ("before", "meanwhile"):
        (claimed,) = await mailbox.claim("w", 9)
        assert claimed.body == body
        await mailbox.finish(claimed, "ok")
    assert not await redis_client.keys("{orion:0}:mb:*")
    await mailbox.aclose()
    await older.aclose()


async def test_a_question_that_an_older_version_stores_during_the_take_over_is_kept(
    redis_client: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    await join_redis(redis_client, A)
    old, new, read = "{orion:0}:mb:T0A:C1:1.000001", f"{A.prefix}:{{0}}:mb:T0A:C1:1.000001", redis_client.lrange
    await redis_client.rpush(new, "waits")
    await redis_client.rpush(old, "earlier")
    await redis_client.zadd("{orion:0}:teams", {"T0A": 0})

    async def read_before_another(name: str, *reach: int) -> list[str]:
        entries = await read(name, *reach)
        await redis_client.rpush(old, "later")
        return [*map(str, entries)]

    monkeypatch.setattr(redis_client, "lrange", read_before_another)
    await join_redis(redis_client, A)
    assert (await read(new, 0, -1), await read(old, 0, -1)) == (["waits", "earlier"], ["later"])


async def test_keys_of_an_older_version_that_the_user_may_not_read_do_not_prevent_a_start(
    redis_client: Redis, redis_url: str
) -> None:
    await store_as_before(redis_client)
    await redis_client.acl_setuser("narrow", enabled=True, passwords=["+pw"], keys=["orion:*"], commands=["+@all"])
    narrow = Redis.from_url(redis_url.replace("unix://", "unix://narrow:pw@"), decode_responses=True)
    try:
        await join_redis(narrow, A)
        assert await list_orions(narrow) == [A]
        assert await narrow.get(f"{A.prefix}:turn:0a") == "{}"
    finally:
        await narrow.aclose()
        await redis_client.acl_deluser("narrow")


async def test_a_start_warns_of_other_orions(redis_client: Redis) -> None:
    await join_redis(redis_client, A)
    with capture_logs() as log:
        await join_redis(redis_client, B)
    (warning,) = [entry for entry in log if entry["event"] == "redis_is_shared"]
    assert warning["others"] == ["Team A as orion"]
    assert [one.name for one in await list_orions(redis_client)] == [A.name, B.name]


async def test_a_token_identifies_its_orion_while_slack_is_down(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    workspace = LocalWorkspace(scopes=("chat:write",))
    await workspace.start()
    slack = {"slack_api_url": workspace.api_url, "slack_bot_token": SecretStr(workspace.bot_token)}
    settings = settings_in(tmp_path, redis_url, **slack)
    with capture_logs() as log:
        identity = await identify(settings)
    assert "app_mentions:read" in log[0]["scopes"], "the start names what doctor names"
    assert identity is not None
    assert identity.prefix.startswith("orion:T0LOCAL:U")
    await join_redis(redis_client, identity)
    await workspace.stop()
    assert await identify(settings) is None
    recalled = await recall_identity(redis_client, settings)
    assert recalled is not None
    assert recalled.prefix == identity.prefix == await find_prefix(redis_client, settings)


@pytest.mark.parametrize(
    ("known", "prefix"), [([], "orion"), ([A], A.prefix), ([A, B], "Several Orions .*Team A as orion, Team B")]
)
async def test_a_command_without_a_token_uses_the_only_orion(
    known: list[Identity], prefix: str, tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    for one in known:
        await join_redis(redis_client, one)
    settings = settings_in(tmp_path, redis_url)
    if len(known) > 1:
        with pytest.raises(WrongUse, match=prefix):
            await find_prefix(redis_client, settings)
    else:
        assert await find_prefix(redis_client, settings) == prefix


async def test_the_client_id_identifies_an_orion_with_many_workspaces(tmp_path: Path, redis_url: str) -> None:
    settings = settings_in(tmp_path, redis_url, slack_client_id="1.2:3", slack_client_secret=SecretStr("s"))
    identity = await identify(settings)
    assert identity is not None
    assert identity.prefix == "orion:app-1.2-3"

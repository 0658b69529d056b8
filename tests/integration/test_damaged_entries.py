"""One damaged entry stops one message: it becomes a dead letter with the reason, and the worker goes on."""

import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.thread.conversation import ThreadKey
from bot.answers import Proposals
from bot.install.identity import list_orions
from bot.install.installations import Installations, Seal, States, UnreadableInstallation
from bot.local.model.roster import TEAM_ID, VISITOR
from bot.slack.message import Incoming, turn_id_for
from bot.stores.limits import Listening, Pausing
from bot.stores.stores import Cancellations, DirectMessages, ThreadModes
from bot.stores.turn_records import TurnRecords
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, idle, running, settings_in, text_of
from tests.support.waiting import wait_until

DEEP = "[" * 100_000
WHOLE = json.dumps({"schema": 1, "text": "x"})
ENTRIES: dict[str, bytes | None] = {
    "empty": b"",
    "cut in the id": b"1700000000.0000",
    "cut after the id": b"1700000000.000001/abc ",
    "cut in the time": b"1700000000.000001/abc 17000",
    "cut in the body": f"1700000000.000001/abc 1700000000000 {WHOLE[:9]}".encode(),
    "not UTF-8": b"\xff\xfe\x00\x80 \xc3\x28 \xa0",
    "not UTF-8 in the body": b"1700000000.000001/abc 1700000000000 \xff{\x80}",
    "a word for the time": b"id soon {}",
    "digits that are no ASCII": "id ١٢٣ {}".encode(),
    "too many digits": f"id {'9' * 5_000} {{}}".encode(),
    "deep JSON": f"id 1700000000000 {DEEP}".encode(),
    "another kind of JSON": b"id 1700000000000 [1, 2]",
    "null fields": b'id 1700000000000 {"thread": null, "text": null}',
    "a nul": b"id 1700000000000 \x00",
    "no list": None,
}


async def put_raw(setting: Setting, redis: Redis, entry: bytes | None, thread: str) -> None:
    mailbox = setting.orion.mailbox
    if entry is None:
        await redis.set(f"{mailbox.shard_of(thread)}:mb:{thread}", "x")
        await redis.set(mailbox.key(thread, "head", thread), "x")
    else:
        pushed: Any = redis.rpush(f"{mailbox.shard_of(thread)}:mb:{thread}", entry)
        await pushed
    await redis.zadd(f"{mailbox.shard_of(thread)}:ready:{TEAM_ID}", {thread: 1})
    await redis.zadd(f"{mailbox.shard_of(thread)}:teams", {TEAM_ID: 0})


async def test_damaged_entries_become_dead_letters_and_others_are_answered(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with running(settings_in(tmp_path, redis_url)) as setting:
        threads = {f"{TEAM_ID}:{CHANNEL}:17000000{n:02}.000001": name for n, name in enumerate(ENTRIES)}
        for thread, name in threads.items():
            await put_raw(setting, redis_client, ENTRIES[name], thread)
        ts = setting.workspace.post(VISITOR, CHANNEL, f"{MENTION} How many requests per minute may one API key send?")
        await wait_until(lambda: answers(setting.workspace, ts, ts), "a sound question is answered")
        letters = setting.orion.mailbox

        async def all_dead() -> bool:
            return {letter.thread for letter in await letters.list_dead_letters()} == set(threads)

        await wait_until(all_dead, "each is a dead letter")
        assert {letter.reason for letter in await letters.list_dead_letters()} == {"unreadable message"}
        assert await setting.orion.mailbox.list_waiting(for_s=0, again_s=1, limit=9) == []
        for letter in await letters.list_dead_letters():
            await letters.end_dead_letter(letter.entry_id, "retry")
        await wait_until(all_dead, "a retry changes nothing for good")
        assert all(
            [await letters.end_dead_letter(letter.entry_id, "drop") for letter in await letters.list_dead_letters()]
        )


STORED = {
    "deep": DEEP,
    "not UTF-8": b"\xff\xfe\x80",
    "cut": '{"a": ',
    "empty": "",
    "a number": "7",
    "many digits": "9" * 5_000,
}


async def damage_everything(redis: Redis, value: str | bytes) -> set[str]:
    """Overwrite each stored text, number and field but the messages themselves; a schema tells an older version."""
    kinds: set[str] = set()
    for key in await redis.keys("orion:*"):
        kind = await redis.type(key)
        if kind == "string":
            await redis.set(key, value, keepttl=True)
        elif kind == "hash":
            for field in set(await redis.hkeys(key)) - {"schema"}:
                written: Any = redis.hset(key, field, value)
                await written
        kinds |= {part for part in str(key).split(":") if part.isalpha()}
    return kinds


@pytest.mark.parametrize("value", STORED.values(), ids=STORED)
async def test_damaged_records_of_people_threads_turns_and_budgets_do_not_prevent_an_answer(
    value: str | bytes, tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    limited = settings_in(tmp_path, redis_url, daily_tokens_user=100_000, daily_tokens_workspace=100_000)
    async with running(limited) as setting:
        workspace = setting.workspace
        first = workspace.post(VISITOR, CHANNEL, f"{MENTION} How many requests per minute may one API key send?")
        await wait_until(lambda: answers(workspace, first, first), "the first is answered")
        await wait_until(lambda: idle(setting), "its turn is over")
        await setting.orion.observers.stats.write()  # else the counters come a second later
        kinds = await damage_everything(redis_client, value)
        assert {"person", "turn", "standing", "state", "fence", "tokens", "stats", "pace"} <= kinds
        ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} And how long are backups kept?", thread_ts=first)
        await wait_until(lambda: answers(workspace, ts, first), "the follow-up is answered")
        assert text_of(answers(workspace, ts, first)[0])
        direct = workspace.post(VISITOR, DIRECT, "How many requests per minute may one API key send?")
        await wait_until(lambda: answers(workspace, direct, direct, DIRECT), "a direct message is answered")
        workspace.open_home(VISITOR)
        await wait_until(lambda: VISITOR in workspace.workspace.views.homes, "App Home is shown")


# The keys that a question meets, with their right types.
BEFORE_A_QUESTION = {
    "orion:{{0}}:lease": "zset", "orion:{{0}}:teams": "zset", "orion:{{0}}:ready:{team}": "zset",
    "orion:{{0}}:bell": "list", "orion:{{0}}:dead": "stream", "orion:{{0}}:mb:{thread}": "list",
    "orion:{{0}}:head:{thread}": "hash", "orion:{{0}}:state:{thread}": "hash", "orion:{{0}}:swept": "string",
    "orion:{{0}}:swept_to": "string", "orion:served": "zset",
    "orion:stop:{thread}": "string", "orion:paused": "string", "orion:resumed": "string",
    "orion:person:{team}:{user}": "string", "orion:shared:{team}:{channel}": "string",
    "orion:tokens:{team}:{day}": "hash", "orion:stats:{day}": "hash",
    "orion:pace:{team}:chat.postMessage:{channel}": "hash",
}  # fmt: skip
_ONLY_BEFORE = (":mb:{thread}", ":served", ":head:{thread}")
WHILE_IT_WAITS = {
    **{key: kind for key, kind in BEFORE_A_QUESTION.items() if not key.endswith(_ONLY_BEFORE)},
    "orion:standing:{thread}": "string", "orion:action_token:{thread}:{ts}:": "string",
    "orion:gone:{thread}:{ts}": "string",
    "orion:{{0}}:mark:{thread}:outbox:{turn}": "string", "orion:{{0}}:mark:{thread}:waits:{turn}": "string",
    "orion:{{0}}:mark:{thread}:streams:{turn}": "string", "orion:{{0}}:mark:{thread}:stream:{turn}": "string",
    "orion:{{0}}:mark:{thread}:thread:{turn}": "string",
}  # fmt: skip


async def put_wrong_type(redis: Redis, key: str, right: str) -> None:
    await redis.delete(key)
    written: Any = redis.hset(key, "x", "y") if right == "string" else redis.set(key, "x")
    await written


async def put_wrong_types(redis: Redis, keys: Mapping[str, str], **names: str) -> dict[str, str]:
    damaged = {key.format(**names): kind for key, kind in keys.items()}
    for key, kind in damaged.items():
        await put_wrong_type(redis, key, kind)
    return damaged


@pytest.mark.parametrize("stage", ["before a question", "while it waits"])
async def test_keys_of_a_wrong_type_are_dropped_with_a_log_line_and_the_question_is_answered(
    stage: str, tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    limited = settings_in(tmp_path, redis_url, daily_tokens_user=100_000, daily_tokens_workspace=100_000)
    async with running(limited) as setting:
        first = setting.ask(f"{MENTION} How many requests per minute may one API key send?")
        await setting.answer_to(first)
        await wait_until(lambda: idle(setting), "its turn is over")
        thread, day = ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts=first), f"{datetime.now(UTC):%Y-%m-%d}"
        names = {"team": TEAM_ID, "channel": CHANNEL, "user": VISITOR, "thread": str(thread), "day": day}
        follow_up = f"{MENTION} And how long are backups kept?"
        with capture_logs() as lines:
            if stage == "before a question":
                damaged = await put_wrong_types(redis_client, BEFORE_A_QUESTION, **names)
                ts = setting.ask(follow_up, thread=first)
            else:
                await Pausing(redis_client).pause()
                ts = setting.ask(follow_up, thread=first)
                await wait_until(lambda: "question_waits" in str(lines), "it waits")
                turn = turn_id_for(thread, ts, "")
                damaged = await put_wrong_types(redis_client, WHILE_IT_WAITS, **names, ts=ts, turn=turn)
            await setting.answer_to(ts, thread=first)
            await wait_until(lambda: idle(setting), "its turn is over")
            await wait_until(lambda: damaged.keys() <= {line.get("key") for line in lines}, "all keys are dropped")
        dropped = {line["key"]: line["reason"] for line in lines if line["event"] == "damaged_key_dropped"}
        assert dropped["orion:{0}:lease"] == "it was a string, not a zset"
        wrong = {key for key, kind in damaged.items() if await redis_client.type(key) not in {kind, "none"}}
        assert wrong == set()
        assert await setting.orion.mailbox.list_dead_letters() == []


THREAD = ThreadKey(team="T", channel="D1", thread_ts="1.0")
MESSAGE = Incoming(thread=THREAD, user="U", text="x", ts="2.0", event_ids=("e",), addressed="direct", kind="question")
TODAY = f"{datetime.now(UTC):%Y-%m-%d}"
SEAL = Seal([Fernet.generate_key().decode()])


async def take_refresh_lock(redis: Redis) -> None:
    async with Installations(redis, SEAL).refresh_lock("T"):
        pass


# All other keys: the right type, and what reads or writes the key.
OTHER_KEYS: dict[str, tuple[str, Callable[[Redis], Awaitable[object]]]] = {
    f"orion:stranger:{THREAD}": ("string", lambda redis: ThreadModes(redis).get(THREAD)),
    "orion:remembers_since": ("string", lambda redis: ThreadModes(redis).get(THREAD)),
    f"orion:standing_at:{THREAD}:2.0": ("string", lambda redis: ThreadModes(redis).load_lookup(THREAD, "2.0")),
    f"orion:handed:{THREAD}": ("string", lambda redis: ThreadModes(redis).claim_first_reply(THREAD, "U")),
    "orion:direct:T:D1": (
        "zset", lambda redis: DirectMessages(redis).previous_thread(replace(THREAD, thread_ts="2.0"), "2.0")
    ),
    "orion:heard:e": ("string", lambda redis: Cancellations(redis).was_handled(MESSAGE)),
    "orion:listening:muted:T:C1": ("string", lambda redis: Listening(redis).may_speak("T", "C1")),
    "orion:listening:quiet:T:C1": ("string", lambda redis: Listening(redis).may_speak("T", "C1")),
    f"orion:listening:posts:{TODAY}:T:C1": ("string", lambda redis: Listening(redis).count_post("T", "C1")),
    f"orion:listening:dislikes:{TODAY}:T:C1": ("string", lambda redis: Listening(redis).count_dislike("T", "C1")),
    "orion:listening:working:T:C1": ("string", lambda redis: Listening(redis).begin("T", "C1", "t")),
    "orion:turn:t": ("string", lambda redis: TurnRecords(redis).load("t")),
    "orion:feedback:t": ("hash", lambda redis: TurnRecords(redis).save_feedback("t", "U", good=True)),
    "orion:complaint:t": ("hash", lambda redis: TurnRecords(redis).complaints({"turn_id": "t"})),
    "orion:latest:disliked": ("zset", lambda redis: TurnRecords(redis).list_disliked(1)),
    "orion:share:t": ("string", lambda redis: TurnRecords(redis).claim_share("t")),
    "orion:proposals:T": ("hash", lambda redis: Proposals(redis).waiting("T")),
    "orion:orions": ("hash", list_orions),
    f"orion:oauth_state:{hashlib.sha256(b's').hexdigest()}": ("string", lambda redis: States(redis).finish("s", "s")),
    "orion:installs": ("set", lambda redis: Installations(redis, SEAL).teams()),
    "orion:install_key_check": ("string", lambda redis: Installations(redis, SEAL).has_right_key()),
    "orion:install_lock:T": ("string", take_refresh_lock),
}  # fmt: skip


@pytest.mark.parametrize("key", OTHER_KEYS)
async def test_every_other_key_of_a_wrong_type_is_dropped_when_it_is_used(key: str, redis_client: Redis) -> None:
    kind, use = OTHER_KEYS[key]
    await put_wrong_type(redis_client, key, kind)
    with capture_logs() as lines:
        await use(redis_client)
        await use(redis_client)
    assert [(line["event"], line["key"]) for line in lines] == [("damaged_key_dropped", key)]


async def test_a_counter_that_is_not_a_number_is_reset(redis_client: Redis) -> None:
    listening, key = Listening(redis_client), f"orion:listening:posts:{TODAY}:T:C1"
    await redis_client.set(key, "many")
    with capture_logs() as lines:
        await listening.count_post("T", "C1")
    assert await redis_client.get(key) == "1"
    assert [line["reason"] for line in lines] == ["it was not a number"]
    assert await redis_client.ttl(key) > 0


async def test_a_workspaces_tokens_are_never_dropped(redis_client: Redis) -> None:
    await put_wrong_type(redis_client, "orion:install:T", "string")
    with pytest.raises(UnreadableInstallation):
        await Installations(redis_client, SEAL).find("T")
    assert await redis_client.type("orion:install:T") == "hash"

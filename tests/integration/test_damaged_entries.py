"""One damaged entry stops one message: it becomes a dead letter with the reason, and the worker goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from bot.local.model.roster import TEAM_ID, VISITOR
from bot.queue.dead_letters import DeadLetters
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, idle, running, settings_in, shown
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
        await redis.set(mailbox.fence_key(thread), "x")
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
        letters = DeadLetters(redis_client)

        async def all_dead() -> bool:
            return {letter.thread for letter in await letters.newest()} == set(threads)

        await wait_until(all_dead, "each is a dead letter")
        assert {letter.reason for letter in await letters.newest()} == {"unreadable message"}
        assert await setting.orion.mailbox.list_waiting(for_s=0, again_s=1, limit=9) == []
        for letter in await letters.newest():
            await letters.decide(letter.entry_id, "retry")
        await wait_until(all_dead, "a retry changes nothing for good")
        assert all([await letters.decide(letter.entry_id, "drop") for letter in await letters.newest()])


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
        kinds = await damage_everything(redis_client, value)
        assert {"person", "turn", "standing", "state", "fence", "tokens", "stats", "pace"} <= kinds
        ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} And how long are backups kept?", thread_ts=first)
        await wait_until(lambda: answers(workspace, ts, first), "the follow-up is answered")
        assert shown(answers(workspace, ts, first)[0])
        direct = workspace.post(VISITOR, DIRECT, "How many requests per minute may one API key send?")
        await wait_until(lambda: answers(workspace, direct, direct, DIRECT), "a direct message is answered")
        workspace.open_home(VISITOR)
        await wait_until(lambda: VISITOR in workspace.workspace.views.homes, "App Home is shown")

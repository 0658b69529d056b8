"""`orion dead-letters`: an operator sees what was given up, never what was asked, and decides once."""

import asyncio

import pytest
from redis.asyncio import Redis

from agent.thread.conversation import ThreadKey
from bot.queue.queue import Mailbox
from bot.slack.message import Incoming
from tests.support.orion_command import Terminal

THREAD = ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100")
SECRET = "where do the diamonds lie?"


@pytest.fixture
def terminal(terminal: Terminal, redis_url: str) -> Terminal:
    terminal.set(REDIS_URL=redis_url)
    return terminal


def in_redis(url: str, *, bury: int = 0) -> list[str]:
    """Give up as many letters; returns the bodies that could be claimed then."""

    async def run() -> list[str]:
        async with Redis.from_url(url, decode_responses=True) as redis:
            mailbox = Mailbox(redis)
            for number in range(bury):
                letter = Incoming(
                    kind="question", thread=THREAD, user="U1", ts="1.0", addressed="mention", text=SECRET
                ).to_json()
                await mailbox.enqueue(str(THREAD), letter if number else "no letter", event_ids=[str(number)])
                (claimed,) = await mailbox.claim("w", 1)
                await mailbox.finish(claimed, "dead", reason="crashed: KeyError")
            found = [claimed.body for claimed in await mailbox.claim("w", 10)]
            await mailbox.aclose()
            return found

    return asyncio.run(run())


def test_an_operator_sees_reasons_and_times_but_no_texts(terminal: Terminal, redis_url: str) -> None:
    assert "No dead letters." in terminal.orion("dead-letters").out
    in_redis(redis_url, bury=2)
    listed = terminal.orion("dead-letters", "list")
    assert listed.code == 0
    newest, oldest = listed.out.splitlines()
    assert f"  {THREAD}  crashed: KeyError (1 try, 0:00:0" in newest
    assert newest.endswith(f"{len(SECRET)} characters)")
    assert oldest.endswith(f"{len('no letter')} characters)")
    assert "diamonds" not in listed.out


def test_a_dead_letter_is_retried_once_and_the_command_says_so(terminal: Terminal, redis_url: str) -> None:
    in_redis(redis_url, bury=2)
    newest = terminal.orion("dead-letters").out.split()[0]
    first = terminal.orion("dead-letters", "retry", newest)
    assert (first.code, first.out) == (0, f"{newest} is tried again.\n")
    again = terminal.orion("dead-letters", "retry", newest)
    assert (again.code, "nothing was changed" in again.out) == (1, True)
    assert len(in_redis(redis_url)) == 1


def test_all_dead_letters_can_be_dropped_or_retried(terminal: Terminal, redis_url: str) -> None:
    in_redis(redis_url, bury=2)
    dropped = terminal.orion("dead-letters", "drop", "--all")
    assert (dropped.code, dropped.out.count("is dropped")) == (0, 2)
    assert "No dead letters." in terminal.orion("dead-letters", "retry", "--all").out
    assert in_redis(redis_url) == []


def test_conversations_of_a_local_workspace_are_its_own(terminal: Terminal, redis_url: str) -> None:
    in_redis(redis_url, bury=1)
    assert "No dead letters." in terminal.orion("dead-letters", "--local", "8765", "list").out
    assert "No dead letters." in terminal.orion("dead-letters", "--local", "8765", "drop", "--all").out


@pytest.mark.parametrize("arguments", [["retry"], ["drop", "1-1", "--all"]], ids=" ".join)
def test_a_decision_on_dead_letters_needs_their_ids(arguments: list[str], terminal: Terminal) -> None:
    done = terminal.orion("dead-letters", *arguments)
    assert done.code == 2
    assert "orion dead-letters retry ID…, drop ID…, or either with --all" in done.err

"""Slack's own Stop button: A6."""

from __future__ import annotations

import pytest

from bot.delivery.delivery import AnswerKey
from bot.queue.lease import LeaseLost
from bot.turn.status import MODEL_AWAY, Pace, working
from tests.support.local_slack import CHANNEL, CHAT, Slack, local_slack

METHOD = "agents.sessions.setStatus"
QUICK = Pace(change_s=0.01, remind_s=60)
SLOW = Pace(change_s=60)


def told(slack: Slack) -> list[str]:
    """What Slack took, in order."""
    return [
        call.arguments["status"] for call in slack.server.calls if call.method == METHOD and "status" in call.arguments
    ]


@pytest.mark.parametrize("channel", [CHANNEL, CHAT])
async def test_a6_the_button_shows_where_the_status_does(channel: str) -> None:
    async with local_slack() as slack:
        place, ts = slack.ask(channel=channel)
        async with working(slack.delivery, place, AnswerKey(question_ts=ts, may_exist=False), QUICK):
            await slack.server.wait_for(lambda: told(slack) == ["processing"])
            threads = slack.server.workspace.threads
            assert list(threads.sessions) == list(threads.statuses) == [(channel, ts)]
        assert told(slack) == ["processing", "active"]


async def test_a6_a_turn_that_is_over_at_once_offers_nothing_to_stop() -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        async with working(slack.delivery, place, AnswerKey(question_ts=ts, may_exist=False), SLOW):
            await slack.server.wait_for(lambda: slack.made("assistant.threads.setStatus") == 1)
        assert told(slack) == []


async def test_a6_whoever_takes_a_turn_over_takes_the_button_away() -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        await slack.delivery.sessions.begin(place, ts)
        async with working(slack.delivery, place, AnswerKey(question_ts=ts, may_exist=True), SLOW):
            pass
        assert told(slack) == ["processing", "active"]


async def test_a6_a_question_that_rests_can_be_stopped_too() -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        async with working(slack.delivery, place, AnswerKey(question_ts=ts), SLOW) as status:
            await status.leave(MODEL_AWAY)
        assert told(slack) == ["processing"], "it waits, and so does the button"


@pytest.mark.parametrize("error", ["unknown_method", "not_authorized", "missing_scope"])
async def test_a6_a_workspace_without_sessions_is_asked_once(error: str) -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        slack.server.faults.fail(METHOD, error, times=100)
        for _ in range(3):
            await slack.delivery.sessions.begin(place, ts)
            await slack.delivery.sessions.end(place, ts)
        assert slack.made(METHOD) == 1


async def test_a6_what_fails_in_one_thread_is_tried_in_the_next() -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        slack.server.faults.fail(METHOD, "thread_not_found")
        await slack.delivery.sessions.begin(place, ts)
        await slack.delivery.sessions.begin(place, ts)
        slack.server.faults.fail(METHOD, "ratelimited")
        await slack.delivery.sessions.end(place, ts)
        assert told(slack)[-2:] == ["processing", "active"], "a button that stays for an hour would be a lie"


async def test_a6_more_buttons_than_slack_lets_take_away_again_are_not_shown() -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        shown = [await slack.delivery.sessions.begin(place, ts) for _ in range(25)]
        assert shown == [True] * 20 + [False] * 5
        assert slack.made(METHOD) == 20


@pytest.mark.parametrize(
    ("error", "there"), [("ratelimited", False), ("thread_not_found", False), ("fatal_error", True)]
)
async def test_a6_what_slack_refused_need_not_be_taken_away(error: str, *, there: bool) -> None:
    async with local_slack() as slack:
        place, ts = slack.ask()
        slack.server.faults.fail(METHOD, error)
        assert await slack.delivery.sessions.begin(place, ts) is there


async def test_a6_without_its_lease_a_turn_touches_no_button() -> None:
    def lost() -> None:
        raise LeaseLost

    async with local_slack() as slack:
        place, ts = slack.ask()
        for change in (slack.delivery.sessions.begin, slack.delivery.sessions.end):
            with pytest.raises(LeaseLost):
                await change(place, ts, lost)
        assert slack.made(METHOD) == 0

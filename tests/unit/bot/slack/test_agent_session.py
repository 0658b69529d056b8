"""The end of an agent session, and with it of Slack's Stop button."""

import pytest

from bot.delivery.answer_key import AnswerKey
from bot.queue.claim import LeaseLost
from bot.slack.agent_session import MAX_TITLE_CHARS, SESSION_METHOD, STATUS_METHOD, begin_session, end_session
from bot.turn.recovery import MODEL_AWAY
from bot.turn.status import Pace, WorkingStatus
from tests.support.local_slack import CHANNEL, CHAT, Slack, local_slack

SLOW = Pace(change_s=60)


def accepted_statuses(slack: Slack, method: str = SESSION_METHOD) -> list[str]:
    """The statuses that Slack accepted, in order."""
    return [call.arguments["status"] for call in slack.server.calls if call.method == method and not call.error]


def session(slack: Slack) -> list[tuple[str, str]]:
    """The state and the title of every session."""
    return [(one.status, one.title) for one in slack.server.workspace.threads.sessions.values()]


@pytest.mark.parametrize("channel", [CHANNEL, CHAT])
async def test_the_status_sets_the_session_to_processing_and_the_end_sets_its_title(channel: str, slack: Slack) -> None:
    place, ts = slack.ask(channel=channel)
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW, title="x" * 300).updating():
        await slack.server.wait_for(lambda: session(slack) == [("processing", "")])
        assert list(slack.server.workspace.threads.sessions) == [(channel, ts)]
    assert session(slack) == [("active", "x" * MAX_TITLE_CHARS)]
    assert (accepted_statuses(slack), slack.server.workspace.threads.status_payloads()) == (["active"], [])


async def test_the_end_of_a_session_is_retried_as_long_as_a_post(slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.fail(SESSION_METHOD, "ratelimited", times=2)
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW).updating():
        await slack.server.wait_for(lambda: session(slack) == [("processing", "")])
    assert session(slack) == [("active", "")], "a button that stays for an hour would be a lie"


@pytest.mark.parametrize("error", ["unknown_method", "not_authorized", "missing_scope"])
async def test_a_workspace_without_sessions_is_asked_once_and_its_status_is_cleared(error: str, slack: Slack) -> None:
    place, _ = slack.ask()
    slack.server.faults.fail(SESSION_METHOD, error, times=100)
    for _ in range(3):
        await slack.delivery.set_status(place, "is thinking…")
        await end_session(slack.calls, place)
    assert slack.count(SESSION_METHOD) == 1
    assert accepted_statuses(slack, STATUS_METHOD) == ["is thinking…", ""] * 3


async def test_if_no_status_can_be_set_the_session_offers_the_button(slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.fail(STATUS_METHOD, "unknown_method", times=100)
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW).updating():
        await slack.server.wait_for(lambda: session(slack) == [("processing", "")])
    assert accepted_statuses(slack) == ["processing", "active"]


async def test_a_question_that_waits_for_a_retry_can_be_stopped(slack: Slack) -> None:
    place, ts = slack.ask()
    async with WorkingStatus(slack.delivery, place, AnswerKey(question_ts=ts), SLOW).updating() as status:
        await status.leave_text(MODEL_AWAY)
    assert session(slack) == [("processing", "")], "it waits, and so does the button"


async def test_without_its_lease_a_turn_changes_no_button() -> None:
    def lost() -> None:
        raise LeaseLost

    async with local_slack() as slack:
        place, _ = slack.ask()
        with pytest.raises(LeaseLost):
            await begin_session(slack.calls, place, lost)
        with pytest.raises(LeaseLost):
            await end_session(slack.calls, place, lost)
        assert slack.count(SESSION_METHOD) == 0

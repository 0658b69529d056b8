"""People as this workspace sees them: Slack's replies are read strictly, cached, and never guessed."""

from dataclasses import replace
from typing import Any

import pytest
from redis.asyncio import Redis

from agent.thread.conversation import Question, ThreadMessage
from bot.local.model.roster import TEAM_ID, VISITOR, Channel, Member, sample_roster
from bot.local.server import LocalWorkspace
from bot.slack.directory import MAX_NAMES, Person, SlackDirectory, is_shared_outside, read_person
from bot.slack.web_api import DeliveryFailed
from tests.support.fakes import THREAD
from tests.support.local_slack import CHANNEL, Slack, local_slack


def people_of(slack: Slack, redis: Redis) -> SlackDirectory:
    return SlackDirectory(slack.workspace, redis)


@pytest.mark.parametrize(
    ("told", "person"),
    [
        ({"team_id": "T1", "locale": "de-DE"}, Person(language="de")),
        ({"team_id": "T1", "is_restricted": True}, Person(guest=True)),
        ({"team_id": "T1", "is_restricted": True, "is_ultra_restricted": True}, Person(guest=True)),
        ({"team_id": "T9"}, Person(external=True)),
        ({"team_id": "T1", "is_stranger": True}, Person(external=True)),
        ({"team_id": "T1", "deleted": True}, Person(deactivated=True)),
        ({"team_id": "T9", "enterprise_user": {"teams": ["T1", "T9"]}}, Person()),
        ({"team_id": "T9", "enterprise_user": {"teams": "T1"}}, Person(external=True)),
        ({}, Person(external=True)),
    ],
)
def test_an_account_is_read_as_slack_describes_it(told: dict[str, Any], person: Person) -> None:
    assert read_person(told, "T1") == person


@pytest.mark.parametrize(
    ("told", "elsewhere"),
    [
        ({"is_ext_shared": True}, True),
        ({"is_pending_ext_shared": True}, True),
        ({"is_shared": True}, True),
        ({"is_shared": True, "is_org_shared": True}, False),
        ({"is_shared": True, "is_org_shared": True, "is_ext_shared": True}, True),
        ({"is_ext_shared": False}, False),
        ({}, True),
    ],
)
def test_a_channel_shared_within_our_own_organisation_is_internal(told: dict[str, Any], *, elsewhere: bool) -> None:
    assert is_shared_outside(told) is elsewhere


async def test_slack_is_asked_once_in_five_minutes(redis_client: Redis, no_leaked_keys: list[str]) -> None:
    roster = sample_roster()
    roster.members["U0GUEST"] = Member(id="U0GUEST", name="Guest", is_restricted=True)
    roster.channels["C0PARTNER"] = Channel(id="C0PARTNER", name="partner", members={"U0ORION"}, is_ext_shared=True)
    async with local_slack(server=LocalWorkspace(roster=roster)) as slack:
        people = people_of(slack, redis_client)
        assert await people.cached_person(TEAM_ID, "U0GUEST") is None
        for _ in range(3):
            assert (await people.find_person(TEAM_ID, "U0GUEST")).guest
            assert await people.is_shared(TEAM_ID, "C0PARTNER")
            assert not await people.is_shared(TEAM_ID, CHANNEL)
        assert (slack.count("users.info"), slack.count("conversations.info")) == (1, 2)
        assert await people_of(slack, redis_client).cached_person(TEAM_ID, "U0GUEST") == Person(
            guest=True, language="en", name="Guest", tz="Etc/UTC"
        )


@pytest.mark.parametrize(
    "stored", ['{"guest": true, "external": false, "language": "en", "new": [1]}', "{}", "[1]", "garbage"]
)
async def test_a_person_stored_by_another_version_does_not_crash_a_turn(redis_client: Redis, stored: str) -> None:
    roster = sample_roster()
    roster.members["U0GUEST"] = Member(id="U0GUEST", name="Guest", is_restricted=True)
    async with local_slack(server=LocalWorkspace(roster=roster)) as slack:
        people = people_of(slack, redis_client)
        await redis_client.set(people.key("person", TEAM_ID, "U0GUEST"), stored, ex=60)
        assert await people.find_person(TEAM_ID, "U0GUEST") == Person(
            guest=True, language="en", name="Guest", tz="Etc/UTC"
        )


async def test_a_person_unknown_to_slack_counts_as_external(redis_client: Redis, slack: Slack) -> None:
    people = people_of(slack, redis_client)
    assert (await people.find_person(TEAM_ID, "U0ELSEWHERE")).external


@pytest.mark.parametrize(("error", "permanent"), [("missing_scope", True), ("internal_error", False)])
async def test_a_failed_lookup_is_not_replaced_by_a_guess(redis_client: Redis, error: str, *, permanent: bool) -> None:
    async with local_slack(patience_s=0.05) as slack:
        people = people_of(slack, redis_client)
        for method, look in (("users.info", people.find_person), ("conversations.info", people.is_shared)):
            for _ in range(1 if permanent else 9):
                slack.server.faults.fail(method, error)
            with pytest.raises(DeliveryFailed) as failed:
                await look(TEAM_ID, CHANNEL)
            assert failed.value.permanent is permanent
            assert await redis_client.dbsize() == 0


async def test_a_colleague_of_a_sister_workspace_is_one_of_us() -> None:
    sister = {"id": "U1", "team_id": "T9", "is_stranger": False, "enterprise_user": {"enterprise_id": "E1"}}
    assert not read_person(sister, "T1", "E1").external
    assert read_person(sister, "T1", "E2").external
    assert read_person(sister, "T1").external
    assert read_person({**sister, "is_stranger": True}, "T1", "E1").external


QUESTION = Question(thread=replace(THREAD, team=TEAM_ID), user=VISITOR, text="", ts="1700000000.000100")


async def test_people_channels_and_groups_get_their_names_and_private_channels_only_inside(redis_client: Redis) -> None:
    roster = sample_roster()
    roster.channels["C0SECRET"] = Channel(id="C0SECRET", name="layoffs", kind="group", members={"U0ORION"})
    async with local_slack(server=LocalWorkspace(roster=roster)) as slack:
        people = SlackDirectory(slack.workspace, redis_client)
        asked = replace(QUESTION, text="Did <@U0ONCALL> ask <!subteam^S0HELPERS> in <#C0HELP>, <#C0SECRET>, <@U0NO>?")
        history = (ThreadMessage(role="user", text="<@U0RELEASE> knows", user="U0PEOPLE", ts="1.1", addressed=False),)
        question, named = await people.add_names(asked, history)
        assert question.text == "Did @On-call engineer ask @helpers in #help, <#C0SECRET>, <@U0NO>?"
        assert [message.text for message in named] == ["@Release manager knows"]
        inside = replace(asked, thread=replace(asked.thread, channel="C0SECRET"))
        assert "in #help, #layoffs," in (await people.add_names(inside, ()))[0].text
        shown = [question.names[user] for user in ("U0PEOPLE", VISITOR)]
        assert (shown, question.tz) == (["@People partner", "@You"], "Etc/UTC")


async def test_names_need_few_calls_and_an_outage_prevents_no_answer(redis_client: Redis) -> None:
    async with local_slack(patience_s=0.02) as slack:
        people = SlackDirectory(slack.workspace, redis_client)
        many = replace(QUESTION, text=" ".join(f"<@U{number}>" for number in range(100)))
        await people.add_names(many, ())
        assert slack.count("users.info") == MAX_NAMES, "the asker is one of them"
        slack.server.faults.fail("users.info", "internal_error", times=50)
        asked = replace(QUESTION, user="U0GUEST", text="<@U0ONCALL>?")
        assert (await people.add_names(asked, ()))[0].text == "<@U0ONCALL>?"

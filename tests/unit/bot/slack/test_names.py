"""Names in place of ids, for a question and its thread."""

from dataclasses import replace

from redis.asyncio import Redis

from agent.thread.conversation import Question, ThreadMessage
from bot.local.model.roster import TEAM_ID, VISITOR, Channel, sample_roster
from bot.local.server import LocalWorkspace
from bot.slack.directory import MAX_NAMES, SlackDirectory
from tests.support.fakes import THREAD
from tests.support.local_slack import local_slack

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


async def test_names_cost_a_few_calls_and_an_outage_costs_no_answer(redis_client: Redis) -> None:
    async with local_slack(patience_s=0.02) as slack:
        people = SlackDirectory(slack.workspace, redis_client)
        many = replace(QUESTION, text=" ".join(f"<@U{number}>" for number in range(100)))
        await people.add_names(many, ())
        assert slack.made("users.info") == MAX_NAMES, "the asker is one of them"
        slack.server.faults.fail("users.info", "internal_error", times=50)
        asked = replace(QUESTION, user="U0GUEST", text="<@U0ONCALL>?")
        assert (await people.add_names(asked, ()))[0].text == "<@U0ONCALL>?"

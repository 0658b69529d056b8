"""Slack's real-time search, through a whole Orion in a workspace that grants it or does not."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from agent.actions import ToolCall
from agent.thread.conversation import ThreadKey
from agent.thread.state import ThreadState
from agent.thread.store import ThreadStore
from agent.tools.builtin.knowledge import SLACK_SEARCH, SLACK_SEARCH_ORIGIN, permalinks_only
from agent.tools.tool import Tool, ToolResult, call_tool
from bot.events.intake import parse_event
from bot.local.model.limits import LENIENT
from bot.local.model.roster import TEAM_ID
from bot.local.server import LocalWorkspace
from bot.local.workspace import SCOPES, SEARCH_SCOPE
from bot.slack.client import open_client
from bot.slack.manifest import ASK_SHORTCUT
from bot.slack.message import Access, BotIdentity, Incoming
from bot.slack.search import SlackSearch
from bot.slack.web_api import SlackCalls
from bot.stores.turn_records import OutboxEntry
from tests.support.openai_server import RESPOND, ScriptedOpenAI, calls, says
from tests.support.orion_running import MENTION, Setting, running, settings_in, text_of
from tests.support.waiting import wait_until
from verification.types import Answer, Source

NEWS = "The canteen moves to building nine on Monday."
ANSWER = "<answer>The canteen moves to building nine on Monday [1].</answer>"
SEARCH = calls(("slack_search", {"query": "canteen building"}))


def workspace(*scopes: str) -> LocalWorkspace:
    return LocalWorkspace(strictness=LENIENT, scopes=(*SCOPES, *scopes))


@asynccontextmanager
async def orion(inside: LocalWorkspace, redis_url: str, home: Path, server: ScriptedOpenAI) -> AsyncIterator[Setting]:
    empty = home / "docs"
    empty.mkdir()
    settings = settings_in(home, redis_url, openai_base_url=server.url, model="m")
    async with running(settings, docs=empty, inhabited=inside) as setting:
        yield setting


def tools_offered(server: ScriptedOpenAI) -> list[str]:
    """The tools of the first decision."""
    return [one["function"]["name"] for one in server.requests[0]["tools"]]


async def run_search(tool: Tool, arguments: dict[str, Any]) -> ToolResult:
    call = ToolCall(call_id="1", tool=SLACK_SEARCH, input=arguments)
    return await call_tool({SLACK_SEARCH: tool}, call, timeout_s=30, max_chars=16_000)


async def test_a_question_is_answered_from_slack_and_only_the_link_is_kept(
    redis_url: str, redis_client: Redis, tmp_path: Path
) -> None:
    async with (
        ScriptedOpenAI(decisions=[SEARCH, RESPOND], drafts=[says(ANSWER)]) as server,
        workspace(SEARCH_SCOPE) as inside,
        orion(inside, redis_url, tmp_path, server) as setting,
    ):
        said = setting.workspace.post("U0PEOPLE", "C0GENERAL", NEWS)
        ts = setting.ask(f"{MENTION} Where does the canteen move?")
        answer = await setting.answer_to(ts)
        link = f"{inside.url}/archives/C0GENERAL/p{said.replace('.', '')}"
        assert link in text_of(answer)
        (call,) = [one for one in inside.calls if one.method == "assistant.search.context"]
        assert call.arguments["channel_types"] == ["public_channel"]
        assert call.error == ""
        place = ThreadKey(team=TEAM_ID, channel="C0HELP", thread_ts=ts)
        threads = ThreadStore(redis_client)

        async def stored_sources() -> tuple[Source, ...]:
            return (await threads.load(place)).sources

        await wait_until(stored_sources, "the state is saved")
        (source,) = await stored_sources()
        assert (source.title, source.text, source.url) == ("A message in Slack", "", link)
    assert "slack_search" in tools_offered(server)


@pytest.mark.parametrize("scopes", [(), (SEARCH_SCOPE,)])
async def test_without_the_grant_or_the_events_token_there_is_no_tool(
    scopes: tuple[str, ...], redis_url: str, tmp_path: Path
) -> None:
    async with (
        ScriptedOpenAI(decisions=[RESPOND], drafts=[says("<answer>Hello there, how can I help?</answer>")]) as server,
        workspace(*scopes) as inside,
        orion(inside, redis_url, tmp_path, server) as setting,
    ):
        ts = setting.ask("hello" if scopes else f"{MENTION} hello")
        if scopes:  # a shortcut brings no token
            await inside.use_shortcut("C0HELP", ts, ASK_SHORTCUT)
        await setting.answer_to(ts)
    assert "slack_search" not in tools_offered(server)
    assert "search" in tools_offered(server)


def incoming(ts: str = "1.0", **more: Any) -> Incoming:
    place = ThreadKey(team="T1", channel="C0HELP", thread_ts=ts)
    return Incoming(kind="question", thread=place, user="U1", ts=ts, addressed="mention", text="?", **more)


async def test_a_grant_is_looked_up_once_and_a_refusal_is_remembered() -> None:
    async with workspace(SEARCH_SCOPE) as inside:
        now = [0.0]
        async with open_client(inside.bot_token, api_url=inside.api_url) as client:
            searching = SlackSearch(SlackCalls(client), clock=lambda: now[0])
            (tool,) = await searching.tools(incoming(action_token="t"))
            await searching.tools(incoming(action_token="t"))
            assert [one.method for one in inside.calls] == ["auth.test"]
            stale = await run_search(tool, {"query": "canteen"})
            assert (stale.ok, stale.error) == (False, "Slack's search gave no answer.")
            inside.faults.missing.add("assistant.search.context")
            refused = await run_search(tool, {"query": "canteen"})
            assert refused.error == "The workspace does not let Orion search."
            assert await searching.tools(incoming(action_token="t")) == ()
            now[0] = 4000.0
            assert len(await searching.tools(incoming(action_token="t"))) == 1


async def test_search_results_are_public_written_by_people_and_not_the_question() -> None:
    async with workspace(SEARCH_SCOPE) as inside, open_client(inside.bot_token, api_url=inside.api_url) as client:
        inside.post_as_other_app("C0GENERAL", "canteen by a machine")
        inside.post("U0PEOPLE", "C0GENERAL", f"{NEWS} See <https://a.example/x|the plan> &amp; map")
        asked = inside.post("U0VISITOR", "C0HELP", "Which canteen?")
        token = next(iter(inside.workspace.action_tokens))
        (tool,) = await SlackSearch(SlackCalls(client)).tools(incoming(asked, action_token=token))
        found = await run_search(tool, {"query": "Which canteen"})
        nothing = await run_search(tool, {"query": "zebra"})
    assert (nothing.ok, nothing.content) == (True, "No message has these words.")
    (source,) = found.sources
    assert source.text == f"{NEWS} See the plan (https://a.example/x) & map"
    assert source.title.endswith(" in #general")
    assert source.origin == SLACK_SEARCH_ORIGIN
    assert source.updated_at.startswith("20")


@pytest.mark.parametrize(
    ("more", "token"),
    [
        ({"action_token": "a"}, "a"),
        ({"assistant_thread": {"action_token": "b"}}, "b"),
        ({"action_token": "x" * 9999}, ""),
        ({"action_token": 5}, ""),
        ({}, ""),
    ],
    ids=["event", "thread", "long", "number", "none"],
)
def test_the_token_comes_with_the_event_and_is_not_stored_with_the_message(more: dict[str, Any], token: str) -> None:
    event = {"type": "app_mention", "channel": "C1", "user": "U1", "ts": "1.0", "text": "<@U0> hi", **more}
    found = parse_event({"team_id": "T1", "event_id": "Ev1", "event": event}, BotIdentity(user="U0"), Access())
    assert found.action_token == token
    assert Incoming.from_json(found.to_json()) == replace(found, action_token="")


def test_only_the_permalink_of_a_slack_search_result_is_kept() -> None:
    private = Source(
        id=1, title="Ada in #general", url="https://s.example/p1", text="words", origin=SLACK_SEARCH_ORIGIN
    )
    page = Source(id=2, title="Page", text="words")
    assert permalinks_only([private, page]) == (
        Source(id=1, title="A message in Slack", url="https://s.example/p1", origin=SLACK_SEARCH_ORIGIN),
        page,
    )
    answer = Answer(text="a", chunks=("a",), sources=(private, page))
    stored = json.loads(OutboxEntry(outcome="answered", answer=answer, state=ThreadState()).to_json())
    assert [source["text"] for source in stored["answer"]["sources"]] == ["", "words"]

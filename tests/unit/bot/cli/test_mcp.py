"""`orion mcp` with the SDK's own client, over both transports: the same answers, gates, budgets and audiences."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import SecretStr

from agent.texts.catalogue import say
from bot.cli.mcp import McpAgent, build_server, open_agent, read_tokens, serve_over_http
from bot.errors import WrongUse
from bot.local.model.roster import TEAM_ID
from bot.local.server import LocalWorkspace
from bot.servers.http import ConnectionLimits, serve
from bot.settings import Settings
from bot.slack.directory import Person
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_command import LIMITS, QUESTION
from tests.support.orion_running import settings_in

PAY = "What does a team lead earn?"
TOKENS = {"U0ANN1": "ann-secret-ann-secret", "public": "all-secret-all-secret"}
ROOT = Path(__file__).parents[4]


def folder_of_documents(tmp_path: Path) -> Path:
    """Two documents, of which one is for one person."""
    docs = tmp_path / "docs"
    (docs / "hr").mkdir(parents=True)
    (docs / "limits.md").write_text(LIMITS)
    (docs / "hr" / "pay.md").write_text("# Pay\n\nA team lead earns 90,000 euros a year.\n")
    (docs / "hr" / "orion-audience.toml").write_text('audience = ["U0ANN1"]\n')
    return docs


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    """The result of a tool, or the message of its failure."""
    result = await client.call_tool(tool, arguments)
    (part,) = result.content
    text = getattr(part, "text", "")
    return text if result.is_error else json.loads(text)


@asynccontextmanager
async def agent_over(tmp_path: Path, redis_url: str, **more: Any) -> AsyncIterator[McpAgent]:
    settings: Settings = settings_in(tmp_path / "home", redis_url, docs=(folder_of_documents(tmp_path),), **more)
    async with open_agent(settings) as agent:
        yield agent


@asynccontextmanager
async def over_http(agent: McpAgent, tokens: Mapping[str, str] = TOKENS) -> AsyncIterator[str]:
    pairs = ",".join(f"{user}={token}" for user, token in tokens.items())
    server = build_server(agent, tokens=read_tokens(pairs))
    async with serve_over_http(server) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def client_of(url: str, token: str) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, trust_env=False) as http,
        Client(streamable_http_client(url, http_client=http)) as client,
    ):
        yield client


async def test_a_person_can_ask_over_standard_streams(tmp_path: Path) -> None:
    env = {
        "ORION_DOCS": str(folder_of_documents(tmp_path)),
        "ORION_HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT),
    }
    words = ["-m", "bot", "mcp", "--user", "U0ANN1"]
    async with Client(StdioServerParameters(command=sys.executable, args=words, env=env, cwd=tmp_path)) as client:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["ask", "search", "verify"]
        answer = await call(client, "ask", question=QUESTION)
        assert (answer["outcome"], answer["verified"], answer["sources"][0]["title"]) == ("answered", True, "Limits")
        assert "90,000" in str(await call(client, "search", query=PAY))
        sources = [{"id": 1, "title": "Limits", "text": LIMITS}]
        verdicts = [await call(client, "verify", text=f"It may make {n} [1].", sources=sources) for n in (600, 900)]
        assert [verdict["passed"] for verdict in verdicts] == [True, False]
        assert verdicts[1]["claims"]


async def test_the_token_decides_what_a_caller_sees(tmp_path: Path, redis_url: str) -> None:
    async with agent_over(tmp_path, redis_url) as agent, over_http(agent) as url:
        seen = {}
        for user, token in TOKENS.items():
            async with client_of(url, token) as client:
                seen[user] = str([await call(client, "search", query=PAY), await call(client, "ask", question=PAY)])
        async with httpx2.AsyncClient(trust_env=False) as http:
            refused = await http.post(url, json={}, headers={"Authorization": "Bearer unknown"})
    assert ["90,000" in text for text in seen.values()] == [True, False]
    assert refused.status_code == 401


async def test_idle_connections_and_long_texts_do_not_block_callers(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bot.cli.mcp.serve", partial(serve, limits=ConnectionLimits(limit=5)))
    async with agent_over(tmp_path, redis_url) as agent, over_http(agent) as url, AsyncExitStack() as stack:
        for number in range(20):
            _, writer = await asyncio.open_connection("127.0.0.1", httpx2.URL(url).port)
            writer.write(b"POST /mcp HTTP/1.1\r\nHost: x\r\n" * (number % 2))
            stack.callback(writer.close)
        async with client_of(url, TOKENS["public"]) as client:
            assert "passages" in await call(client, "search", query=PAY)
            long = await client.call_tool("verify", {"text": "| a | b |\n" * 9_000, "sources": []})
            assert "at most 40,000 characters" in str(long.content)
        with pytest.raises(WrongUse, match="it is taken"):
            await stack.enter_async_context(serve_over_http(build_server(agent), port=httpx2.URL(url).port or 0))


async def test_gates_and_budgets_apply(tmp_path: Path, redis_url: str) -> None:
    drafts = [says("<answer>Each API key may make 600 requests a minute [1].</answer>")]
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=drafts) as server:
        more = {"openai_base_url": server.url, "model": "m", "judge": False, "daily_tokens_user": 1}
        async with agent_over(tmp_path, redis_url, deny_users=frozenset({"U0BOB1"}), **more) as agent:
            async with Client(build_server(agent, user="U0BOB1")) as client:
                assert "your account doesn't have access" in await call(client, "ask", question=QUESTION)
            async with Client(build_server(agent, user="U0ANN1")) as client:
                await call(client, "ask", question=QUESTION)
                assert "budget of today is used up" in await call(client, "ask", question=QUESTION)
            await agent.pausing.pause()
            async with Client(build_server(agent, user="public")) as client:
                assert "paused" in await call(client, "search", query=QUESTION)


@pytest.mark.parametrize(
    ("person", "access", "said"),
    [
        (Person(guest=True), {}, say("guest", None)),
        (Person(guest=True), {"allow_guests": True}, "600"),
        (Person(deactivated=True), {"allow_users": frozenset({"U0GUEST"})}, say("user_refused", None)),
    ],
)
async def test_a_guest_needs_access_and_a_token_ends_with_its_account(
    tmp_path: Path, redis_url: str, person: Person, access: dict[str, Any], said: str
) -> None:
    async with LocalWorkspace() as slack:
        more = {"slack_bot_token": SecretStr(slack.bot_token), "slack_api_url": slack.api_url, **access}
        async with (
            agent_over(tmp_path, redis_url, **more) as agent,
            Client(build_server(agent, user="U0GUEST")) as client,
        ):
            assert agent.memberships is not None
            people = agent.memberships.people
            await people.redis.set(people.key("person", TEAM_ID, "U0GUEST"), json.dumps(asdict(person)))
            assert said in str(await call(client, "search", query=QUESTION))


@pytest.mark.parametrize(
    "pairs", ["", "U0ANN1", "U0ANN1=short", "=ann-secret-ann-secret", "a=xxxxxxxxxxxxxxxx,b=xxxxxxxxxxxxxxxx"]
)
def test_impossible_tokens_are_refused_without_being_quoted(pairs: str) -> None:
    with pytest.raises(WrongUse, match="ORION_MCP_TOKENS must hold pairs") as raised:
        read_tokens(pairs)
    assert "ann-secret" not in str(raised.value)

"""`orion mcp`: the agent, the search and the verifier as an MCP server, for editors and other agents.

A caller is a person of the workspace, with the same access rules, budgets and audiences as in a direct message, or the
public, who see only public documents.
"""

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

import httpx2
import structlog
from aiohttp import web
from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import AnyHttpUrl
from redis.exceptions import RedisError

from agent.actions import ToolCall
from agent.texts.catalogue import say
from agent.thread.conversation import Question, ThreadKey, viewers_of
from agent.thread.state import ThreadState
from agent.tools.builtin.knowledge import SEARCH, for_viewers
from agent.tools.tool import call_tool
from agent.turn.events import ModelEnd, TurnEvent
from bot.cli.ask import listen, result_json
from bot.cli.signals import handle_signals
from bot.documents.open import available_documents, corpus_of
from bot.errors import WrongUse
from bot.evals.files import verdict_json
from bot.evals.rows import SourceRow, sources_of
from bot.evals.verify import verdict_on
from bot.gates.access import Visit, find_refusal
from bot.install.identity import find_prefix
from bot.redis.server import open_redis
from bot.servers.http import serve
from bot.settings import Settings
from bot.slack.client import SlackWorkspace, open_client
from bot.slack.directory import Memberships, SlackDirectory
from bot.slack.message import Access, Incoming
from bot.slack.web_api import DeliveryFailed, SlackCalls, sendable
from bot.stores.limits import Budgets, Pausing, TurnTokens, limits_of
from bot.stores.turn_records import Recorder, claims_json
from bot.turn.engine import Engine, open_engine
from verification.types import Draft

PUBLIC: Final = "public"
MIN_TOKEN_CHARS: Final = 16
SEARCH_TIMEOUT_S: Final = 30.0
MAX_SEARCH_CHARS: Final = 16_000
BODY_TIMEOUT_S: Final = 10.0
MAX_REQUEST_BYTES: Final = 4 * 1024 * 1024
MAX_TEXT_CHARS: Final = 40_000  # as in a Slack message
_READS: Final = ToolAnnotations(read_only_hint=True)
_TOKENS: Final = (
    "ORION_MCP_TOKENS must hold pairs such as U0123ABCD=a-long-secret or public=another-secret, with commas between; "
    f"each secret once, and of at least {MIN_TOKEN_CHARS} characters."
)
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class McpAgent:
    """Serves callers by their user id, or ``public``. Slack is asked about them only with a bot token."""

    settings: Settings
    engine: Engine
    budgets: Budgets
    pausing: Pausing
    memberships: Memberships | None

    async def ask(self, user: str, text: str) -> dict[str, Any]:
        """Answer one question, in the fields of `orion ask --json` and with the claims. Raises ``ToolError``."""
        recorder = Recorder()
        async with self._admit(user, text) as (question, turn_id, counter):
            session = f"mcp:{turn_id}"
            async with listen(self.settings, question, turn_id, session, recorder) as (emit, end):

                def count_and_emit(event: TurnEvent) -> None:
                    if isinstance(event, ModelEnd):
                        counter.add(event.usage.tokens)
                    emit(event)

                outcome, _ = await self.engine.run(question, ThreadState(), emit=count_and_emit)
                end(outcome)
        documents = await available_documents(self.engine.index)
        result = result_json(outcome, recorder, documents) | {"claims": claims_json(outcome.answer)}
        return dict(sendable(result))

    async def search(self, user: str, query: str, limit: int) -> dict[str, Any]:
        """Return the passages that the caller may see. Raises ``ToolError``."""
        async with self._admit(user, query) as (question, turn_id, _):
            tools = for_viewers(self.engine.tools, viewers_of(question))
            call = ToolCall(call_id=turn_id, tool=SEARCH, input={"query": query, "limit": limit})
            found = await call_tool(tools, call, timeout_s=SEARCH_TIMEOUT_S, max_chars=MAX_SEARCH_CHARS)
        if not found.ok:
            raise ToolError(found.error)
        fields = ("title", "url", "text", "updated_at")
        return {"passages": [sendable({name: getattr(source, name) for name in fields}) for source in found.sources]}

    async def verify(self, user: str, draft: Draft) -> dict[str, Any]:
        """Return the verdict on a text, with the judge's opinion if one is configured. Raises ``ToolError``."""
        async with self._admit(user, draft.text) as (_, _, counter):
            return verdict_json(await verdict_on(draft, self.engine.judge, counter.add))

    @asynccontextmanager
    async def _admit(self, user: str, text: str) -> AsyncIterator[tuple[Question, str, TurnTokens]]:
        """Check length, pause, access and budget, and yield the question, its turn and a counter of tokens."""
        if len(text) > MAX_TEXT_CHARS:  # a megabyte takes a minute to verify
            message = f"The text is too long: send at most {MAX_TEXT_CHARS:,} characters."
            raise ToolError(message)
        turn_id, incoming = uuid4().hex, await self._incoming(user, text)
        async with AsyncExitStack() as stack:
            try:
                if await self.pausing.current():
                    raise ToolError(say("paused", None))
                if user != PUBLIC and (refusal := await self._refusal(incoming)):
                    raise ToolError(say(refusal, None))
                if not await stack.enter_async_context(self.budgets.reserve(turn_id, incoming)):
                    message = "The token budget of today is used up. Ask again tomorrow."
                    raise ToolError(message)
                question = incoming.question()
                if user == PUBLIC:  # not the workspace, because documents for its members are not public
                    question = replace(question, thread=replace(question.thread, team=PUBLIC))
                elif self.memberships:
                    question = replace(question, memberships=await self.memberships.of(question))
            except (RedisError, DeliveryFailed):
                message = "Orion cannot check now who may ask. Try again in a minute."
                raise ToolError(message) from None
            yield question, turn_id, await stack.enter_async_context(self.budgets.count_turn(incoming))

    async def _incoming(self, user: str, text: str) -> Incoming:
        """Return the call as a message: a direct message, or for the public in a channel without members."""
        team = "mcp"
        if self.memberships:
            try:
                team = (await self.memberships.people.workspace.identity()).team
            except DeliveryFailed:
                message = "Slack cannot be reached to check who may ask. Try again in a minute."
                raise ToolError(message) from None
        channel = "mcp" if user == PUBLIC else f"D-mcp-{user}"
        place = ThreadKey(team=team, channel=channel, thread_ts=uuid4().hex)
        ts = f"{time.time():.6f}"
        return Incoming(kind="question", thread=place, user=user, ts=ts, addressed="direct", text=text)

    async def _refusal(self, incoming: Incoming) -> str:
        access = Access(**{name: getattr(self.settings, name) for name in Access.__slots__})
        if self.memberships is None:
            return access.refusal(incoming.user, "")
        team, user, people = incoming.thread.team, incoming.user, self.memberships.people
        refusal = await find_refusal(Visit(team=team, user=user), access, people)
        # People who are allowed by name are not looked up, so a token would outlive its owner's account.
        return refusal or ("user_refused" if (await people.find_person(team, user)).deactivated else "")


class Tokens(dict[str, str]):
    """The callers by the digests of their tokens."""

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the owner of this token, for the SDK."""
        user = self.get(_digest(token))
        return AccessToken(token=token, client_id=user, scopes=[]) if user else None


def read_tokens(text: str) -> Tokens:
    """Read ``ORION_MCP_TOKENS``. Raises ``WrongUse`` without quoting it."""
    pairs = [pair.strip().partition("=") for pair in text.split(",") if pair.strip()]
    users = {_digest(token.strip()): user.strip() for user, _, token in pairs}
    if not users or len(users) < len(pairs) or any(len(t.strip()) < MIN_TOKEN_CHARS or not u for u, _, t in pairs):
        raise WrongUse(_TOKENS)
    return Tokens(users)


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


@asynccontextmanager
async def open_agent(settings: Settings) -> AsyncIterator[McpAgent]:
    """Open everything that a caller needs. Raises ``WrongUse``."""
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(open_redis(settings))
        prefix = await find_prefix(redis, settings)
        engine = await stack.enter_async_context(open_engine(settings, corpus_of(settings, None)))
        memberships = None
        if token := settings.slack_bot_token.get_secret_value():
            client = await stack.enter_async_context(open_client(token, api_url=settings.slack_api_url))
            people = SlackDirectory(SlackWorkspace(SlackCalls(client)), redis, prefix=prefix)
            memberships = Memberships(people, engine.index, engine.audiences)
        yield McpAgent(
            settings=settings,
            engine=engine,
            budgets=Budgets(redis, limits_of(settings), prefix=prefix),
            pausing=Pausing(redis, prefix=prefix),
            memberships=memberships,
        )


def build_server(agent: McpAgent, *, user: str = "", tokens: Tokens | None = None) -> MCPServer:
    """Build the server for one caller, or for callers with one of the tokens."""
    # The SDK requires an issuer. The tokens are Orion's own, so it is never contacted.
    auth = AuthSettings(issuer_url=AnyHttpUrl("http://localhost"), resource_server_url=None) if tokens else None
    server = MCPServer("orion", token_verifier=tokens, auth=auth, log_level="WARNING")

    def caller() -> str:
        if tokens is None:
            return user
        found = get_access_token()
        if found is None:
            message = "A token is missing."
            raise ToolError(message)
        return found.client_id

    @server.tool(annotations=_READS)
    async def ask(question: str) -> dict[str, Any]:
        """Ask a question about the team's documents. Each claim of the answer is checked against its sources."""
        return await agent.ask(caller(), question)

    @server.tool(annotations=_READS)
    async def search(query: str, limit: int = 8) -> dict[str, Any]:
        """Find the passages of the team's documents that match a query best, with title, link and date."""
        return await agent.search(caller(), query, limit)

    @server.tool(annotations=_READS)
    async def verify(text: str, sources: list[SourceRow], question: str = "") -> dict[str, Any]:
        """Check each claim of a text in Markdown against the sources that it cites as [n]."""
        draft = Draft(text=text, question=question, sources=sources_of(sources), dialect="markdown")
        return await agent.verify(caller(), draft)

    return server


@asynccontextmanager
async def serve_over_http(server: MCPServer, *, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[int]:
    """Serve until the block ends and yield the bound port. The SDK's own server would keep idle connections open."""
    app = server.streamable_http_app(stateless_http=True, json_response=True, host=host)
    transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)

    async def forward(request: web.Request) -> web.Response:
        try:
            async with asyncio.timeout(BODY_TIMEOUT_S):
                body = await request.read()
        except TimeoutError:
            return web.Response(status=408)
        asked = httpx2.Request(request.method, str(request.url), headers=[*request.headers.items()], content=body)
        reply = await transport.handle_async_request(asked)
        return web.Response(status=reply.status_code, body=await reply.aread(), headers=[*reply.headers.items()])

    application = web.Application(client_max_size=MAX_REQUEST_BYTES)
    application.router.add_post("/mcp", forward)
    async with serve(application, host=host, port=port) as bound, app.router.lifespan_context(app):
        yield bound


async def serve_mcp(settings: Settings, *, http: bool, host: str, port: int, user: str) -> None:
    """Serve until the standard input or the process ends. Raises ``WrongUse``."""
    tokens = read_tokens(settings.mcp_tokens.get_secret_value()) if http else None
    async with open_agent(settings) as agent:
        server = build_server(agent, user=user, tokens=tokens)
        if not http:
            await server.run_stdio_async()
            return
        with handle_signals() as stopping:
            async with serve_over_http(server, host=host, port=port) as bound:
                log.info("mcp_server_open", port=bound)
                stopping.running = True
                await stopping.asked.wait()

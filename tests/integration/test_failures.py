"""Causes each failure in the table of docs/failures.md and checks what its row says.

Only servers are made to fail: the Slack-compatible server, the OpenAI-compatible one, a Redis and a PostgreSQL.
"""

from __future__ import annotations

import asyncio
import re
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.local.deliveries import EventDelivery
from bot.local.model.faults import Faults
from bot.local.model.limits import LENIENT, Strictness
from bot.turn.engine import TurnTimeouts
from bot.turn.recovery import DOCUMENTS_AWAY
from tests.process.chaos.scene import PLANNED
from tests.support.local_slack import crowd_sockets
from tests.support.openai_server import CUT, GARBAGE, HANGS, RESPOND, Scripted, ScriptedOpenAI, calls, fails, says
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, running, settings_in, text_of
from tests.support.paths import ROOT
from tests.support.postgres_server import Database, database_in
from tests.support.redis_fleet import Node, node
from tests.support.scripted_orion import QUICK
from tests.support.waiting import wait_until

TABLE = ROOT / "docs" / "failures.md"
GOOD = says("<answer>Each API key may make 600 requests a minute [1].</answer>")
IMPATIENT = replace(QUICK, model_s=0.0)


# An event that meets a socket on its way out comes again: sooner here than after Slack's minute.
SOON = replace(LENIENT, retry_delays=(0.0, 1.0, 2.0, 4.0, 8.0))


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of the table."""

    failure: str
    person: str
    operator: str
    question: str


def rows() -> list[Row]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    cells = [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines[1:]]
    return [Row(failure=f, person=p, operator=o, question=q) for f, p, o, q in cells]


@dataclass(frozen=True, kw_only=True)
class Scene:
    """An Orion and the servers that a test can stop."""

    setting: Setting
    redis: Node | None = None
    database: Database | None = None
    log: Sequence[Mapping[str, Any]] = ()


async def nothing(_: Scene) -> None:
    """Nothing more goes wrong."""


async def ask_in_channel(scene: Scene) -> str:
    return scene.setting.ask(f"{MENTION} How many requests per minute may an API key make?")


@dataclass(frozen=True, kw_only=True)
class Failure:
    """The cause of a failure: the first replies of the model server, and the fault of Slack.

    ``before`` and ``after`` run before and after the question. ``needs`` says which servers are stopped, and whether
    streams are on.
    """

    decisions: tuple[Scripted, ...] = ()
    drafts: tuple[Scripted, ...] = ()
    slack: Callable[[Faults], None] = lambda _: None
    before: Callable[[Scene], Awaitable[object]] = nothing
    ask: Callable[[Scene], Awaitable[str]] = ask_in_channel
    after: Callable[[Scene], Awaitable[object]] = nothing
    timeouts: TurnTimeouts = QUICK
    url: str = ""
    mode: str = "socket"
    needs: frozenset[str] = frozenset()
    strictness: Strictness = SOON
    channel: str = CHANNEL


async def release_late_posts(scene: Scene) -> None:
    workspace = scene.setting.workspace
    ts = workspace.messages(CHANNEL)[-1]["ts"]
    for count, what in ((1, "it is answered"), (2, "the first try's post is carried out"), (1, "the second one goes")):
        await wait_until(lambda wanted=count: len(answers(workspace, ts, ts)) == wanted, what)  # type: ignore[misc]  # bound now
        workspace.faults.release()


def posting(error: str) -> Failure:
    """Twice: the answer, and the second try before the question is given up."""
    return Failure(slack=lambda faults: faults.fail("chat.postMessage", error, times=2))


def streaming(slack: Callable[[Faults], None], *decisions: Scripted) -> Failure:
    """The answer is to be seen while it grows."""
    return Failure(slack=slack, decisions=decisions, needs=frozenset({"streams"}))


def refuse_updates(faults: Faults) -> None:
    faults.fail("chat.stopStream", "invalid_blocks")
    faults.fail("chat.update", "block_mismatch")


async def recycle_socket(scene: Scene) -> None:
    for reason in ("warning", "refresh_requested"):
        await wait_for_new_socket(scene.setting, scene.setting.workspace.workspace.sockets.disconnect(reason))


async def broken(scene: Scene) -> None:
    await wait_for_new_socket(scene.setting, scene.setting.workspace.workspace.sockets.close())


async def no_place_for_a_socket(scene: Scene) -> None:
    """Others hold all the sockets that an app may have; one of them goes once Orion asked for another in vain."""
    front = scene.setting.orion.socket
    assert front is not None
    async with crowd_sockets(scene.setting.workspace):
        calls = scene.setting.workspace.calls
        opening = "apps.connections.open"
        await wait_until(lambda: sum(c.method == opening for c in calls) >= 4, "Orion asks for another socket")
        assert not await front.ready()
    await wait_until(front.ready, "the socket is ready")


async def redis_dies(scene: Scene) -> None:
    assert scene.redis is not None
    scene.redis.kill()


async def redis_comes_back(scene: Scene) -> None:
    """Once Slack has tried in vain to bring the question, and the worker to claim one."""
    await wait_until(lambda: any(event.reasons for event in deliveries(scene)), "Slack got no ack")
    await wait_until(lambda: any(line["event"] == "redis_unavailable" for line in scene.log), "the worker noticed")
    assert scene.redis is not None
    scene.redis.start_again()


def deliveries(scene: Scene) -> list[EventDelivery]:
    """The outcomes of the events."""
    return scene.setting.workspace.workspace.deliveries.log


async def ask_directly(scene: Scene) -> str:
    return scene.setting.ask("How many requests per minute may an API key make?", channel=DIRECT)


async def answer_once_and_stop_redis(scene: Scene) -> None:
    """Orion serves the direct messages; then Redis dies."""
    first = await ask_directly(scene)
    await scene.setting.answer_to(first, channel=DIRECT)
    await redis_dies(scene)


async def return_after_ten_minutes(scene: Scene) -> None:
    """Slack gave up; what Redis remembers of Orion's listening is as old as it would be."""
    await wait_until(lambda: deliveries(scene)[-1].given_up, "Slack gave up")
    orion, redis = scene.setting.orion, scene.redis
    assert redis is not None
    redis.start_again()
    await wait_until(lambda: redis.ask("PING"), "Redis is back")
    await orion.redis.set(orion.catching_up.heartbeat_key, time.time() - 600)
    await orion.catching_up.beat()


async def documents_go(scene: Scene) -> None:
    assert scene.database is not None
    await asyncio.to_thread(scene.database.shut)


async def documents_come_back(scene: Scene) -> None:
    await wait_until(lambda: DOCUMENTS_AWAY in scene.setting.statuses, "the person sees what is waited for")
    assert scene.database is not None
    await asyncio.to_thread(scene.database.open)


async def wait_for_new_socket(setting: Setting, breaking: Awaitable[None]) -> None:
    sockets = setting.workspace.workspace.sockets
    opened, front = sockets.opened, setting.orion.socket
    assert front is not None
    await breaking
    await wait_until(lambda: sockets.opened > opened and len(sockets.connections) == 1, "one new socket is open")
    await wait_until(front.ready, "the socket is ready")


REDIS_AWAY = Failure(
    needs=frozenset({"redis"}), before=redis_dies, after=redis_comes_back, strictness=replace(SOON, ack_seconds=1.0)
)
NEVER = asyncio.Event()
NOW = format_datetime(datetime.now(UTC), usegmt=True)
FAILURES: Mapping[str, Failure] = {
    "model: 500, 502 or 503": Failure(decisions=(fails(500), RESPOND), drafts=(fails(502), fails(503))),
    "model: 429 with Retry-After in seconds": Failure(decisions=(fails(429, retry_after="0.05"),)),
    "model: 429 with Retry-After as a date": Failure(decisions=(fails(429, retry_after=NOW),)),
    "model: 429 that asks for a longer wait than Orion allows": Failure(decisions=(fails(429, retry_after="999"),)),
    "model: down for longer than Orion waits": Failure(decisions=(fails(500),) * 2, timeouts=IMPATIENT),
    "model: connection refused": Failure(url="refused", timeouts=IMPATIENT),
    "model: connection never opens": Failure(url="unopened", timeouts=IMPATIENT),
    "model: connection cut before a reply": Failure(decisions=(CUT,)),
    "model: silent before the first byte": Failure(decisions=(HANGS,)),
    "model: silent after the first byte": Failure(drafts=(says("<answer>Each", before_end=NEVER),)),
    "model: garbage instead of a stream": Failure(drafts=(GARBAGE,)),
    "model: stream ends early": Failure(drafts=(says("<answer>Each", done=False),)),
    "model: stream is cut": Failure(drafts=(says("<answer>Each", broken=True),)),
    "model: reply without choices": Failure(decisions=(Scripted(raw=b'{"choices": []}'),)),
    "model: wrong JSON in a tool's arguments": Failure(decisions=(calls(("search", "not json")),)),
    "model: refuses in its `refusal` field": Failure(drafts=(says("", refusal="I cannot."),)),
    "model: stopped by a content filter": Failure(drafts=(says("Each", finish="content_filter"),)),
    "model: reply cut off at the token limit": Failure(drafts=(says("<answer>Each", finish="length"),)),
    "model: context too long": Failure(
        decisions=(fails(400, "maximum context length is 8", "context_length_exceeded"),)
    ),
    "model: wrong key": Failure(decisions=(fails(401, "wrong", "invalid_api_key"),)),
    "model: no such model": Failure(decisions=(fails(404, "none", "model_not_found"),)),
    "model: quota used up": Failure(decisions=(fails(429, "pay", "insufficient_quota"),)),
    "model: keeps failing, then is back": Failure(
        decisions=(fails(500),) * 4, drafts=(fails(500),) * 4, timeouts=replace(QUICK, failures=2)
    ),
    "slack: 429 on the post": Failure(slack=lambda faults: faults.rate_limit("chat.postMessage")),
    "slack: 503 on the post": Failure(slack=lambda faults: faults.fail("chat.postMessage", status=503, times=2)),
    "slack: connection cut before the post": Failure(slack=lambda faults: faults.reset("chat.postMessage")),
    "slack: connection cut after the post": Failure(slack=lambda faults: faults.lose_response("chat.postMessage")),
    "slack: the post hangs": Failure(slack=lambda faults: faults.hang("chat.postMessage")),
    "slack: the post is carried out after the next try's": Failure(
        slack=lambda faults: faults.hold("chat.postMessage"), after=release_late_posts
    ),
    "slack: away for longer than a call waits": Failure(
        slack=lambda faults: faults.fail("chat.postMessage", status=503, times=4),
        timeouts=replace(QUICK, call_s=0.03, failures=2),
    ),
    "slack: no `assistant.threads.setStatus`": Failure(
        slack=lambda f: f.missing.add("assistant.threads.setStatus"),
        decisions=(replace(RESPOND, wait_s=0.5),),  # what is answered at once needs no status
    ),
    "slack: blocks refused": Failure(slack=lambda faults: faults.fail("chat.postMessage", "invalid_blocks", times=2)),
    "slack: socket is recycled (`warning`, `refresh_requested`)": Failure(before=recycle_socket),
    "slack: socket breaks without a word": Failure(before=broken),
    "slack: no place for another socket (`too_many_websockets`)": Failure(before=no_place_for_a_socket),
    "slack: `channel_not_found`": posting("channel_not_found"),
    "slack: `not_in_channel`": posting("not_in_channel"),
    "slack: `is_archived`": posting("is_archived"),
    "slack: `thread_not_found`": posting("thread_not_found"),
    "slack: `msg_too_long`": posting("msg_too_long"),
    "slack: the token is revoked": Failure(
        slack=lambda faults: faults.fail("chat.postMessage", "token_revoked", times=9)
    ),
    "streams: no `chat.startStream`": streaming(lambda faults: faults.missing.add("chat.startStream")),
    "streams: too many a minute (`ratelimited`)": streaming(
        lambda faults: faults.rate_limit("chat.startStream", retry_after=60)
    ),
    "streams: connection cut after the start": streaming(lambda faults: faults.lose_response("chat.startStream")),
    "streams: 429 on a piece": streaming(lambda faults: faults.rate_limit("chat.appendStream")),
    "streams: connection cut after a piece": streaming(lambda faults: faults.lose_response("chat.appendStream")),
    "streams: dies (`message_not_in_streaming_state`), as after five minutes": streaming(
        lambda faults: faults.fail("chat.appendStream", "message_not_in_streaming_state")
    ),
    "streams: blocks refused at its end": streaming(lambda faults: faults.fail("chat.stopStream", "invalid_blocks")),
    "streams: no tasks for the steps of a plan (`invalid_chunks`)": streaming(
        lambda faults: faults.fail("chat.appendStream", "invalid_chunks"), PLANNED
    ),
    "streams: what was shown cannot be updated (`block_mismatch`)": streaming(refuse_updates),
    "redis: away when the question comes, Socket Mode": REDIS_AWAY,
    "redis: away when the question comes, HTTP": replace(REDIS_AWAY, mode="http"),
    "redis: away for longer than Slack sends again, in a thread or chat used before": Failure(
        needs=frozenset({"redis"}),
        before=answer_once_and_stop_redis,
        ask=ask_directly,
        after=return_after_ten_minutes,
        strictness=replace(LENIENT, ack_seconds=1.0, retry_delays=(0.1,)),
        channel=DIRECT,
    ),
    "knowledge: PostgreSQL away": Failure(
        needs=frozenset({"knowledge"}), before=documents_go, after=documents_come_back
    ),
    "knowledge: PostgreSQL down for longer than Orion waits": Failure(
        needs=frozenset({"knowledge"}), before=documents_go, timeouts=IMPATIENT
    ),
}


def then(first: tuple[Scripted, ...], usual: Scripted) -> Callable[[Mapping[str, Any]], Scripted]:
    left = list(first)
    return lambda _: left.pop(0) if left else usual


@contextmanager
def full_port() -> Iterator[str]:
    """A port that accepts no more connections: its queue is full."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        queue = [socket.socket() for _ in range(4)]
        try:
            for one in queue:
                one.setblocking(False)
                one.connect_ex(server.getsockname())
            yield f"http://127.0.0.1:{server.getsockname()[1]}/v1"
        finally:
            for one in queue:
                one.close()


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/v1"


@asynccontextmanager
async def failing(failure: Failure, home: Path, servers: Servers) -> AsyncIterator[Scene]:
    async with AsyncExitStack() as stack:
        decisions, drafts = then(failure.decisions, RESPOND), then(failure.drafts, GOOD)
        server = await stack.enter_async_context(ScriptedOpenAI(decisions=decisions, drafts=drafts))
        stack.callback(NEVER.set)
        url = server.url
        if failure.url:
            url = closed_port() if failure.url == "refused" else stack.enter_context(full_port())
        redis = await stack.enter_async_context(node(home)) if "redis" in failure.needs else None
        database = stack.enter_context(database_in(servers.postgres())) if "knowledge" in failure.needs else None
        settings = settings_in(
            home, f"redis://{redis.address}" if redis else servers.redis_url, openai_base_url=url,
            openai_api_key=SecretStr("sk-test-0123456789"), model="scripted",
            knowledge_url=SecretStr(database.url if database else ""), streams="streams" in failure.needs,
        )  # fmt: skip
        setting = await stack.enter_async_context(
            running(settings, mode=failure.mode, timeouts=failure.timeouts, strictness=failure.strictness)
        )
        NEVER.clear()
        yield Scene(setting=setting, redis=redis, database=database)


@dataclass(frozen=True, kw_only=True)
class Servers:
    """The servers of all rows: an empty Redis, and a PostgreSQL for those that ask for one."""

    redis_url: str
    postgres: Callable[[], str]


@dataclass(kw_only=True)
class Seen:
    """The state of Slack, log and metrics in the end."""

    answers: list[dict[str, Any]]
    direct: list[dict[str, Any]]
    log: list[str]
    metrics: str
    statuses: list[str]
    ids: set[str] = field(default_factory=set)


async def observe(failure: Failure, home: Path, servers: Servers) -> Seen:
    with capture_logs() as lines:
        async with failing(failure, home, servers) as opened:
            scene = replace(opened, log=lines)
            setting, channel = scene.setting, failure.channel
            await failure.before(scene)
            failure.slack(setting.workspace.faults)
            ts = await failure.ask(scene)
            await failure.after(scene)

            async def over() -> bool:
                events = [d for d in setting.workspace.workspace.deliveries.log if d.event.get("ts") == ts]
                ended = events != [] and all(event.acknowledged or event.given_up for event in events)
                depth = await setting.orion.mailbox.depth()
                # A second look at a delivery that was made twice may still lie in the mailbox.
                told = bool(answers(setting.workspace, ts, ts, channel)) or depth.dead > 0
                return ended and told and setting.orion.worker.in_flight == 0

            await wait_until(over, "the question is done with", 25)
            page = (await setting.orion.metrics()).decode()
            found = answers(setting.workspace, ts, ts, channel)
            said = [m for m in setting.workspace.messages(channel, ts) if m["ts"] > ts]
            assert [m for m in said if m.get("bot_id")] == found, "nothing but the answer is left in the thread"
            direct = [m for m in setting.workspace.messages(DIRECT) if m.get("bot_id") and m["ts"] > ts]
            shown_statuses = setting.statuses
    return Seen(
        answers=found, direct=direct if channel != DIRECT else [], log=[str(line["event"]) for line in lines],
        metrics=page, statuses=shown_statuses,
    )  # fmt: skip


def test_the_table_and_the_failures_are_the_same() -> None:
    assert [row.failure for row in rows()] == list(FAILURES)


@pytest.mark.parametrize("row", rows(), ids=lambda row: re.sub(r"\W+", "-", row.failure))
async def test_each_failure_has_the_result_in_the_table(
    row: Row, tmp_path: Path, redis_url: str, request: pytest.FixtureRequest
) -> None:
    servers = Servers(redis_url=redis_url, postgres=lambda: str(request.getfixturevalue("postgres_url")))
    found = await observe(FAILURES[row.failure], tmp_path, servers)
    for status in re.findall(r"`([^`]+)`", row.person):
        assert status in found.statuses
    for name in re.findall(r"`([^`]+)`", row.operator):
        assert name in found.log or name in found.metrics, f"{name} is neither logged nor counted"
    said = re.findall(r'"([^"]+)"', row.person)
    place = found.direct if "direct message" in row.person else found.answers
    for words in said:
        assert words in text_of(place[0])
    assert len(found.answers) == {"answered once": 1, "told once": 1, "dead letter": 0}[row.question]
    if row.question == "answered once":
        assert "600 requests" in text_of(found.answers[0])
        assert found.answers[0]["metadata"]["event_payload"]["verified"] is True
    if row.question == "told once":
        turn_id = found.answers[0]["metadata"]["event_payload"]["turn_id"]
        assert turn_id[:12] in text_of(found.answers[0]), "a failure has an id that the log knows"
    assert len(found.direct) == ("direct message" in row.person)

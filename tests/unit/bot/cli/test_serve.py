"""The long-running commands as they are started, used, asked to end, and started wrongly."""

from __future__ import annotations

import asyncio
import json
import math
import os
import resource
import signal
import socket
import sys
import webbrowser
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import SecretStr
from structlog.testing import capture_logs
from structlog.typing import EventDict

from bot.app import PROBE_BYTES, DiskProbe
from bot.cli import local as opening
from bot.cli.local import LocalOrion, local, settings_for
from bot.cli.serve import serve
from bot.cli.signals import EndedAtOnce, handle_signals
from bot.errors import WrongUse
from bot.local.model.limits import LENIENT
from bot.local.model.roster import VISITOR
from bot.local.server import LocalWorkspace
from bot.redis.server import MIN_FREE_BYTES
from bot.settings import Settings
from tests.support.openai_server import HANGS, RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, MENTION, answers, serve_environment, settings_in, text_of, text_pages
from tests.support.paths import ROOT
from tests.support.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
GOOD = "<answer>Each API key may make 600 requests a minute [1].</answer>"


@pytest.fixture
async def workspace() -> AsyncIterator[LocalWorkspace]:
    async with LocalWorkspace(docs=(text_pages(),), strictness=LENIENT) as opened:
        yield opened


@pytest.fixture
def log() -> Iterator[list[EventDict]]:
    with capture_logs() as entries:
        yield entries


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """The browser of this machine."""
    recorder = Opened()
    monkeypatch.setattr(webbrowser, "_tryorder", ["recorder"])
    monkeypatch.setattr(webbrowser, "_browsers", {"recorder": [None, recorder]})
    return recorder


@pytest.fixture
def settings(workspace: LocalWorkspace, tmp_path: Path, redis_url: str) -> Settings:
    return settings_for(settings_in(tmp_path, redis_url, docs=(text_pages(),), port=0), workspace)


def events(log: list[EventDict]) -> list[str]:
    return [entry["event"] for entry in log]


@asynccontextmanager
async def running_task(command: Coroutine[Any, Any, None]) -> AsyncIterator[asyncio.Task[None]]:
    """Run a command as a separate task, which ends with the test."""
    async with asyncio.TaskGroup() as group:
        task = group.create_task(command)
        try:
            yield task
        finally:
            task.cancel()


def ask_to_end(number: signal.Signals = signal.SIGTERM) -> None:
    os.kill(os.getpid(), number)


async def pages_of(log: list[EventDict]) -> int:
    """The port of the pages, once Orion runs."""
    await wait_until(lambda: "orion_started" in events(log), "Orion runs")
    return int(next(entry["port"] for entry in log if entry["event"] == "pages_open"))


@asynccontextmanager
async def serving(settings: Settings, log: list[EventDict], mode: str = "socket") -> AsyncIterator[int]:
    """Orion at work, by the port of its pages; it is asked to end afterwards."""
    async with running_task(serve(settings, mode=mode, host="127.0.0.1", concurrency=5)) as served:
        yield await pages_of(log)
        ask_to_end()
        await served


async def page(port: int, path: str) -> tuple[int, str]:
    async with aiohttp.ClientSession() as client, client.get(f"http://127.0.0.1:{port}{path}") as reply:
        return reply.status, await reply.text()


async def test_serve_answers_shows_its_pages_and_drains(
    workspace: LocalWorkspace, tmp_path: Path, log: list[EventDict], settings: Settings
) -> None:
    async with serving(settings, log) as port:
        await wait_until(lambda: workspace.connections == 1, "the socket is connected")
        ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} {LIMIT}")
        found = await workspace.wait_for(lambda: answers(workspace, ts, ts))
        assert "600 requests" in text_of(found[0])
        assert await page(port, "/healthz") == (200, '{"alive": true}')
        up = {"redis": True, "disk": True, "slack_socket": True, "slack_token": True}
        status, ready = await page(port, "/readyz")
        assert (status, json.loads(ready)["checks"]) == (200, up)
        away = await asyncio.to_thread(tmp_path.rename, tmp_path.with_name("away"))
        status, ready = await page(port, "/readyz")
        assert (status, json.loads(ready)["checks"]) == (503, {**up, "disk": False})
        await asyncio.to_thread(away.rename, tmp_path)
        assert (await page(port, "/readyz"))[0] == 200
    assert events(log)[-1] == "orion_stopped"


def test_a_full_disk_is_ready_again_only_with_some_free_space(tmp_path: Path) -> None:
    probe, (soft, hard) = DiskProbe(tmp_path), resource.getrlimit(resource.RLIMIT_FSIZE)
    found = []
    for most_bytes in (PROBE_BYTES, PROBE_BYTES - 1, PROBE_BYTES, MIN_FREE_BYTES, PROBE_BYTES):
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, hard))
        try:
            found.append(probe.takes_writes())
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert found == [True, False, False, True, True]
    assert list(tmp_path.iterdir()) == []


async def test_an_unavailable_shared_index_is_not_ready_but_does_not_prevent_a_start(
    log: list[EventDict], settings: Settings
) -> None:
    address = SecretStr("postgresql://orion:hunter2@127.0.0.1:9/orion")
    async with serving(settings.model_copy(update={"knowledge_url": address}), log, mode="") as port:
        status, ready = await page(port, "/readyz")
        assert (status, json.loads(ready)["checks"]) == (503, {"redis": True, "knowledge": False, "slack_token": True})
    assert "knowledge_away" in events(log)
    assert "hunter2" not in str(log)


async def test_the_page_counts_a_turn_and_what_went_wrong_on_its_way(
    workspace: LocalWorkspace, log: list[EventDict], settings: Settings
) -> None:
    async with serving(settings, log) as port:
        await wait_until(lambda: workspace.connections == 1, "the socket is connected")
        workspace.faults.fail("chat.postMessage", "internal_error")
        workspace.post(VISITOR, CHANNEL, "Nobody asks Orion here")
        ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} {LIMIT}")
        await workspace.wait_for(lambda: answers(workspace, ts, ts))
        over = ("turn_ended", "ok")
        await wait_until(lambda: over in [(line["event"], line.get("verb")) for line in log], "the turn has ended")
        figures = samples((await page(port, "/metrics"))[1])
        assert figures["orion_turns_total", "quoted"] == 1
        assert figures["orion_turns_running", ""] == 0
        assert figures["orion_turn_seconds_count", "quoted"] == 1
        assert figures["orion_attempts_count", ""] == 1
        assert figures["orion_model_calls_total", ",write"] == 1
        assert figures["orion_tool_calls_total", "true,search"] == events(log).count("tool_called") > 0
        assert figures["orion_slack_events_total", "question"] == 1
        assert figures["orion_slack_events_total", "not_addressed"] == 1
        assert figures["orion_slack_errors_total", "internal_error,chat.postMessage"] == 1
        assert figures["orion_queue_wait_seconds_count", ""] == 1
        # After an error that may hide a post the question is looked at again: that message rests.
        assert (figures["orion_queue_messages", ""], figures["orion_dead_letters", ""]) == (1, 0)


def samples(text: str) -> dict[tuple[str, str], float]:
    """Each sample of a Prometheus page by its name and its labels' values, the labels in order of their names."""
    return {
        (sample.name, ",".join(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


NOT_LOADED = (*("langfuse", "requests", "google.protobuf", "opentelemetry.exporter"), *("psycopg", "mcp"))
"""Packages that only keys or documents need. (redis-py loads OpenTelemetry's SDK by itself.)"""


async def test_serving_with_a_model_loads_no_package_that_is_not_configured(
    workspace: LocalWorkspace, tmp_path: Path, redis_url: str
) -> None:
    code = (
        "import sys\nfrom bot.cli.main import main\n"
        "try:\n    main(['serve'])\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {NOT_LOADED!r} if m in sys.modules])"
    )
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[says(GOOD)]) as server:
        environment = serve_environment(
            workspace, tmp_path, REDIS_URL=redis_url, OPENAI_BASE_URL=server.url, ORION_MODEL="m", PYTHONPATH=str(ROOT)
        )
        served = await asyncio.create_subprocess_exec(
            sys.executable, "-c", code, cwd=tmp_path, env=environment,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        await wait_until(lambda: workspace.connections == 1, "Orion is connected", 60)
        ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} {LIMIT}")
        found = await workspace.wait_for(lambda: answers(workspace, ts, ts), 60)
        served.terminate()
        said, _ = await served.communicate()
    assert "600 requests" in text_of(found[0])
    assert said.decode().splitlines()[-1] == "[]"


@pytest.mark.parametrize("mode", ["socket", ""])
async def test_a_refused_token_is_reported_at_the_start(mode: str, settings: Settings) -> None:
    wrong = settings.model_copy(update={"slack_bot_token": SecretStr("xoxb-no")})
    with pytest.raises(WrongUse, match=r"refused SLACK_BOT_TOKEN \(invalid_auth\)"):
        await serve(wrong, mode=mode, host="127.0.0.1", concurrency=1)


async def test_serve_starts_while_slack_and_redis_are_down(tmp_path: Path, log: list[EventDict]) -> None:
    settings = settings_in(
        tmp_path,
        "redis://127.0.0.1:9",
        slack_api_url="http://127.0.0.1:9/api/",
        slack_bot_token=SecretStr("xoxb-1"),
        slack_app_token=SecretStr("xapp-1"),
        docs=(text_pages(),),
        port=0,
    )
    async with running_task(serve(settings, mode="socket", host="127.0.0.1", concurrency=1)) as served:
        # Whose token it is decides whose questions it may claim: until Slack says so, only the pages are open.
        await wait_until(lambda: "pages_open" in events(log), "the pages are open")
        port = next(int(entry["port"]) for entry in log if entry["event"] == "pages_open")
        status, text = await page(port, "/readyz")
        assert (status, json.loads(text)["checks"]) == (503, {"slack": False})
        assert "slack_unreachable" in events(log)
        ask_to_end()
        await served


async def test_serve_starts_while_redis_is_down(log: list[EventDict], settings: Settings) -> None:
    nowhere = SecretStr("redis://127.0.0.1:9")
    async with serving(settings.model_copy(update={"redis_url": nowhere}), log) as port:
        status, text = await page(port, "/readyz")
        assert (status, json.loads(text)["checks"]["redis"]) == (503, False)
        assert math.isnan(samples((await page(port, "/metrics"))[1])["orion_queue_messages", ""])


async def test_a_port_in_use_is_reported(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(WrongUse, match=f"Port {port} on 127.0.0.1 cannot be opened .it is taken"):
            await serve(settings.model_copy(update={"port": port}), host="127.0.0.1", concurrency=1)
        with pytest.raises(WrongUse, match=f"Port {port} cannot be opened: it is taken"):
            await local(settings, port=port, docs=None, browser=False)


async def test_a_workspace_without_a_given_port_takes_a_free_one() -> None:
    second = LocalWorkspace()
    async with LocalWorkspace() as first, AsyncExitStack() as stack:
        stack.push_async_callback(second.stop)
        await second.start(port=urlsplit(first.url).port or 0, or_free=True)
        for workspace in (first, second):
            assert (await page(urlsplit(workspace.url).port or 0, "/ui/boot"))[0] == 200
        assert first.url != second.url


async def test_a_signal_during_the_start_ends_it(
    workspace: LocalWorkspace, log: list[EventDict], settings: Settings
) -> None:
    workspace.faults.hang("auth.test")
    async with running_task(serve(settings, mode="socket", host="127.0.0.1", concurrency=1)) as served:
        await wait_until(lambda: any(call.method == "auth.test" for call in workspace.calls), "it signs in")
        ask_to_end()
        await served
    assert "orion_started" not in events(log)


async def test_a_second_signal_ends_at_once_and_gives_the_question_back(
    workspace: LocalWorkspace, log: list[EventDict], settings: Settings
) -> None:
    never = asyncio.Event()
    async with ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=[says("<answer>Each", before_end=never)]) as server:
        hanging = settings.model_copy(update={"openai_base_url": server.url, "model": "m"})
        async with running_task(_at_once(serve(hanging, mode="socket", host="127.0.0.1", concurrency=1))) as ended:
            await pages_of(log)
            await wait_until(lambda: workspace.connections == 1, "the socket is connected")
            ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} {LIMIT}")
            await server.wait_for_requests(2)
            ask_to_end(signal.SIGINT)
            await wait_until(lambda: "orion_stopping" in events(log), "it drains")
            ask_to_end(signal.SIGINT)
            await ended
        never.set()
        log.clear()
    async with serving(settings, log):
        assert len(await workspace.wait_for(lambda: answers(workspace, ts, ts), 60)) == 1


async def _at_once(command: Coroutine[Any, Any, None]) -> None:
    with pytest.raises(EndedAtOnce):
        await command


async def _page_has(page: aiohttp.ClientSession, url: str, words: str) -> bool:
    async with page.get(url) as reply:
        return words in await reply.text()


async def test_local_opens_the_page_and_ends_when_asked(
    tmp_path: Path, redis_url: str, log: list[EventDict], opened: Opened
) -> None:
    async with running_task(local(settings_in(tmp_path, redis_url), port=0, docs=None, browser=True)) as running:
        await wait_until(lambda: opened.urls, "the page is shown")
        await wait_until(lambda: "slack_socket_connected" in events(log), "Orion is in the workspace")
        url = opened.urls[0]
        async with aiohttp.ClientSession() as client:
            async with client.post(f"{url}/ui/post", json={"channel": CHANNEL, "text": f"@Orion {LIMIT}"}) as sent:
                ts = (await sent.json())["ts"]
            thread = f"{url}/ui/messages?channel={CHANNEL}&thread_ts={ts}"
            await wait_until(lambda: _page_has(client, thread, "600 requests a minute"), "it is answered here", 30)
            assert await _page_has(client, thread, f"{url}/docs/api/limits-and-errors.md")
        port = urlsplit(url).port or 0
        assert await page(port, "/healthz") == (200, '{"alive": true}')
        status, ready = await page(port, "/readyz")
        assert (status, set(json.loads(ready)["checks"])) == (200, {"redis", "disk", "slack_socket", "slack_token"})
        assert samples((await page(port, "/metrics"))[1])["orion_turns_running", ""] == 0
        ask_to_end()
        await running
    assert events(log)[-1] == "orion_stopped"


async def test_ending_the_workspace_during_an_answer_says_at_once_how_long_it_takes(
    tmp_path: Path, redis_url: str, log: list[EventDict], opened: Opened, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ScriptedOpenAI(decisions=[HANGS]) as server, AsyncExitStack() as stack:
        settings = settings_in(tmp_path, redis_url, openai_base_url=server.url, model="m")
        running = await stack.enter_async_context(
            running_task(_at_once(local(settings, port=0, docs=None, browser=True)))
        )
        await wait_until(lambda: "orion_started" in events(log), "Orion is in the workspace", 60)
        client = await stack.enter_async_context(aiohttp.ClientSession())
        await client.post(f"{opened.urls[0]}/ui/post", json={"channel": CHANNEL, "text": f"@Orion {LIMIT}"})
        await server.wait_for_requests(1)
        ask_to_end(signal.SIGINT)
        await wait_until(lambda: "orion_stopping" in events(log), "it drains")
        assert "in 25 s at most. Ctrl-C again ends it now." in capsys.readouterr().out
        ask_to_end(signal.SIGINT)
        await running


async def test_a_local_workspace_whose_orion_has_not_started_says_so(tmp_path: Path) -> None:
    async with LocalOrion(settings_in(tmp_path, ""), ()).workspace as workspace:
        status, ready = await page(urlsplit(workspace.url).port or 0, "/readyz")
    assert (status, json.loads(ready)) == (503, {"ready": False, "checks": {"started": False}})


async def test_a_question_asked_during_the_start_is_answered_after_it(
    workspace: LocalWorkspace, log: list[EventDict], settings: Settings
) -> None:
    workspace.workspace.app_is_starting("Reading")
    ts = workspace.post(VISITOR, CHANNEL, f"{MENTION} {LIMIT}")
    async with serving(settings, log):
        assert len(await workspace.wait_for(lambda: answers(workspace, ts, ts))) == 1
        assert workspace.workspace.notice == ""


def test_a_browser_that_would_use_the_terminal_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    opened = Opened("/usr/bin/w3m")
    monkeypatch.setattr(webbrowser, "_tryorder", ["w3m"])
    monkeypatch.setattr(webbrowser, "_browsers", {"w3m": [None, opened]})
    opening._open_browser("http://127.0.0.1")
    monkeypatch.setattr(webbrowser, "_tryorder", [])
    opening._open_browser("http://127.0.0.1")
    assert opened.urls == []


class Opened(webbrowser.BaseBrowser):
    """A browser that only notes what it was to show."""

    def __init__(self, name: str = "recorder") -> None:
        super().__init__(name)
        self.urls: list[str] = []

    def open(self, url: str, new: int = 0, autoraise: bool = True) -> bool:  # noqa: ARG002, FBT001, FBT002 - webbrowser's own signature
        self.urls.append(url)
        return True


async def test_a_changed_page_is_used_soon_under_make_run(tmp_path: Path) -> None:
    async with LocalWorkspace() as workspace:
        plain, asked, sites = (
            settings_for(settings_in(tmp_path, "", **more), workspace).sync_minutes
            for more in ({}, {"sync_minutes": 7.0}, {"web_docs": frozenset({"https://a.example/"})})
        )
    assert (plain, asked, sites) == (1.0, 7.0, 60.0)


async def test_an_outside_cancellation_remains_a_cancellation() -> None:
    async def wait_for_signals() -> None:
        with handle_signals():
            await asyncio.Event().wait()

    async with asyncio.TaskGroup() as group:
        task = group.create_task(wait_for_signals())
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()

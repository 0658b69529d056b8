"""A whole Orion in a whole workspace: the real Bolt app over the real protocol, in this process or in another one.

Only the servers are ours: the Slack-compatible one and the OpenAI-compatible one. Valkey is real.
"""

import asyncio
import atexit
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import cache
from multiprocessing import get_context
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from typing import Any, Literal

from pydantic import SecretStr

from agent.knowledge.sources.answers import AnswerFolder
from bot.app import Orion, open_orion
from bot.cli.local import HANDBOOK, settings_for
from bot.cli.main import main
from bot.documents.open import corpus_of
from bot.install.identity import Identity
from bot.local.model.limits import LENIENT, Strictness
from bot.local.model.roster import BOT_USER, VISITOR
from bot.local.server import LocalWorkspace
from bot.servers.http import SlackEndpoint, build
from bot.servers.http import serve as serve_pages
from bot.settings import Settings
from bot.slack.manifest import manifest
from bot.turn.engine import TurnTimeouts
from tests.support.waiting import wait_until

MENTION = f"<@{BOT_USER}>"
CHANNEL = "C0HELP"
DIRECT = "D0ORION"
Part = Literal["whole", "front", "worker"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A workspace with an Orion in it."""

    workspace: LocalWorkspace
    orion: Orion

    @property
    def statuses(self) -> list[str]:
        """Each status that Orion set, in order."""
        calls = [call for call in self.workspace.calls if call.method == "assistant.threads.setStatus"]
        return [str(call.arguments.get("status")) for call in calls]

    def ask(self, text: str, *, thread: str | None = None, channel: str = CHANNEL, user: str = VISITOR) -> str:
        return self.workspace.post(user, channel, text, thread)

    async def answer_to(self, ts: str, *, thread: str | None = None, channel: str = CHANNEL) -> dict[str, Any]:
        """The one answer to the message ``ts``, as Slack shows it."""
        found = await self.workspace.wait_for(lambda: answers(self.workspace, ts, thread or ts, channel))
        return found[0]


def posts(workspace: LocalWorkspace, channel: str) -> list[dict[str, Any]]:
    """The messages that apps posted in a channel and its threads."""
    roots = workspace.messages(channel)
    everything = [m for root in roots for m in workspace.messages(channel, root["ts"])]
    return [m for m in everything if m.get("bot_id")]


def answers(workspace: LocalWorkspace, ts: str, thread: str, channel: str = CHANNEL) -> list[dict[str, Any]]:
    """The first parts of all answers to this question in its thread."""
    place = None if channel == thread else thread
    metadata = [(m, m.get("metadata") or {}) for m in workspace.messages(channel, place)]
    ours = [(m, told["event_payload"]) for m, told in metadata if told.get("event_type") == "orion_answer"]
    return [m for m, told in ours if told.get("question_ts") == ts and told.get("part", 1) == 1]


def text_of(message: Mapping[str, Any]) -> str:
    """All text of a message's blocks, and its notification text."""
    texts = [message.get("text", "")]
    for block in message.get("blocks", []):
        parts = [block.get("text")] if "text" in block else block.get("elements", [])
        texts += [part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str)]
    return "\n".join(texts)


def dialog_values(view: Mapping[str, Any], **more: dict[str, Any]) -> dict[str, Any]:
    """The view that Slack sends for a dialog with its initial values, except for ``more``."""
    names = {
        "initial_value": "value", "initial_option": "selected_option", "initial_user": "selected_user",
        "initial_date": "selected_date",
    }  # fmt: skip
    values = {
        block["block_id"]: {key: block["element"][name] for name, key in names.items() if name in block["element"]}
        for block in view["blocks"]
    }
    return {name: {name: {**value, **more.get(name, {})}} for name, value in values.items()}


def settings_in(home: Path, redis_url: str, **more: Any) -> Settings:
    """Settings that read nothing but what a test gives."""
    base = Settings(_env_file=None)  # type: ignore[call-arg]  # pydantic-settings' own switch
    return base.model_copy(update={"home": home, "redis_url": SecretStr(redis_url), **more})


@cache
def text_pages() -> Path:
    """The sample handbook without its PDF file, for which each Orion would start a process that reads it."""
    folder = Path(tempfile.mkdtemp(prefix="orion-pages-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return shutil.copytree(HANDBOOK, folder / "handbook", ignore=shutil.ignore_patterns("*.pdf"))


@asynccontextmanager
async def running(
    settings: Settings,
    *,
    mode: str = "socket",
    docs: Path | None = None,  # text_pages()
    prefix: str = "orion",
    identity: Identity | None = None,
    timeouts: TurnTimeouts | None = None,
    strictness: Strictness = LENIENT,
    inhabited: LocalWorkspace | None = None,
    part: Part = "whole",
) -> AsyncIterator[Setting]:
    """Orion at work over Socket Mode or signed HTTP, in a workspace of its own or in one that runs already.

    Of two processes over one Redis one may only take events, the other only work on what is stored.
    """
    async with AsyncExitStack() as stack:
        docs = docs or text_pages()
        shortcuts = manifest()["features"]["shortcuts"]
        workspace = inhabited or LocalWorkspace(docs=(docs,), shortcuts=shortcuts, strictness=strictness)
        if inhabited is None:
            await stack.enter_async_context(workspace)
        inside = settings_for(settings, workspace)
        docs_url = f"{workspace.url}/docs/"
        corpus = corpus_of(inside, (docs,), docs_url=docs_url)
        if inside.answers:
            corpus = replace(corpus, sources=(AnswerFolder(folder=inside.answers),))
        if database := inside.knowledge_url.get_secret_value():
            corpus = replace(corpus, database=database)
        orion = await stack.enter_async_context(
            open_orion(
                inside,
                corpus,
                concurrency=50,
                socket=mode == "socket" and part != "worker",
                prefix=prefix,
                identity=identity,
                timeouts=timeouts,
            )
        )
        workspace.workspace.turn_record = orion.observers.records.load
        if mode == "http" and part != "worker":
            endpoint = SlackEndpoint(app=orion.app, signing_secret=workspace.signing_secret)
            port = await stack.enter_async_context(serve_pages(build(orion, endpoint)))
            workspace.http.url = f"http://127.0.0.1:{port}/slack/events"
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(orion.worker.run())] if part != "front" else []
            if orion.socket:
                tasks.append(group.create_task(orion.socket.run()))
                await wait_until(orion.socket.ready, "the socket is connected")
            if part != "worker":
                tasks.append(group.create_task(orion.catching_up.run()))
            try:
                yield Setting(workspace=workspace, orion=orion)
            finally:
                for task in tasks:
                    task.cancel()


class Running:
    """A process that runs an `orion …` command. Its exit code is negative where a signal ended it."""

    def __init__(self, started: ForkServerProcess) -> None:
        self._started = started

    @property
    def returncode(self) -> int | None:
        return self._started.exitcode

    @property
    def process_id(self) -> int:
        return self._started.pid or 0

    async def wait(self) -> int:
        await asyncio.to_thread(self._started.join)
        return self._started.exitcode or 0

    def send_signal(self, number: signal.Signals) -> None:
        os.kill(self.process_id, number)

    def kill(self) -> None:
        self._started.kill()


@asynccontextmanager
async def process(
    command: list[str], environment: Mapping[str, str], log: Path, *, descriptors: int = 1_024
) -> AsyncIterator[Running]:
    """An `orion …` command in a process of its own; killed at the end if it still runs. Its output goes to ``log``.

    It is forked from a process that has imported everything: a start takes a tenth of a second instead of three.
    """
    log.touch()  # noqa: ASYNC240 - a test may look into it at once
    started = fork_context().Process(target=_orion, args=(command, dict(environment), log, descriptors), daemon=True)
    started.start()
    try:
        yield Running(started)
    finally:
        started.kill()
        await asyncio.to_thread(started.join)


def fork_context() -> ForkServerContext:
    """Starts processes of Orion, with one server for each pytest process."""
    context = get_context("forkserver")
    context.set_forkserver_preload(["bot.cli.ask", "bot.cli.local", "tests.process.chaos.member"])
    return context


def _orion(command: list[str], environment: Mapping[str, str], log: Path, descriptors: int) -> None:
    resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    inherited = {name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ}  # noqa: TID251 - a child's
    os.environ.clear()  # noqa: TID251 - likewise
    os.environ.update({**inherited, **environment})  # noqa: TID251 - likewise
    with log.open("ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    main(command)


def serve_environment(workspace: LocalWorkspace, home: Path, **more: str) -> dict[str, str]:
    """The environment with which `orion serve` works in this workspace."""
    return {
        "SLACK_BOT_TOKEN": workspace.bot_token,
        "SLACK_APP_TOKEN": workspace.app_token,
        "SLACK_SIGNING_SECRET": workspace.signing_secret,
        "SLACK_API_URL": workspace.api_url,
        "ORION_HOME": str(home),
        "ORION_DOCS": str(text_pages()),
        "ORION_PORT": "0",
        **more,
    }


def whispers(setting: Setting, channel: str = CHANNEL) -> list[tuple[str, str]]:
    return [(one["ephemeral_for"], one["text"]) for one in setting.workspace.ephemerals(channel)]


async def idle(setting: Setting) -> bool:
    """Every event was taken in, and no message waits."""
    deliveries = setting.workspace.workspace.deliveries.log
    settled = all(record.acknowledged or record.given_up for record in deliveries)
    return settled and (await setting.orion.mailbox.depth()).messages == 0


GUEST, STRANGER = "U0GUEST", "U0STRANGER"

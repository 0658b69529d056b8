"""Away for longer than Slack sends again: what was missed is looked up and answered once.

The absence is a heartbeat that lies back in Redis and messages whose time lies back in Slack. No test sleeps.
"""

import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.thread.conversation import ThreadKey
from bot.events.catch_up import CatchUp
from bot.events.listeners import Listeners
from bot.install.workspaces import TeamBot, Workspaces
from bot.local.model.limits import LENIENT
from bot.local.model.roster import TEAM_ID
from bot.local.server import LocalWorkspace
from bot.queue.queue import Mailbox
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import MAX_SERVED, Served, Stores
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, Setting, answers, running, settings_in
from tests.support.services import WorkspacesBy
from tests.support.waiting import wait_until

LIMIT = "How many requests per minute may an API key make?"
ERROR = "What does error FH-2002 mean?"
MIN_ABSENCE_S = 600.0


@dataclass
class Clock:
    """A clock that can be set back."""

    behind_s: float = 0.0

    def __call__(self) -> float:
        return time.time() - self.behind_s


@dataclass(kw_only=True)
class Scene:
    """A workspace that lives on while Orion comes and goes."""

    workspace: LocalWorkspace
    redis: Redis
    home: Path
    url: str
    clock: Clock = field(default_factory=Clock)

    @asynccontextmanager
    async def orion(self, **settings: float) -> AsyncIterator[Setting]:
        async with running(settings_in(self.home, self.url, **settings), inhabited=self.workspace) as setting:
            yield setting

    async def answer_earlier(self) -> tuple[str, str]:
        """A thread and direct messages in which Orion answered two hours ago."""
        self.clock.behind_s = 7200
        async with self.orion() as setting:
            root = setting.ask(f"{MENTION} {LIMIT}")
            await setting.answer_to(root)
            first = setting.ask(LIMIT, channel=DIRECT)
            await setting.answer_to(first, channel=DIRECT)
            await wait_until(lambda: setting.orion.worker.in_flight == 0, "all turns ended")
        return root, first

    async def away(self, seconds: float = MIN_ABSENCE_S) -> None:
        await self.redis.set("orion:listened_at", time.time() - seconds)

    def post_unheard(
        self, text: str, *, channel: str = CHANNEL, thread: str | None = None, ago_s: float = 120.0
    ) -> str:
        """A message sent while no one listened, and given up by Slack."""
        self.clock.behind_s = ago_s
        ts = self.workspace.post("U0YOU", channel, text, thread)
        self.clock.behind_s = 0
        return ts


@pytest.fixture
async def scene(tmp_path: Path, redis_url: str, redis_client: Redis) -> AsyncIterator[Scene]:
    clock = Clock()
    async with AsyncExitStack() as stack:
        # Nothing is sent again: what was missed stays missed unless it is looked up.
        strictness = LENIENT.__class__(rates=False, retry_delays=())
        workspace = await stack.enter_async_context(LocalWorkspace(strictness=strictness, clock=clock))
        yield Scene(workspace=workspace, redis=redis_client, home=tmp_path, url=redis_url, clock=clock)


def count_answers(scene: Scene, ts: str, thread: str, channel: str = CHANNEL) -> int:
    return len(answers(scene.workspace, ts, thread, channel))


async def test_missed_questions_are_answered_once_and_old_ones_are_not(scene: Scene) -> None:
    root, _ = await scene.answer_earlier()
    old = scene.post_unheard(ERROR, thread=root, ago_s=5400)
    old_direct = scene.post_unheard(ERROR, channel=DIRECT, ago_s=5000)
    in_thread = scene.post_unheard(ERROR, thread=root, ago_s=500)
    mention = scene.post_unheard(f"{MENTION} {LIMIT}", thread=root, ago_s=400)
    to_somebody = scene.post_unheard("<@U0RELEASE> what do you think?", thread=root, ago_s=300)
    direct = scene.post_unheard(ERROR, channel=DIRECT, ago_s=200)
    inside = scene.post_unheard(LIMIT, channel=DIRECT, thread=direct, ago_s=150)
    elsewhere = scene.post_unheard("Does anybody know?", ago_s=100)
    await scene.away(6000)
    async with scene.orion() as setting, scene.orion() as other:  # two replicas; one of them looks
        for ts in (in_thread, mention):
            await setting.answer_to(ts, thread=root)
        for ts in (direct, inside):
            await setting.answer_to(ts, thread=direct, channel=DIRECT)
        await wait_until(lambda: setting.orion.worker.in_flight + other.orion.worker.in_flight == 0, "all turns ended")
        await setting.orion.catching_up.beat()
    assert [count_answers(scene, ts, root) for ts in (in_thread, mention)] == [1, 1]
    assert [count_answers(scene, ts, direct, DIRECT) for ts in (direct, inside)] == [1, 1]
    assert count_answers(scene, old, root) + count_answers(scene, old_direct, old_direct, DIRECT) == 0
    assert count_answers(scene, to_somebody, root) + count_answers(scene, elsewhere, elsewhere) == 0


async def test_a_late_event_duplicates_a_message_found_by_the_catch_up(scene: Scene) -> None:
    root, _ = await scene.answer_earlier()
    missed = scene.post_unheard(ERROR, thread=root)
    await scene.away()
    async with scene.orion() as setting:
        await setting.answer_to(missed, thread=root)
        late = next(d for d in scene.workspace.workspace.deliveries.log if d.event.get("ts") == missed)
        assert late.given_up
        message = scene.workspace.workspace.log.get(CHANNEL, missed)
        assert message is not None
        with capture_logs() as lines:
            scene.workspace.workspace.add_message(message)
            await wait_until(lambda: any(line["event"] == "event_known_already" for line in lines), "it came late")
    assert count_answers(scene, missed, root) == 1


async def test_a_question_that_slack_shows_as_answered_is_not_answered_again(scene: Scene) -> None:
    root, _ = await scene.answer_earlier()
    async with scene.orion() as setting:
        asked = setting.ask(ERROR, thread=root)
        await setting.answer_to(asked, thread=root)
        await wait_until(lambda: setting.orion.worker.in_flight == 0, "all turns ended")
    for key in [key async for key in scene.redis.scan_iter("*:seen:*")]:
        await scene.redis.delete(key)  # nothing but Slack itself knows any more
    await scene.away()
    with capture_logs() as lines:
        async with scene.orion() as setting:
            await wait_until(lambda: any(line["event"] == "caught_up" for line in lines), "it caught up")
            await wait_until(lambda: setting.orion.worker.in_flight == 0, "all turns ended")
    assert count_answers(scene, asked, root) == 1


@pytest.mark.parametrize(("away_s", "recent_s"), [(200.0, 3600.0), (MIN_ABSENCE_S, 0.0)])
async def test_a_short_absence_or_a_zero_setting_needs_no_catch_up(
    away_s: float, recent_s: float, scene: Scene
) -> None:
    root, _ = await scene.answer_earlier()
    missed = scene.post_unheard(ERROR, thread=root)
    before = len(scene.workspace.calls)
    await scene.away(away_s)
    async with scene.orion(catch_up_s=recent_s) as setting:
        await setting.orion.catching_up.beat()

        async def is_noted() -> bool:  # by this beat, or by Orion's own that is at it just now
            return float(await scene.redis.get("orion:listened_at") or 0) > time.time() - 60

        await wait_until(is_noted, "it is noted that Orion listens")
    methods = [call.method for call in scene.workspace.calls[before:]]
    assert not {"conversations.replies", "conversations.history"} & set(methods)
    assert count_answers(scene, missed, root) == 0


def nowhere(failure: DeliveryFailed) -> Workspaces:
    """A team whose conversations cannot be read."""

    async def fail(_team: str) -> TeamBot:
        raise failure

    return WorkspacesBy(fail)


def stores_over(redis: Redis) -> Stores:
    return Stores(redis, Mailbox(redis))


async def receives_nothing() -> bool:
    return False


NOTHING = cast("Listeners", None)  # there is nothing to take
PLACE = ThreadKey(team=TEAM_ID, channel=CHANNEL, thread_ts="1700000000.000100")


@pytest.mark.parametrize(
    ("reason", "permanent", "kept", "caught_up"),
    [("channel_not_found", True, False, True), ("missing_scope", True, True, True), ("http_503", False, True, False)],
)
async def test_a_deleted_channel_is_forgotten_and_an_outage_of_slack_defers_the_catch_up(
    reason: str, *, permanent: bool, kept: bool, caught_up: bool, redis_client: Redis
) -> None:
    async with redis_client.pipeline() as pipe:
        Served(redis_client).record(pipe, PLACE)
        await pipe.execute()
    workspaces = nowhere(DeliveryFailed(reason, permanent=permanent))
    catching_up = CatchUp(stores_over(redis_client), listeners=NOTHING, workspaces=workspaces)
    away = time.time() - MIN_ABSENCE_S
    await redis_client.set(catching_up.heartbeat_key, away)
    if caught_up:
        await catching_up.beat()
    else:
        with pytest.raises(DeliveryFailed):
            await catching_up.beat()
    assert await Served(redis_client).latest(9) == ([PLACE] if kept else [])
    assert (float(await redis_client.get(catching_up.heartbeat_key) or 0) > away + 60) is caught_up
    assert not await redis_client.exists("orion:catching_up")


async def test_only_a_connected_replica_writes_the_heartbeat_and_only_one_catches_up(redis_client: Redis) -> None:
    workspaces = nowhere(DeliveryFailed("", permanent=True))
    deaf = CatchUp(stores_over(redis_client), listeners=NOTHING, workspaces=workspaces, can_receive=receives_nothing)
    await deaf.beat()
    assert not await redis_client.exists(deaf.heartbeat_key)
    second = CatchUp(stores_over(redis_client), listeners=NOTHING, workspaces=workspaces)
    await redis_client.set(second.heartbeat_key, "not a number")
    await second.beat()
    assert float(await redis_client.get(second.heartbeat_key) or 0) > time.time() - 60
    await redis_client.set(second.heartbeat_key, 1.0)
    async with redis_client.lock("orion:catching_up", timeout=9):
        await second.beat()
    assert await redis_client.get(second.heartbeat_key) == "1.0"


async def test_the_list_of_served_places_is_bounded_and_ends(redis_client: Redis) -> None:
    clock = Clock()
    served = Served(redis_client, clock=clock)
    await redis_client.zadd(served.key("served"), {f"T:C:{n}": clock() - n for n in range(1, MAX_SERVED + 50)})
    async with redis_client.pipeline() as pipe:
        served.record(pipe, PLACE)
        await pipe.execute()
    await served.trim()
    assert await redis_client.zcard(served.key("served")) == MAX_SERVED
    assert (await served.latest(2))[0] == PLACE
    assert await redis_client.ttl(served.key("served")) > 0

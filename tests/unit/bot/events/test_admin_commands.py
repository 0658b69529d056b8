"""Only an admin pauses Orion from a direct message, at once and once."""

from dataclasses import replace
from pathlib import Path

import aiohttp
import pytest
from redis.asyncio import Redis
from redis.exceptions import RedisError

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.events.intake import Intake, admin_order
from bot.local.model.roster import VISITOR
from bot.queue.queue import Mailbox
from bot.servers.http import build, serve
from bot.slack.message import Access, Incoming
from bot.stores.limits import Pause, Pausing
from bot.stores.stores import Stores
from tests.support.local_slack import local_slack
from tests.support.orion_running import DIRECT, Setting, posts, running, settings_in, text_of
from tests.support.services import workspaces_of
from tests.support.waiting import wait_until

ADMINS = frozenset({"U1", VISITOR})


def direct_message(text: str, user: str = "U1", channel_type: str = "im") -> Incoming:
    place = ThreadKey(team="T1", channel="D1", thread_ts="1.0")
    return Incoming(
        kind="question", thread=place, user=user, ts="1.0", addressed="direct", text=text, channel_type=channel_type
    )


@pytest.mark.parametrize(
    ("incoming", "order"),
    [
        (direct_message("pause"), ("pause", "")),
        (direct_message("Pause."), ("pause", "")),
        (direct_message("pause: the index is rebuilt: wait"), ("pause", "the index is rebuilt: wait")),
        (direct_message("`resume`"), ("resume", "")),
        (direct_message("resume: what?"), ("", "")),
        (direct_message("pause the music"), ("", "")),
        (direct_message("pause", user="U2"), ("", "")),
        (direct_message("pause", channel_type="channel"), ("", "")),
        (replace(direct_message("pause"), by_app=True), ("", "")),
    ],
)
def test_only_the_bare_word_of_an_admin_in_a_direct_message_is_an_order(
    incoming: Incoming, order: tuple[str, str]
) -> None:
    assert admin_order(incoming, ADMINS) == order


async def home(setting: Setting) -> str:
    setting.workspace.open_home()
    await wait_until(lambda: setting.workspace.workspace.views.homes.get(VISITOR), "the home is published")
    return str(setting.workspace.workspace.views.homes.pop(VISITOR))


async def test_an_admins_message_pauses_or_resumes_and_is_confirmed_once(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    pausing = Pausing(redis_client)
    async with running(settings_in(tmp_path, redis_url, admins=frozenset({VISITOR}))) as setting:
        setting.workspace.faults.duplicate_events = 2
        setting.ask("pause: Der neue Index wird gerade gebaut", channel=DIRECT)
        await wait_until(lambda: is_told(setting, "paused_now", "de"), "the order is confirmed in its language")
        thread_mode = await pausing.current()
        assert isinstance(thread_mode, Pause)
        assert thread_mode.reason == "Der neue Index wird gerade gebaut"
        setting.ask("How many requests per minute may an API key make?", channel=DIRECT)
        await wait_until(lambda: is_told(setting, "paused"), "whoever asks is told of the pause")
        assert "Paused by an admin" in await home(setting)
        async with serve(build(setting.orion)) as port, aiohttp.ClientSession() as session:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as reply:
                assert (reply.status, (await reply.json())["paused"]) == (200, True)
            setting.ask("resume", channel=DIRECT)
            await wait_until(lambda: is_resumed(pausing), "the word is heard although a question waits before it")
            async with session.get(f"http://127.0.0.1:{port}/readyz") as reply:
                assert (await reply.json())["paused"] is False
        assert "Paused by an admin" not in await home(setting)
        texts = [text_of(message) for message in posts(setting.workspace, DIRECT)]
        assert sum(say("paused_now", "de") in text for text in texts) == 1
        assert sum(say("resumed_now", None) in text for text in texts) == 1


def is_told(setting: Setting, of: str, language: str | None = None) -> bool:
    return any(say(of, language) in text_of(message) for message in posts(setting.workspace, DIRECT))


async def is_resumed(pausing: Pausing) -> bool:
    return await pausing.current() is None


async def test_an_order_interrupted_by_a_redis_outage_is_carried_out_when_slack_resends_it(
    tmp_path: Path, redis_client: Redis
) -> None:
    async with local_slack() as slack, Redis.from_url(f"unix://{tmp_path}/nobody.sock") as nobody:
        mailbox = Mailbox(redis_client)
        stores, pausing = Stores(redis_client, mailbox), Pausing(redis_client)
        chat = Intake(stores, mailbox.cancel, Access(), workspaces_of(slack, redis_client), ADMINS)
        order = replace(direct_message("pause"), user=VISITOR, event_ids=("evt:T1:Ev1",))
        stores.pausing = Pausing(nobody)
        with pytest.raises(RedisError):
            await chat.store_or_carry_out(order)
        stores.pausing = pausing
        await chat.store_or_carry_out(order)
        assert await pausing.current() is not None
        await pausing.resume()
        await chat.store_or_carry_out(order)
        assert (await pausing.current(), await mailbox.list_messages(str(order.thread))) == (None, [])
        await mailbox.aclose()

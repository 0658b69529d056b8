"""Slack's events, clicks and commands on their way to the intake."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from slack_bolt.async_app import AsyncApp, AsyncBoltContext
from structlog.testing import capture_logs

from agent.knowledge.index.index import KnowledgeIndex
from agent.tasks import background_tasks
from agent.texts.catalogue import help_text, say
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.delivery.blocks import HELPFUL_ACTION
from bot.delivery.dialogs import read_complaint
from bot.events.clicks import Click, ListenerServices, as_message, read_click, read_shortcut
from bot.events.listeners import register
from bot.local.model.faults import ApiCall
from bot.local.model.roster import TEAM_ID
from bot.servers.socket_mode import SocketMode
from bot.slack.client import build_app
from bot.slack.manifest import ASK_SHORTCUT
from bot.slack.message import Access, Incoming
from bot.stores.turn_records import TurnRecords
from tests.support.event_app import PROMPT, Ledger, over_http, services
from tests.support.local_slack import CHANNEL, CHAT, Slack, local_slack
from tests.support.posted_answers import answer as uncited
from tests.support.waiting import wait_until
from verification.types import Answer, Source

Mode = Literal["socket", "http"]


def answer(text: str) -> Answer:
    return replace(uncited(text), verified=True, sources=(Source(id=1, title="Limits"),))


RECORD = {
    "turn_id": "turn-1",
    "thread": f"{TEAM_ID}:{CHANNEL}:1.1",
    "question": "Wie oft darf ein Schlüssel anfragen, und wo steht das?",
    "outcome": "answered",
    "verified": True,
    "attempts": [],
    "sources": [],
}
TRY = {
    "type": "block_actions",
    "user": {"id": "U0YOU"},
    "team": {"id": "T0LOCAL"},
    "trigger_id": "1.2.x",
    "actions": [{"type": "button", "action_id": "orion_try", "block_id": "b", "value": "home"}],
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    slack: Slack
    ledger: Ledger

    async def wait_for_messages(self, count: int = 1) -> list[Incoming]:
        return await self.slack.server.wait_for(
            lambda: self.ledger.messages if len(self.ledger.messages) >= count and self.is_settled() else []
        )

    async def post_answer(self, turn_id: str) -> str:
        """Ask, and return the ts of an answer to it."""
        place, ts = self.slack.ask()
        (posted,) = await self.slack.delivery.post_answer(
            place, answer("So."), AnswerKey(question_ts=ts, turn_id=turn_id)
        )
        return posted

    def is_settled(self) -> bool:
        return all(record.acknowledged or record.given_up for record in self.slack.server.workspace.deliveries.log)


@asynccontextmanager
async def over_socket(slack: Slack, app: AsyncApp) -> AsyncIterator[None]:
    front = SocketMode(app, slack.server.app_token, ping_interval_s=0.2)
    async with asyncio.TaskGroup() as group:
        running = group.create_task(front.run())
        await wait_until(front.ready, "the socket is connected")
        yield
        running.cancel()


Opened = Callable[..., Any]


@pytest.fixture(params=["socket", "http"])
def in_both_modes(request: pytest.FixtureRequest, redis_client: Redis, index: KnowledgeIndex) -> Opened:
    return opening(request.param, redis_client, index)


@pytest.fixture
def opened(redis_client: Redis, index: KnowledgeIndex) -> Opened:
    return opening("http", redis_client, index)


def opening(mode: Mode, redis_client: Redis, index: KnowledgeIndex) -> Opened:
    """Open Orion's listeners. ``gate`` is open unless a test closes it."""

    @asynccontextmanager
    async def running(access: Access | None = None, *, gate: bool = True) -> AsyncIterator[Running]:
        async with local_slack(strictness=PROMPT) as slack, background_tasks() as tasks:
            ledger = Ledger(redis=redis_client)
            if gate:
                ledger.gate.set()
            app = build_app(slack.client, slack.workspace.authorize)
            await TurnRecords(redis_client).save(dict(RECORD))
            register(app, services(slack, ledger, redis_client, access or Access(), tasks=tasks, index=index))
            async with over_socket(slack, app) if mode == "socket" else over_http(slack, app):
                yield Running(slack=slack, ledger=ledger)

    return running


async def test_the_ack_waits_for_the_store(in_both_modes: Opened) -> None:
    async with in_both_modes(gate=False) as running:
        running.slack.ask("how?", CHAT)
        await wait_until(lambda: running.ledger.tries >= 1, "the letter reached the store")
        (delivery,) = running.slack.server.workspace.deliveries.log
        assert not delivery.acknowledged
        running.ledger.gate.set()
        await running.slack.server.wait_for(lambda: delivery.acknowledged)
        assert len(running.ledger.messages) == 1


async def test_an_event_that_could_not_be_stored_is_sent_again(in_both_modes: Opened) -> None:
    async with in_both_modes() as running:
        running.ledger.closed = 1
        running.slack.ask("how?", CHAT)
        (incoming,) = await running.wait_for_messages()
        (delivery,) = running.slack.server.workspace.deliveries.log
        assert (delivery.attempts, delivery.acknowledged, incoming.text) == (2, True, "how?")


async def test_no_ack_while_slack_cannot_say_who_orion_is(in_both_modes: Opened) -> None:
    async with in_both_modes() as running:
        running.slack.server.faults.fail("auth.test", "invalid_auth", times=1)
        running.slack.ask("how?", CHAT)
        await running.wait_for_messages()
        (delivery,) = running.slack.server.workspace.deliveries.log
        assert (delivery.attempts, delivery.acknowledged) == (2, True)


async def test_not_helpful_asks_what_was_wrong_in_the_language_of_the_question(opened: Opened) -> None:
    async with opened() as running:
        place, ts = running.slack.ask()
        (posted,) = await running.slack.delivery.post_answer(
            place, answer("So [1]."), AnswerKey(question_ts=ts, turn_id="turn-1")
        )
        server = running.slack.server
        await server.click(CHANNEL, posted, "orion_not_helpful")
        (view_id,) = await server.wait_for(lambda: list(server.workspace.views.open))
        view = server.workspace.views.open[view_id].view
        assert view["title"]["text"] == say("wrong_title", "de")
        assert server.ephemerals(CHANNEL) == []
        assert running.ledger.judged == [], "only a dialog that was sent counts: Escape is no dislike"
        chosen = [{"value": "outdated"}, {"value": "nonsense"}]
        values = {"why": {"why": {"selected_options": chosen}}, "said": {"said": {"value": " The limit is 700. "}}}
        await server.submit(view_id, values)
        thanked = await server.wait_for(lambda: server.ephemerals(CHANNEL))
        assert [notify_person["text"] for notify_person in thanked] == [say("thanks", "de")]
        assert running.ledger.judged == [("turn-1", "U0YOU", False)]
        assert running.ledger.complaints == [("turn-1", "U0YOU", ("outdated",), "The limit is 700.")]


async def test_a_question_on_app_home_is_asked_in_the_direct_message(opened: Opened) -> None:
    async with opened() as running:
        server = running.slack.server
        server.open_home(tab="home")
        home = await server.wait_for(lambda: server.workspace.views.homes.get("U0YOU"))
        server.faults.rate_limit("chat.postMessage")  # said once the limit allows it
        await server.click_view(home["id"], "orion_try_1")
        (asked,) = await running.wait_for_messages()
        assert (asked.text, asked.user, asked.addressed, asked.thread.channel) == ("How many?", "U0YOU", "direct", CHAT)
        assert server.messages(CHAT)[-1]["text"] == "_How many?_"
        assert server.messages(CHAT)[-1]["ts"] == asked.ts == asked.thread.thread_ts


@pytest.mark.parametrize(
    ("turn_id", "locale", "first"),
    [
        ("turn-1", "fr-FR", "*✓ Geprüft.*"),
        ("turn-9", "fr-FR", say("trust_unknown", "fr")),
        ("turn-9", "nl-NL", say("trust_unknown", "en")),
    ],
)
async def test_why_trust_this_uses_the_questions_language_or_the_persons(
    opened: Opened, turn_id: str, locale: str, first: str
) -> None:
    async with opened() as running:
        speaking(running, locale)
        posted = await running.post_answer(turn_id)
        await running.slack.server.click(CHANNEL, posted, "orion_trust")
        (call,) = await running.slack.server.wait_for(lambda: opened_views(running))
        assert call.error == ""
        assert call.arguments["view"]["blocks"][0]["text"]["text"].startswith(first)


async def test_home_messages_tab_and_greeting_use_the_persons_slack_language(opened: Opened) -> None:
    async with opened() as running:
        server = running.slack.server
        speaking(running, "ja-JP")
        server.open_home(tab="home")
        home = await server.wait_for(lambda: server.workspace.views.homes.get("U0YOU"))
        assert say("home_intro", "ja") in str(home)
        server.open_home(tab="messages")
        await server.wait_for(
            lambda: running.slack.count("assistant.threads.setSuggestedPrompts") and running.is_settled()
        )
        assert [call.error for call in server.calls if call.method.endswith("setSuggestedPrompts")] == [""]
        await server.workspace.deliveries.interaction(TRY)
        said = await server.wait_for(lambda: server.messages(CHAT))
        assert [message["text"] for message in said] == [help_text("ja")]
        assert running.ledger.messages == []


async def test_a_click_is_answered_in_time_even_if_slack_is_slow(in_both_modes: Opened) -> None:
    async with in_both_modes() as running:
        server = running.slack.server
        posted = await running.post_answer("turn-1")
        server.faults.hang("users.info")
        await server.click(CHANNEL, posted, "orion_trust")  # raises without an ack
        assert [call.error for call in await server.wait_for(lambda: opened_views(running))] == [""]
        server.faults.release()
        server.faults.hang("chat.postEphemeral")
        await server.click(CHANNEL, posted, HELPFUL_ACTION)
        assert running.ledger.judged == [("turn-1", "U0YOU", True)], "it is stored by then"
        await server.wait_for(lambda: running.slack.count("chat.postEphemeral"))
        server.faults.release()


def opened_views(running: Running) -> list[ApiCall]:
    return [call for call in running.slack.server.calls if call.method == "views.open" and call.done]


async def test_message_shortcut_asks_about_that_message(opened: Opened) -> None:
    async with opened() as running:
        ts = running.slack.server.post("U0RELEASE", CHANNEL, "how do we release?")
        await running.slack.server.use_shortcut(CHANNEL, ts, ASK_SHORTCUT)
        (asked,) = await running.wait_for_messages()
        found = asked.text, asked.user, asked.thread.thread_ts, asked.kind
        assert found == ("how do we release?", "U0YOU", ts, "question")


async def test_orion_says_once_how_to_ask_in_a_channel_it_was_invited_to(opened: Opened) -> None:
    async with opened() as running:
        server = running.slack.server
        server.join("U0PEOPLE", CHANNEL)
        server.channel(CHANNEL).members.remove("U0ORION")
        server.post("U0YOU", CHANNEL, "lunch?")
        place, _ = running.slack.ask()  # Slack offers to invite Orion
        server.join("U0ORION", CHANNEL)
        await server.wait_for(lambda: say("welcome", None) in [m["text"] for m in server.messages(CHANNEL)])
        await server.wait_for(running.is_settled)
        assert [m["text"] for m in server.messages(CHANNEL)].count(say("welcome", None)) == 1
        (asked,) = await running.wait_for_messages()
        assert (asked.text, asked.thread, asked.addressed) == ("how do we release?", place, "mention")


async def test_orion_introduces_itself_even_if_slack_does_not_say_who_invited_it(opened: Opened) -> None:
    async with opened() as running:
        server = running.slack.server
        server.faults.fail("users.info", "internal_error", times=50)
        server.join("U0ORION", CHANNEL)
        await server.wait_for(lambda: say("welcome", None) in [m["text"] for m in server.messages(CHANNEL)])


async def test_orion_invites_no_questions_in_a_channel_in_which_it_does_not_answer(opened: Opened) -> None:
    async with opened() as running:
        server = running.slack.server
        server.channel(CHANNEL).is_ext_shared = True
        server.join("U0ORION", CHANNEL)
        (told,) = await server.wait_for(lambda: server.ephemerals(CHANNEL))
        assert (told["ephemeral_for"], told["text"]) == ("U0YOU", say("external_channel", None))
        assert say("welcome", None) not in [m["text"] for m in server.messages(CHANNEL)]


def speaking(running: Running, locale: str) -> None:
    members = running.slack.server.workspace.roster.members
    members["U0YOU"] = replace(members["U0YOU"], locale=locale)


@pytest.mark.parametrize(
    ("error", "cause"),
    [
        (ConnectionError("hunter2"), {}),
        (RedisConnectionError("hunter2"), {"cause": "Redis cannot be reached: is it up, and is REDIS_URL right?"}),
    ],
)
async def test_a_failing_listener_logs_its_kind_and_no_text(
    opened: Opened, error: Exception, cause: dict[str, str]
) -> None:
    with capture_logs() as lines:
        async with opened() as running:
            running.ledger.raises, running.ledger.closed = error, 1
            running.slack.ask("confidential words", CHAT)
            await running.wait_for_messages()
    assert [line for line in lines if line["event"] == "listener_failed"] == [
        {"event": "listener_failed", "error_type": "ConnectionError", "log_level": "error", **cause}
    ]
    assert not re.search("confidential|hunter2", str(lines))


async def test_an_app_that_acknowledges_before_it_stores_is_refused(redis_client: Redis, index: KnowledgeIndex) -> None:
    async with local_slack() as slack, background_tasks() as tasks:
        eager = AsyncApp(token=slack.server.bot_token, signing_secret="")
        with pytest.raises(ValueError, match="process_before_response"):
            register(eager, services(slack, Ledger(), redis_client, Access(), tasks=tasks, index=index))


async def test_every_interaction_is_acknowledged(in_both_modes: Opened) -> None:
    async with in_both_modes() as running:
        known = {"user": {"id": "U0YOU"}, "team": {"id": "T0LOCAL"}, "trigger_id": "1.2.x"}
        pressed: list[dict[str, Any]] = [
            {"type": "block_actions", "actions": [{"type": "button", "action_id": name, "block_id": "b"}]}
            for name in ("somebody_elses", "orion_feedback", "orion_trust")
        ]
        view = {"callback_id": "somebody_elses", "type": "modal"}
        pressed += [{"type": f"view_{how}", "view": view} for how in ("submission", "closed")]
        pressed.append({"type": "shortcut", "callback_id": "somebody_elses"})
        for payload in pressed:
            await running.slack.server.workspace.deliveries.interaction({**known, **payload})
        assert running.ledger.judged == []


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
PRESSED: dict[str, Any] = {
    "team": {"id": "T1"},
    "user": {"id": "UANN"},
    "channel": {"id": "C1"},
    "message": {"ts": "2.0", "thread_ts": "1.0"},
    "actions": [{"value": "turn-7"}],
}


def click(body: Any) -> Click:
    return read_click(cast("ListenerServices", None), body, AsyncBoltContext({"team_id": "T1"}))


def test_every_click_on_one_answer_is_the_same_message() -> None:
    first, second = (as_message(click({**PRESSED, "user": {"id": user}}), "hand_off") for user in ("U1", "U2"))
    assert first is not None
    assert second is not None
    assert first.event_ids == second.event_ids != ()
    assert (first.kind, first.ts, first.text) == ("hand_off", "2.0", "turn-7")


@pytest.mark.parametrize("without", ["user", "channel", "message", "actions"])
def test_half_a_click_is_ignored(without: str) -> None:
    assert as_message(click({key: value for key, value in PRESSED.items() if key != without}), "hand_off") is None


def test_a_click_in_a_direct_message_is_answered_there_also_for_a_sister_workspace() -> None:
    body = {
        **PRESSED,
        "team": {"id": "T9"},
        "channel": {},
        "message": {},
        "container": {"channel_id": "D1", "message_ts": "2.0"},
    }
    assert click(body).place == ThreadKey(team="T1", channel="D1", thread_ts="D1")


@given(JSON | st.fixed_dictionaries({"actions": JSON, "user": JSON, "event": JSON, "channel": JSON, "view": JSON}))
def test_no_payload_crashes_it(body: Any) -> None:
    assert as_message(click(body), "hand_off") is None
    assert read_shortcut(body) is None
    assert read_complaint(body)[0] == ()

"""Events as Slack never sends them, signed, through the real HTTP door: answered 200 or 4xx, never logged."""

import io
import json
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.tasks import background_tasks
from bot.events.listeners import register
from bot.local.model.roster import BOT_USER, TEAM_ID
from bot.servers.http import MAX_BODY_BYTES
from bot.slack.client import build_app
from bot.slack.message import Access
from tests.support.event_app import PROMPT, Ledger, headers, over_http, services
from tests.support.intake_fuzz import payloads
from tests.support.local_slack import local_slack

SAID = "confidential"
MENTION: dict[str, Any] = {
    "type": "app_mention",
    "user": "U0YOU",
    "text": f"<@{BOT_USER}> {SAID} words",
    "ts": "1700000000.000100",
    "channel": "C0GENERAL",
    "event_ts": "1700000000.000100",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Intake:
    session: aiohttp.ClientSession
    url: str
    secret: str
    ledger: Ledger

    async def send(self, body: bytes, **more: str) -> int:
        signed = {**headers(body, secret=self.secret), **more}
        async with self.session.post(self.url, data=io.BytesIO(body), headers=signed) as answer:
            assert SAID not in await answer.text()
            return answer.status

    async def event(self, event: object, **fields: Any) -> int:
        return await self.send(json.dumps(envelope_of(event, **fields)).encode())


def envelope_of(event: object, **fields: Any) -> dict[str, Any]:
    whole = {"type": "event_callback", "team_id": TEAM_ID, "event_id": "Ev1", "event": event}
    return {**whole, "authorizations": [{"team_id": TEAM_ID, "user_id": BOT_USER, "is_bot": True}], **fields}


@pytest.fixture
async def intake(redis_client: Redis) -> AsyncIterator[Intake]:
    async with local_slack(strictness=PROMPT) as slack, aiohttp.ClientSession() as session, background_tasks() as tasks:
        ledger = Ledger()
        ledger.gate.set()
        app = build_app(slack.client, slack.workspace.authorize)
        register(app, services(slack, ledger, redis_client, Access(), tasks=tasks))
        async with over_http(slack, app):
            yield Intake(session=session, url=slack.server.http.url, secret=slack.server.signing_secret, ledger=ledger)


async def test_no_made_up_event_is_a_server_error_or_leaves_a_word_in_a_log(
    intake: Intake, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger="orion")
    statuses: dict[int, list[str]] = {}
    with capture_logs() as lines:
        for envelope, _, _ in payloads(250, 11):
            said = json.loads(json.dumps(envelope).replace("how do we release?", f"{SAID} words"))
            status = await intake.send(json.dumps(said).encode())
            statuses.setdefault(status, []).append(json.dumps(said)[:300])
    assert set(statuses) <= {200, 400, 404}, {status: sent[:2] for status, sent in statuses.items()}
    assert SAID not in caplog.text
    assert SAID not in str(lines)


WRONG_VALUES: list[Any] = [None, [], {"a": 1}, 7, True]


async def test_a_field_of_the_wrong_type_stores_nothing_that_cannot_be_answered(intake: Intake) -> None:
    for field in MENTION:
        assert await intake.event({name: value for name, value in MENTION.items() if name != field}) in {200, 400}
        for wrong in WRONG_VALUES:
            assert await intake.event({**MENTION, field: wrong}) in {200, 400}, (field, wrong)
    for incoming in intake.ledger.messages:
        assert incoming.user
        assert incoming.ts
        assert incoming.thread.channel


WRONG_ENVELOPES: list[dict[str, Any]] = [
    {"authorizations": 7}, {"authorizations": [7]}, {"authorizations": []}, {"authorizations": None, "team_id": None},
    {"event": None}, {"event": []}, {"event": "text"}, {"event_id": {"a": 1}}, {"event_id": None},
    {"type": 7}, {"type": None}, {"team_id": []}, {"enterprise": 5}, {"is_ext_shared_channel": "no"},
    {"event_time": "soon"}, {"context_team_id": {}}, {"user": 5, "view": 6}, {"payload": "{"},
]  # fmt: skip
NO_EVENTS = [b"", b"null", b"7", b'"text"', b"[[[[", b"\x00", b"payload=%7B", b"payload=[]", b"[" * 100_000]


async def test_a_malformed_envelope_or_body_is_not_a_server_error(intake: Intake) -> None:
    for fields in WRONG_ENVELOPES:
        status = await intake.send(json.dumps({**envelope_of(MENTION), **fields}).encode())
        assert status in {200, 400, 404}, fields
    for body in (*NO_EVENTS, b'{"event":' * 5_000):
        assert await intake.send(body) in {400, 404}, body[:12]
        form = {"Content-Type": "application/x-www-form-urlencoded"}
        assert await intake.send(body, **form) in {400, 404}, body[:12]


async def test_a_mebibyte_of_text_is_accepted_and_cut_and_more_is_refused(intake: Intake) -> None:
    room = MAX_BODY_BYTES - len(json.dumps(envelope_of({**MENTION, "text": ""})).encode())
    text = f"<@{BOT_USER}> {SAID} ".ljust(room, "x")
    assert await intake.event({**MENTION, "text": text}) == 200
    assert [len(incoming.text) for incoming in intake.ledger.messages] == [40_000]
    assert await intake.event({**MENTION, "text": text + "x"}) == 413
    assert len(intake.ledger.messages) == 1


async def test_a_replayed_request_is_recognised_by_its_keys(intake: Intake) -> None:
    """Within the window a copy has a good signature: the keys of the event tell it from a new one."""
    body = json.dumps(envelope_of(MENTION)).encode()
    stamp = str(int(time.time()))
    copies = headers(body, stamp=stamp, secret=intake.secret)
    assert [await intake.send(body, **copies) for _ in range(2)] == [200, 200]
    (kept,) = intake.ledger.messages
    assert kept.event_ids == (f"evt:{TEAM_ID}:Ev1", f"msg:{TEAM_ID}:C0GENERAL:{MENTION['ts']}")

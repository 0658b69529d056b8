"""Two workspaces in one Orion: installed over HTTP, served each with its own token, nothing mixed up."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from slack_sdk.web.async_client import AsyncWebClient
from structlog.testing import capture_logs

from agent.thread.store import LeaseFence
from bot.app import Orion, open_orion
from bot.delivery.delivery import Delivery
from bot.documents.open import corpus_of
from bot.errors import WrongUse
from bot.install.installations import (
    COOKIE,
    MAX_STATES_PER_MINUTE,
    Installation,
    Installations,
    OAuthCalls,
    Seal,
    States,
)
from bot.install.workspaces import InstalledWorkspaces, TeamBot, Workspaces, open_slack
from bot.local.model.roster import BOT_ID, BOT_USER, VISITOR
from bot.queue.claim import Claimed, Lease
from bot.queue.claim import now as monotonic
from bot.servers.http import ProcessStatus, SlackEndpoint, build, serve
from bot.settings import Settings
from bot.slack.client import NotAuthorized, SlackWorkspace, open_client
from bot.slack.directory import SlackDirectory
from bot.slack.manifest import SEARCH_SCOPE
from bot.slack.web_api import DeliveryFailed, SlackCalls
from tests.support.orion_running import CHANNEL, MENTION, answers, settings_in, text_of, text_pages
from tests.support.services import UnusedHandler
from tests.support.two_teams import CLIENT_ID, CLIENT_SECRET, SECRET, TEAMS, TwoTeams, two_teams
from tests.support.waiting import wait_until

ONE, TWO = TEAMS
KEY = Fernet.generate_key().decode()
QUESTION = f"{MENTION} How many requests may one API key send per minute?"


def settings_for(slack_api_url: str, home: Path, redis_url: str, **more: object) -> Settings:
    base = settings_in(home, redis_url, slack_api_url=slack_api_url, slack_client_id=CLIENT_ID)
    secrets = {"slack_client_secret": SecretStr(CLIENT_SECRET), "encryption_keys": SecretStr(KEY)}
    return base.model_copy(update={**secrets, "allow_teams": frozenset({"*"}), **more})


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    slack: TwoTeams
    orion: Orion
    url: str
    browser: aiohttp.ClientSession

    async def install(self, team: str) -> tuple[int, str]:
        """Install as a person of ``team`` in a browser. Return the last page's status and text."""
        state = await self.begin()
        return await self.finish(state, self.slack.grants.code(team))

    async def begin(self) -> str:
        async with self.browser.get(f"{self.url}/slack/install", allow_redirects=False) as page:
            assert page.status == 302
            return parse_qs(urlsplit(page.headers["Location"]).query)["state"][0]

    async def finish(self, state: str, code: str) -> tuple[int, str]:
        params = {"state": state, "code": code}
        async with self.browser.get(f"{self.url}/slack/oauth_redirect", params=params) as page:
            return page.status, await page.text()

    def ask(self, team: str, text: str = QUESTION) -> str:
        return self.slack.workspaces[team].post(VISITOR, CHANNEL, text)

    async def answer(self, team: str, ts: str) -> str:
        workspace = self.slack.workspaces[team]
        found = await workspace.wait_for(lambda: answers(workspace, ts, ts))
        return text_of(found[0])


@asynccontextmanager
async def served(home: Path, redis_url: str, **more: object) -> AsyncIterator[Served]:
    async with AsyncExitStack() as stack:
        slack = await stack.enter_async_context(two_teams())
        settings = settings_for(slack.api_url, home, redis_url, **more)
        corpus = corpus_of(settings, (text_pages(),))
        orion = await stack.enter_async_context(open_orion(settings, corpus, concurrency=8, socket=False))
        endpoint = SlackEndpoint(app=orion.app, signing_secret=SECRET, installing=orion.installing)
        port = await stack.enter_async_context(serve(build(orion, endpoint)))
        slack.events_at(f"http://127.0.0.1:{port}/slack/events")
        browser = await stack.enter_async_context(
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))  # a browser takes an address's cookies
        )
        async with asyncio.TaskGroup() as group:
            working = group.create_task(orion.worker.run())
            try:
                yield Served(slack=slack, orion=orion, url=f"http://127.0.0.1:{port}", browser=browser)
            finally:
                working.cancel()


@pytest.fixture
async def place(tmp_path: Path, redis_url: str) -> AsyncIterator[Served]:
    async with served(tmp_path, redis_url) as opened:
        yield opened


async def test_questions_stored_under_a_wrong_key_are_answered_once_it_is_corrected(
    tmp_path: Path, redis_url: str, redis_client: Redis, place: Served
) -> None:
    await place.install(ONE)
    stores, key = place.orion.catching_up.stores, f"orion:install:{ONE}"
    await stores.pausing.pause("keys are changed")
    asked = [place.ask(ONE) for _ in range(3)]

    async def are_stored() -> bool:
        return (await place.orion.mailbox.depth()).messages == len(asked)

    await wait_until(are_stored, "all are stored")
    sealed = await redis_client.get(key)
    foreign = SecretStr(Fernet.generate_key().decode())
    wrong = settings_for(place.slack.api_url, tmp_path, redis_url, encryption_keys=foreign)
    with pytest.raises(WrongUse, match="Put the earlier key back"):
        async with open_orion(wrong, corpus_of(wrong, (text_pages(),)), concurrency=8, socket=False):
            raise AssertionError
    assert await redis_client.get(key) == sealed
    # A process that cannot read it meanwhile, however that came to be, loses nothing either.
    await redis_client.set(key, Fernet(Fernet.generate_key()).encrypt(b"{}"))
    await stores.pausing.resume()
    threads = [f"{ONE}:{CHANNEL}:{ts}" for ts in asked]
    with capture_logs() as log:
        for thread in threads:
            await place.orion.mailbox.make_due_now(thread)
        refused = "workspace_not_served"
        await wait_until(lambda: len({e["thread"] for e in log if e["event"] == refused}) == 3, "all were tried")
    assert await are_stored()
    await redis_client.set(key, str(sealed))
    for thread, ts in zip(threads, asked, strict=True):
        await place.orion.mailbox.make_due_now(thread)
        assert "requests" in await place.answer(ONE, ts)
        assert len(answers(place.slack.workspaces[ONE], ts, ts)) == 1


async def test_two_workspaces_install_orion_and_each_is_served_separately(
    tmp_path: Path, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with served(tmp_path, redis_url) as place:
        for team in TEAMS:
            status, page = await place.install(team)
            assert (status, "<p>Orion is installed." in page) == (200, True)
        first, second = place.ask(ONE), place.ask(TWO, f"{MENTION} What may a dinner cost on a business trip?")
        assert "requests" in await place.answer(ONE, first)
        assert "meals" in await place.answer(TWO, second)
        for team, ts in ((ONE, second), (TWO, first)):
            workspace = place.slack.workspaces[team]
            assert not [m for m in workspace.messages(CHANNEL) if ts in str(m.get("metadata"))]
        assert not any(token in caplog.text for token in place.slack.grants.tokens)


async def test_uninstalling_ends_the_service_and_deletes_the_token(place: Served) -> None:
    await place.install(ONE)
    workspace = place.slack.workspaces[ONE].workspace
    anywhere = workspace.roster.channel(CHANNEL)
    workspace.emit("tokens_revoked", anywhere, tokens={"oauth": ["U1"]})
    await wait_until(lambda: _all_acknowledged(place, ONE), "the event is acknowledged")
    assert await place.orion.redis.exists(f"orion:install:{ONE}")
    workspace.emit("tokens_revoked", anywhere, tokens={"bot": [BOT_USER]})
    await wait_until(lambda: _is_deleted(place, ONE), "the token is deleted")
    await place.install(ONE)
    workspace.emit("app_uninstalled", anywhere)
    await wait_until(lambda: _is_deleted(place, ONE), "the token is deleted again")


def _all_acknowledged(place: Served, team: str) -> bool:
    log = place.slack.workspaces[team].workspace.deliveries.log
    return bool(log) and all(entry.acknowledged for entry in log)


async def _empty(place: Served) -> bool:
    return (await place.orion.mailbox.depth()).messages == 0


async def _is_deleted(place: Served, team: str) -> bool:
    return not await place.orion.redis.exists(f"orion:install:{team}")


async def test_a_workspace_that_is_not_installed_or_no_longer_listed_is_not_served(
    tmp_path: Path, redis_url: str
) -> None:
    async with served(tmp_path, redis_url) as place:
        await place.install(ONE)
        await place.answer(ONE, place.ask(ONE))
        await wait_until(lambda: _empty(place), "the turn has ended")
    async with served(tmp_path, redis_url, allow_teams=frozenset({TWO})) as place:
        for team in TEAMS:
            place.ask(team)
        await wait_until(lambda: all(_all_acknowledged(place, team) for team in TEAMS), "the events are acknowledged")
        assert await _empty(place)


async def test_an_oauth_state_works_once_and_only_in_its_own_browser(place: Served) -> None:
    for cookies in ({}, {"Cookie": f"{COOKIE}=somebody-elses"}):
        params = {"state": await place.begin(), "code": place.slack.grants.code(ONE)}
        place.browser.cookie_jar.clear()
        async with place.browser.get(f"{place.url}/slack/oauth_redirect", params=params, headers=cookies) as page:
            assert page.status == 400
    assert await _is_deleted(place, ONE)
    state = await place.begin()
    cookie = next(morsel.value for morsel in place.browser.cookie_jar if morsel.key == COOKIE)
    assert (await place.finish(state, place.slack.grants.code(ONE)))[0] == 200
    place.browser.cookie_jar.update_cookies(SimpleCookie({COOKIE: cookie}))
    status, text = await place.finish(state, place.slack.grants.code(TWO))
    assert (status, "finished already" in text) == (400, True)
    assert not await place.orion.redis.exists(f"orion:install:{TWO}")


async def test_the_pages_are_neither_framed_nor_cached_and_the_cookie_is_the_browsers_alone(place: Served) -> None:
    async with place.browser.get(f"{place.url}/slack/install", allow_redirects=False) as page:
        cookie = page.headers["Set-Cookie"]
        consent = urlsplit(page.headers["Location"])
    assert (consent.path, SEARCH_SCOPE in parse_qs(consent.query)["scope"][0]) == ("/oauth/v2/authorize", False)
    async with place.browser.get(f"{place.url}/slack/install?search=1", allow_redirects=False) as page:
        assert SEARCH_SCOPE in parse_qs(urlsplit(page.headers["Location"]).query)["scope"][0].split(",")
    assert all(part in cookie for part in ("HttpOnly", "SameSite=Lax", "Path=/slack/oauth_redirect"))
    assert "Secure" not in cookie  # this machine does not use TLS for itself
    named = {"Host": "orion.example"}
    async with place.browser.get(f"{place.url}/slack/install", allow_redirects=False, headers=named) as page:
        assert "Secure" in page.headers["Set-Cookie"]
    query = {"state": "x", "error": "<script>alert(1)</script>"}
    async with place.browser.get(f"{place.url}/slack/oauth_redirect", params=query) as page:
        assert (page.status, page.content_type, "script" in await page.text()) == (400, "text/html", False)
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert (page.headers["Cache-Control"], page.headers["Referrer-Policy"]) == ("no-store", "no-referrer")


async def test_cancelled_refused_and_org_wide_installations_store_nothing(place: Served) -> None:
    state = await place.begin()
    query = {"state": state, "error": "access_denied"}
    async with place.browser.get(f"{place.url}/slack/oauth_redirect", params=query) as page:
        assert (page.status, "cancelled" in await page.text()) == (400, True)
    status, refusal = await place.finish(await place.begin(), "no-such-code")
    text = "Nothing was installed: Slack did not accept the request. Start again at /slack/install."
    assert (status, f"<p>{text}</p>" in refusal) == (400, True)
    place.slack.grants.org_wide = True
    assert "organisation" in (await place.install(ONE))[1]
    place.slack.grants.failing = "internal_error"
    assert (await place.install(ONE))[0] == 503
    assert await place.orion.redis.smembers("orion:installs") == set()


async def test_a_workspace_that_is_not_allowed_has_its_token_revoked(tmp_path: Path, redis_url: str) -> None:
    async with served(tmp_path, redis_url, allow_teams=frozenset({ONE})) as place:
        assert (await place.install(TWO))[0] == 403
        assert place.slack.grants.revoked == [TWO]
        assert await _is_deleted(place, TWO)
        assert (await place.install(ONE))[0] == 200


async def test_redis_cannot_be_filled_with_states(place: Served) -> None:
    states = place.orion.installing.states if place.orion.installing else None
    assert states is not None
    begun = [await states.begin() for _ in range(2 * MAX_STATES_PER_MINUTE + 1)]
    assert begun[-1] is None
    async with place.browser.get(f"{place.url}/slack/install", allow_redirects=False) as page:
        assert page.status == 429


async def test_an_outage_of_slack_or_redis_installs_nothing_and_says_so(tmp_path: Path, redis_url: str) -> None:
    async with served(tmp_path, redis_url) as place, Redis(port=1, retry=Retry(NoBackoff(), 0)) as away:
        assert place.orion.installing is not None
        pages = replace(place.orion.installing, states=States(away))
        async with serve(
            build(ProcessStatus(), SlackEndpoint(app=place.orion.app, signing_secret=SECRET, installing=pages))
        ) as port:
            for path in ("install", "oauth_redirect?state=x&code=y"):
                async with place.browser.get(f"http://127.0.0.1:{port}/slack/{path}", allow_redirects=False) as page:
                    assert (page.status, "Wait a minute" in await page.text()) == (503, True)


async def test_only_a_slack_that_refuses_a_grant_refuses_it_for_good() -> None:
    async with open_client("", api_url="http://127.0.0.1:1/api/") as client:
        calls = OAuthCalls(client, client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
        with pytest.raises(DeliveryFailed) as failure:
            await calls.exchange("code")
        assert not failure.value.permanent
    async with two_teams() as slack, open_client("", api_url=slack.api_url) as client:
        calls = OAuthCalls(client, client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
        slack.grants.codes["code"] = ""
        with pytest.raises(DeliveryFailed, match="invalid_code"):
            await calls.exchange("code")
        wrong = OAuthCalls(client, client_id=CLIENT_ID, client_secret="another")
        with pytest.raises(DeliveryFailed, match="bad_client_secret") as failure:
            await wrong.exchange(slack.grants.code(ONE))
        assert failure.value.permanent


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    workspaces: Workspaces
    installations: Installations


@asynccontextmanager
async def replica(slack: TwoTeams, redis: Redis) -> AsyncIterator[Replica]:
    async with open_client("", api_url=slack.api_url) as client:
        installations = Installations(redis, Seal([KEY]))
        oauth = OAuthCalls(client, client_id=CLIENT_ID, client_secret=CLIENT_SECRET)
        yield Replica(workspaces=InstalledWorkspaces(installations, oauth, make_bot), installations=installations)


def make_bot(client: AsyncWebClient) -> TeamBot:
    workspace = SlackWorkspace(SlackCalls(client, patience_s=0.1))
    people = SlackDirectory(workspace, Redis())
    return TeamBot(delivery=Delivery(workspace), people=people, handler=UnusedHandler())


def incoming(thread: str) -> tuple[Claimed, Lease]:
    until, fence = monotonic() + 30, LeaseFence(key="f", token="t")
    claimed = Claimed(thread=thread, id="1", body="{}", tries=1, enqueued_at=0.0, leased_until=until, fence=fence)
    return claimed, Lease(until)


async def install(slack: TwoTeams, store: Installations, expires_at: float) -> Installation:
    slack.grants.expires_in = 43_200
    reply = slack.grants.issue(ONE)
    await store.save(Installation(
        team=ONE, bot_token=reply["access_token"], bot_user=BOT_USER, bot_id=BOT_ID,
        refresh_token=reply["refresh_token"], expires_at=expires_at,
    ))  # fmt: skip
    kept = await store.find(ONE)
    assert kept is not None
    return kept


async def test_a_token_is_refreshed_once_however_many_processes_notice(redis_client: Redis) -> None:
    async with two_teams() as slack, AsyncExitStack() as stack:
        replicas = [await stack.enter_async_context(replica(slack, redis_client)) for _ in range(4)]
        before = await install(slack, replicas[0].installations, expires_at=1.0)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(one.workspaces.of(ONE)) for one in replicas for _ in range(3)]
        assert slack.grants.refreshes == 1
        after = await replicas[0].installations.find(ONE)
        assert after is not None
        assert after.bot_token != before.bot_token
        assert after.expires_at > before.expires_at
        for task in asked:
            await task.result().delivery.send_direct_message(VISITOR, "hello")
        assert (await task.result().delivery.workspace.identity()).user == BOT_USER


async def test_a_failed_refresh_keeps_a_token_that_is_still_valid(redis_client: Redis) -> None:
    async with two_teams() as slack, replica(slack, redis_client) as one:
        kept = await install(slack, one.installations, expires_at=time.time() + 1800)
        slack.grants.failing = "internal_error"
        with capture_logs() as lines:
            team_bot = await one.workspaces.of(ONE)
        assert (await team_bot.delivery.workspace.authorize()).bot_token == kept.bot_token
        assert [line["event"] for line in lines] == ["token_not_refreshed"]
        assert kept.bot_token not in str(lines)


@pytest.mark.parametrize(("reason", "permanent"), [("internal_error", False), ("invalid_refresh_token", True)])
async def test_an_expired_token_that_cannot_be_renewed_gets_no_ack(
    redis_client: Redis, reason: str, *, permanent: bool
) -> None:
    async with two_teams() as slack, replica(slack, redis_client) as one:
        await install(slack, one.installations, expires_at=1.0)
        slack.grants.failing = reason
        with pytest.raises(DeliveryFailed) as failure:
            await one.workspaces.of(ONE)
        assert (failure.value.reason, failure.value.permanent) == (reason, permanent)
        with pytest.raises(NotAuthorized):
            await one.workspaces.authorize(ONE)


async def test_a_turn_cancelled_during_a_refresh_loses_no_token(redis_client: Redis) -> None:
    """The refresh token works once: Slack has used it up even if the caller no longer waits for the reply."""
    async with two_teams() as slack, replica(slack, redis_client) as one:
        before = await install(slack, one.installations, expires_at=1.0)
        slack.grants.gate.clear()
        async with asyncio.TaskGroup() as group:
            turn = group.create_task(one.workspaces.of(ONE))
            await wait_until(lambda: slack.grants.asked, "Slack has the request")
            turn.cancel()
        slack.grants.gate.set()

        async def is_renewed() -> bool:
            kept = await one.installations.find(ONE)
            return kept is not None and kept.bot_token != before.bot_token

        await wait_until(is_renewed, "the new token is kept")
        assert slack.grants.refreshes == 1


async def test_an_installation_made_during_a_refresh_counts(redis_client: Redis) -> None:
    async with two_teams() as slack, replica(slack, redis_client) as one:
        await install(slack, one.installations, expires_at=1.0)
        slack.grants.gate.clear()
        async with asyncio.TaskGroup() as group:
            asking = group.create_task(one.workspaces.of(ONE))
            await wait_until(lambda: redis_client.exists(f"orion:install_lock:{ONE}"), "the refresh has begun")
            slack.grants.expires_in = 0
            anew = slack.grants.issue(ONE)["access_token"]
            await one.installations.save(Installation(team=ONE, bot_token=anew, bot_user=BOT_USER, bot_id=BOT_ID))
            slack.grants.gate.set()
        assert (await asking.result().delivery.workspace.authorize()).bot_token == anew


async def test_messages_of_an_uninstalled_workspace_are_given_up(redis_client: Redis) -> None:
    async with two_teams() as slack, replica(slack, redis_client) as one:
        claimed, lease = incoming(f"{ONE}:C1:1.1")
        assert (await one.workspaces.handle(claimed, lease)).verb == "ok"
        await one.workspaces.notify_given_up(claimed, lease, "reason")
        await install(slack, one.installations, expires_at=1.0)
        slack.grants.failing = "internal_error"
        assert (await one.workspaces.handle(claimed, lease)).verb == "give_back"
        with pytest.raises(DeliveryFailed):  # kept, and told once Slack is back
            await one.workspaces.notify_given_up(claimed, lease, "reason")


async def test_orion_does_not_start_without_a_list_of_workspaces(redis_client: Redis, tmp_path: Path) -> None:
    settings = settings_for("http://127.0.0.1:1/api/", tmp_path, "", allow_teams=frozenset())
    with pytest.raises(WrongUse, match=r"ORION_ALLOW_TEAMS is not set.*set it to \* to let every"):
        async with open_slack(settings, redis_client, make_bot, prefix="orion"):
            raise AssertionError


async def test_orion_starts_while_redis_is_down(tmp_path: Path) -> None:
    async with Redis(port=1, retry=Retry(NoBackoff(), 0)) as redis:
        settings = settings_for("http://127.0.0.1:1/api/", tmp_path, "")
        with capture_logs() as lines:
            async with open_slack(settings, redis, make_bot, prefix="orion") as slack:
                assert slack.installing is not None
        assert [line["event"] for line in lines] == ["installations_not_looked_at"]


async def test_a_wrong_key_is_refused_even_before_a_workspace_installs_orion(
    redis_client: Redis, tmp_path: Path
) -> None:
    settings = settings_for("http://127.0.0.1:1/api/", tmp_path, "")
    async with open_slack(settings, redis_client, make_bot, prefix="orion"):
        pass
    other = settings.model_copy(update={"encryption_keys": SecretStr(Fernet.generate_key().decode())})
    with pytest.raises(WrongUse, match="ORION_ENCRYPTION_KEYS"):
        async with open_slack(other, redis_client, make_bot, prefix="orion"):
            raise AssertionError


def test_a_bot_token_means_one_workspace(tmp_path: Path) -> None:
    settings = settings_for("http://127.0.0.1:1/api/", tmp_path, "")
    assert settings.many_workspaces
    assert not settings.model_copy(update={"slack_bot_token": SecretStr("xoxb-1")}).many_workspaces
    assert KEY in settings.secrets

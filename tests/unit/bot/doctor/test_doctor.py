"""`orion doctor` checks every part, gives a remedy for each fault, and ends even without any replies."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from cryptography.fernet import Fernet
from pydantic import SecretStr
from redis.asyncio import Redis

from bot.cli.local import settings_for
from bot.doctor.checks import Check
from bot.doctor.doctor import REPLY_TIMEOUT_S, examine
from bot.install.identity import Identity, join_redis
from bot.install.installations import Installation, Installations, Seal
from bot.local.model.limits import LENIENT
from bot.local.model.roster import Channel
from bot.local.server import LocalWorkspace
from bot.settings import Settings
from bot.slack.manifest import BOT_SCOPES
from bot.stores.limits import Pausing
from tests.support.http_server import answering, behind_tls, own_certificate
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.openai_server import GARBAGE, RESPOND, ScriptedOpenAI, fails, says
from tests.support.orion_running import settings_in, text_pages

IN_ALL_S = 20
ANSWER = says("<answer>120 [1]</answer>")


def workspace(**setup: Any) -> LocalWorkspace:
    return LocalWorkspace(strictness=LENIENT, **setup)


@asynccontextmanager
async def silent_port() -> AsyncIterator[int]:
    """A server that takes every connection and never says a word."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass
        writer.close()

    server = await asyncio.start_server(listen, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


def all_at(url: str, home: Path, redis_url: str) -> Settings:
    """Settings whose servers are all at one address."""
    slack = {"slack_bot_token": SecretStr("xoxb-1"), "slack_app_token": SecretStr("xapp-1")}
    langfuse = {"langfuse_public_key": "pk", "langfuse_secret_key": SecretStr("sk"), "langfuse_host": url}
    more = {"slack_api_url": f"{url}/api/", "openai_base_url": f"{url}/v1"}
    return settings_in(home, redis_url, **slack, **langfuse, **more)


async def checks(settings: Settings, within_s: float = REPLY_TIMEOUT_S) -> dict[str, Check]:
    """The checks by name. Each failing one has a remedy."""
    found = {check.name: check for check in await examine(settings, within_s=within_s)}
    assert all(check.ok or check.remedy for check in found.values())
    return found


async def test_installed_workspaces_are_counted(tmp_path: Path, redis_url: str, redis_client: Redis) -> None:
    base = settings_in(tmp_path, redis_url, slack_client_id="1.2", slack_app_token=SecretStr("xapp-1"))
    keys = {"slack_client_secret": SecretStr("s"), "slack_signing_secret": SecretStr("s")}
    settings = base.model_copy(update=keys)
    assert "ORION_ALLOW_TEAMS is not set" in (await checks(settings))["Slack"].detail
    settings = settings.model_copy(update={"allow_teams": frozenset({"T1", "T2"})})
    found = await checks(settings)
    assert "ORION_ENCRYPTION_KEYS is not set" in found["Slack"].detail
    key = Fernet.generate_key().decode()
    settings = settings.model_copy(update={"encryption_keys": SecretStr(key)})
    found = await checks(settings)
    assert found["Slack"].detail.startswith("0 workspaces installed Orion")
    assert found["Slack events"].detail == "SLACK_SIGNING_SECRET is set: HTTP mode"
    assert "Shared Redis" not in found
    await join_redis(redis_client, Identity(prefix="orion:T9:U9", name="Acme as orion", team="T9"))
    assert "Acme as orion" in (await checks(settings))["Shared Redis"].detail
    installations = Installations(redis_client, Seal([key]), prefix="orion:app-1.2")
    scopes = ",".join(BOT_SCOPES)
    for team, granted in (("T1", scopes), ("T2", scopes.replace("chat:write,", ""))):
        one = Installation(team=team, bot_token="xoxb-1", bot_user="U0", bot_id="B0", scopes=granted)
        await installations.save(one)
        told = (await checks(settings))["Slack"]
    assert (told.ok, told.detail) == (False, "T2 lacks chat:write")
    fewer = settings.model_copy(update={"allow_teams": frozenset({"T1"})})
    assert (await checks(fewer))["Slack"].detail.startswith("1 workspace installed Orion")
    wrong = settings.model_copy(update={"encryption_keys": SecretStr(Fernet.generate_key().decode())})
    assert "Put the earlier key back" in (await checks(wrong))["Slack"].detail
    away = settings.model_copy(update={"redis_url": SecretStr("redis://127.0.0.1:1/0")})
    assert not (await checks(away))["Slack"].ok


async def test_a_correct_set_up_passes_every_check(tmp_path: Path) -> None:
    async with (
        workspace() as slack,
        ScriptedOpenAI(decisions=[replace(RESPOND, usage=(10_000, 1))] * 3, drafts=[ANSWER]) as server,
        LangfuseReceiver() as langfuse,
    ):
        settings = all_at(langfuse.url, tmp_path, "").model_copy(
            update={"docs": (text_pages(),), "openai_base_url": server.url, "model": "m"}
        )
        found = await checks(settings_for(settings, slack))
    names = ["Slack", "Slack events", "Redis", "Knowledge", "Search by meaning", "Model", "Langfuse"]
    assert list(found) == names
    assert all(check.ok for check in found.values())
    assert found["Langfuse"].detail == f"{langfuse.url} accepts the keys (version 4.60.0)"
    assert "every change is on disk first" in found["Redis"].detail


async def test_nothing_configured_says_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    homeless = await checks(settings_in(tmp_path / "file", ""))
    assert (homeless["Redis"].ok, "ORION_HOME" in homeless["Redis"].remedy) == (False, True)
    found = await checks(settings_in(tmp_path, ""))
    assert {name for name, check in found.items() if not check.ok} == {"Slack", "Knowledge"}
    assert "orion manifest" in found["Slack"].remedy
    assert "ORION_DOCS" in found["Knowledge"].remedy


async def test_an_unreachable_shared_index_is_reported(tmp_path: Path) -> None:
    address = SecretStr("postgresql://orion:hunter2@127.0.0.1:9/orion")
    found = (await checks(settings_in(tmp_path, "", knowledge_url=address)))["Knowledge"]
    assert (found.ok, "cannot be used" in found.detail) == (False, True)
    assert "ORION_KNOWLEDGE_URL" in found.remedy
    assert "hunter2" not in str(found)


@pytest.mark.parametrize(
    ("fault", "unseen"),
    [
        ("LANGFUSE_HOST", {"Langfuse"}),
        ("OPENAI_BASE_URL", {"Model"}),
        ("SLACK_API_URL", {"Slack"}),
        ("ORION_PORT", set()),
    ],
)
async def test_a_setting_that_cannot_be_used_stops_only_what_needs_it(
    tmp_path: Path, fault: str, unseen: set[str]
) -> None:
    found = await examine(settings_in(tmp_path, ""), faults={fault: "is wrong"})
    first, *rest = found
    assert (first.name, first.ok, first.detail) == ("Settings", False, f"{fault} is wrong")
    assert {check.name for check in rest} == {"Slack", "Redis", "Knowledge", "Model", "Langfuse"} - unseen


async def test_refused_tokens_and_missing_scopes_are_reported(tmp_path: Path) -> None:
    async with workspace(scopes=("chat:write",)) as slack:
        settings = settings_for(settings_in(tmp_path, ""), slack)
        found = await checks(settings)
        assert "lacks the scopes" in found["Slack"].detail
        assert "app_mentions:read" in found["Slack"].detail
        refused = {"slack_bot_token": SecretStr("xoxb-secret"), "slack_app_token": SecretStr("xapp-secret")}
        found = await checks(settings.model_copy(update=refused))
        assert found["Slack"].detail == "SLACK_BOT_TOKEN was refused: invalid_auth"
        assert found["Slack events"].detail == "SLACK_APP_TOKEN was refused: invalid_auth"
        assert found["Redis"].ok, "a wrong token is no fault of Redis"
        assert "secret" not in str(found)


async def test_http_mode_needs_only_the_signing_secret(tmp_path: Path) -> None:
    async with workspace() as slack:
        settings = settings_for(settings_in(tmp_path, ""), slack)
        http = settings.model_copy(update={"slack_app_token": SecretStr("")})
        assert (await checks(http))["Slack events"].ok
        neither = http.model_copy(update={"slack_signing_secret": SecretStr("")})
        assert not (await checks(neither))["Slack events"].ok


@pytest.mark.parametrize("redis_home", ["", "redis://127.0.0.1:9"])
async def test_a_total_refusal_is_reported_part_by_part(redis_home: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    settings = all_at("http://127.0.0.1:9", tmp_path / "file", redis_home)
    found = await checks(settings)
    assert [check.ok for check in found.values()] == [False] * 7


async def test_a_wrong_key_a_wrong_folder_and_a_server_that_is_not_slack_are_reported(tmp_path: Path) -> None:
    async with ScriptedOpenAI(decisions=[fails(401, "Incorrect API key: sk-abc")] * 9) as server:
        settings = settings_in(
            tmp_path,
            "redis://user:hunter2@127.0.0.1:9",
            docs=(tmp_path / "nowhere",),
            openai_base_url=server.url,
            model="m",
            slack_bot_token=SecretStr("xoxb-1"),
            slack_api_url=f"{server.url}/",
        )
        found = await checks(settings)
    assert "nowhere is not a folder" in found["Knowledge"].detail
    assert "m: " in found["Model"].detail
    assert "cannot be reached" in found["Slack"].detail
    assert "hunter2" not in str(found)
    assert "sk-abc" not in str(found)


async def test_a_redis_that_can_lose_questions_is_reported(tmp_path: Path, redis_url: str) -> None:
    found = await checks(settings_in(tmp_path, redis_url))
    assert "can lose questions" in found["Redis"].detail
    assert "appendfsync" in found["Redis"].remedy


async def test_doctor_ends_even_if_no_server_answers(tmp_path: Path) -> None:
    assert REPLY_TIMEOUT_S < IN_ALL_S
    async with silent_port() as port:
        settings = all_at(f"http://127.0.0.1:{port}", tmp_path, f"redis://127.0.0.1:{port}")
        found = await checks(settings, within_s=1)
    assert [(check.name, check.ok) for check in found.values() if check.ok] == []
    assert "did not answer within 1 s" in found["Model"].detail
    assert "has 90 s for each call of the model: raise ORION_MODEL_TIMEOUT_S" in found["Model"].remedy


async def test_a_model_server_that_replies_with_nonsense_is_reported_as_such(tmp_path: Path) -> None:
    async with ScriptedOpenAI(decisions=[GARBAGE] * 9) as server:
        found = await checks(settings_in(tmp_path, "", openai_base_url=server.url, model="m"))
    assert not found["Model"].ok
    assert "not JSON" in found["Model"].detail
    assert "LLMError" not in found["Model"].detail


async def test_a_server_that_breaks_off_its_streams_is_reported_and_a_slow_one_is_not(tmp_path: Path) -> None:
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=[says("<answer>120", done=False)]) as server:
        found = await checks(settings_in(tmp_path, "", openai_base_url=server.url, model="m"))
    assert found["Model"].detail == "m: the stream ended before the reply was complete"
    slow = says("<answer>120", before_end=asyncio.Event())
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=[slow]) as server:
        assert (await checks(settings_in(tmp_path, "", openai_base_url=server.url, model="m"), within_s=2))["Model"].ok


async def test_the_judge_is_asked_too(tmp_path: Path) -> None:
    missing = [fails(404, "no such model", "model_not_found")]
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=[ANSWER], judgements=missing) as server:
        one = {"openai_base_url": server.url, "model": "m", "judge_model": "j"}
        found = await checks(settings_in(tmp_path, "", **one))
        assert (found["Model"].ok, found["Judge"].ok, bool(found["Judge"].remedy)) == (True, False, True)
        assert {request["model"] for request in server.requests} == {"m", "j"}
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=[ANSWER], judgements=[says("Sure.")] * 2) as server:
        found = await checks(settings_in(tmp_path, "", **{**one, "openai_base_url": server.url}))
        assert "could not be read" in found["Judge"].detail
    keyless = await checks(settings_in(tmp_path, "", judge_model="j"))
    assert "no model server" in keyless["Judge"].detail


async def test_the_model_that_writes_is_asked_too(tmp_path: Path) -> None:
    missing = [fails(404, "no such model", "model_not_found")]
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=missing) as server:
        two = settings_in(tmp_path, "", openai_base_url=server.url, model="m", write_model="w")
        found = await checks(two)
        assert found["Model"].ok
        assert found["Write model"].detail == "w: status 404 (model_not_found error): no such model"
        assert {request["model"] for request in server.requests} == {"m", "w"}
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=[ANSWER]) as server:
        same = await checks(settings_in(tmp_path, "", openai_base_url=server.url, model="m", write_model="m"))
    assert "Write model" not in same


@pytest.mark.parametrize("words", ["`inputs` must be <= 4096. Given: 9000", "ข้อความยาวเกินไป"])
async def test_doctor_asks_the_model_as_a_turn_does_and_reports_refused_long_prompts(
    tmp_path: Path, words: str
) -> None:
    def reply(request: Any) -> Any:
        return fails(422, words) if len(json.dumps(request)) > 20_000 else RESPOND

    async with ScriptedOpenAI(decisions=reply, drafts=[ANSWER]) as server:
        found = await checks(settings_in(tmp_path, "", openai_base_url=server.url, model="m"))
    assert (found["Model"].ok, found["Model context"].detail) == (True, "long prompts are refused")
    assert [message["role"] for message in server.requests[0]["messages"]] == ["system", "user"]
    assert "search" in json.dumps(server.requests[0]["tools"])


@pytest.mark.parametrize(
    ("langfuse", "fault"),
    [
        ({"version": "4.16.0"}, "runs version 4.16.0: it takes traces, but refuses scores"),
        ({"version": "3.200.1"}, "runs version 3.200.1: it takes traces, but refuses scores"),
        ({"refuse": 401}, "answered 401"),
        ({"version": "5.0.0-rc.1"}, ""),
        ({"version": "unknown"}, ""),
    ],
)
async def test_langfuse_that_cannot_take_scores_is_reported(
    tmp_path: Path, langfuse: dict[str, Any], fault: str
) -> None:
    async with LangfuseReceiver(**langfuse) as receiver:
        keys = {"langfuse_public_key": "pk", "langfuse_secret_key": SecretStr("sk")}
        settings = settings_in(
            tmp_path, "", langfuse_base_url=f"{receiver.url}/", langfuse_host="http://127.0.0.1:9", **keys
        )
        found = (await checks(settings))["Langfuse"]
        turned_off = (await checks(settings.model_copy(update={"langfuse_enabled": False})))["Langfuse"]
        queues = [settings.model_copy(update={"langfuse_annotation_queue": name}) for name in ("queue-1", "Gone")]
        right, wrong = [(await checks(one))["Langfuse"] for one in queues]
    assert (found.ok, fault in found.detail) == (not fault, True)
    assert turned_off.ok
    assert (right.ok, wrong.ok, "no annotation queue Gone" in wrong.detail) == (not fault, False, not fault)


async def test_a_server_that_is_not_langfuse_or_not_trusted_is_reported(tmp_path: Path) -> None:
    keys = {"langfuse_public_key": "pk", "langfuse_secret_key": SecretStr("sk")}
    with (
        answering(lambda *_: (200, b"<html>Sign in</html>")) as port,
        behind_tls(own_certificate(tmp_path), []) as untrusted,
    ):
        addresses = (f"http://127.0.0.1:{port}", untrusted, "https://langfuse..example")
        settings = [settings_in(tmp_path, "", langfuse_base_url=address, **keys) for address in addresses]
        page, stranger, misspelled = [(await checks(one))["Langfuse"] for one in settings]
    assert (page.ok, page.detail) == (False, f"{addresses[0]} does not answer as Langfuse does")
    assert (misspelled.ok, "cannot be reached" in misspelled.detail) == (False, True)
    assert (stranger.ok, "Certificate" in stranger.detail, "SSL_CERT_FILE" in stranger.remedy) == (False, True, True)


async def test_passwords_and_tokens_of_addresses_are_not_shown(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path,
        "",
        slack_bot_token=SecretStr("xoxb-1"),
        slack_api_url="http://me:hunter22@127.0.0.1:9/api/",
        searxng_url="http://me:hunter22@127.0.0.1:9",
        web_docs=frozenset({"http://127.0.0.1:9/docs?token=hunter22", "https://me:hunter22@127.0.0.1:9/"}),
        git_docs=frozenset({"me:hunter22@127.0.0.1:a.git"}),
    )
    found = await examine(settings, faults={"ORION_DOCS_URL": "is wrong, not 'ftp://me:hunter22@host'"}, within_s=2)
    assert "127.0.0.1:9" in str(found)
    assert "hunter22" not in str(found)


async def test_one_langfuse_key_without_the_other_is_reported(tmp_path: Path) -> None:
    public = await checks(settings_in(tmp_path, "", langfuse_public_key="pk"))
    secret = await checks(settings_in(tmp_path, "", langfuse_secret_key=SecretStr("sk")))
    assert (public["Langfuse"].ok, secret["Langfuse"].ok) == (False, False)
    assert "LANGFUSE_SECRET_KEY is not set" in public["Langfuse"].detail
    assert "LANGFUSE_PUBLIC_KEY is not set" in secret["Langfuse"].detail


@pytest.mark.parametrize(
    ("handoff", "says_so"),
    [
        ("C0HELP", "reaches C0HELP"),
        ("#help", "reaches #help"),
        ("S0HELPERS", "reaches S0HELPERS"),
        ("S0NOBODY", "no user group S0NOBODY"),
        ("#nowhere", "no channel #nowhere"),
        ("C0NOWHERE", "no channel C0NOWHERE"),
        ("#aside", "Orion is not in #aside"),
    ],
)
async def test_the_people_to_be_asked_can_be_reached(tmp_path: Path, handoff: str, says_so: str) -> None:
    async with workspace() as slack:
        slack.workspace.roster.channels["C0ASIDE"] = Channel(id="C0ASIDE", name="aside")
        found = await checks(settings_for(settings_in(tmp_path, "", handoff=handoff), slack))
        assert says_so in found["Hand-off"].detail
        assert found["Hand-off"].ok == ("reaches" in says_so)


@pytest.mark.parametrize(
    ("written", "detail", "ok"),
    [
        ('[C0HELP]\nmode = "listen"\n', "channels.toml reaches C0HELP", True),
        ('[C0NOWHERE]\nmode = "listen"\n', "no channel C0NOWHERE", False),
        ('[C0HELP]\nhandoff = "S0NOBODY"\n', "no user group S0NOBODY", False),
        ('[C0HELP]\nmode = "always"\n', "mode must be one of", False),
    ],
)
async def test_channels_and_their_settings_are_checked(written: str, detail: str, *, ok: bool, tmp_path: Path) -> None:
    file = tmp_path / "channels.toml"
    file.write_text(written)
    async with workspace() as slack:
        found = await checks(settings_for(settings_in(tmp_path, "", channels=file), slack))
        assert detail in found["Channels"].detail
        assert found["Channels"].ok is ok
        found = await checks(settings_for(settings_in(tmp_path, "", listen=frozenset({"C0NOWHERE"})), slack))
        assert "ORION_LISTEN" in found["Channels"].remedy


async def test_a_missing_reply_from_slack_is_reported(tmp_path: Path) -> None:
    async with workspace() as slack:
        slack.faults.fail("conversations.info", "missing_scope")
        found = await checks(settings_for(settings_in(tmp_path, "", handoff="C0HELP"), slack))
        assert found["Hand-off"].detail == "Slack does not tell: missing_scope"
        slack.faults.hang("conversations.info")
        found = await checks(settings_for(settings_in(tmp_path, "", handoff="C0HELP"), slack), within_s=1)
        assert found["Hand-off"].detail == "Slack did not answer in time"


async def test_a_pause_is_shown_with_its_reason(tmp_path: Path, redis_url: str, redis_client: Redis) -> None:
    await Pausing(redis_client).pause("Index")
    found = await checks(settings_in(tmp_path, redis_url))
    assert "(Index)" in found["Paused"].detail
    assert "orion resume" in found["Paused"].remedy
    await Pausing(redis_client).resume()
    assert "Paused" not in await checks(settings_in(tmp_path, redis_url))


async def test_unread_files_and_never_read_sources_are_named(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "good.md").write_text("# Good\n\nText.\n")
    for n in range(7):
        (docs / f"{n}.md").write_bytes(b"")
    web = frozenset({"http://127.0.0.1:9/handbook"})
    check = (await checks(settings_in(tmp_path / "home", "", docs=(docs,), web_docs=web)))["Knowledge"]
    assert not check.ok
    unread = "".join(f"; not read: {n}.md: is empty" for n in range(5))
    assert check.detail == f"1 document; never read: http://127.0.0.1:9{unread}; 2 more: `orion docs` names them"
    assert check.remedy.startswith("Run `orion index`")
    mended = (await checks(settings_in(tmp_path / "home", "", docs=(docs,))))["Knowledge"]
    assert mended.remedy == "Fix or remove them."


@pytest.mark.parametrize(("read", "told"), [(2_048, "m reads 2,048 tokens"), (9_900, "")])
async def test_a_server_with_too_small_a_context_is_reported(tmp_path: Path, read: int, told: str) -> None:
    replies = repeat(replace(RESPOND, usage=(read, 1)))
    async with ScriptedOpenAI(decisions=replies, drafts=[ANSWER]) as server:
        found = await checks(settings_in(tmp_path, "", openai_base_url=server.url, model="m"))
    assert found["Model"].ok
    assert found["Model context"].detail.startswith(told) if told else "Model context" not in found

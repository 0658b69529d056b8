"""Files fetched from Slack over real HTTP: what is read, what is refused, and what a person is told.

The server is the local workspace, or a small server that misbehaves as Slack and networks do.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.texts.catalogue import say
from agent.thread.conversation import AttachedFile, ThreadKey
from bot.local.model.roster import TEAM_ID, VISITOR
from bot.slack import files
from bot.slack.client import SlackWorkspace, open_client
from bot.slack.files import MAX_BYTES, Attachments
from bot.slack.history import ThreadReader
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed, SlackCalls
from tests.support.documents import slow_workbook
from tests.support.local_slack import CHANNEL, CHAT, Slack, local_slack
from tests.support.orion_running import DIRECT, MENTION, Setting, running, settings_in, text_of
from tests.support.waiting import wait_until

TOKEN = "xoxb-file-server"
LETTER = Incoming(
    kind="question", thread=ThreadKey(team="T1", channel="C1", thread_ts="5.000001"), user="U1", ts="5.000001",
    addressed="mention", files="unknown",
)  # fmt: skip
Reply = dict[str, Any]
"""What ``web.Response`` is made of."""
PAGE = b"<html><body>Please sign in to Slack to see this file, it is not the file.</body></html>"


@dataclass(kw_only=True)
class FileServer:
    """A server with one message; each of its files is answered by what a test puts there."""

    files: list[dict[str, Any]] = field(default_factory=list)
    replies: dict[str, Reply | float] = field(default_factory=dict)
    tokens: list[str] = field(default_factory=list)
    url: str = ""

    def offer(self, name: str, reply: Reply | float, **more: Any) -> None:
        """A file; a number is the seconds that its server stays silent."""
        address = f"{self.url}/files/{name}"
        self.files.append({"id": f"F{len(self.files)}", "name": name, "url_private_download": address, **more})
        self.replies[name] = reply

    async def message(self, _request: web.Request) -> web.Response:
        return web.json_response({"ok": True, "messages": [{"ts": LETTER.ts, "text": "", "files": self.files}]})

    async def file(self, request: web.Request) -> web.Response:
        self.tokens.append(request.headers.get("Authorization", ""))
        reply = self.replies[request.match_info["name"]]
        if isinstance(reply, float):
            await asyncio.sleep(reply)
            return web.Response()
        return web.Response(**reply)


@asynccontextmanager
async def file_server(*, fetch_timeout_s: float = 10.0) -> AsyncIterator[tuple[FileServer, Attachments]]:
    there = FileServer()
    app = web.Application()
    app.add_routes([web.get("/api/conversations.replies", there.message), web.get("/files/{name}", there.file)])
    async with TestServer(app) as server:
        there.url = str(server.make_url("")).rstrip("/")
        async with open_client(TOKEN, api_url=f"{there.url}/api/") as client:
            calls = SlackCalls(client, patience_s=0.1, first_pause_s=0.01)
            reader = ThreadReader(SlackWorkspace(calls))
            yield there, Attachments(reader, fetch_timeout_s=fetch_timeout_s)


def attachments(slack: Slack) -> Attachments:
    return Attachments(slack.reader)


def incoming(ts: str, channel: str = CHANNEL, thread_ts: str = "", **more: Any) -> Incoming:
    place = ThreadKey(team=TEAM_ID, channel=channel, thread_ts=thread_ts or ts)
    fields: dict[str, Any] = {"files": "unknown", **more}
    return Incoming(kind="question", thread=place, user=VISITOR, ts=ts, addressed="mention", **fields)


def names_and_origins(read: tuple[AttachedFile, ...]) -> list[tuple[str, bool]]:
    return [(file.name, file.opening) for file in read]


MAIL = {
    "mode": "email",
    "filetype": "email",
    "mimetype": "text/html",
    "subject": "Budget",
    "from": [{"address": "ann@example.org", "name": "Ann", "original": "Ann <ann@example.org>"}],
}


@pytest.mark.parametrize(
    ("name", "data", "told", "text"),
    [
        ("Budget", b"<html><body><p>It is <b>900</b> euros.</p></body></html>", MAIL,
         "Subject: Budget\nFrom: Ann <ann@example.org>\n\nIt is **900** euros."),
        ("export", b"<p>Price: 40</p>", {"mimetype": "text/html"}, "Price: 40"),
        ("export.dat", b"<!DOCTYPE html><p>Price: 40</p>", {"mimetype": "application/octet-stream"}, "Price: 40"),
        ("Untitled", b"## Plan\n\nShip.", {"mimetype": "text/markdown", "mode": "snippet"}, "## Plan\n\nShip."),
        ("notes", b"plain words", {"mimetype": "", "filetype": ""}, "plain words"),
        ("run.py", b"print('walrus')", {"mimetype": "text/x-python"}, "print('walrus')"),
        ("table", b'{"price": 40}', {"mimetype": "application/json"}, '{"price": 40}'),
        ("data", b"\x00\x01\x02", {"mimetype": "application/octet-stream", "filetype": "binary"}, ""),
    ],
)  # fmt: skip
async def test_a_file_is_recognised_by_type_and_content(
    name: str, data: bytes, told: dict[str, Any], text: str, slack: Slack
) -> None:
    file_id = slack.server.add_file(VISITOR, name, data, "application/octet-stream")
    slack.server.workspace.files[file_id].payload.update(told)
    ts = slack.server.post(VISITOR, CHANNEL, f"{MENTION} what is this?", files=[file_id])
    (file,) = await attachments(slack).read_all(incoming(ts), {})
    assert file.text.strip() == text
    assert file.trouble == ("" if text else "form")


async def test_files_listed_in_an_event_are_read_without_fetching_the_message(slack: Slack) -> None:
    file = slack.server.add_file(VISITOR, "a.txt", b"Forty euros.")
    told = (slack.server.workspace.files[file].payload,)
    (read,) = await attachments(slack).read_all(incoming("1.000001", files="some", attached=told), {})
    assert (read.name, read.text.strip(), read.trouble) == ("a.txt", "Forty euros.", "")
    assert slack.server.calls == []
    ts = slack.server.post(VISITOR, CHANNEL, f"{MENTION} what is this?", files=[file])
    (read,) = await attachments(slack).read_all(incoming(ts, files="some", attached=({"id": file},)), {})
    assert read.name == "a.txt", "an id alone is looked up"


async def test_files_of_the_question_come_before_those_of_the_threads_first_message(slack: Slack) -> None:
    first, second = (slack.server.add_file(VISITOR, name, b"Forty euros.") for name in ("a.txt", "b.txt"))
    root = slack.server.post(VISITOR, CHANNEL, "look", files=[first])
    reply = slack.server.post(VISITOR, CHANNEL, f"{MENTION} and?", root, files=[second])
    bare = slack.server.post(VISITOR, CHANNEL, f"{MENTION} so?", root)
    again = slack.server.post(VISITOR, CHANNEL, f"{MENTION} this one", root, files=[first])
    chat = slack.server.post(VISITOR, CHAT, "", files=[first])
    reader = attachments(slack)
    for ts, read in (
        (reply, [("b.txt", False), ("a.txt", True)]),
        (bare, [("a.txt", True)]),
        (again, [("a.txt", False)]),  # the same file once
        (root, [("a.txt", False)]),
    ):
        assert names_and_origins(await reader.read_all(incoming(ts, thread_ts=root), {})) == read
    assert slack.count("conversations.replies") == 4, "one call brings both messages"
    assert [file.name for file in await reader.read_all(incoming(chat, CHAT, CHAT, files="some"), {})] == ["a.txt"]


async def test_a_threads_first_message_is_looked_up_only_if_it_was_not_read(slack: Slack) -> None:
    file = slack.server.add_file(VISITOR, "a.txt", b"Forty euros.")
    root = slack.server.post(VISITOR, CHANNEL, "look", files=[file])
    reply = slack.server.post(VISITOR, CHANNEL, "and?", root)
    asked, reader = incoming(reply, thread_ts=root, files="none"), attachments(slack)
    read = await slack.reader.read_conversation(asked.thread, before=reply)
    before = slack.count("conversations.replies")
    assert names_and_origins(await reader.read_all(asked, read.first)) == [("a.txt", True)]
    assert await reader.read_all(asked, {}) == ()
    assert slack.count("conversations.replies") == before
    assert names_and_origins(await reader.read_all(asked, None)) == [("a.txt", True)]
    assert slack.server.calls[-1].arguments["latest"] == root, "asked for by its own ts: no server has to add it"
    assert slack.count("conversations.replies") == before + 1


async def test_in_an_unreadable_channel_only_files_from_events_are_known() -> None:
    """A Slack that is away is waited for."""
    async with local_slack(patience_s=0.05) as slack:
        ts = slack.server.post(VISITOR, CHANNEL, f"{MENTION} hm?")
        slack.server.faults.fail("conversations.replies", "missing_scope", times=1)
        assert await attachments(slack).read_all(incoming(ts), {}) == ()
        slack.server.faults.fail("conversations.replies", "missing_scope", times=2)
        assert await attachments(slack).read_all(incoming(ts, files="some"), {}) == (
            AttachedFile(name="", trouble="away"),
        )
        assert await attachments(slack).read_all(incoming(ts, files="none"), None) == ()
        slack.server.faults.fail("conversations.replies", "internal_error", times=100)
        with pytest.raises(DeliveryFailed):
            await attachments(slack).read_all(incoming(ts), {})


async def test_the_limit_covers_the_question_and_the_top_of_its_thread_together() -> None:
    async with file_server() as (there, reader):
        for number in range(4):
            there.offer(f"{number}.txt", {"text": "Forty euros."})
        above = {"ts": "4.000001", "files": [{**there.files[0], "id": f"A{number}"} for number in range(3)]}
        read = await reader.read_all(replace(LETTER, thread=replace(LETTER.thread, thread_ts="4.000001")), above)
        assert [(file.opening, file.trouble) for file in read] == [
            *[(False, "")] * 4, (True, ""), (True, "many"), (True, "many"),
        ]  # fmt: skip
        assert set(there.tokens) == {f"Bearer {TOKEN}"}


def redirect(to: str) -> Reply:
    return {"status": 302, "headers": {"Location": to}}


def page(**more: Any) -> tuple[Reply, dict[str, Any]]:
    return {"body": PAGE, "content_type": "text/html"}, more


TROUBLES: list[tuple[str, Reply | float, dict[str, Any], str]] = [
    ("login.txt", *page(mimetype="text/plain"), "not_allowed"),
    ("login.html", *page(mimetype="text/html", size=7), "not_allowed"),
    ("right.html", *page(mimetype="text/html", size=len(PAGE)), ""),
    ("forbidden.txt", {"status": 403}, {}, "not_allowed"),
    ("gone.txt", {"status": 404}, {}, "away"),
    ("loop.txt", redirect("/files/loop.txt"), {}, "not_allowed"),
    ("off.txt", redirect("http://127.0.0.2:1/steal"), {}, "elsewhere"),
    ("grown.txt", {"body": b"x" * (MAX_BYTES + 1)}, {}, "big"),
    ("big.txt", {"text": "never asked for"}, {"size": MAX_BYTES + 1}, "big"),
    ("silent.txt", 60.0, {}, "away"),
    ("empty.txt", {}, {}, "unreadable"),
    ("lost.txt", {}, {"size": 7}, "away"),
    ("error.txt", {"text": '{"ok": false}', "content_type": "application/json"}, {"size": 900}, "away"),
    ("right.json", {"text": '{"ok": false}', "content_type": "application/json"}, {"size": 13}, ""),
    ("binary.txt", {"body": b"\0\1\2" * 50}, {}, "unreadable"),
    ("broken.pdf", {"body": b"%PDF-1.4 nothing"}, {}, "unreadable"),
    ("scan", {"body": b"%PDF-1.4 nothing"}, {"mimetype": "application/pdf"}, "unreadable"),
    ("archive.zip", {"body": b"PK"}, {"mimetype": "application/zip"}, "form"),
    ("old.txt", {"text": "x"}, {"mode": "hidden_by_limit"}, "away"),
    ("drive.txt", {"text": "x"}, {"url_private_download": "https://drive.example/doc"}, "elsewhere"),
    ("file.txt", {"text": "x"}, {"url_private_download": "file:///etc/hosts"}, "elsewhere"),
    ("none.txt", {"text": "x"}, {"url_private_download": 7}, "elsewhere"),
    ("strange.txt", {"text": "x"}, {"url_private_download": "https://[::1"}, "away"),
    ("slack.txt", {"text": "x"}, {"url_private_download": "https://files.slack.com/a"}, "elsewhere"),
    ("asked.txt", {"text": "x"}, {"file_access": "check_file_info"}, "away"),
]  # fmt: skip


async def test_every_fault_of_a_file_is_reported_with_it() -> None:
    async with file_server(fetch_timeout_s=0.5) as (there, reader):
        for name, reply, more, trouble in TROUBLES:
            there.files.clear()
            there.offer(name, reply, **more)
            (file,) = await reader.read_all(LETTER, {})
            assert (file.name, file.trouble) == (name, trouble), name
            assert bool(file.text) == (not trouble)


async def test_files_of_a_message_share_a_time_limit_and_those_it_skips_are_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(files, "READ_TIMEOUT_S", 1.5)  # a limit, not behaviour
    async with file_server() as (there, reader):
        for name in ("a", "b"):
            there.offer(f"{name}.xlsx", {"body": slow_workbook()})
        there.offer("plan.txt", {"text": "Forty euros."})
        read = await reader.read_all(LETTER, {})
    assert [file.trouble for file in read] == ["slow", "slow", ""]
    assert read[2].text == "Forty euros."


async def test_slacks_hosts_get_the_token_only_from_slacks_api_over_tls(slack: Slack) -> None:
    slack.client.base_url = "https://slack.com/api/"
    reader = attachments(slack)
    good = ("https://files.slack.com/f", "https://acme.slack.com/f", "https://slack-files.com/f")
    bad = ("http://files.slack.com/f", "https://files.slack.com.evil.example/f", "https://evilslack.com/f")
    assert [url for url in (*good, *bad) if reader.is_allowed(url)] == list(good)


async def test_another_organisations_file_is_requested_by_its_id(slack: Slack) -> None:
    file_id = slack.server.add_file(VISITOR, "plan.txt", b"Forty euros.")
    ts = slack.server.post(VISITOR, CHANNEL, f"{MENTION} hm?", files=[file_id])
    message = slack.server.workspace.log.get(CHANNEL, ts)
    assert message is not None
    message.files = [{"id": file_id, "file_access": "check_file_info"}]
    (read,) = await attachments(slack).read_all(incoming(ts), {})
    assert (read.name, read.text, read.trouble) == ("plan.txt", "Forty euros.", "")
    slack.server.faults.fail("files.info", "missing_scope", times=1)
    assert [file.trouble for file in await attachments(slack).read_all(incoming(ts), {})] == ["not_allowed"]


@pytest.fixture
async def setting(tmp_path: Path, redis_url: str, redis_client: Redis) -> AsyncIterator[Setting]:
    async with running(settings_in(tmp_path, redis_url)) as made:
        yield made


async def test_questions_about_files_are_answered_end_to_end(setting: Setting) -> None:
    """A mention with a question, a mention and a direct message of nothing but a file, one that cannot be read."""
    workspace = setting.workspace
    plan = workspace.add_file(VISITOR, "offsite.md", b"# Offsite\n\nThe walrus offsite takes place in Turin.\n")
    photo = workspace.add_file(VISITOR, "photo.png", b"\x89PNG")
    asked = workspace.post(VISITOR, CHANNEL_HELP, f"{MENTION} Where is the walrus offsite?", files=[plan, photo])
    bare = workspace.post(VISITOR, CHANNEL_HELP, MENTION, files=[plan])
    direct = workspace.post(VISITOR, DIRECT, "", files=[plan])
    answer = text_of(await setting.answer_to(asked))
    assert "The walrus offsite takes place in Turin." in answer.replace("*", "")
    assert "offsite.md" in answer
    assert say("file_form", "en", name="photo.png") in answer
    assert "walrus offsite takes place in Turin" in text_of(await setting.answer_to(bare))
    assert "walrus offsite takes place in Turin" in text_of(await setting.answer_to(direct, channel=DIRECT))


CHANNEL_HELP = "C0HELP"


LOG = b"""2026-11-20 02:14:07 walrus backup started on vault-3
2026-11-20 02:31:44 walrus backup failed: disk quota of 40 GB exceeded
2026-11-20 02:32:10 pager told Priya
"""


async def test_a_file_at_the_top_of_a_thread_is_read_for_the_questions_under_it(setting: Setting) -> None:
    """A colleague posts a log and a photo. A question under them is about the log. Unread files are named once."""
    workspace = setting.workspace
    files = [workspace.add_file("U0ONCALL", name, data) for name, data in (("night.log", LOG), ("photo.png", b"\x89"))]
    root = workspace.post("U0ONCALL", CHANNEL_HELP, "The backup again.", files=files)
    asked = setting.ask(f"{MENTION} why did the walrus backup fail?", thread=root)
    first = text_of(await setting.answer_to(asked, thread=root))
    assert "disk quota of 40 GB exceeded" in first
    assert "night.log" in first
    assert say("file_form", "en", name="photo.png") in first
    further = setting.ask("Who was told by the pager?", thread=root)
    second = text_of(await setting.answer_to(further, thread=root))
    assert "pager told Priya" in second
    assert "photo.png" not in second


async def test_a_log_in_the_threads_first_message_can_be_summarised_as_a_whole(setting: Setting) -> None:
    for text in ("what does this log say?", "what does the log say?", "can you summarise this?"):
        log = setting.workspace.add_file("U0ONCALL", "night.log", LOG)
        root = setting.workspace.post("U0ONCALL", CHANNEL_HELP, "", files=[log])
        asked = setting.ask(f"{MENTION} {text}", thread=root)
        assert "walrus backup started on vault-3" in text_of(await setting.answer_to(asked, thread=root)), text


async def test_a_file_removed_from_the_threads_first_message_is_not_used(setting: Setting) -> None:
    workspace = setting.workspace
    log = workspace.add_file("U0ONCALL", "night.log", LOG)
    root = workspace.post("U0ONCALL", CHANNEL_HELP, "The backup again.", files=[log])
    asked = setting.ask(f"{MENTION} why did the walrus backup fail?", thread=root)
    await setting.answer_to(asked, thread=root)
    with capture_logs() as logs:
        workspace.delete(CHANNEL_HELP, root)
        await wait_until(lambda: "delete" in [line.get("kind") for line in logs], "the deletion has come")
    further = setting.ask("Who was told by the pager?", thread=root)
    assert "Priya" not in text_of(await setting.answer_to(further, thread=root))


async def test_an_edited_question_is_answered_from_the_threads_file_again(setting: Setting) -> None:
    log = setting.workspace.add_file("U0ONCALL", "night.log", LOG)
    root = setting.workspace.post("U0ONCALL", CHANNEL_HELP, "The backup again.", files=[log])
    asked = setting.ask(f"{MENTION} why did the walrus backup fail?", thread=root)
    first = await setting.answer_to(asked, thread=root)
    setting.workspace.edit(CHANNEL_HELP, asked, f"{MENTION} who was told by the pager?")

    def changed_answer() -> dict[str, Any] | None:
        found = [m for m in setting.workspace.messages(CHANNEL_HELP, root) if m["ts"] == first["ts"]]
        return found[0] if found and "pager told Priya" in text_of(found[0]) else None

    assert "night.log" in text_of(await setting.workspace.wait_for(changed_answer, 20))

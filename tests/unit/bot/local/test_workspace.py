"""The workspace over a restart, and what a visitor can make go wrong."""

import base64
import stat
from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from agent.knowledge.index.sqlite import SqliteIndex
from bot.local.model.limits import LENIENT
from bot.local.server import LocalWorkspace
from bot.local.workspace import load, save
from tests.support.local_echo import CHAT, HELP, YOU, idle


async def test_conversations_and_files_survive_a_restart(tmp_path: Path) -> None:
    async with LocalWorkspace(strictness=LENIENT, kept=tmp_path) as first:
        port = int(first.url.rpartition(":")[2])
        root = first.post(YOU, HELP, "one", files=[first.add_file(YOU, "a.txt", b"\x00text")])
        first.post("U0GUEST", HELP, "two", root)
        chat = first.channel("U0GUEST").id
        first.post("U0GUEST", chat, "mine")
        first.post(YOU, CHAT, "yours")
        before = first.messages(HELP, root)
    async with AsyncExitStack() as stack:
        second = LocalWorkspace(strictness=LENIENT, kept=tmp_path)
        stack.push_async_callback(second.stop)
        await second.start(port=port)
        assert second.messages(HELP, root) == before
        assert [message["text"] for message in second.messages(chat)] == ["mine"]
        assert [message["text"] for message in second.messages(second.channel(YOU).id)] == ["yours"]
        assert next(iter(second.workspace.files.values())).content == b"\x00text"
        assert second.post(YOU, HELP, "three") > before[-1]["ts"]


@pytest.mark.parametrize("content", ["", "[]", '{"files": {}}', '{"messages": [{"text": 1}], "files": {}}'])
def test_a_damaged_file_is_put_aside_and_the_workspace_is_empty(content: str, tmp_path: Path) -> None:
    (tmp_path / "kept.json").write_text(content)
    workspace = idle()
    load(workspace, tmp_path / "kept.json")
    assert workspace.log.timeline(HELP) == []
    assert (tmp_path / "kept.damaged").read_text() == content


async def test_a_person_can_be_chosen_and_shares_a_file() -> None:
    async with LocalWorkspace(strictness=LENIENT) as workspace, aiohttp.ClientSession() as session:

        async def act(action: str, /, **body: object) -> dict[str, object]:
            async with session.post(f"{workspace.url}/ui/{action}", json=body) as answer:
                return dict(await answer.json())

        content = base64.b64encode(b"words").decode()
        uploaded = await act("upload", name="../notes.md", content=content, user="U0GUEST")
        await act("post", channel=HELP, text="", files=[uploaded["file"]], user="U0GUEST")
        (message,) = workspace.messages(HELP)
        assert (message["user"], message["subtype"]) == ("U0GUEST", "file_share")
        assert message["files"][0]["name"] == "notes.md"
        assert (await act("upload", name="a", content="%", user=YOU))["error"] == "invalid_file"
        async with session.get(f"{workspace.url}/ui/boot?user=U0GUEST") as answer:
            boot = await answer.json()
        assert boot["me"] == "U0GUEST"
        assert CHAT not in {channel["id"] for channel in boot["channels"]}


DEEP = '{"a":' * 100_000


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/docs/%00", None, 404),
        ("/docs/a%00.md", None, 404),
        ("/docs/" + "a/" * 3_000, None, 404),
        ("/ui/post", DEEP, 400),
        ("/ui/post", '{"channel": {}, "text": "x"}', 400),
        ("/ui/post", '{"channel": "C0HELP\\u0000", "text": "x"}', 400),
        ("/ui/upload", '{"name": "\\u0000", "content": 7}', 400),
        ("/ui/click", "[]", 400),
        ("/ui/stop", '{"channel": 7, "thread_ts": "1.1"}', 400),
        ("/api/chat.postMessage", DEEP, 200),
        ("/api/chat.postMessage", '{"blocks": "' + DEEP.replace('"', '\\"') + '"}', 200),
    ],
    ids=range(11),
)
async def test_a_malformed_request_is_refused_and_the_workspace_keeps_running(
    path: str, body: str | None, status: int, tmp_path: Path
) -> None:
    async with LocalWorkspace(docs=(tmp_path,)) as workspace:
        kind = {"Content-Type": "application/json", "Origin": workspace.url}
        async with aiohttp.ClientSession() as session:
            method = "GET" if body is None else "POST"
            async with session.request(method, workspace.url + path, data=body, headers=kind) as reply:
                assert reply.status == status, await reply.text()
            async with session.get(workspace.url + "/ui/boot") as reply:
                assert reply.status == 200


async def test_only_their_owner_can_read_index_and_conversations(tmp_path: Path) -> None:
    workspace = LocalWorkspace(docs=(tmp_path,))
    SqliteIndex.open(tmp_path / "home" / "knowledge.sqlite3").close()
    save(workspace.workspace, tmp_path / "other" / "workspace.json")
    for file in (*(tmp_path / "home").iterdir(), tmp_path / "other" / "workspace.json"):
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700, file

"""Malformed requests to the local workspace get an answer that names the fault, and its files are their owner's."""

import stat
from pathlib import Path

import aiohttp
import pytest

from agent.knowledge.index.sqlite import SqliteIndex
from bot.local.server import LocalWorkspace
from bot.local.workspace import save

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

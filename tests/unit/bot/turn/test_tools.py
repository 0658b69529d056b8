"""The tools that settings name: there when configured, absent when not, and refused with what to do when wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.errors import WrongUse
from bot.settings import Settings, load_settings
from bot.turn.engine import RESERVED, mcp_servers, open_toolbox
from tests.support.orion_running import settings_in


def config(tmp_path: Path, **servers: Any) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


async def names(settings: Settings) -> list[str]:
    async with open_toolbox(settings) as toolbox:
        return [tool.spec.name for tool in toolbox.tools]


async def test_what_is_configured_is_there(tmp_path: Path) -> None:
    settings = settings_in(
        tmp_path, "", git=(tmp_path,), files=(tmp_path,), searxng_url="http://127.0.0.1:9", git_url="https://g.example"
    )
    assert await names(settings) == ["git_log", "git_show", "file_read", "web_search"]
    assert set(await names(settings)) <= RESERVED
    assert await names(settings_in(tmp_path, "")) == []


@pytest.mark.parametrize("variable", ["git", "files"])
async def test_folder_that_is_not_there_is_named(tmp_path: Path, variable: str) -> None:
    with pytest.raises(WrongUse, match=f"ORION_{variable.upper()} names .*nowhere, which is not a folder"):
        await names(settings_in(tmp_path, "", **{variable: (tmp_path / "nowhere",)}))


async def test_orion_starts_although_a_server_is_down(tmp_path: Path) -> None:
    path = config(tmp_path, gone={"command": str(tmp_path / "nowhere")}, off={"command": "x", "disabled": True})
    settings = settings_in(tmp_path, "", mcp_config=path)
    async with open_toolbox(settings) as toolbox:
        assert toolbox.mcp
        assert list(toolbox.mcp.all()) == ["gone_search"]
    assert [server.name for server in mcp_servers(settings)] == ["gone"]


async def test_what_fails_inside_comes_out_as_it_is(tmp_path: Path) -> None:
    """The servers' keepers run in a task group, which would wrap it up."""
    settings = settings_in(
        tmp_path, "", mcp_config=config(tmp_path, gone={"command": sys.executable, "args": ["-c", ""]})
    )
    with pytest.raises(WrongUse, match="no reason"):
        async with open_toolbox(settings):
            raise WrongUse("no reason")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read \\(No such file or directory\\)"),
        (b"\xff\xfe", "cannot be read \\(it is not UTF-8 text\\)"),
        (b"{", "It should be a JSON object such as"),
        (b'{"mcpServers": {"a": {}}}', "Server 'a': it needs either 'command' or 'url'\\."),
    ],
)
def test_configuration_that_cannot_be_meant_so_is_refused(tmp_path: Path, content: bytes | None, reason: str) -> None:
    path = tmp_path / "mcp.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(WrongUse, match=reason):
        mcp_servers(settings_in(tmp_path, "", mcp_config=path))


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in (("GIT", "/a:/b"), ("FILES", "/c"), ("SEARXNG_URL", "http://s.example/x"), ("MCP_CONFIG", " ")):
        monkeypatch.setenv(f"ORION_{name}", value)
    settings = load_settings()
    assert (settings.git, settings.files) == ((Path("/a"), Path("/b")), (Path("/c"),))
    assert (settings.searxng_url, settings.mcp_config) == ("http://s.example/x", None)
    monkeypatch.setenv("ORION_MCP_CONFIG", "~/mcp.json")
    assert load_settings().mcp_config == Path.home() / "mcp.json"
    monkeypatch.setenv("ORION_SEARXNG_URL", "localhost:8888")
    with pytest.raises(WrongUse, match=r"ORION_SEARXNG_URL must be an address such as"):
        load_settings()

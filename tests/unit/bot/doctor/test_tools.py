"""`orion doctor` names each configured tool and whether it answers."""

import json
import sys
from pathlib import Path
from typing import Any

from bot.doctor.checks import Check
from bot.doctor.doctor import TOOL_CHECKS, run_checks
from bot.settings import Settings
from tests.support import bad_mcp_server
from tests.support.mcp_server import over_http
from tests.support.orion_running import settings_in
from tests.support.searxng import LocalSearxNG


async def checks(settings: Settings, within_s: float = 20) -> dict[str, Check]:
    found = {check.name: check for check in await run_checks(TOOL_CHECKS, settings, within_s)}
    assert all(check.ok or check.remedy for check in found.values())
    return found


def config(tmp_path: Path, **servers: Any) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


async def test_unconfigured_tools_are_not_mentioned(tmp_path: Path) -> None:
    assert await checks(settings_in(tmp_path, "")) == {}


async def test_each_working_tool_is_listed(tmp_path: Path) -> None:
    async with LocalSearxNG() as engine, over_http() as url:
        shop = {"url": url, "allow": ["stock", "many"], "audience": "public"}
        path = config(tmp_path, shop=shop, none={"url": url, "allow": ["x"]}, nobody={"url": url, "allow": ["stock"]})
        found = await checks(settings_in(tmp_path, "", searxng_url=engine.url, mcp_config=path))
    rest = "sleep, hang, die, process, table, grow"
    assert {name: (check.ok, check.detail) for name, check in found.items()} == {
        "Web search": (True, f"web_search: {engine.url} answers"),
        "MCP shop": (True, f"answers: shop_many, shop_stock; left out: {rest}"),
        "MCP none": (False, f"answers, but offers no tool; left out: stock, many, {rest}"),
        "MCP nobody": (False, "answers, but no one may use it"),
    }


async def test_each_failing_tool_is_listed_with_a_remedy(tmp_path: Path) -> None:
    path = config(
        tmp_path,
        mute={"command": sys.executable, "args": [str(bad_mcp_server.__file__), "mute"], "env": {"TOKEN": "hush"}},
        away={"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer hush"}},
    )
    async with LocalSearxNG(status=403) as engine:
        found = await checks(settings_in(tmp_path, "", searxng_url=engine.url, mcp_config=path), 1)
        engine.hangs = True
        late = await checks(settings_in(tmp_path, "", searxng_url=engine.url), 0.2)
    assert {name: check.ok for name, check in found.items()} == dict.fromkeys(
        ("Web search", "MCP mute", "MCP away"), False
    )
    assert "settings.yml" in found["Web search"].remedy
    assert late["Web search"].detail == "did not answer within 0 s"
    assert "its command" in found["MCP mute"].remedy
    assert "its url" in found["MCP away"].remedy
    assert "hush" not in str(found)


async def test_a_configuration_that_makes_no_sense_is_reported(tmp_path: Path) -> None:
    (tmp_path / "mcp.json").write_text("[]")
    found = await checks(settings_in(tmp_path, "", mcp_config=tmp_path / "mcp.json"))
    assert not found["MCP"].ok

"""Real MCP servers over standard streams and HTTP: their tools, their sources, and what they can do wrong."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from aiohttp import web

from agent.actions import ToolCall
from agent.thread.conversation import Viewers
from agent.tools.mcp.client import MAX_TOOLS, Waits
from agent.tools.mcp.config import MAX_ALL_TOOLS, McpServer
from agent.tools.mcp.tools import McpTools, open_mcp
from agent.tools.mcp.transport import MAX_REPLY_BYTES
from agent.tools.tool import ToolResult, call_tool
from tests.support import bad_mcp_server, mcp_server
from tests.support.mcp_server import over_http
from tests.support.waiting import wait_until

QUICK = Waits(start=20, first=20, ready=10, pause=0.05, longest=0.1)
HASTY = Waits(start=0.5, first=0.2, ready=0.2, pause=0.05, longest=0.1)


def child(*words: str, **more: Any) -> McpServer:
    program = bad_mcp_server if words else mcp_server
    root = Path(str(program.__file__)).parents[2]
    env = {"PYTHONPATH": str(root), **more.pop("env", {})}
    more = {"allow": ("*",), "audience": "public", **more}
    return McpServer(name="shop", command=sys.executable, args=(str(program.__file__), *words), env=env, **more)


async def call(tools: McpTools, tool: str, **arguments: Any) -> ToolResult:
    asked = ToolCall(call_id="1", tool=tool, input=arguments)
    return await call_tool(tools.by_name(), asked, timeout_s=60, max_chars=16_000)


async def pid(tools: McpTools) -> int:
    return int((await call(tools, "shop_process")).content.split()[1])


async def test_a_server_over_standard_streams_starts_works_and_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """One story, for a server takes seconds to start: tools, sources, errors, a death, and being alive again."""
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-none-of-its-business")
    allowed = ("s*", "many", "die", "process")
    server = child(timeout_s=5.0, max_chars=200, env={"SHOP_TOKEN": "t"}, allow=allowed)
    with structlog.testing.capture_logs() as logs:
        async with open_mcp([server], frozenset({"shop_sleep"}), QUICK) as tools:
            assert sorted(tools.by_name()) == [
                "shop_die",
                "shop_many",
                "shop_process",
                "shop_read",
                "shop_sleep_2",
                "shop_stock",
            ]

            found = await call(tools, "shop_stock", item="tea")
            assert (found.ok, found.content) == (True, "There are 41 packets of tea in stock.")
            (source,) = found.sources
            assert (source.title, source.text, source.origin) == ("shop: stock", found.content, "tool:shop_stock")

            many = await call(tools, "shop_many", count=100)
            assert many.content.endswith("[Characters 0 to 200 of 500.]")
            assert len(many.sources[0].text) == 200
            assert many.hints == ('shop_read reads on: {"from": "r2", "offset": 200}, or with words to "find" in it.',)
            rest = await call(tools, "shop_read", **{"from": "r2", "offset": 400})
            assert len(rest.sources[0].text) == 100
            assert not (await call(tools, "shop_read", **{"from": "r9"})).ok

            wrong = await call(tools, "shop_stock", item=3)
            assert wrong.error == "Bad parameters: 'item' is not of type 'string'."
            failed = await call(tools, "shop_stock", item="soap")
            assert (failed.ok, failed.error.startswith("The tool failed: "), failed.sources) == (False, True, ())

            shown = (await call(tools, "shop_process")).content
            assert shown.endswith("['SHOP_TOKEN']"), "of Orion's own environment a server sees nothing"

            before = await pid(tools)
            died = await call(tools, "shop_die")
            assert not died.ok
            assert died.error.startswith("The server shop broke off: ")
            assert await pid(tools) != before, "the next call has a new process"
            last = await pid(tools)
    await wait_until(lambda: not Path(f"/proc/{last}").exists(), "no process stays behind")
    assert "tea" not in str(logs)
    assert [entry["event"] for entry in logs if entry["event"].startswith("mcp")] == [
        "mcp_tools_left_out", "mcp_server_connected", "mcp_server_away",
        "mcp_tools_left_out", "mcp_server_connected",
    ]  # fmt: skip


async def test_a_hanging_server_is_restarted_but_not_for_a_slow_tool() -> None:
    async with open_mcp([child(timeout_s=0.5)], frozenset(), QUICK) as tools:
        before = await pid(tools)
        for tool, is_restarted in (("shop_sleep", False), ("shop_hang", True)):
            hung = await call(tools, tool)
            assert hung.error == "The server shop gave no result within 0.5 seconds."
            assert (await pid(tools) != before) is is_restarted


async def test_a_server_over_http_hangs_stops_and_recovers() -> None:
    async with over_http() as url:
        port = int(url.split(":")[2].partition("/")[0])
        server = McpServer(name="shop", url=url, timeout_s=2.0, headers={"X-Key": "k"}, allow=("*",))
        async with open_mcp([server], frozenset(), QUICK) as tools:
            assert (await call(tools, "shop_stock", item="coffee")).sources[0].text.startswith("There are 7 packets")
            hung = await call(tools, "shop_sleep")
            assert hung.error == "The server shop gave no result within 2 seconds."
            asked = ToolCall(call_id="1", tool="shop_sleep", input={})
            allowed = await call_tool(tools.by_name(), asked, timeout_s=0.1, max_chars=100)
            assert allowed.error == hung.error, "the time that an admin allows counts, though no other tool has as much"
            several = [tools, tools, tools]
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(call(one, "shop_stock", item="tea")) for one in several]
            assert all(task.result().ok for task in running)
        with structlog.testing.capture_logs() as logs:
            assert not (await _away(url)).ok
        reasons = [line["reason"] for line in logs if line["event"] == "mcp_server_away"]
        assert len(reasons) == len(set(reasons)) > 0, "a reason is logged once, not at each try"
    async with over_http(port) as again:
        assert again == url


async def _away(url: str) -> ToolResult:
    """A call of a tool whose server went and came back in between, and one while it is away."""
    async with over_http() as first:
        server = McpServer(name="shop", url=first, timeout_s=3, allow=("*",))
        opened = open_mcp([server], frozenset(), Waits(first=20, ready=0.3, pause=0.05, longest=0.1))
        tools = await opened.__aenter__()
    port = int(first.split(":")[2].partition("/")[0])
    try:
        away = await call(tools, "shop_stock", item="tea")
        async with over_http(port):
            await wait_until(lambda: tools.connections[0].is_connected, "it is connected again")
            assert (await call(tools, "shop_stock", item="tea")).ok
    finally:
        await opened.__aexit__(None, None, None)
    return away


@pytest.mark.parametrize("how", ["mute", "gone", "nonsense", "flood", "chatter", "stubborn"])
async def test_a_misbehaving_server_does_not_disturb_orion(how: str) -> None:
    async with open_mcp([child(how)], frozenset(), HASTY) as tools:
        assert set(tools.by_name()) <= {"shop_search"}
        (connection,) = tools.connections
        await wait_until(connection.tried.is_set, "one attempt has ended")
        assert not connection.is_connected


AS_USUAL: dict[str, Any] = {"timeout_s": 5, "allow": ("*",), "audience": "public"}


@asynccontextmanager
async def scripted_server(answer: Any, **more: Any) -> AsyncIterator[McpServer]:
    """A server over HTTP whose replies are a script: ``answer(method, params)`` gives a result, or a whole reply."""

    async def reply(request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        asked = await request.json()
        if "id" not in asked:
            return web.Response(status=202)
        found = answer(asked["method"], asked.get("params", {}))
        if isinstance(found, web.StreamResponse):
            return found
        return web.json_response({"jsonrpc": "2.0", "id": asked["id"], **found})

    app = web.Application()
    app.router.add_route("*", "/mcp", reply)
    runner = web.AppRunner(app, shutdown_timeout=0.2)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield McpServer(name="far", url=f"http://127.0.0.1:{runner.addresses[0][1]}/mcp", **{**AS_USUAL, **more})
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_server(answer: Any, waits: Waits = QUICK, reserved: str = "", **more: Any) -> AsyncIterator[McpTools]:
    """The tools of such a server."""
    async with scripted_server(answer, **more) as server, open_mcp([server], frozenset({reserved}), waits) as tools:
        yield tools


def tool(name: str = "look", **more: Any) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object", "properties": {"q": {"type": "string"}}}, **more}


def old_server(list_tools: Any, called: Any) -> Any:
    """Replies of a server that knows only the handshake; ``list_tools`` and ``called`` make results of parameters."""

    def answer(method: str, params: Mapping[str, Any]) -> Any:
        if method == "initialize":
            hello = {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "far", "version": "1"},
            }
            return {"result": hello}
        if method == "tools/list":
            return list_tools(params)
        if method == "tools/call":
            return called(params)
        return {"error": {"code": -32601, "message": "Method not found"}}

    return answer


def lists(*tools: Any) -> Any:
    return lambda _: {"result": {"tools": list(tools)}}


def says(*content: Any, **more: Any) -> Any:
    return lambda _: {"result": {"content": list(content), **more}}


TEXT = {"type": "text", "text": "fine"}


def as_text(value: object) -> dict[str, str]:
    return {"type": "text", "text": json.dumps(value)}


def as_json(body: bytes) -> web.Response:
    return web.Response(body=body, content_type="application/json")


@pytest.mark.parametrize(
    "bad",
    [
        tool("x" * 80),
        tool(""),
        tool(inputSchema={"type": "object", "properties": {"q": {"minimum": "low"}}}),
        tool(inputSchema={"type": "object", "properties": {"q": {"enum": ["x" * 30_000]}}}),
    ],
    ids=["long", "nameless", "minimum", "huge"],
)
async def test_a_tool_that_cannot_be_shown_is_left_out(bad: dict[str, Any]) -> None:
    """A name that is taken, by Orion's own or by another tool, gets a number."""
    replies = old_server(lists(bad, tool("own"), tool("good"), tool("good", title="Twice")), says(TEXT))
    names = ["far_own_2", "far_good", "far_good_2", "far_read"]
    async with open_server(replies, reserved="far_own") as tools:
        assert list(tools.by_name()) == names


@pytest.mark.parametrize("schema", [{"type": "object", "properties": []}, {"type": "string"}], ids=["list", "string"])
async def test_an_invalid_list_of_tools_gives_no_tool(schema: dict[str, Any]) -> None:
    replies = old_server(lists(tool(inputSchema=schema), tool("good")), says(TEXT))
    async with open_server(replies) as tools:
        assert list(tools.by_name()) == ["far_search"]


async def test_endless_lists_are_cut_off() -> None:
    def list_tools(params: Mapping[str, Any]) -> Any:
        number = int(params.get("cursor") or 0)
        return {"result": {"tools": [tool(f"t{number}-{n}") for n in range(5)], "nextCursor": str(number + 1)}}

    async with open_server(old_server(list_tools, says(TEXT))) as tools:
        assert len(tools.by_name()) == MAX_TOOLS + 1, "and one that reads on"
        assert len(McpTools([*tools.connections, *tools.connections], frozenset()).by_name()) == MAX_ALL_TOOLS


async def test_every_kind_of_mcp_content_becomes_text_or_a_note() -> None:
    parts = [
        TEXT,
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource", "resource": {"uri": "file:///a.txt", "text": "inside"}},
        {"type": "resource", "resource": {"uri": "file:///a.bin", "blob": "AAAA"}},
        {"type": "resource", "resource": {"uri": "file:///a.md", "blob": "YmxvYg==", "mimeType": "text/markdown"}},
        {"type": "resource_link", "uri": "https://a.example/b", "name": "b", "description": "all of b"},
    ]
    replies = old_server(lists(tool()), says(*parts))
    async with open_server(replies) as tools:
        found = await call(tools, "far_look", q="x")
    shown = "fine\n[image, not shown]\ninside\n[resource, not shown]\nblob\nb: https://a.example/b (all of b)"
    assert (found.content, found.sources[0].text) == (shown, shown)


@pytest.mark.parametrize(
    ("called", "content", "error"),
    [
        (says(), "Done.", ""),
        (says(structuredContent={"a": 1}), "a: 1", ""),
        (says(structuredContent={"error": "no"}), "", "The tool failed: error: no"),
        (says(structuredContent={"error": "no"}, isError=True), "", "The tool failed: "),
        (says(as_text({"success": False, "error": "no q"})), "", "The tool failed: success: False; error: no q"),
        (says({**TEXT, "text": "Error: HTTP 401"}), "", "The server far does not let Orion in: "),
        (says(TEXT, isError=True), "", "The tool failed: fine"),
        (says(isError=True), "", "The tool failed: no message"),
        (says("no part"), "", "The server far sent something that is not a result."),
        (lambda _: {"result": 5}, "", "The server far "),
        (lambda _: {"error": {"code": -32602, "message": "no\nsuch q"}}, "", "The server far refused: no such q"),
        (
            lambda _: {"error": {"code": -32603, "message": "401 Unauthorized"}},
            "",
            "The server far does not let Orion in",
        ),
        (lambda _: web.Response(status=404), "", "The server far broke off (HTTP 404)"),
        (lambda _: web.Response(text="<html>"), "", "The server far "),
        (lambda _: web.Response(status=500), "", "The server far "),
        (lambda _: as_json(b" " * (MAX_REPLY_BYTES + 1)), "", "The server far "),
        (lambda _: as_json(b"[" * 99_999), "", "The server far "),
    ],
    ids=map(str, range(17)),
)
async def test_every_reply_becomes_a_result(called: Any, content: str, error: str) -> None:
    replies = old_server(lists(tool()), called)
    async with open_server(replies) as tools:
        found = await call(tools, "far_look", q="x")
        assert (found.ok, found.content) == (not error, content)
        assert found.error.startswith(error)
        assert bool(found.sources) == content.startswith("a")
        await wait_until(lambda: tools.connections[0].is_connected, "the connection is there, or there again")


async def test_a_stubborn_server_is_killed_with_all_its_children(tmp_path: Path) -> None:
    """It ignores the polite signal, and has a child of its own."""
    noted = tmp_path / "pid"
    program = (
        "import os,signal,subprocess,sys;signal.signal(signal.SIGTERM,signal.SIG_IGN);"
        f"child=subprocess.Popen(['sleep','600']);open({str(noted)!r},'w').write(str(child.pid));signal.pause()"
    )
    server = McpServer(name="far", command=sys.executable, args=("-c", program))
    async with open_mcp([server], frozenset(), HASTY):
        await wait_until(noted.exists, "it started a child")
        await wait_until(noted.read_text, "and noted it")
    started = int(noted.read_text())
    await wait_until(lambda: not _lives(started), "the child is gone, too")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"


DETAILS = {"id": "7-a", "title": "Leave", "url": "https://wiki.example/p/7", "updated": "2026-03-01T10:00:00Z"}
PAGE = {"metadata": {**DETAILS, "content": {"value": "# Leave\n90 days for team leads.\n\nAsk Ann."}}}
HITS = [
    {"id": "7-a", "title": "Leave", "url": "https://wiki.example/p/7", "last_edited_time": "2026-03-01"},
    {"id": "8", "title": "Pay", "url": "https://evil.example/p/8"},
]


async def test_pages_as_json_become_readable_sources_with_title_link_and_date() -> None:
    """A page that says nothing of itself is named as the search before named it."""
    replies = {"find": HITS, "page": {"body": "90 days for team leads."}, "whole": PAGE}
    server = old_server(lists(*map(tool, replies)), lambda asked: says(as_text(replies[asked["name"]]))(asked))
    async with open_server(server, link_hosts=("wiki.example",), audience=["U12345"]) as tools:
        found = await call(tools, "far_find", q="leave")
        page = await call(tools, "far_page", q="7a")
        whole = await call(tools, "far_whole", q="")
    said = [(source.title, source.url, source.updated_at, source.audience) for source in found.sources]
    leave = ("Leave", "https://wiki.example/p/7", "2026-03-01", "U12345")
    assert said == [leave, ("Pay", "", "", "U12345")]
    (source,) = page.sources
    assert (source.title, source.url, source.updated_at, source.audience) == leave
    assert source.text == "body: 90 days for team leads."
    assert "\n90 days for team leads." in whole.sources[0].text
    assert (whole.sources[0].title, whole.sources[0].updated_at) == ("Leave", "2026-03-01T10:00:00Z")


async def test_tools_are_available_only_to_the_audience_of_their_server() -> None:
    async with open_server(old_server(lists(tool()), says(TEXT)), audience=["U12345"]) as tools:
        direct = Viewers(team="T1", channel="D1", user="U12345")
        seen = {who: list(tools.by_name(who)) for who in (direct, replace(direct, user="U9"), replace(direct, user=""))}
    assert seen == {direct: ["far_look", "far_read"], replace(direct, user="U9"): [], replace(direct, user=""): []}


async def test_without_an_allow_list_only_read_only_tools_are_available() -> None:
    annotated = [tool(name, annotations={"readOnlyHint": reads}) for name, reads in (("look", True), ("drop", False))]
    both = tool("both", annotations={"readOnlyHint": True, "destructiveHint": True})
    async with open_server(old_server(lists(*annotated, both, tool("mute")), says(TEXT)), allow=()) as tools:
        assert list(tools.by_name()) == ["far_look", "far_read"]
        assert tools.connections[0].left_out == ("drop", "both", "mute")


async def test_a_call_after_a_broken_connection_gets_a_new_one() -> None:
    replies = iter([web.Response(status=401), says(TEXT)({})])
    async with open_server(old_server(lists(tool()), lambda _: next(replies))) as tools:
        assert (await call(tools, "far_look", q="x")).error.startswith("The server far broke off (HTTP 401)")
        assert (await call(tools, "far_look", q="x")).content == "fine"


async def test_a_result_that_its_own_schema_does_not_allow_is_no_result() -> None:
    strict = tool(outputSchema={"type": "object", "required": ["n"]})
    async with open_server(old_server(lists(strict), says(TEXT, structuredContent={"m": 1}))) as tools:
        assert (await call(tools, "far_look", q="x")).error == "The server far sent something that is not a result."


@pytest.mark.parametrize(
    "second", [{"error": {"code": -32602, "message": "no"}}, {"result": {"tools": [], "nextCursor": "2"}}]
)
async def test_a_list_whose_next_page_fails_or_repeats_is_used_as_far_as_it_goes(second: dict[str, Any]) -> None:
    first = {"result": {"tools": [tool()], "nextCursor": "2"}}
    async with open_server(old_server(lambda asked: second if "cursor" in asked else first, says(TEXT))) as tools:
        assert list(tools.by_name()) == ["far_look", "far_read"]


async def test_an_embedded_page_has_its_link() -> None:
    page = {"type": "resource", "resource": {"uri": "https://wiki.example/7", "text": "90 days"}}
    async with open_server(old_server(lists(tool()), says(page)), link_hosts=("wiki.example",)) as tools:
        (source,) = (await call(tools, "far_look", q="x")).sources
    assert (source.url, source.text) == ("https://wiki.example/7", "url: https://wiki.example/7\n90 days")


async def test_a_server_that_refuses_orion_is_reported_as_unavailable_with_its_status() -> None:
    async with open_server(lambda *_: web.Response(status=401), replace(QUICK, ready=0.2)) as tools:
        refused = await call(tools, "far_search", query="leave")
    assert refused.error == "The server far cannot be reached (HTTP 401). It is tried again."
    assert (refused.away, refused.place) == (True, "far")
    assert "not that it holds nothing" in refused.hints[0]


async def test_a_program_that_ends_is_reported_with_its_last_lines_without_secrets() -> None:
    program = "import os,sys; sys.exit('bad token ' + os.environ['WIKI_TOKEN'])"
    server = McpServer(name="far", command=sys.executable, args=("-c", program), env={"WIKI_TOKEN": "hush-hush"})
    async with open_mcp([server], frozenset(), HASTY) as tools:
        await wait_until(lambda: "bad token" in tools.connections[0].trouble, "its error output was read")
        assert tools.connections[0].trouble == "bad token …"


async def test_only_links_that_a_result_contained_are_read() -> None:
    link = {"type": "resource_link", "uri": "wiki://page/7", "name": "Leave"}
    replies = old_server(lists(tool()), says(link))

    def answer(method: str, params: Mapping[str, Any]) -> Any:
        if method == "resources/read":
            return {"result": {"contents": [{"uri": params["uri"], "text": "90 days."}]}}
        return replies(method, params)

    async with open_server(answer) as tools:
        assert not (await call(tools, "far_read", **{"from": "wiki://page/7"})).ok
        assert (await call(tools, "far_look", q="x")).content == "Leave: wiki://page/7"
        assert (await call(tools, "far_read", **{"from": "wiki://page/7"})).sources[0].text == "90 days."


async def test_words_find_their_passage_in_a_long_result() -> None:
    long = "\n".join([*(f"Line {n} is about nothing." for n in range(99)), "Team leads get 90 days.", "The end."])
    async with open_server(old_server(lists(tool()), says({"type": "text", "text": long})), max_chars=200) as tools:
        first = await call(tools, "far_look", q="x")
        found = await call(tools, "far_read", **{"from": "r1", "find": "team leads days"})
    assert first.sources[0].text.endswith("\n"), "it is cut at the end of a line"
    assert "Team leads get 90 days." in found.sources[0].text


@pytest.mark.parametrize("mode", ["standard streams", "http"])
async def test_tools_that_a_server_adds_later_are_available(mode: str) -> None:
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(over_http()) if mode == "http" else ""
        server = McpServer(name="shop", url=url, allow=("*",)) if url else child()
        tools = await stack.enter_async_context(open_mcp([server], frozenset(), QUICK))

        async def has_grown() -> bool:
            return (await call(tools, "shop_grow")).ok and "shop_new" in tools.by_name()

        await wait_until(has_grown, "the new tool is listed")

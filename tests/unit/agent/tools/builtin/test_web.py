"""Web search over a server of SearXNG's form: results as sources, and every way the server can fail."""

from typing import Any

import httpx2
import pytest
import structlog

from agent.actions import ToolCall
from agent.tools.builtin.web import MAX_REPLY_BYTES, WebSearchTool, open_searxng
from agent.tools.tool import ToolResult, call_tool
from tests.support.searxng import LocalSearxNG

TEA = {
    "title": "Tea  prices",
    "url": "https://tea.example/prices?q=1",
    "content": "A kilo of tea\ncosts 9 euros.",
    "publishedDate": "2026-11-01T00:00:00",
    "engine": "x",
}


async def call(engine: WebSearchTool, **arguments: Any) -> ToolResult:
    asked = ToolCall(call_id="1", tool="web_search", input=arguments)
    return await call_tool({"web_search": engine}, asked, timeout_s=20, max_chars=16_000)


async def search(server: LocalSearxNG, **arguments: Any) -> ToolResult:
    async with open_searxng(server.url) as engine:
        return await call(engine, **arguments)


async def test_the_text_that_was_found_is_the_source(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")  # a loopback server is not behind it
    with structlog.testing.capture_logs() as logs:
        async with LocalSearxNG(TEA) as server:
            found = await search(server, query="price of tea")
    assert [entry["event"] for entry in logs] == ["tool_called"]
    assert "price" not in str(logs)
    (source,) = found.sources
    assert (source.title, source.url, source.text) == (
        "Tea prices",
        "https://tea.example/prices?q=1",
        "A kilo of tea costs 9 euros.",
    )
    assert (source.origin, source.updated_at) == ("tool:web_search", "2026-11-01")
    assert found.content == "Tea prices (https://tea.example/prices?q=1)"
    assert server.asked == ["price of tea"]


async def test_the_requested_number_is_returned_and_an_empty_result_is_a_result() -> None:
    many = [{**TEA, "url": f"https://tea.example/{n}"} for n in range(12)]
    async with LocalSearxNG(*many) as server:
        some = await search(server, query="tea")
        assert len(some.sources) == 5
        assert some.content.endswith("\n12 pages were found. A limit of up to 10 brings more of them.")
        assert len((await search(server, query="tea", limit=10)).sources) == 10
        server.results = []
        nothing = await search(server, query="tea")
    assert (nothing.ok, nothing.content, nothing.hints) == (True, "Nothing was found.", ("Try other or fewer words.",))


@pytest.mark.parametrize(
    "odd",
    [
        {"url": "javascript:alert(1)"},
        {"url": "https://me:secret@tea.example/"},
        {"url": "https://tea.example/|<!channel>"},
        {"url": "https://[::1"},
        {"url": None},
        {"content": ""},
        {"content": 7},
    ],
)
async def test_results_that_cannot_be_linked_or_quoted_are_left_out(odd: dict[str, Any]) -> None:
    async with LocalSearxNG({**TEA, **odd}, "no object", TEA) as server:  # type: ignore[arg-type]  # a bad server
        found = await search(server, query="tea")
    assert [source.url for source in found.sources] == [TEA["url"]]


async def test_odd_titles_and_dates_do_no_harm() -> None:
    odd = {**TEA, "title": None, "publishedDate": "last week"}
    async with LocalSearxNG(odd, {**TEA, "publishedDate": 5, "title": "x" * 900}) as server:
        first, second = (await search(server, query="tea")).sources
    assert (first.title, first.updated_at) == (TEA["url"], "")
    assert (len(second.title), second.updated_at) == (200, "")


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ({"status": 403}, "The search engine does not give JSON."),
        ({"status": 500}, "The search engine answered with status 500."),
        ({"status": 302}, "The search engine answered with status 302."),
        ({"raw": b"<html>"}, "The search engine's reply is not a list of results."),
        ({"raw": b"[]"}, "The search engine's reply is not a list of results."),
        ({"raw": b"[" * 200_000}, "The search engine's reply is not a list of results."),
        ({"raw": b" " * (MAX_REPLY_BYTES + 1)}, "The search engine sent more than can be read."),
    ],
)
async def test_a_search_engine_that_fails_is_a_failed_result(fault: dict[str, Any], error: str) -> None:
    async with LocalSearxNG(**fault) as server:
        found = await search(server, query="tea")
    assert (found.ok, found.error, found.sources) == (False, error, ())
    assert found.hints
    assert server.asked == ["tea"]


async def test_a_search_engine_that_hangs_or_is_down_is_a_failed_result() -> None:
    async with LocalSearxNG(hangs=True) as server, httpx2.AsyncClient(timeout=0.2, trust_env=False) as client:
        found = await call(WebSearchTool(f"{server.url}/search", client), query="tea")
    assert found.error == "The search engine did not answer in time."
    assert (await search(server, query="tea")).error == "The search engine cannot be reached."

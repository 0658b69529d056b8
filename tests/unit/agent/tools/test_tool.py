import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.actions import ToolCall
from agent.tools.tool import ToolResult, ToolSpec, call_tool, faults
from verification.types import Source

SECRET = "the launch code is 0000"


class FunctionTool:
    """A tool that is a function of its input."""

    def __init__(self, run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]]) -> None:
        self._run = run

    @property
    def spec(self) -> ToolSpec:
        schema = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
        return ToolSpec(name="find", description="Find.", parameters=schema)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        return await self._run(arguments)


async def long_result(arguments: Mapping[str, Any]) -> ToolResult:
    return ToolResult(content=arguments["q"] * 30, sources=(Source(id=0, title="t", text="x" * 30),))


async def never(_: Mapping[str, Any]) -> ToolResult:
    await asyncio.Event().wait()
    raise AssertionError


async def broken(arguments: Mapping[str, Any]) -> ToolResult:
    raise KeyError(arguments["q"])


async def own_timeout(_: Mapping[str, Any]) -> ToolResult:
    raise TimeoutError(SECRET)


async def call_once(
    run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]], name: str = "find", **given: Any
) -> ToolResult:
    call = ToolCall(call_id="1", tool=name, input=given or {"q": SECRET})
    return await call_tool({"find": FunctionTool(run)}, call, timeout_s=0.05, max_chars=20)


async def test_content_and_sources_are_truncated_with_a_note() -> None:
    result = await call_once(long_result, q="abc")
    assert result.ok
    assert result.content.split("\n") == [
        "abc" * 6 + "ab",
        "[Cut off: 20 of 90 characters are shown.]",
        "[Cut off: of a long source only the first 20 characters are shown.]",
    ]
    assert result.sources[0].text == "x" * 20


async def test_short_results_stay_as_they_are() -> None:
    call = ToolCall(call_id="1", tool="find", input={"q": "a"})
    result = await call_tool({"find": FunctionTool(long_result)}, call, timeout_s=5, max_chars=100)
    assert result == replace(await long_result({"q": "a"}), call_id="1", tool="find", input={"q": "a"})


async def test_a_call_that_fails_or_hangs_becomes_a_result_with_the_reason() -> None:
    with capture_logs() as logs:
        unknown = await call_once(long_result, name=SECRET)
    assert (unknown.ok, unknown.hints) == (False, ("The tools are: find.",))
    assert SECRET not in str(logs)
    assert (await call_once(long_result, q=7)).error == "Bad parameters: 'q' is not of type 'string'."
    assert (await call_once(never)).error == "No result within 0.05 seconds."


@pytest.mark.parametrize("run", [broken, own_timeout])
async def test_a_bug_becomes_a_result_with_an_id_from_the_log(
    run: Callable[[Mapping[str, Any]], Awaitable[ToolResult]],
) -> None:
    with capture_logs() as logs:
        result = await call_once(run)
    crash = logs[0]
    assert not result.ok
    assert crash["event"] == "tool_crashed"
    assert crash["exc_info"]
    assert crash["failure_id"] in result.error
    assert SECRET not in str(logs) + result.error
    assert logs[1] == {
        "event": "tool_called", "log_level": "info", "tool": "find", "ok": False, "content_length": 0, "sources": 0,
        "latency_ms": logs[1]["latency_ms"],
    }  # fmt: skip


async def test_a_cancellation_passes_through_the_wall() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await call_once(never)


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"a": 1}, {"properties": {"a": {"type": "string"}}}, ["'a' is not of type 'string'"]),
        ({}, {"type": "object", "required": ["a"]}, ["'a' is a required property"]),
        (True, {"type": "integer"}, ["the input is not of type 'integer'"]),
        (1.0, {"type": "integer"}, ["the input is not of type 'integer'"]),
        (True, {"type": ["boolean", "null"]}, []),
        (11, {"type": "number", "maximum": 1}, ["the input is greater than the maximum of 1"]),
        ("secret", {"enum": ["a", "b"]}, ["the input is not one of ['a', 'b']"]),
        ("secret", {"minLength": 9}, ["the input is too short (minLength: 9)"]),
        ([1, "x"], {"items": {"type": "integer"}}, ["'[1]' is not of type 'integer'"]),
        ({"a": {"b": 0}}, {"properties": {"a": {"properties": {"b": {"enum": [1]}}}}}, ["'a.b' is not one of [1]"]),
    ],
)
def test_faults_say_what_to_fix(value: object, schema: dict[str, Any], expected: list[str]) -> None:
    assert list(faults(value, schema)) == expected


def test_no_schema_of_a_server_can_follow_links_recurse_or_take_for_ever() -> None:
    doubled = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    for schema in (
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        {"$ref": "#/$defs/d0", "$defs": doubled},
        {"pattern": "^(a+)+$"},
    ):
        assert list(faults("a" * 40 + "!", schema)) == []
    assert list(faults(float("nan"), {"multipleOf": 2})) == []

import json
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.actions import ToolCall
from agent.budget import Usage
from agent.model.chat_server import Timeouts
from agent.model.openai import OpenAIModel
from agent.model.protocol import HINTS, Generated, ServerAddress
from agent.tools.builtin.llm_generate import GENERATE_TIMEOUT_S, LlmGenerate
from agent.tools.tool import ToolResult, call_tool
from agent.turn.loop import TOOL_TIMEOUT_S
from tests.support.fakes import ScriptedModel
from tests.support.openai_server import HANGS, Scripted, ScriptedOpenAI, fails, says

PROMPT = "Write a greeting."
QUICK = Timeouts(retries=0, reply=1.5)


async def generate(script: list[Scripted], **arguments: Any) -> tuple[ToolResult, list[dict[str, Any]]]:
    async with ScriptedOpenAI(generations=script) as server:
        model = OpenAIModel(address=ServerAddress(base_url=server.url, api_key="k"), model="m", timeouts=QUICK)
        tool = LlmGenerate(model)
        call = ToolCall(call_id="1", tool="llm_generate", input=arguments)
        result = await call_tool({"llm_generate": tool}, call, timeout_s=5, max_chars=10_000)
        await model.aclose()
    return result, server.requests


async def test_text_and_the_servers_figures_are_returned() -> None:
    with capture_logs() as logs:
        result, requests = await generate([says("Hello!", usage=(11, 4))], prompt=PROMPT)
    assert result.ok
    assert result.sources == ()
    assert result.usage == Usage(model_calls=1, prompt_tokens=11, completion_tokens=4)
    assert json.loads(result.content) == {
        "success": True, "generated_text": "Hello!", "tokens_used": 15, "prompt_tokens": 11, "completion_tokens": 4,
        "estimated": False,
    }  # fmt: skip
    assert requests[0]["messages"] == [{"role": "user", "content": PROMPT}]
    assert (requests[0]["max_tokens"], requests[0]["temperature"]) == (500, 0.7)
    started, completed = logs[:2]
    assert started == {
        "event": "llm_generate_started", "log_level": "info", "tool": "llm_generate", "prompt_length": len(PROMPT),
        "has_context": False, "context_size": 0,
    }  # fmt: skip
    assert completed == {
        "event": "llm_generate_completed", "log_level": "info", "tokens_used": 15, "prompt_tokens": 11,
        "completion_tokens": 4, "latency_ms": completed["latency_ms"],
    }  # fmt: skip
    assert PROMPT not in str(logs)
    assert "Hello!" not in str(logs)


async def test_figures_are_estimated_and_marked_if_the_server_has_none() -> None:
    result, _ = await generate([says("Hello!!!", usage=None)], prompt="x" * 12, max_tokens=9, temperature=0)
    body = json.loads(result.content)
    assert (body["prompt_tokens"], body["completion_tokens"], body["tokens_used"], body["estimated"]) == (3, 2, 5, True)


@pytest.mark.parametrize(
    ("context", "shown"),
    [
        ({"名": {"b": [1, "ü"]}}, '{\n  "名": {\n    "b": [\n      1,\n      "ü"\n    ]\n  }\n}'),
        ([{"a": 1}], '[\n  {\n    "a": 1\n  }\n]'),
        ('as "it" is', 'as "it" is'),
    ],
)
async def test_context_is_indented_json_in_any_script(context: object, shown: str) -> None:
    _, requests = await generate([says("x")], prompt=PROMPT, context=context)
    assert requests[0]["messages"][0]["content"] == f"Context Data:\n{shown}\n\nTask: {PROMPT}"


async def test_parameters_mean_what_models_mean_by_them() -> None:
    optional = {"context": None, "temperature": None, "max_tokens": 500.0}
    _, requests = await generate([says("x")], prompt=PROMPT, **optional)
    assert requests[0]["messages"][0]["content"] == PROMPT
    assert (requests[0]["max_tokens"], requests[0]["temperature"]) == (500, 0.7)


@pytest.mark.parametrize("opening", ["<think>", "<THINK>", ""])
async def test_thinking_is_not_returned_and_the_writer_gets_the_whole_text(opening: str) -> None:
    result, _ = await generate([says(f"{opening}Short or long?</think>" + "Hello! " * 99)], prompt=PROMPT)
    assert json.loads(result.content)["generated_text"] == result.generated == ("Hello! " * 99).strip()


async def test_large_context_logs_a_warning() -> None:
    with capture_logs() as logs:
        await generate([says("x")], prompt=PROMPT, context="c" * 2_001)
    warning = logs[0]
    assert (warning["event"], warning["log_level"], warning["context_size"]) == (
        "llm_generate_large_context", "warning", 2_001,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("scripted", "kind", "hint"),
    [
        (fails(401, "no", "invalid_api_key"), "AuthenticationError", "credentials"),
        (fails(404, "no"), "ConfigurationError", "configuration"),
        (fails(500, "no"), "LLMError", "configuration"),
        (says("cut", finish="length"), "TokenLimitError", "Shorten the prompt or raise max_tokens"),
        (fails(429, "slow down"), "RateLimitError", "Try again"),
        (fails(429, "no money", "insufficient_quota"), "QuotaError", "billing"),
        (says(refusal="I will not."), "RefusalError", "Rephrase"),
        (says(""), "EmptyReplyError", "wrote no text"),
        (says("x", finish="weird"), "LLMError", "configuration"),
    ],
)
async def test_a_failure_has_a_type_and_hints(scripted: Scripted, kind: str, hint: str) -> None:
    with capture_logs() as logs:
        result, _ = await generate([scripted], prompt=PROMPT)
    body = json.loads(result.content)
    assert not result.ok
    assert (body["success"], body["type"]) == (False, kind)
    assert any(hint in text for text in body["hints"])
    assert body["error"] == result.error
    assert result.usage == Usage(model_calls=1), "a failed call counts against the turn's budget too"
    failed = logs[1]
    assert failed == {
        "event": "llm_generate_failed", "log_level": "error", "error_type": kind, "error": body["error"],
        "latency_ms": failed["latency_ms"],
    }  # fmt: skip


async def test_a_hanging_model_times_out_before_the_wall_gives_a_vaguer_error() -> None:
    assert TOOL_TIMEOUT_S > GENERATE_TIMEOUT_S
    async with ScriptedOpenAI(generations=[HANGS]) as server:
        model = OpenAIModel(address=ServerAddress(base_url=server.url, api_key="k"), model="m")
        with capture_logs() as logs:
            outcome = await LlmGenerate(model, timeout_s=0.3).run({"prompt": PROMPT})
        await model.aclose()
    assert json.loads(outcome.content) == {
        "success": False, "error": "no text within 0.3 seconds", "type": "TimeoutError",
        "hints": list(HINTS["TimeoutError"]),
    }  # fmt: skip
    assert [(line["event"], line.get("error_type")) for line in logs] == [
        ("llm_generate_started", None), ("llm_generate_failed", "TimeoutError"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "'prompt' is a required property"),
        ({"prompt": 7}, "'prompt' is not of type 'string'"),
        ({"prompt": "  "}, "'prompt' must not be blank"),
        ({"prompt": "x", "temperature": 1.5}, "'temperature' is greater than the maximum of 1"),
        ({"prompt": "x", "max_tokens": 0}, "'max_tokens' is less than the minimum of 1"),
        ({"prompt": "x", "context": 1}, "'context' is not of type 'object', 'array', 'string'"),
        ({"prompt": None}, "'prompt' is not of type 'string'"),
        ({"prompt": "x", "max_tokens": 9.5}, "'max_tokens' is not of type 'integer'"),
    ],
)
async def test_bad_parameters_get_a_clear_message(arguments: dict[str, Any], message: str) -> None:
    result, requests = await generate([], **arguments)
    assert message in result.error
    assert requests == []
    assert result.usage == Usage()


async def test_an_echoed_prompt_or_answer_is_neither_logged_nor_returned() -> None:
    secret = "the quince orchard is for sale"
    for reply in (fails(400, f"bad prompt: {secret}"), fails(500, secret), says(secret, finish="length")):
        with capture_logs() as logs:
            result, _ = await generate([reply], prompt=secret, context={"offer": secret})
        assert not result.ok
        assert secret not in f"{logs} {result.content} {result.error} {result.hints}"


class Breaks(ScriptedModel):
    """Raises what no model should."""

    async def generate(self, prompt: str, **_: float) -> Generated:
        raise RuntimeError(prompt)


async def test_any_other_failure_is_a_result_too() -> None:
    body = json.loads((await LlmGenerate(Breaks()).run({"prompt": "a secret"})).content)
    assert (body["success"], body["type"], body["error"]) == (False, "LLMError", "the model failed: RuntimeError")


async def test_orions_own_overhead_is_far_below_50_ms_of_processor_time() -> None:
    tool = LlmGenerate(ScriptedModel())
    context = {"rows": [{"name": f"row {n}", "value": n} for n in range(300)]}
    call = ToolCall(call_id="1", tool="llm_generate", input={"prompt": PROMPT, "context": context})
    began = time.process_time()
    for _ in range(20):
        assert (await call_tool({"llm_generate": tool}, call, timeout_s=5, max_chars=10_000)).ok
    assert (time.process_time() - began) / 20 < 0.05


def test_the_schema_matches_the_contract() -> None:
    properties = LlmGenerate.spec.parameters["properties"]
    for use in ("formulating replies", "summaries", "formatting data", "translations", "creative text"):
        assert use in LlmGenerate.spec.description
    assert properties["prompt"]["type"] == "string"
    assert "object" in properties["context"]["type"]
    assert properties["max_tokens"]["type"] == "integer"
    assert (properties["temperature"]["minimum"], properties["temperature"]["maximum"]) == (0, 1)
    assert LlmGenerate.spec.parameters["required"] == ["prompt"]
    assert list(properties) == ["prompt", "context", "max_tokens", "temperature"]
    assert (properties["max_tokens"]["default"], properties["temperature"]["default"]) == (500, 0.7)

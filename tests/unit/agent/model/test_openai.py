import asyncio
import base64
import gzip
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from agent.actions import FinishStep, Respond, Step, ToolCall, ToolCalls
from agent.budget import Budget, ModelCall, Usage
from agent.model.chat_server import Learned, Timeouts
from agent.model.client import MAX_REPLY
from agent.model.openai import OpenAIModel
from agent.model.protocol import RETRYABLE, DecideContext, ModelError, ServerAddress, WriteContext, WriteStream
from agent.thread.conversation import Question, ThreadKey
from agent.tools.tool import ToolSpec
from tests.support.openai_server import CUT, RESPOND, Scripted, ScriptedOpenAI, calls, fails, says
from verification.types import Source

QUESTION = Question(thread=ThreadKey(team="T", channel="C", thread_ts="1"), user="U", text="How many?", ts="1")
SOURCE = Source(id=1, title="Limits", text="120 a minute.")
SEARCH = ToolSpec(name="search", description="Find passages.", parameters={"type": "object"})
DECIDE = DecideContext(
    mission="", question=QUESTION, plan=None, history=(), answers={}, results=(), sources=(SOURCE,), tools=(SEARCH,),
    budget=Budget(), used=Usage(),
)  # fmt: skip
WRITE = WriteContext(mission="", question=QUESTION, history=(), answers={}, results=(), sources=(SOURCE,))
ONCE = Timeouts(retries=0)
QUICK = Timeouts(reply=0.3, idle=0.3, retries=0)


OpenModel = Callable[..., OpenAIModel]


async def collect(stream: WriteStream) -> list[tuple[str, str]]:
    """The text of each channel, in order, however the network cut the bytes."""
    runs: list[tuple[str, str]] = []
    async for channel, text in stream.pieces:
        if runs and runs[-1][0] == channel:
            runs[-1] = (channel, runs[-1][1] + text)
        else:
            runs.append((channel, text))
    return runs


@asynccontextmanager
async def asking(timeouts: Timeouts = ONCE, **scripts: Any) -> AsyncIterator[tuple[ScriptedOpenAI, OpenAIModel]]:
    async with ScriptedOpenAI(**scripts) as server:
        address = ServerAddress(base_url=server.url)
        async with aclosing(OpenAIModel(address=address, model="m", write_model="w", timeouts=timeouts)) as model:
            yield server, model


@pytest.fixture
async def open_model() -> AsyncIterator[OpenModel]:
    async with AsyncExitStack() as stack:

        def make(
            url: str, key: str = "k", *, model: str = "m", parts: Mapping[str, Any] | None = None, **address: Any
        ) -> OpenAIModel:
            at = ServerAddress(base_url=url, api_key=key, **address)
            opened = OpenAIModel(address=at, model=model, timeouts=ONCE, **(parts or {}))
            stack.push_async_callback(opened.aclose)
            return opened

        yield make


@pytest.mark.parametrize(
    ("scripted", "action"),
    [
        (RESPOND, Respond()),
        (calls(("respond", "")), Respond()),
        (calls(("finish_step", {"step": 1, "result": "done"})), FinishStep(step=1, result="done")),
        (
            calls(("respond", {"plan": [{"description": "look", "tool": "search"}]})),
            Respond(plan=(Step(description="look", tool="search"),)),
        ),
        (
            calls(("search", {"q": "a"}), ("search", {"q": "b"})),
            ToolCalls(
                calls=(
                    ToolCall(call_id="id_1", tool="search", input={"q": "a"}),
                    ToolCall(call_id="id_2", tool="search", input={"q": "b"}),
                )
            ),
        ),
    ],
)
async def test_each_action_comes_from_a_function_call(scripted: Scripted, action: object) -> None:
    async with asking(decisions=[scripted]) as (server, model):
        decision = await model.decide(DECIDE)
    assert decision.action == action
    assert decision.usage == Usage(model_calls=1, prompt_tokens=100, completion_tokens=20)
    request = server.requests[0]
    names = [tool["function"]["name"] for tool in request["tools"]]
    assert names == ["respond", "ask_user", "finish_step", "complete", "search"]
    plans = ["plan" in tool["function"]["parameters"].get("properties", {}) for tool in request["tools"]]
    assert plans == [False, False, True, False, False]
    assert "response_format" not in request
    assert decision.call == ModelCall(
        model="m",
        messages=tuple(request["messages"]),
        tools=tuple(request["tools"]),
        parameters={"reasoning_effort": "none", "tool_choice": "required"},
    )


@pytest.mark.parametrize("call", [("ask_user", {"question": "Which?"}), ("search", "not json")])
async def test_a_malformed_call_is_reported_with_its_reason(call: tuple[str, object]) -> None:
    async with asking(decisions=[calls(call)]) as (server, model):
        with pytest.raises(ModelError) as failure:
            await model.decide(DECIDE)
    assert failure.value.kind == "MalformedControlError"
    assert failure.value.usage.tokens == 120
    assert len(server.requests) == 1


@pytest.mark.parametrize("mode", ["no_tools", "silent"])
async def test_a_server_without_tools_is_asked_for_json_and_that_is_remembered(mode: str) -> None:
    answer = says('Sure:\n```json\n{"action": "tool_call", "tool": "search", "input": {"q": "x"}}\n```')
    prose = [says("I would search first.")] if mode == "silent" else []
    script = [*prose, answer, says('{"action": "respond"}')]
    async with asking(decisions=script, mode="no_tools" if mode == "no_tools" else "tools") as (server, model):
        first = await model.decide(DECIDE)
        second = await model.decide(DECIDE)
    if mode == "no_tools":
        assert server.requests.pop(0)["tool_choice"] == "required"
        assert server.requests[0]["tool_choice"] == "auto", "tried before tools are given up"
    assert first.action == ToolCalls(calls=(ToolCall(call_id="call_1", tool="search", input={"q": "x"}),))
    assert first.usage.model_calls == 2
    assert second.action == Respond()
    assert ["tools" in request for request in server.requests] == [True, False, False]
    assert server.requests[1]["response_format"] == {"type": "json_object"}
    assert '{"action": "respond"}' in server.requests[1]["messages"][1]["content"]
    assert '"name": "search"' in server.requests[1]["messages"][1]["content"]


async def test_a_server_that_ignores_tools_may_write_the_json_by_itself() -> None:
    async with asking(decisions=[says('{"action": "respond"}')] * 2) as (server, model):
        assert (await model.decide(DECIDE)).action == Respond()
        await model.decide(DECIDE)
    assert ["tools" in request for request in server.requests] == [True, False]


async def test_prose_from_a_server_that_does_call_tools_is_malformed() -> None:
    async with asking(decisions=[RESPOND, says("Well …"), RESPOND]) as (server, model):
        await model.decide(DECIDE)
        with pytest.raises(ModelError, match="MalformedControlError"):
            await model.decide(DECIDE)
        await model.decide(replace(DECIDE, objection="No function was called."))
    assert all("tools" in request for request in server.requests)
    assert "No function was called." in server.requests[2]["messages"][1]["content"]


async def test_phase_two_streams_text_without_tools_or_response_format() -> None:
    draft = Scripted(reasoning=("hm",), pieces=("<answer>12", "0 [1]\u2028漢", "</answer>"), usage=(7, 3))
    async with asking(drafts=[draft]) as (server, model):
        stream = model.write(WRITE)
        pieces = await collect(stream)
    assert pieces == [("reasoning", "hm"), ("content", "<answer>120 [1]\u2028漢</answer>")]
    assert stream.usage == Usage(model_calls=1, prompt_tokens=7, completion_tokens=3)
    assert stream.call.messages == tuple(server.requests[0]["messages"])
    request = server.requests[0]
    assert {key: request[key] for key in request if key != "messages"} == {
        "model": "w", "temperature": 0.3, "stream": True, "stream_options": {"include_usage": True},
        "reasoning_effort": "low",
    }  # fmt: skip


async def test_options_a_server_refuses_are_left_out_and_the_usage_is_estimated() -> None:
    def reply(request: Any) -> Scripted:
        if "stream_options" in request:
            quoted = "'input': 'The content policy allows messages of at most 900 tokens.'"
            return fails(422, f"[{{'msg': 'Extra inputs are not permitted', {quoted}}}]")
        return fails(400, "temperature is fixed") if "temperature" in request else says("x" * 40)

    async with asking(drafts=reply) as (server, model):
        await collect(model.write(WRITE))
        first = len(server.requests)
        stream = model.write(WRITE)
        await collect(stream)
    assert len(server.requests) == first + 1, "what it refuses is known"
    assert stream.usage.estimated
    assert stream.usage.completion_tokens == 10
    assert stream.usage.prompt_tokens > 100


async def test_a_reply_that_unpacks_to_too_much_is_cut_off() -> None:
    bomb = Scripted(raw=gzip.compress(bytes(MAX_REPLY + 1), 1), headers={"Content-Encoding": "gzip"})
    async with asking(generations=[bomb] * 9, drafts=[bomb] * 9, timeouts=ONCE) as (_, model):
        with pytest.raises(ModelError, match="ReplyTooLong"):
            await model.generate("prompt", max_tokens=5, temperature=0.7)
        with pytest.raises(ModelError, match="ReplyTooLong"):
            await collect(model.write(WRITE))


@pytest.mark.parametrize("scripted", [says("half", done=False), says("half", broken=True)])
async def test_a_stream_that_breaks_off_is_an_error_but_its_cost_is_counted(scripted: Scripted) -> None:
    async with asking(drafts=[scripted]) as (_, model):
        stream = model.write(WRITE)
        with pytest.raises(ModelError, match="LLMError"):
            await collect(stream)
    assert stream.usage.estimated
    assert stream.usage.completion_tokens == 1


async def test_a_truncated_call_is_a_token_limit() -> None:
    async with asking(decisions=[calls(("search", '{"q": "tr'), finish="length")]) as (_, model):
        with pytest.raises(ModelError, match="TokenLimitError"):
            await model.decide(DECIDE)


async def test_max_tokens_is_sent_under_its_new_name_if_the_old_one_is_refused() -> None:
    def reply(request: Any) -> Scripted:
        refusal = "'max_tokens' is not supported, use 'max_completion_tokens'"
        return fails(400, refusal) if "max_tokens" in request else says("text", usage=(0, 0))

    async with asking(generations=reply) as (server, model):
        generated = await model.generate("a lone \ud800 surrogate", max_tokens=5, temperature=0.7)
    assert generated.text == "text"
    assert generated.usage.estimated
    assert server.requests[1]["max_completion_tokens"] == 5
    assert server.requests[1]["messages"][0]["content"] == "a lone ? surrogate"


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
async def test_a_remote_server_is_reached_through_the_hosts_proxy(
    name: str, open_model: OpenModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[says("Hi.")]) as proxy:
        monkeypatch.setenv(name, proxy.url.replace("//", "//us%40er:pass@").removesuffix("/v1"))
        model = open_model("http://model.example/v1")
        assert (await model.decide(DECIDE)).action == Respond()
        assert await collect(model.write(WRITE)) == [("content", "Hi.")]
    assert [headers["Host"] for headers in proxy.headers] == ["model.example"] * 2
    assert {headers["Proxy-Authorization"] for headers in proxy.headers} == {"Basic dXNAZXI6cGFzcw=="}


async def test_what_the_hosts_proxy_refuses_is_reported(open_model: OpenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    async with ScriptedOpenAI() as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(ModelError, match=r"ConfigurationError: status 404 \(from the proxy\)"):
            await open_model("https://model.example/v1").decide(DECIDE)


@pytest.mark.parametrize("path", ["", "/openai/deployments/m"])
async def test_azure_is_called_with_deployment_version_and_key(path: str, open_model: OpenModel) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[says("Hi.")]) as server:
        url = server.url.removesuffix("/v1") + path
        model = open_model(url, azure_api_version="2024-10-21")
        assert (await model.decide(DECIDE)).action == Respond()
        assert await collect(model.write(WRITE)) == [("content", "Hi.")]
        with pytest.raises(ModelError, match="ConfigurationError: status 404"):
            await open_model(server.url, model="other", azure_api_version="2024-10-21").decide(DECIDE)
    assert [headers["api-key"] for headers in server.headers] == ["k", "k"]
    assert server.queries == ["api-version=2024-10-21"] * 2


async def test_a_token_of_entra_replaces_the_key(open_model: OpenModel) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND]) as server:
        await open_model(server.url.removesuffix("/v1"), azure_api_version="1", azure_token="t").decide(DECIDE)
    assert server.headers[0]["Authorization"] == "Bearer t"
    assert "api-key" not in server.headers[0]


async def test_headers_are_sent_or_withheld(open_model: OpenModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "of the environment")
    async with ScriptedOpenAI(decisions=[RESPOND, RESPOND]) as server:
        for organisation in ("mine", None):
            headers = {"OpenAI-Organization": organisation, "X-Team": "help"}
            await open_model(server.url, headers=headers).decide(DECIDE)
    assert [(h.get("OpenAI-Organization"), h["X-Team"]) for h in server.headers] == [("mine", "help"), (None, "help")]


async def test_name_and_password_in_the_address_are_a_basic_login(open_model: OpenModel) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND]) as server:
        model = open_model(server.url.replace("//", "//us%40er:p%3Aw@"))
        assert (await model.decide(DECIDE)).action == Respond()
    assert server.headers[0]["Authorization"] == "Basic " + base64.b64encode(b"us@er:p:w").decode()


@pytest.mark.parametrize("address", [("http://[::1",), ("http://127.0.0.1:9/v1", "sk-ü\n")])
async def test_an_address_or_key_that_cannot_be_sent_is_a_model_error(
    address: tuple[str, ...], open_model: OpenModel
) -> None:
    with pytest.raises(ModelError):
        await open_model(*address).decide(DECIDE)


async def test_a_stopped_stream_closes_its_connection_and_is_counted() -> None:
    never = asyncio.Event()
    async with asking(drafts=[says("half", before_end=never), says("whole")], timeouts=Timeouts()) as (server, model):
        stream = model.write(WRITE)
        async with aclosing(stream.pieces) as pieces:
            assert await anext(pieces) == ("content", "half")
        assert stream.usage.estimated
        await server.wait_for_disconnect()
        never.set()
        assert await collect(model.write(WRITE)) == [("content", "whole")]


BRIEF = Timeouts(retries=2, pause=0.01)


@pytest.mark.parametrize("trouble", [fails(500), fails(429), fails(429, retry_after="0"), fails(409), CUT])
async def test_a_temporary_failure_is_retried_within_the_call(trouble: Scripted) -> None:
    async with asking(decisions=[trouble, trouble, RESPOND], timeouts=BRIEF) as (_, model):
        with capture_logs() as lines:
            assert (await model.decide(DECIDE)).action == Respond()
    assert [line["event"] for line in lines] == ["stamina.retry_scheduled"] * 2


@pytest.mark.parametrize(
    "final",
    [
        fails(401),
        fails(429, code="insufficient_quota"),
        fails(429, retry_after="3600"),
        fails(503, retry_after=format_datetime(datetime.now(UTC) + timedelta(hours=1))),
        fails(500, x_should_retry="false"),
    ],
)
async def test_a_lasting_failure_is_not_retried(final: Scripted) -> None:
    async with asking(decisions=[final, RESPOND], timeouts=BRIEF) as (server, model):
        model.breaker.failures = 1
        with pytest.raises(ModelError) as failed:
            await model.decide(DECIDE)
    assert len(server.requests) == 1
    assert model.breaker.is_open is (failed.value.kind in RETRYABLE)
    asked = "retry-after" in final.headers
    assert (failed.value.retry_after_s or 0) == pytest.approx(3600 if asked else 0, abs=1800)


class Picky:
    """A server whose models refuse different things, each in the words of a server that was seen to."""

    def __init__(self, **refusals: Callable[[Mapping[str, Any]], str]) -> None:
        self.refusals = refusals

    def __call__(self, request: Mapping[str, Any]) -> Scripted:
        if words := self.refusals[request["model"]](request):
            return fails(400, words)
        return says("<answer>Yes [1].</answer>") if request.get("stream") else RESPOND


def effort_by_name(request: Mapping[str, Any]) -> str:
    """As OpenAI's older reasoning models: no temperature, and neither `none` nor `minimal`."""
    if "temperature" in request:
        return (
            "Unsupported value: 'temperature' does not support 0.3 with this model. Only the default (1) is supported."
        )
    wrong = request.get("reasoning_effort") in {"none", "minimal"}
    return "Unsupported value: 'reasoning_effort' does not support 'none' with this model." if wrong else ""


def no_effort(request: Mapping[str, Any]) -> str:
    """As a model that does not reason."""
    return "Unrecognized request argument supplied: reasoning_effort" if "reasoning_effort" in request else ""


def tools_only_without_effort(request: Mapping[str, Any]) -> str:
    """As a model that takes tools on this endpoint only while it does not reason."""
    refused = "tools" in request and request.get("reasoning_effort") != "none"
    return "Function tools with reasoning_effort are not supported for m in /v1/chat/completions." if refused else ""


async def test_two_models_that_refuse_each_others_options_are_distinguished() -> None:
    picky = Picky(m=effort_by_name, w=no_effort)
    async with asking(decisions=picky, drafts=picky) as (server, model):
        for _ in range(2):
            await model.decide(DECIDE)
            await collect(model.write(WRITE))
        decide, write = server.requests[-2:]
        refused = len(server.requests) - 4
        await model.decide(DECIDE)
        await collect(model.write(WRITE))
    assert (decide["model"], decide["reasoning_effort"]) == ("m", "low"), "the lowest that it takes"
    assert (write["model"], write["temperature"], "reasoning_effort" in write) == ("w", 0.3, False)
    assert len(server.requests) == 4 + refused + 2, "each refusal was learned once"
    assert refused == 3


async def test_all_clients_remember_what_a_model_refused(open_model: OpenModel) -> None:
    picky, known = Picky(m=no_effort), defaultdict[str, Learned](Learned)
    async with ScriptedOpenAI(decisions=picky, generations=lambda _: says("text")) as server:
        for _ in range(2):
            await open_model(server.url, parts={"learned": known}).decide(DECIDE)
    assert len(server.requests) == 3


async def test_a_model_that_accepts_tools_only_without_reasoning_gets_no_reasoning(open_model: OpenModel) -> None:
    picky = Picky(m=tools_only_without_effort)
    async with ScriptedOpenAI(decisions=picky, generations=lambda _: says("text")) as server:
        model = open_model(server.url, parts={"effort": "high"})
        assert (await model.decide(DECIDE)).action == Respond()
        await model.generate("Write.", max_tokens=5, temperature=0.0)
    assert [request["reasoning_effort"] for request in server.requests] == ["high", "none", "high"]
    assert "tools" in server.requests[1]


@pytest.mark.parametrize(("read", "told"), [(2_048, True), (14_000, False)])
async def test_a_truncated_prompt_is_reported_once(read: int, *, told: bool) -> None:
    long = replace(WRITE, sources=(replace(SOURCE, text="Each key may send 120 requests. " * 2_000),))
    async with asking(drafts=lambda _: says("<answer>120 [1]</answer>", usage=(read, 5))) as (_, model):
        with capture_logs() as logs:
            for _ in range(2):
                await collect(model.write(long))
    cut = [line for line in logs if line["event"] == "prompt_cut_by_server"]
    assert [(line["model"], line["read"]) for line in cut] == ([("w", read)] if told else [])


async def test_cached_and_reasoning_tokens_are_counted() -> None:
    usage = {
        "prompt_tokens": 900, "completion_tokens": 80,
        "prompt_tokens_details": {"cached_tokens": 640}, "completion_tokens_details": {"reasoning_tokens": 64},
    }  # fmt: skip
    reply = {"choices": [{"message": {"content": "text"}, "finish_reason": "stop"}], "usage": usage}
    async with asking(generations=[Scripted(raw=json.dumps(reply).encode())]) as (_, model):
        spent = (await model.generate("Write.", max_tokens=90, temperature=0.0)).usage
    assert (spent.cached_tokens, spent.reasoning_tokens, spent.tokens) == (640, 64, 980)

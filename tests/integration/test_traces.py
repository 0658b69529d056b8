"""All observations that Langfuse gets of one turn, compared as a whole. The receiver is a local server."""

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

from agent.budget import Budget
from agent.model.chat_server import Timeouts
from agent.model.openai import OpenAIModel
from agent.model.protocol import ServerAddress
from agent.outcome import Answered
from agent.thread.state import ThreadState
from agent.tools.builtin.llm_generate import LlmGenerate
from agent.turn.loop import run_turn
from bot.turn.observer import trace_event
from observability.langfuse.dashboards import CHARTS
from tests.support.fakes import LIMITS, PassageTool, question
from tests.support.langfuse_receiver import LangfuseReceiver, ReceivedSpan, tracer_to
from tests.support.openai_server import HANGS, RESPOND, Scripted, ScriptedOpenAI, calls, says

GENERATE = {"prompt": "Say it in other words.", "max_tokens": 50, "temperature": 0.5}
WRONG = tuple(f"Each key may send {number} requests a minute [1]." for number in (900, 800))
RIGHT = "Each key may send 120 requests a minute [1]. Clients ought to slow down when they become impatient [1]."
ONCE = Timeouts(retries=0)
CACHED = {
    "prompt_tokens": 1_000, "completion_tokens": 60,
    "prompt_tokens_details": {"cached_tokens": 640}, "completion_tokens_details": {"reasoning_tokens": 20},
}  # fmt: skip


def decisions() -> list[Scripted]:
    """A text to be generated, then, with figures as OpenAI gives them, the answer."""
    call = {"id": "1", "type": "function", "function": {"name": "respond", "arguments": "{}"}}
    choice = {"message": {"content": None, "tool_calls": [call]}, "finish_reason": "tool_calls"}
    told = json.dumps({"choices": [choice], "usage": CACHED}).encode()
    assert RESPOND.calls[0][0] == "respond"
    return [calls(("llm_generate", GENERATE)), Scripted(raw=told)]


def drafts() -> Callable[[Mapping[str, Any]], Scripted]:
    """The one beside the first decision says nothing; then two wrong ones and a right one."""
    left = iter((*WRONG, RIGHT))

    def draft(request: Mapping[str, Any]) -> Scripted:
        early = "llm_generate" not in json.dumps(request["messages"])
        return HANGS if early else says(f"<answer>{next(left)}</answer>")

    return draft


def verdict(_: Mapping[str, Any]) -> Scripted:
    said = [{"claim": number, "lines": ["1.1"], "supported": True} for number in (1, 2)]
    return says(json.dumps({"verdicts": said, "reply": "answered"}))


async def trace_turn(*, send_content: bool) -> LangfuseReceiver:
    """One turn, and what came of it."""
    async with (
        LangfuseReceiver() as receiver,
        ScriptedOpenAI(
            decisions=decisions(), drafts=drafts(), judgements=verdict, generations=[says("Ask less.")]
        ) as server,
        tracer_to(receiver.url, send_content=send_content, version="p1") as tracer,
    ):
        address = ServerAddress(base_url=server.url)
        model = OpenAIModel(address=address, model="gpt-5-mini", write_model="gpt-4.1", timeouts=ONCE)
        judge = OpenAIModel(address=address, model="gpt-4.1-mini", timeouts=ONCE)
        trace = await tracer.turn("t1", thread="T1:C1:1.0", user="U1", question="How many?")
        outcome, _ = await run_turn(
            question("How many requests may a key send a minute?"), ThreadState(), model=model, judge=judge,
            tools={"search": PassageTool(LIMITS), "llm_generate": LlmGenerate(model)}, budget=Budget(),
            emit=lambda event: trace_event(trace, event),
        )  # fmt: skip
        assert isinstance(outcome, Answered)
        trace.end(outcome="answered", answer=outcome.answer.text)
        await model.aclose()
        await judge.aclose()
    return receiver


def observation_of(span: ReceivedSpan) -> tuple[Any, ...]:
    """An observation: name, type, model, parameters, usage, what went wrong."""
    usage = span["usage_details"]
    if usage and span["status_message"] == "discarded":
        usage = "estimated"  # follows from the length of the prompt
    return (span.name, span.kind, span["model.name"], span["model.parameters"], usage, span["status_message"])


DECIDING = {"reasoning_effort": "none", "tool_choice": "required"}
WRITING = {"reasoning_effort": "low", "temperature": 0.3}
JUDGING = {"response_format": '{"type": "json_object"}', "reasoning_effort": "low", "temperature": 0.0}
SHORT = {"input": 100, "output": 20, "total": 120}
COUNTED = {
    "input": 360, "input_cached_tokens": 640, "output": 60, "total": 1_060
}  # fmt: skip


async def test_a_turn_produces_all_of_its_observations() -> None:
    receiver = await trace_turn(send_content=True)
    root = receiver.spans[-1]
    assert [observation_of(span) for span in receiver.spans] == [
        ("search", "retriever", None, None, None, None),
        ("decide", "generation", "gpt-5-mini", DECIDING, SHORT, None),
        ("write", "generation", "gpt-4.1", WRITING, "estimated", "discarded"),
        ("llm_generate", "generation", "gpt-5-mini",
         {"max_tokens": 50, "temperature": 0.5, "reasoning_effort": "none"}, SHORT, None),
        ("decide", "generation", "gpt-5-mini", DECIDING, COUNTED, None),
        ("write", "generation", "gpt-4.1", WRITING, SHORT, None),
        ("verify", "guardrail", None, None, None, None),
        ("write", "generation", "gpt-4.1", WRITING, SHORT, None),
        ("verify", "guardrail", None, None, None, None),
        ("write", "generation", "gpt-4.1", WRITING, SHORT, None),
        ("judge", "generation", "gpt-4.1-mini", JUDGING, SHORT, None),
        ("verify", "guardrail", None, None, None, None),
        ("turn", "agent", None, None, None, None),
    ]  # fmt: skip
    assert {span.parent_id for span in receiver.spans[:-1]} == {root.span_id}
    assert {span.attributes["session.id"] for span in receiver.spans} == {"T1:C1:1.0"}
    assert {span.attributes["user.id"] for span in receiver.spans} == {hashlib.sha256(b"U1").hexdigest()}
    assert [bool(span["completion_start_time"]) for span in receiver.spans if span.name == "write"] == [
        False,
        *[True] * 3,
    ]
    assert {span.attributes["langfuse.version"] for span in receiver.spans} == {"p1"}
    assert {tuple(span.attributes["langfuse.trace.tags"]) for span in receiver.spans} == {("slack",)}
    assert {span.attributes["langfuse.release"] for span in receiver.spans} == {"0.1.0"}
    assert "4" in {headers.get("x-langfuse-ingestion-version") for headers in receiver.headers}
    asked = [span["input"] for span in receiver.spans if span.kind == "generation"]
    roles = [[m["role"] for m in (each["messages"] if isinstance(each, dict) else each)] for each in asked]
    once, again = ["system", "user"], ["system", "user", "assistant", "user"]
    assert roles == [once, once, ["user"], once, once, again, again, once]
    assert [isinstance(each, dict) and len(each["tools"]) for each in asked] == [6, False, False, 6] + [False] * 4
    names = {span.name for span in receiver.spans} | {score["name"] for score in receiver.scores}
    assert {name for chart in CHARTS for name in chart["names"]} - names == {"user_feedback"}, "charts find their data"
    assert sorted((score["name"], score["value"], score["dataType"]) for score in receiver.scores) == [
        ("turn_outcome", "answered", "CATEGORICAL"),
        ("verify_attempt_pass", 0, "BOOLEAN"),
        ("verify_attempt_pass", 0, "BOOLEAN"),
        ("verify_attempt_pass", 1, "BOOLEAN"),
        ("verify_attempts", 3, "NUMERIC"),
        ("verify_failure", "claim_supported", "CATEGORICAL"),
        ("verify_failure", "claim_supported", "CATEGORICAL"),
        ("verify_first_pass", 0, "BOOLEAN"),
        ("verify_pass", 1, "BOOLEAN"),
    ]


async def test_without_content_messages_are_lengths() -> None:
    receiver = await trace_turn(send_content=False)
    decide = next(span for span in receiver.spans if span.name == "decide")
    assert [message["role"] for message in decide["input"]["messages"]] == ["system", "user"]
    assert all(set(message["content"]) == {"length"} for message in decide["input"]["messages"])
    for text in (b"120 requests", b"How many", b"impatient", b"Ask less", b"other words", b"an assistant in a team"):
        assert text not in receiver.raw

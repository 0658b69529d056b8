"""Replies of real model servers, each through a whole turn: no half answer is shown, no whole one lost."""

import gzip
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import repeat
from typing import Any, Final

import pytest

from agent.model.chat_server import Timeouts
from agent.model.openai import OpenAIModel
from agent.model.protocol import ServerAddress
from agent.outcome import Answered, Failed, TurnOutcome
from agent.texts.catalogue import say
from tests.support.fakes import take_turn
from tests.support.openai_server import RESPOND, Script, Scripted, ScriptedOpenAI, calls, says

TEXT: Final = "Each key may send 120 requests a minute [1]."
WHOLE: Final = f"<answer>{TEXT}</answer>"
HALF: Final = "<answer>Each key may send 120 requests"
SECOND: Final = "Above that the API answers with error 429 [1]."
PATIENCE: Final = Timeouts(reply=30.0, idle=30.0, retries=1, pause=0.01)
HASTE: Final = replace(PATIENCE, idle=1.0)  # for a server that falls silent; a busy machine is never silent for so long


def event(delta: object = None, finish: object = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def text(*pieces: str) -> bytes:
    return b"".join(event({"content": piece}) for piece in pieces)


def cut(answer: str, size: int = 9) -> bytes:
    return text(*(answer[at : at + size] for at in range(0, len(answer), size)))


def stream(*parts: bytes, **more: Any) -> Scripted:
    return Scripted(raw=b"".join(parts), content_type="text/event-stream", **more)


STOP = event({}, "stop")
DONE = b"data: [DONE]\n\n"
USAGE = b'data: {"choices": [], "usage": {"prompt_tokens": "7", "completion_tokens": 3}}\n\n'

WHOLE_STREAMS: Final[Mapping[str, Scripted]] = {
    "body stays open after the end": stream(cut(WHOLE), STOP, DONE, raw_end="open"),
    "cut without its last chunk": stream(cut(WHOLE), STOP, DONE, raw_end="cut"),
    "no finish, only the end mark": stream(cut(WHOLE), DONE),
    "finish null throughout, then cut": stream(cut(WHOLE), raw_end="cut"),
    "unknown finish after the closing tag": stream(cut(WHOLE), event({}, "WHATEVER"), DONE),
    "finish, but no end mark": stream(cut(WHOLE), STOP),
    "no tags, finish stop": stream(cut(TEXT), STOP, DONE),
    "finish in capitals": stream(cut(TEXT), event({}, "STOP"), DONE),
    "choices null, then empty": stream(b'data: {"choices": null}\n\ndata: {"choices": []}\n\n', cut(WHOLE), STOP, DONE),
    "a message of success": stream(b'data: {"code": 0, "message": "Success"}\n\n', cut(WHOLE), STOP, DONE),
    "marks of a chat template": stream(cut(f"{TEXT}<end_of_turn>\n</s>"), STOP, DONE),
    "delta null": stream(event(None), cut(WHOLE), event(None, "stop"), DONE),
    "usage last, figures as text": stream(cut(WHOLE), STOP, USAGE, DONE),
    "comments as heartbeat": stream(b": ping\n\n", cut(WHOLE), b":\n\n", STOP, DONE),
    "events without an object as heartbeat": stream(
        b"data:\n\n", cut(WHOLE), b"event: ping\ndata: ping\n\n", b"data: null\n\ndata: []\n\n", STOP, DONE
    ),
    "retry and event lines alone": stream(b"retry: 3000\n\n", b"event: ping\n\n", cut(WHOLE), STOP, DONE),
    "events with names and ids": stream(cut(WHOLE).replace(b"data:", b"event: message\nid: 1\ndata:"), STOP, DONE),
    "lines end with CRLF": stream((cut(WHOLE) + STOP + DONE).replace(b"\n", b"\r\n")),
    "no space after data": stream((cut(WHOLE) + STOP + DONE).replace(b"data: ", b"data:")),
    "two spaces after data": stream((cut(WHOLE) + STOP + DONE).replace(b"data: ", b"data:  "), raw_end="open"),
    "byte order mark": stream(b"\xef\xbb\xbf", cut(WHOLE), STOP, DONE),
    "byte by byte": stream(cut(WHOLE), STOP, DONE, raw_step=1),
    "reasoning beside": stream(event({"reasoning_content": "<answer>no"}), cut(WHOLE), STOP, DONE),
    "thinking in the text": stream(cut(f"<think>hm</think>{WHOLE}"), STOP, DONE),
    "a lone closing tag of thinking": stream(cut(f"hm</think>{TEXT}"), STOP, DONE),
    "content as parts, some of them thinking": stream(
        event({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}]}),
        event({"content": [{"type": "reasoning", "text": "hm"}, {"type": "output_text", "text": TEXT}]}), STOP, DONE,
    ),
    "cut off after the closing tag": stream(cut(WHOLE), event({}, "length"), DONE),
    "the whole message once more at the end": stream(
        cut(WHOLE), b"data: " + json.dumps({"choices": [{"message": {"content": WHOLE}}]}).encode() + b"\n\n", DONE
    ),
    "one JSON object in place of a stream": Scripted(
        raw=json.dumps({"choices": [{"message": {"content": WHOLE}, "finish_reason": None}]}).encode()
    ),
    "that object over several lines": Scripted(
        raw=json.dumps({"choices": [{"message": {"content": WHOLE}, "finish_reason": "stop"}]}, indent=2).encode()
    ),
    "a JSON object a line": Scripted(raw=(cut(WHOLE) + STOP).replace(b"\n\ndata: ", b"\n").removeprefix(b"data: ")),
    "events without empty lines": stream((cut(WHOLE) + STOP + DONE).replace(b"\n\n", b"\n")),
    "events as a JSON document": Scripted(raw=cut(WHOLE) + STOP + DONE, content_type="application/json"),
    "lines end with CR": stream((cut(WHOLE) + STOP + DONE).replace(b"\n", b"\r")),
    "finish, then cut": stream(cut(TEXT), STOP, raw_end="cut"),
    "finish, then the body stays open": stream(cut(TEXT), STOP, raw_end="open"),
    "finish as an enumeration": stream(cut(TEXT), event({}, "FinishReason.STOP"), DONE),
    "content as one part": stream(event({"content": {"type": "text", "text": WHOLE}}), STOP, DONE),
    "text of a completion": stream(
        b"data: " + json.dumps({"choices": [{"text": WHOLE, "finish_reason": "stop"}]}).encode() + b"\n\n", DONE
    ),
    "index as a text": stream(text(WHOLE[:9]), text(WHOLE[9:]).replace(b'"index": 0', b'"index": "0"'), STOP, DONE),
    "a second choice": stream(text(WHOLE), text("no").replace(b'"index": 0', b'"index": 1'), STOP, DONE),
    "compressed": stream(gzip.compress(cut(WHOLE) + STOP + DONE), headers={"Content-Encoding": "gzip"}),
    "a model that never closes the tag": stream(cut(WHOLE.removesuffix("</answer>")), STOP, DONE),
}  # fmt: skip

BROKEN_STREAMS: Final[Mapping[str, Scripted]] = {
    **{
        f"half, then {finish}": stream(cut(HALF), event({}, finish), DONE)
        for finish in ("insufficient_system_resource", "error", "network_error", "abort", "unknown", "stop")
    },
    "half, then the end mark": stream(cut(HALF), DONE),
    "half, then nothing": stream(cut(HALF)),
    "half, then cut": stream(cut(HALF), raw_end="cut"),
    "half, then silence": stream(cut(HALF), raw_end="open"),
    "half, then an error event": stream(cut(HALF), b'event: error\ndata: {"code": 500, "details": "x"}\n\n'),
    "half, then an error line": stream(cut(HALF), b"error: {}\n\n"),
    "half, then an error object": stream(cut(HALF), b'data: {"object": "error", "message": "x"}\n\n', DONE),
    "half, then an error field": stream(cut(HALF), b'data: {"error": {"message": "x", "code": 502}}\n\n'),
    "half, then an error in the choice": stream(
        cut(HALF), b'data: {"choices": [{"error": {"code": 502}}]}\n\n', STOP, DONE
    ),
    "half, then an error without a name": stream(cut(HALF), b'data: {"detail": "gone"}\n\n', STOP, DONE),
    "half, then a call that was lost": stream(cut(TEXT), event({}, "tool_calls"), DONE),
    "half, then no JSON": stream(cut(HALF), b'data: {"choices": [{"delta": {"con\n\n', STOP, DONE),
    "an error first, by its code": stream(b'data: {"error": {"message": "slow down", "code": 429}}\n\n'),
    "only reasoning": stream(event({"reasoning_content": WHOLE}), STOP, DONE),
    "only function calls": stream(event({"tool_calls": [{"function": {"name": "x"}}]}), event({}, "tool_calls")),
    "thinking that is never closed": stream(cut(f"<thinking>hm {WHOLE}"), STOP, DONE),
    "nothing": stream(STOP, DONE),
    "no tags, no finish": stream(cut(TEXT), DONE),
}  # fmt: skip


def failing(status: int, message: str, code: object = None) -> Scripted:
    return Scripted(status=status, error={"message": message, "code": code})


def in_list(message: str, status: int) -> Scripted:  # as Gemini
    error = {"error": {"message": message, "code": status, "status": "INVALID_ARGUMENT"}}
    return Scripted(raw=json.dumps([error]).encode(), status=status)


def in_body(message: str, code: object) -> Scripted:
    return Scripted(raw=json.dumps({"error": {"message": message, "code": code}}).encode())


TOO_LONG: Final = (
    failing(400, "This model's maximum context length is 8192 tokens.", "context_length_exceeded"),
    failing(422, "`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens"),
    failing(400, "Input is too long for requested model."),
    failing(400, "This model's maximum prompt length is 131072 but the request contains 537812 tokens."),
    failing(400, "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."),
    failing(400, "Prompt exceeds max length", "1261"),
    failing(400, "Range of input length should be [1, 30720]"),
    failing(400, "input length and `max_tokens` exceed context limit: 188240 + 20000 > 200000"),
    failing(500, "The decoder prompt (length 5000) is longer than the maximum model length of 4096."),
    failing(400, "the request exceeds the available context size, try increasing it", "exceed_context_size_error"),
    failing(413, "Request Entity Too Large"),
    failing(400, "Prompt 超长", "1261"),
    failing(400, "入力トークン数が上限（4096）を超えています。"),
    failing(400, "입력 토큰 수가 최대 컨텍스트 길이 4096을 초과했습니다."),
    failing(400, "Die Anfrage hat 9000 Token, höchstens 4096 sind erlaubt."),
    failing(400, "litellm.ContextWindowExceededError: litellm.BadRequestError"),
    failing(400, "Malformed input request: expected maxLength: 50000, actual: 60000"),
    in_list("The input token count (9000) exceeds the maximum number of tokens allowed (4096).", 400),
    in_body("prompt is too long: 210000 tokens > 199999 maximum", "invalid_request_error"),
    stream(cut(HALF), event({}, "length"), DONE),
    stream(cut(HALF), event({}, "max_tokens"), DONE),
)
REFUSED: Final = (
    failing(
        400, "Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "invalid_prompt"
    ),
    failing(400, "Content Exists Risk", "invalid_request_error"),
    failing(400, "Input data may contain inappropriate content.", "data_inspection_failed"),
    failing(403, "Your input was flagged by our moderation system"),
    failing(400, "The response was filtered", "content_filter"),
    failing(400, "Violated guardrail policy"),
    in_body("blocked by the content policy", 400),
    stream(cut(HALF), event({}, "SAFETY"), DONE),
    stream(cut(HALF), event({}, "guardrail_intervened"), DONE),
)
WRONG_SETTINGS: Final = (
    failing(401, "Incorrect API key provided"),
    failing(403, "Project does not have access to model"),
    failing(404, "The API deployment for this resource does not exist", "DeploymentNotFound"),
    failing(402, "Insufficient Balance"),
    failing(429, "You exceeded your current quota", "insufficient_quota"),
    Scripted(status=400, error={"message": "Budget has been exceeded!", "code": "400", "type": "budget_exceeded"}),
    in_list("API key not valid. Please pass a valid API key.", 400),
    Scripted(status=308, headers={"Location": "https://model.example/v1"}),
    failing(407, "Proxy Authentication Required"),
    in_body("Invalid token", 401),
    in_body("no such key", "invalid_api_key"),
)
AWAY: Final = (
    failing(503, "overloaded"),
    failing(500, "context deadline exceeded"),
    failing(424, "Request failed during generation"),
    in_list("The operation was cancelled.", 499),
    failing(400, "Rate limit reached", "rate_limit_exceeded"),
    failing(403, "Too many requests", "rateLimitExceeded"),
    failing(400, "try again later", "server_busy"),
    failing(429, "Rate limit reached on tokens per min (TPM): Limit 10000, Requested 2000"),
    in_body("Rate limit exceeded", 429),
    in_body("Overloaded", "overloaded_error"),
    Scripted(raw=b"<html>bad gateway</html>", content_type="text/html"),
    Scripted(raw=b'{"choices": [7]}'),
    Scripted(cut=True),
)


def whole_reply(content: str, field: str = "content") -> Scripted:
    message: dict[str, Any] = {"content": "", field: content}
    if field == "tool_calls":
        message[field] = [{"function": {"name": "verdict", "arguments": content}}]
    return Scripted(raw=json.dumps({"choices": [{"message": message, "finish_reason": "stop"}]}).encode())


@asynccontextmanager
async def model_of(server: ScriptedOpenAI, timeouts: Timeouts = PATIENCE) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel(address=ServerAddress(base_url=server.url), model="m", timeouts=timeouts)
    yield model
    await model.aclose()


async def outcome_of(
    drafts: Script, decisions: Script | None = None, timeouts: Timeouts = PATIENCE
) -> tuple[TurnOutcome, ScriptedOpenAI]:
    async with (
        ScriptedOpenAI(decisions=decisions or repeat(RESPOND), drafts=drafts) as server,
        model_of(server, timeouts) as model,
    ):
        return (await take_turn(model))[0], server


@pytest.mark.parametrize("name", WHOLE_STREAMS)
async def test_a_whole_answer_is_not_lost(name: str) -> None:
    outcome, server = await outcome_of(repeat(WHOLE_STREAMS[name]))
    assert isinstance(outcome, Answered), outcome.answer.text
    assert outcome.answer.text == TEXT
    assert server.phases().count("write") == 1 + (name == "a model that never closes the tag")


@pytest.mark.parametrize("name", BROKEN_STREAMS)
async def test_half_an_answer_is_never_shown_and_is_requested_again(name: str) -> None:
    timeouts = HASTE if name == "half, then silence" else PATIENCE
    drafts = [BROKEN_STREAMS[name], says(f"<answer>{SECOND}</answer>")]
    outcome, server = await outcome_of(drafts, timeouts=timeouts)
    assert isinstance(outcome, Answered), outcome.answer.text
    assert outcome.answer.text == SECOND
    assert server.phases().count("write") == 2
    outcome, _ = await outcome_of(repeat(BROKEN_STREAMS[name]), timeouts=timeouts)
    assert isinstance(outcome, Failed)
    assert outcome.answer.text == say("model_down", "en")


@pytest.mark.parametrize(
    ("reply", "phrase"),
    [
        (reply, phrase)
        for phrase, replies in (
            ("too_long", TOO_LONG),
            ("model_refused", REFUSED),
            ("model_setup", WRONG_SETTINGS),
            ("model_down", AWAY),
        )
        for reply in replies
    ],
)
async def test_each_failure_has_the_right_words(reply: Scripted, phrase: str) -> None:
    outcome, server = await outcome_of(repeat(reply))
    assert isinstance(outcome, Failed), outcome.answer.text
    assert outcome.answer.text == say(phrase, "en"), outcome.reason
    assert len(server.requests) <= 6


def roles_refused(words: str, status: int = 400) -> Callable[[Mapping[str, Any]], Scripted]:
    def reply(request: Mapping[str, Any]) -> Scripted:
        if any(message["role"] == "system" for message in request["messages"]):
            return failing(status, words)
        return says(WHOLE) if request.get("stream") else RESPOND

    return reply


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (400, "System role not supported"),
        (422, "Template error: Only user and assistant roles are supported!"),
        (500, "Conversation roles must alternate user/assistant/user/assistant/..."),
        (400, 'messages: Unexpected role "system".'),
    ],
)
async def test_a_server_without_a_system_role_answers(status: int, words: str) -> None:
    reply = roles_refused(words, status)
    async with ScriptedOpenAI(decisions=reply, drafts=reply, generations=reply) as server, model_of(server) as model:
        for _ in range(2):
            outcome, _ = await take_turn(model)
            assert isinstance(outcome, Answered), outcome.answer.text
        first, last = server.requests[0]["messages"], server.requests[-1]["messages"]
    assert first[0]["content"] in last[0]["content"]
    assert [message["role"] for message in last] == ["user"]


@pytest.mark.parametrize(
    "decision",
    [
        calls(("respond<|channel|>analysis", {})),
        calls(("functions.respond", "")),
        calls(("respond", "null")),
        Scripted(raw=b'{"choices": [{"message": {"tool_calls": [{"name": "respond", "arguments": {}}]}}]}'),
        Scripted(raw=b'{"choices": [{"message": {"function_call": {"name": "respond", "arguments": ""}}}]}'),
        whole_reply('{"action": "respond",}', "reasoning_content"),
    ],
)
async def test_a_decision_garbled_by_a_server_is_read(decision: Scripted) -> None:
    outcome, server = await outcome_of(repeat(says(WHOLE)), repeat(decision))
    assert isinstance(outcome, Answered)
    assert server.phases().count("decide") == 1


CLAIM: Final = "Clients ought to slow down whenever they become impatient [1]."
VERDICT: Final = '{"claim": 1, "lines": ["1.1"], "supported": true}'


@pytest.mark.parametrize(
    "replies",
    [
        [whole_reply(f'{{"verdicts": [{VERDICT}]}}', "reasoning_content")],
        [whole_reply(f'{{"verdicts": [{VERDICT}]}}', "tool_calls")],
        [whole_reply("I agree."), whole_reply(f'{{"verdicts": [{VERDICT}]}}')],
    ],
)
async def test_the_judges_reply_is_read_leniently_and_requested_once_more(replies: Iterable[Scripted]) -> None:
    drafts = repeat(says(f"<answer>{CLAIM}</answer>"))
    scripted = ScriptedOpenAI(decisions=repeat(RESPOND), drafts=drafts, judgements=[*replies])
    async with scripted as server, model_of(server) as model:
        outcome, _ = await take_turn(model, judge=model)
    assert isinstance(outcome, Answered), outcome.answer.text
    assert outcome.answer.text == CLAIM


async def test_one_odd_refusal_changes_nothing_that_was_learned() -> None:
    odd = [failing(400, "Bad Request"), says(WHOLE), says(WHOLE)]
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=odd) as server, model_of(server) as model:
        for _ in range(2):
            assert isinstance((await take_turn(model))[0], Answered)
    assert [request.get("reasoning_effort") for request in server.requests if request.get("stream")] == ["low"] * 3


async def test_a_model_that_closes_its_answers_is_not_believed_when_one_is_open() -> None:
    half = stream(text(f"<answer>{TEXT}"), STOP, DONE)
    drafts = [half, says(WHOLE), half, half]
    async with ScriptedOpenAI(decisions=repeat(RESPOND), drafts=drafts) as server, model_of(server) as model:
        outcomes = [(await take_turn(model))[0] for _ in range(2)]
    assert [outcome.name for outcome in outcomes] == ["answered", "failed"]


async def test_halves_of_an_emoji_are_joined() -> None:
    halves = (event({"content": half}) for half in ("\ud83d", "\ude42"))
    reply = stream(text(f"<answer>{TEXT} "), *halves, text("</answer>"), STOP, DONE)
    outcome, _ = await outcome_of(repeat(reply))
    assert outcome.answer.text == f"{TEXT} \U0001f642"

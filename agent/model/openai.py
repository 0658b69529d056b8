"""The model behind any server that speaks OpenAI's chat completions; every failure becomes a ``ModelError``."""

from __future__ import annotations

import asyncio
import random
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, TypeVar

import httpx2
import openai
import structlog

from agent.actions import Action
from agent.budget import Usage
from agent.model.chat_reply import Reply, StreamedReply, encodable, estimated, read_reply
from agent.model.circuit_breaker import CircuitBreaker, retry_after_s
from agent.model.control import Call, ControlError, functions, read_arguments, read_calls, read_json
from agent.model.judge import JudgeContext, Opinion, read_opinion
from agent.model.prompts import ChatMessage, control_messages, judge_messages, write_messages
from agent.model.protocol import (
    PASSING,
    DecideContext,
    Decision,
    ModelError,
    ModelErrorKind,
    Piece,
    WriteContext,
    WriteStream,
    failure,
)
from observability.loopback import is_loopback, trusted_at

WRITE_TEMPERATURE = 0.3
JUDGE_OPTIONS = {"response_format": {"type": "json_object"}, "temperature": 0.0, "reasoning_effort": "low"}
T = TypeVar("T")
Body = dict[str, Any]
log = structlog.get_logger()

LONGEST_WAIT_S = 10.0  # of a pause that the server asks for; a longer one is up to the caller

_TOO_LONG = re.compile(r"context.{0,12}(?:length|window|size)|maximum context|too (?:many tokens|long)", re.IGNORECASE)
_ABOUT_TOOLS = re.compile(r"tool|function", re.IGNORECASE)
# Options that some servers refuse and that can be done without; the first two also go when a refusal names none.
_OPTIONS = ("stream_options", "response_format", "temperature", "max_tokens", "reasoning_effort")
_STATUS_KINDS: dict[int, ModelErrorKind] = {
    400: "ConfigurationError",
    401: "AuthenticationError",
    403: "AuthenticationError",
    404: "ConfigurationError",
    408: "TimeoutError",
    413: "TokenLimitError",
    422: "ConfigurationError",
    429: "RateLimitError",
    504: "TimeoutError",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: ``reply`` for a decision with its retries, or until a stream begins; ``idle`` between its pieces.

    ``pause`` stands before the first of ``retries``, twice as much before the next.
    """

    connect: float = 5.0
    reply: float = 60.0
    idle: float = 30.0
    retries: int = 2
    pause: float = 0.5


JUDGE_TIMEOUTS = Timeouts(reply=20.0, retries=1)
"""A judge that is late leaves its claims unconfirmed; it must not use up the time of the whole turn."""


class OpenAIModel:
    """``model`` decides, generates and judges, ``write_model`` writes (empty: the same one).

    ``breaker`` may be shared by all who call the same server.
    """

    def __init__(  # noqa: PLR0913 - what a server is, each named at the call
        self,
        *,
        base_url: str | None,
        api_key: str,
        model: str,
        write_model: str = "",
        timeouts: Timeouts | None = None,
        breaker: CircuitBreaker | None = None,
    ) -> None:
        self._timeouts = timeouts or Timeouts()
        self._breaker = breaker or CircuitBreaker("model")
        self._model = model
        self._write_model = write_model or model
        self._refused: frozenset[str] = frozenset()
        self._tools_proven = False
        self._json_only = False
        limit = openai.Timeout(self._timeouts.reply, connect=self._timeouts.connect)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",  # a local server needs no key, the SDK insists on one
            timeout=limit,
            max_retries=0,  # ours know a long Retry-After, tell the log and leave no call to a server that is down
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=limit, trust_env=not is_loopback(base_url or ""), verify=trusted_at(base_url or "")
            ),
        )
        # The SDK loads this part on first use: some 60 ms that no question should wait for.
        self._completions = self._client.chat.completions

    @property
    def name(self) -> str:
        """The deciding model, and the writing one where it differs."""
        return self._model if self._model == self._write_model else f"{self._model}+{self._write_model}"

    @property
    def quotes_only(self) -> bool:
        """It writes its own sentences."""
        return False

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def decide(self, context: DecideContext) -> Decision:
        """One action, by function calling where the server has it, by a JSON object otherwise."""
        before = Usage()
        if not self._json_only:
            messages = control_messages(context, as_json=False)
            action, before = await self._by_tools(context, messages)
            if action:
                return Decision(action=action, usage=before, prompt=_shown(messages))
        messages = control_messages(context, as_json=True)
        reply, usage = await self._reply({"messages": messages, "response_format": {"type": "json_object"}})
        self._json_only = True
        with _malformed(reply, before + usage):
            return Decision(action=read_json(reply.content), usage=before + usage, prompt=_shown(messages))

    def write(self, context: WriteContext) -> WriteStream:
        """Phase two as a stream: no tools, no response format."""
        messages = write_messages(context)

        def spent(usage: Usage) -> None:
            stream.usage = usage

        stream = WriteStream(pieces=self._stream(messages, spent), prompt=_shown(messages))
        return stream

    async def judge(self, context: JudgeContext) -> Opinion:
        """One verdict a claim, as far as the reply can be read (``agent.model.judge.Judge``). Raises ``ModelError``."""
        messages = judge_messages(context)
        reply, usage = await self._reply({"messages": messages, **JUDGE_OPTIONS})
        return replace(read_opinion(reply.content), usage=usage, prompt=_shown(messages))

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> tuple[str, Usage]:
        """Plain text from one prompt. Raises ``ModelError``, also when the text was cut off at ``max_tokens``."""
        messages: list[ChatMessage] = [{"role": "user", "content": prompt}]
        reply, usage = await self._reply({"messages": messages, "max_tokens": max_tokens, "temperature": temperature})
        if reply.cut_off:
            raise failure(kind="TokenLimitError", detail="the text was cut off at max_tokens")
        if not reply.content.strip():
            raise failure(kind="LLMError", detail="the server sent an empty text")
        return reply.content, usage

    async def _by_tools(self, context: DecideContext, messages: list[ChatMessage]) -> tuple[Action | None, Usage]:
        """An action, or None where this server turns out not to call tools."""
        body = {
            "messages": messages,
            "tools": functions(context.tools, with_plan=context.plan is None),
            "tool_choice": "required",
        }
        try:
            reply, usage = await self._reply(body)
        except ModelError as error:
            if self._tools_proven or not _refuses_tools(error.__cause__):
                raise
            return None, Usage(model_calls=1)
        if reply.calls:
            self._tools_proven = True
            with _malformed(reply, usage):
                calls = [
                    Call(name=c.name, arguments=read_arguments(c.arguments), call_id=c.call_id) for c in reply.calls
                ]
                return read_calls(calls), usage
        return self._from_prose(reply, usage), usage

    def _from_prose(self, reply: Reply, usage: Usage) -> Action | None:
        """A server that ignores ``tools`` without a word may still have written the JSON object by itself."""
        try:
            action = read_json(reply.content)
        except ControlError as fault:
            if self._tools_proven:
                raise failure(kind="MalformedControlError", detail="No function was called.", usage=usage) from fault
            return None
        self._json_only = not self._tools_proven
        return action

    async def _reply(self, body: Body) -> tuple[Reply, Usage]:
        """A whole reply to ``body`` and what it cost."""

        async def send(kept: Body) -> bytes:
            return (await self._completions.with_raw_response.create(**kept)).content

        with self._far_end():
            async with asyncio.timeout(self._timeouts.reply):
                reply = read_reply(await self._with_options({"model": self._model, **body}, send))
        written = len(reply.content) + sum(len(call.arguments) for call in reply.calls)
        return reply, reply.usage or estimated(_size(body["messages"]), written)

    async def _stream(self, messages: list[ChatMessage], spent: Callable[[Usage], None]) -> AsyncIterator[Piece]:
        body: Body = {
            "model": self._write_model,
            "messages": messages,
            "temperature": WRITE_TEMPERATURE,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        reader = StreamedReply()
        try:
            with self._far_end():
                async with AsyncExitStack() as stack:
                    chunks = await stack.enter_async_context(aclosing(self._chunks(body, stack)))
                    async for chunk in chunks:
                        for piece in reader.feed(chunk):
                            yield piece
                    for piece in reader.close():
                        yield piece
        finally:
            # A stream that was stopped early has no figures of the server.
            spent(reader.usage or estimated(_size(messages), reader.characters))

    async def _chunks(self, body: Body, stack: AsyncExitStack) -> AsyncGenerator[bytes]:
        """The bytes as they arrive; the connection is closed by ``stack``."""

        async def send(kept: Body) -> openai.AsyncAPIResponse[Any]:
            opening = self._completions.with_streaming_response.create(**kept)
            return await stack.enter_async_context(opening)

        async with asyncio.timeout(self._timeouts.reply):
            response = await self._with_options(body, send)
        chunks = response.iter_bytes()
        while True:
            async with asyncio.timeout(self._timeouts.idle):
                chunk = await anext(chunks, None)
            if chunk is None:
                return
            yield chunk

    async def _with_options(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send without what the server is known to refuse; learn from a new refusal once it turns out to be one."""
        refused = self._refused
        while True:
            try:
                reply = await self._patiently(_without(body, refused), send)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                option = _refused_option(error, body.keys() - refused)
                if not option:
                    raise
                refused |= {option}
            else:
                self._refused = refused
                return reply

    async def _patiently(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send; what may pass is sent again after a pause. Raises what the SDK raised last."""
        for tried in range(self._timeouts.retries):
            try:
                return await send(body)
            except (openai.APIConnectionError, openai.APIStatusError) as error:
                pause = _pause(error, self._timeouts.pause * 2**tried)
                if pause is None:
                    raise
                log.warning("model_call_waits", reason=_reason(error), wait_s=round(pause, 2))
            await asyncio.sleep(pause)
        return await send(body)

    @contextmanager
    def _far_end(self) -> Iterator[None]:
        """One call: nobody makes it while the server is left alone, and the breaker hears how it went."""
        if wait_s := self._breaker.wait_s():
            raise failure(kind="LLMError", detail="the server keeps failing and is left alone", retry_after_s=wait_s)
        try:
            with _as_model_error():
                yield
        except ModelError as error:
            if error.kind in PASSING:
                self._breaker.failed(error.retry_after_s)
            else:
                self._breaker.succeeded()
            raise
        except (asyncio.CancelledError, GeneratorExit):
            self._breaker.abandoned()
            raise
        self._breaker.succeeded()


def _without(body: Body, refused: frozenset[str]) -> Body:
    kept = {key: value for key, value in body.items() if key not in refused}
    kept["messages"] = [{**message, "content": encodable(message["content"])} for message in body["messages"]]
    if "max_tokens" in refused and "max_tokens" in body:
        kept["max_completion_tokens"] = body["max_tokens"]
    return kept


def _refused_option(error: openai.APIStatusError, sent: set[str]) -> str:
    """The option a refusal is about; empty when it is about something else."""
    text = error.message
    if _TOO_LONG.search(text) or ("tools" in sent and _ABOUT_TOOLS.search(text)):
        return ""
    present = [option for option in _OPTIONS if option in sent]
    named = [option for option in present if option in text]
    return next(iter(named or [option for option in present if option in _OPTIONS[:2]]), "")


def _refuses_tools(error: BaseException | None) -> bool:
    """A status that a server without tool calling gives; one that names nothing counts too if it blames the request."""
    if not isinstance(error, openai.APIStatusError) or _TOO_LONG.search(error.message):
        return False
    about_tools = bool(_ABOUT_TOOLS.search(error.message))
    return error.status_code in {400, 422} or (about_tools and error.status_code in {404, 500, 501})


@contextmanager
def _malformed(reply: Reply, usage: Usage) -> Iterator[None]:
    """A decision that cannot be read is the model's fault, or the limit's when it was cut off."""
    try:
        yield
    except ControlError as fault:
        kind: ModelErrorKind = "TokenLimitError" if reply.cut_off else "MalformedControlError"
        raise failure(kind=kind, detail=str(fault), usage=usage) from fault


def _pause(error: openai.APIError, usual_s: float) -> float | None:
    """Seconds until the same request may succeed; None where it will not, or only long after."""
    if isinstance(error, openai.APITimeoutError):
        return None  # the next try would only use up the time that is left
    asked = None
    if isinstance(error, openai.APIStatusError):
        if _kind(error) not in PASSING or error.response.headers.get("x-should-retry") == "false":
            return None
        asked = retry_after_s(error.response.headers, now=time.time())
    if asked is not None:
        return asked if asked <= LONGEST_WAIT_S else None
    return usual_s * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries only


def _reason(error: openai.APIError) -> str:
    return f"status {error.status_code}" if isinstance(error, openai.APIStatusError) else type(error).__name__


@contextmanager
def _as_model_error() -> Iterator[None]:
    """Everything the SDK and its transport raise, as ``ModelError`` with hints."""
    try:
        yield
    except (TimeoutError, openai.APITimeoutError, httpx2.TimeoutException) as error:
        raise failure(kind="TimeoutError", detail="no reply in time") from error
    except openai.APIStatusError as error:
        raise _status_failure(error) from error
    except (openai.OpenAIError, httpx2.HTTPError, httpx2.InvalidURL) as error:
        # The text of these may quote the request; the type says enough.
        raise failure(kind="LLMError", detail=f"connection failed ({type(error).__name__})") from error


def _status_failure(error: openai.APIStatusError) -> ModelError:
    asked = retry_after_s(error.response.headers, now=time.time())
    return failure(kind=_kind(error), detail=f"status {error.status_code} ({_code(error)})", retry_after_s=asked)


def _code(error: openai.APIStatusError) -> str:
    return str(error.code or error.type or "no code")[:60]


def _kind(error: openai.APIStatusError) -> ModelErrorKind:
    """What a status means. Some servers tell a used-up quota or a refusal only by the code beside it."""
    code = _code(error)
    if error.status_code in {400, 422} and _TOO_LONG.search(f"{code} {error.message}"):
        return "TokenLimitError"
    if "insufficient_quota" in code or error.status_code == HTTPStatus.PAYMENT_REQUIRED:
        return "QuotaError"
    if "content_filter" in code or "content_policy" in code:
        return "RefusalError"
    return _STATUS_KINDS.get(error.status_code, "LLMError")


def _shown(messages: list[ChatMessage]) -> str:
    """The messages as a person reads them in a trace."""
    return "\n\n".join(f"{message['role']}:\n{message['content']}" for message in messages)


def _size(messages: list[ChatMessage]) -> int:
    return sum(len(message["content"]) for message in messages)

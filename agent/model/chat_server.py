"""A server that speaks OpenAI's chat completions: sends requests, retries, learns what it refuses.

The only importer of ``openai``: every failure comes out as a ``ModelError``.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, aclosing, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

import httpx2
import openai
import orjson
import structlog

from agent.budget import Usage
from agent.model.capabilities import ABOUT_TOOLS, TOO_LONG, Body, Learned
from agent.model.chat_reply import Reply, StreamedReply, estimated, read_reply
from agent.model.circuit_breaker import CircuitBreaker, retry_after_s
from agent.model.protocol import PASSING, ModelError, ModelErrorKind, Piece, failure
from observability.loopback import is_loopback, trusted_at

T = TypeVar("T")
log = structlog.get_logger()

LONGEST_WAIT_S: Final = 10.0
"""Seconds of a pause that the server asks for; a longer one is up to the caller."""
KEPT_ALIVE_S: Final = 120.0
"""Seconds an idle connection is kept: the next question comes later than httpx's five, and need not shake hands."""
_CONNECTIONS: Final = httpx2.Limits(max_connections=1_000, max_keepalive_connections=100, keepalive_expiry=KEPT_ALIVE_S)
_CUT: Final = 0.75
"""A server that counts less than this share of the estimated tokens of a prompt did not read all of it."""
_LISTED: Final = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")
"""What servers call a model's context in their list: vLLM, LM Studio, OpenRouter and others."""
_LONG_PROMPT: Final = 2_000
"""Tokens from which on the estimate is good enough to say so."""
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

    ``pause`` stands before the first of ``retries``, twice as much before the next. A model that reasons says nothing
    meanwhile, and one that has to be loaded first nothing for longer.
    """

    connect: float = 5.0
    reply: float = 90.0
    idle: float = 90.0
    retries: int = 2
    pause: float = 0.5


class ChatServer:
    """One server under one key. ``learned`` holds what each of its models takes, and may be shared between clients."""

    def __init__(
        self,
        *,
        base_url: str | None,
        api_key: str,
        timeouts: Timeouts,
        breaker: CircuitBreaker,
        learned: dict[str, Learned],
    ) -> None:
        self._timeouts = timeouts
        self._breaker = breaker
        self._learned = learned
        self._short: set[str] = set()
        limit = openai.Timeout(timeouts.reply, connect=timeouts.connect)
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",  # a local server needs no key, the SDK insists on one
            timeout=limit,
            max_retries=0,  # ours know a long Retry-After, tell the log and leave no call to a server that is down
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=limit,
                limits=_CONNECTIONS,
                trust_env=not is_loopback(base_url or ""),
                verify=trusted_at(base_url or ""),
            ),
        )
        # The SDK loads this part on first use: some 60 ms that no question should wait for.
        self._completions = self._client.chat.completions

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def learned(self, model: str) -> Learned:
        """What is known of a model by now."""
        return self._learned.get(model, Learned())

    def learn(self, model: str, lesson: Learned) -> None:
        """Something turned out."""
        self._learned[model] = self.learned(model) | lesson

    async def reply(self, body: Body) -> tuple[Reply, Usage]:
        """A whole reply to ``body`` and what it cost."""

        async def send(kept: Body) -> bytes:
            return (await self._completions.with_raw_response.create(**kept)).content

        with self._far_end():
            async with asyncio.timeout(self._timeouts.reply):
                reply = read_reply(await self._with_options(body, send))
        written = len(reply.content) + sum(len(call.arguments) for call in reply.calls)
        return reply, self._usage(body, reply.usage, written)

    async def stream(self, body: Body, spent: Callable[[Usage], None]) -> AsyncGenerator[Piece]:
        """The pieces of a streamed reply. ``spent`` is called at the end, also where the stream was stopped early."""
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
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
            spent(self._usage(body, reader.usage, reader.characters))

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

    async def context_listed(self, model: str) -> int | None:
        """Tokens that ``model`` takes by the server's list of models, under any of the names servers have for it."""
        try:
            async with asyncio.timeout(self._timeouts.reply):
                raw = (await self._client.models.with_raw_response.list()).content
            facts = next(each for each in orjson.loads(raw)["data"] if each["id"] == model)
            told = next(facts[name] for name in _LISTED if name in facts)
        except (openai.OpenAIError, httpx2.HTTPError, TimeoutError, ValueError, LookupError, TypeError, StopIteration):
            return None
        return told if isinstance(told, int) else None

    async def _with_options(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send as the model is known to take it; a new refusal is learned once the request went through without."""
        model = body["model"]
        learned = self.learned(model)
        while True:
            try:
                reply = await self._patiently(learned.fitted(body), send)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                wiser = learned.after(error.message, body) if _kind(error) == "ConfigurationError" else None
                if wiser is None:
                    raise
                learned = wiser
            else:
                self.learn(model, learned)
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

    def _usage(self, body: Body, told: Usage | None, written: int) -> Usage:
        """What a call cost by the server's figures, else estimated; a prompt that was not read whole is told."""
        guess = estimated(sum(len(message["content"]) for message in body["messages"]), written)
        model = str(body["model"])
        if told is None:
            return guess
        if told.reasoning_tokens:
            self.learn(model, Learned(reasons=True))
        if was_cut(told, guess.prompt_tokens) and model not in self._short:
            self._short.add(model)
            log.warning("prompt_cut_by_server", model=model, read=told.prompt_tokens, sent_about=guess.prompt_tokens)
        return told

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


def was_cut(told: Usage, sent: int) -> bool:
    """Whether a server read clearly less than the ``sent`` tokens of a prompt (an estimate)."""
    return not told.estimated and sent > _LONG_PROMPT and told.prompt_tokens < sent * _CUT


def refuses_tools(error: BaseException | None) -> bool:
    """A status that a server without tool calling gives; one that names nothing counts too if it blames the request."""
    if not isinstance(error, openai.APIStatusError) or TOO_LONG.search(error.message):
        return False
    about_tools = bool(ABOUT_TOOLS.search(error.message))
    return error.status_code in {400, 422} or (about_tools and error.status_code in {404, 500, 501})


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
    if error.status_code in {400, 422} and TOO_LONG.search(f"{code} {error.message}"):
        return "TokenLimitError"
    if "insufficient_quota" in code or error.status_code == HTTPStatus.PAYMENT_REQUIRED:
        return "QuotaError"
    if "content_filter" in code or "content_policy" in code:
        return "RefusalError"
    return _STATUS_KINDS.get(error.status_code, "LLMError")

"""A server that speaks OpenAI's chat completions: sends requests, retries, learns what it refuses.

Requests go out over one aiohttp session, and every failure comes out as a ``ModelError``.
"""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

import aiohttp
import orjson
import structlog

from agent.budget import Usage
from agent.circuit_breaker import CircuitBreaker, retry_after_s
from agent.model.capabilities import ABOUT_TOOLS, TOO_LONG, Body, Learned
from agent.model.chat_reply import Reply, StreamedReply, estimated, read_reply
from agent.model.protocol import RETRYABLE, ModelError, ModelErrorKind, Piece
from agent.packing import compact_json
from observability.loopback import is_loopback, proxy_for, trusted_at

T = TypeVar("T")
log = structlog.get_logger()

OPENAI_URL: Final = "https://api.openai.com/v1"
LONGEST_WAIT_S: Final = 10.0
"""Seconds of a pause that the server asks for; a longer one is up to the caller."""
KEPT_ALIVE_S: Final = 120.0
"""Seconds an idle connection is kept: the next question comes later than aiohttp's 15, and need not shake hands."""
_JSON: Final = {"Content-Type": "application/json"}
_MOST_CONNECTIONS: Final = 1_000
_CUT: Final = 0.75
"""A server that counts less than this share of the estimated tokens of a prompt did not read all of it."""
_LISTED: Final = ("max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window")
"""What servers call a model's context in their list: vLLM, LM Studio, OpenRouter and others."""
_LONG_PROMPT: Final = 2_000
"""Tokens from which on the estimate is good enough to say so."""
_STATUS_KINDS: Final[Mapping[int, ModelErrorKind]] = {
    **dict.fromkeys((400, 404, 422), "ConfigurationError"),
    **dict.fromkeys((401, 403), "AuthenticationError"),
    **dict.fromkeys((408, 504), "TimeoutError"),
    413: "TokenLimitError",
    429: "RateLimitError",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: ``reply`` for a decision with its retries, or until a stream begins; ``idle`` before its next byte.

    ``pause`` stands before the first of ``retries``, twice as much before the next. A model that reasons says nothing
    meanwhile, and one that has to be loaded first nothing for longer.
    """

    connect: float = 5.0
    reply: float = 90.0
    idle: float = 90.0
    retries: int = 2
    pause: float = 0.5


class RefusedError(Exception):
    """A status of 400 or more. ``message`` is the body, ``code`` what the server calls the fault."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status, self.headers = status, headers
        told: Any = body.decode("utf-8", "replace")
        with suppress(ValueError):
            told = orjson.loads(body)
        fault = told.get("error", told) if isinstance(told, dict) else None
        self.message = str(told)
        self.code = str((isinstance(fault, dict) and (fault.get("code") or fault.get("type"))) or "no code")[:60]


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
        self._url = (base_url or OPENAI_URL).rstrip("/")
        self._key = api_key or "none"  # a local server needs no key, but some want to see one
        self._timeouts = timeouts
        self._breaker = breaker
        self._learned = learned
        self._short: set[str] = set()
        self._session: aiohttp.ClientSession | None = None

    async def aclose(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    def learned(self, model: str) -> Learned:
        """What is known of a model by now."""
        return self._learned.get(model, Learned())

    def learn(self, model: str, lesson: Learned) -> None:
        """Something turned out."""
        self._learned[model] = self.learned(model) | lesson

    async def reply(self, body: Body) -> tuple[Reply, Usage]:
        """A whole reply to ``body`` and what it cost."""

        async def send(kept: Body) -> bytes:
            async with self._posted(kept) as response:
                return await response.read()

        with self._far_end():
            async with asyncio.timeout(self._timeouts.reply):
                reply = read_reply(await self._with_options(body, send))
        written = len(reply.content) + sum(len(arguments) for _, arguments in reply.calls)
        return reply, self._usage(body, reply.usage, written)

    async def stream(self, body: Body, spent: Callable[[Usage], None]) -> AsyncGenerator[Piece]:
        """The pieces of a streamed reply. ``spent`` is called at the end, also where the stream was stopped early."""
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        reader = StreamedReply()
        is_open = is_refused = False
        try:
            with self._far_end():
                async with AsyncExitStack() as stack:
                    async with asyncio.timeout(self._timeouts.reply):
                        response = await self._with_options(
                            body, lambda kept: stack.enter_async_context(self._posted(kept))
                        )
                    is_open = True
                    while chunk := await self._next_chunk(response.content):
                        for piece in reader.feed(chunk):
                            yield piece
                    for piece in reader.close():
                        yield piece
        except ModelError as error:
            is_refused = not is_open and error.kind != "TimeoutError"
            raise
        finally:
            # A stream that was stopped early has no figures of the server; a refused request used no tokens.
            spent(Usage(model_calls=1) if is_refused else self._usage(body, reader.usage, reader.characters))
            if reader.reasoned:  # a model that sends its reasoning apart need not be told to reason
                self.learn(body["model"], Learned(reasons=True))

    async def context_listed(self, model: str) -> int | None:
        """Tokens that ``model`` takes by the server's list of models, under any of the names servers have for it."""
        # The vendor's own client: only `orion doctor` asks, so that no start pays for its 500 modules.
        from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError  # noqa: PLC0415

        transport = DefaultAsyncHttpxClient(trust_env=not is_loopback(self._url), verify=trusted_at(self._url))
        client = AsyncOpenAI(base_url=self._url, api_key=self._key, http_client=transport, max_retries=0)
        try:
            async with client, asyncio.timeout(self._timeouts.reply):
                raw = (await client.models.with_raw_response.list()).content
            facts = next(each for each in orjson.loads(raw)["data"] if each["id"] == model)
            told = next(facts[name] for name in _LISTED if name in facts)
        except (OpenAIError, TimeoutError, ValueError, LookupError, TypeError, StopIteration):
            return None
        return told if isinstance(told, int) else None

    async def _next_chunk(self, content: aiohttp.StreamReader) -> bytes:
        # Not the session's ``sock_read``: that would hold for the wait before the first byte and for whole replies too.
        async with asyncio.timeout(self._timeouts.idle):
            return await content.readany()

    @asynccontextmanager
    async def _posted(self, body: Body) -> AsyncIterator[aiohttp.ClientResponse]:
        """The response to one request. Raises ``RefusedError``."""
        # Not aiohttp's ``json``: a prompt takes its encoder a fiftieth of what a question costs.
        told = compact_json(body).encode()
        async with self._opened().post(f"{self._url}/chat/completions", data=told, headers=_JSON) as response:
            if response.status >= HTTPStatus.BAD_REQUEST:
                raise RefusedError(response.status, response.headers, await response.read())
            yield response

    def _opened(self) -> aiohttp.ClientSession:
        """The session, made by the first call: it needs a running loop."""
        if self._session is None:
            # A context of its own: aiohttp's default one is made at import, before SSL_CERT_FILE may be set.
            trusted = ssl.create_default_context() if self._url.startswith("https:") else True
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=_MOST_CONNECTIONS, keepalive_timeout=KEPT_ALIVE_S, ssl=trusted),
                headers={"Authorization": f"Bearer {self._key}"},
                timeout=aiohttp.ClientTimeout(sock_connect=self._timeouts.connect),
                cookie_jar=aiohttp.DummyCookieJar(),
                proxy=proxy_for(self._url),
            )
        return self._session

    async def _with_options(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send as the model is known to take it; a new refusal is learned once the request went through without."""
        model = body["model"]
        learned = self.learned(model)
        while True:
            try:
                reply = await self._patiently(learned.fitted(body), send)
            except RefusedError as error:
                told = error.status in {400, 422} and _kind(error) == "ConfigurationError"
                wiser = learned.after(error.message, body) if told else None
                if wiser is None:
                    raise
                learned = wiser
            else:
                self.learn(model, learned)
                return reply

    async def _patiently(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send; what may pass is sent again after a pause. Raises what was raised last."""
        for tried in range(self._timeouts.retries):
            try:
                return await send(body)
            except (aiohttp.ClientError, RefusedError) as error:
                pause = _pause(error, self._timeouts.pause * 2**tried)
                if pause is None:
                    raise
                log.warning(
                    "model_call_waits",
                    reason=str(error) if isinstance(error, RefusedError) else type(error).__name__,
                    wait_s=round(pause, 2),
                )
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
            raise ModelError(kind="LLMError", detail="the server keeps failing and is left alone", retry_after_s=wait_s)
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            self._breaker.release_probe()
            raise
        except ModelError as error:
            self._went(error)
            raise
        except (RefusedError, aiohttp.ClientError, OSError) as raised:
            failure = _as_model_error(raised)
            self._went(failure)
            raise failure from raised
        self._breaker.record_success()

    def _went(self, error: ModelError) -> None:
        if error.kind in RETRYABLE:
            self._breaker.record_failure(error.retry_after_s)
        else:
            self._breaker.record_success()


def was_cut(told: Usage, sent: int) -> bool:
    """Whether a server read clearly less than the ``sent`` tokens of a prompt (an estimate)."""
    return not told.estimated and sent > _LONG_PROMPT and told.prompt_tokens < sent * _CUT


def refuses_tools(error: BaseException | None) -> bool:
    """A status that a server without tool calling gives; one that names nothing counts too if it blames the request."""
    if not isinstance(error, RefusedError) or TOO_LONG.search(error.message):
        return False
    about_tools = bool(ABOUT_TOOLS.search(error.message))
    return error.status in {400, 422} or (about_tools and error.status in {404, 500, 501})


def _pause(error: aiohttp.ClientError | RefusedError, usual_s: float) -> float | None:
    """Seconds until the same request may succeed; None where it will not, or only long after."""
    if isinstance(error, TimeoutError):
        return None  # the next try would only use up the time that is left
    asked = None
    if isinstance(error, RefusedError):
        if _kind(error) not in RETRYABLE or error.headers.get("x-should-retry") == "false":
            return None
        asked = retry_after_s(error.headers, now=time.time())
    if asked is not None:
        return asked if asked <= LONGEST_WAIT_S else None
    return usual_s * random.uniform(0.8, 1.2)  # noqa: S311 - spreads retries only


def _as_model_error(error: RefusedError | aiohttp.ClientError | OSError) -> ModelError:
    if isinstance(error, TimeoutError):
        return ModelError(kind="TimeoutError", detail="no reply in time")
    if isinstance(error, RefusedError):
        asked = retry_after_s(error.headers, now=time.time())
        return ModelError(kind=_kind(error), detail=f"status {error.status} ({error.code})", retry_after_s=asked)
    return ModelError(kind="LLMError", detail=f"connection failed ({type(error).__name__})")


def _kind(error: RefusedError) -> ModelErrorKind:
    """What a status means. Some servers tell a used-up quota or a refusal only by the code beside it."""
    if error.status in {400, 422} and TOO_LONG.search(f"{error.code} {error.message}"):
        return "TokenLimitError"
    if "insufficient_quota" in error.code or error.status == HTTPStatus.PAYMENT_REQUIRED:
        return "QuotaError"
    if "content_filter" in error.code or "content_policy" in error.code:
        return "RefusalError"
    return _STATUS_KINDS.get(error.status, "LLMError")

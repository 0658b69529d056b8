"""A server that speaks OpenAI's chat completions: retries, learns what a model refuses, counts what a call cost.

Requests go out through the openai SDK, and every failure comes out as a ``ModelError``.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar

import stamina
import structlog

from agent.budget import Usage
from agent.circuit_breaker import CircuitBreaker
from agent.model.address import ServerAddress
from agent.model.capabilities import Body, Learned
from agent.model.chat_reply import Reply, StreamedReply, estimate_usage, read_reply
from agent.model.failures import ServerRefusalError
from agent.model.protocol import RETRYABLE, ModelError, Piece

if TYPE_CHECKING:
    from agent.model.client import SdkClient

T = TypeVar("T")
log = structlog.get_logger()

MAX_RETRY_WAIT_S: Final = 10.0
"""Pause that the server asks for; a longer one is up to the caller."""
_DRAIN_S: Final = 0.1  # after [DONE]: a body that ends lets the connection be used again, one that stays open is closed
_CUT: Final = 0.75
"""A server that counts less than this share of the estimated tokens of a prompt did not read all of it."""
_CONTEXT_NAMES: Final = (
    "max_model_len", "loaded_context_length", "context_length", "max_context_length", "context_window",
)  # fmt: skip
"""Names of a model's context in lists of models: vLLM, LM Studio, OpenRouter and others."""
_LONG_PROMPT: Final = 2_000
"""Tokens from which on the estimate is good enough to say so."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Seconds: ``reply`` for a decision with its retries, or until a stream begins; ``idle`` before its next byte.

    ``pause`` comes before the first of ``retries``, twice as much before the next. A model that reasons sends nothing
    meanwhile, and one that must be loaded first sends nothing for longer.
    """

    connect: float = 5.0
    reply: float = 90.0
    idle: float = 90.0
    retries: int = 2
    pause: float = 0.5


class ModelServer:
    """One server under one key. The SDK's client is imported and opened by the first call."""

    def __init__(self, address: ServerAddress, connect_timeout_s: float) -> None:
        self._address = address
        self._connect_timeout_s = connect_timeout_s
        self._client: SdkClient | None = None
        self._opening = asyncio.Lock()

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.aclose()

    async def client(self) -> SdkClient:
        """Return the SDK's client. Raises ``ModelError``."""
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._open)
        return self._client

    def _open(self) -> SdkClient:
        # Half a second, which no start and no `orion verify` pays.
        from agent.model.client import SdkClient, model_errors  # noqa: PLC0415

        with model_errors():
            return SdkClient(self._address, connect_timeout_s=self._connect_timeout_s)


class ChatServer(ModelServer):
    """A server of chat models. ``learned`` holds what each of them takes, and may be shared between clients."""

    def __init__(
        self, *, address: ServerAddress, timeouts: Timeouts, breaker: CircuitBreaker, learned: dict[str, Learned]
    ) -> None:
        super().__init__(address, timeouts.connect)
        self._timeouts = timeouts
        self._breaker = breaker
        self._learned = learned
        self._cut_prompts: set[str] = set()

    def learned(self, model: str) -> Learned:
        """Return what is known of a model."""
        return self._learned.get(model, Learned())

    def learn(self, model: str, lesson: Learned) -> None:
        """Remember something about a model."""
        self._learned[model] = self.learned(model) | lesson

    async def reply(self, body: Body) -> tuple[Reply, Usage]:
        """Return a whole reply to ``body`` and what it cost."""
        client = await self.client()  # importing the SDK is not the server's time

        async def send(request: Body) -> Reply:
            return read_reply(await client.complete(request))

        with self._guard():
            async with asyncio.timeout(self._timeouts.reply):
                reply = await self._request(body, send)
        written = len(reply.content) + sum(len(arguments) for _, arguments in reply.calls)
        return reply, self._usage(body, reply.usage, written)

    async def stream(self, body: Body, report: Callable[[Usage], None]) -> AsyncGenerator[Piece]:
        """Yield the pieces of a streamed reply. ``report`` gets the cost at the end, also of a stream stopped early."""
        body = {**body, "stream": True, "stream_options": {"include_usage": True}}
        client, reader = await self.client(), StreamedReply()

        async def begin(request: Body) -> tuple[AsyncGenerator[bytes], list[Piece]]:
            nonlocal reader
            reader = StreamedReply()
            chunks = client.stream(request)
            try:
                return chunks, reader.feed(await anext(chunks, b""))
            except ModelError:
                await chunks.aclose()
                raise

        is_open = is_refused = False
        try:
            with self._guard():
                async with asyncio.timeout(self._timeouts.reply):
                    chunks, pieces = await self._request(body, begin)
                is_open = True
                async with aclosing(chunks), aclosing(self._read(body, chunks, reader)) as rest:
                    for piece in pieces:
                        yield piece
                    async for piece in rest:
                        yield piece
        except ModelError as error:
            is_refused = not is_open and error.kind != "TimeoutError"
            raise
        finally:
            # A stream that was stopped early has no figures of the server; a refused request used no tokens.
            report(Usage(model_calls=1) if is_refused else self._usage(body, reader.usage, reader.characters))
            if reader.reasoned:  # a model that sends its reasoning apart need not be told to reason
                self.learn(body["model"], Learned(reasons=True))

    async def _read(self, body: Body, chunks: AsyncGenerator[bytes], reader: StreamedReply) -> AsyncGenerator[Piece]:
        """Yield the pieces after the first chunk. Raises ``ModelError`` if the reply is not whole."""
        try:
            while not reader.ended and (chunk := await self._next_chunk(chunks)):
                for piece in reader.feed(chunk):
                    yield piece
        except (ModelError, TimeoutError) as failure:
            # A reply that is all there is whole, however its connection ends.
            if isinstance(failure, ServerRefusalError) or not reader.is_closed:
                raise _incomplete(failure) from failure
        for piece in self._close(body, reader):
            yield piece
        if reader.ended:
            await _drain(chunks)

    def _close(self, body: Body, reader: StreamedReply) -> list[Piece]:
        try:
            pieces = reader.close()
        except ModelError as failure:
            raise _incomplete(failure) from failure
        if reader.left_open and not self.learned(body["model"]).leaves_open:
            # Half an answer that a server calls whole, or a model that forgets the tag: the next one is accepted.
            self.learn(body["model"], Learned(leaves_open=True))
            raise _incomplete(ModelError(kind="LLMError", detail="the answer's tag was opened and not closed"))
        return pieces

    async def _next_chunk(self, chunks: AsyncGenerator[bytes]) -> bytes:
        async with asyncio.timeout(self._timeouts.idle):
            return await anext(chunks, b"")

    async def context_length(self, model: str) -> int | None:
        """Return the tokens that ``model`` takes by the server's list of models, if it says."""
        try:
            async with asyncio.timeout(self._timeouts.reply):
                models = await (await self.client()).models()
        except (ModelError, TimeoutError):
            return None
        facts = next((each for each in models if each.get("id") == model), {})
        length = next((facts[name] for name in _CONTEXT_NAMES if name in facts), None)
        return length if isinstance(length, int) else None

    async def _request(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send as the model is known to take it; a refusal is learned once the request went through without."""
        model, certain = body["model"], False
        learned = self.learned(model)
        while True:
            try:
                result = await self._with_retries(learned.request(body), send)
            except ServerRefusalError as refusal:
                wiser = learned.after(refusal, body)
                if wiser is None:
                    raise
                if certain or learned.is_named(refusal.words, body):
                    learned = wiser
                certain = True  # one that names nothing may be a bad moment: the same request is sent once more
            else:
                self.learn(model, learned)
                return result

    async def _with_retries(self, request: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        pause, attempts = self._timeouts.pause, self._timeouts.retries + 1
        retries = stamina.retry_context(
            _pause, attempts=attempts, timeout=None, wait_initial=pause, wait_max=pause * 8, wait_jitter=pause / 4
        )
        async for attempt in retries:
            with attempt:
                return await send(request)
        raise AssertionError  # the last attempt returns or raises

    def _usage(self, body: Body, figures: Usage | None, written: int) -> Usage:
        """Return what a call cost by the server's figures, else estimated; log a prompt that was not read whole."""
        guess = estimate_usage(sum(len(message["content"]) for message in body["messages"]), written)
        model = str(body["model"])
        if figures is None:
            return guess
        if figures.reasoning_tokens:
            self.learn(model, Learned(reasons=True))
        if was_cut(figures, guess.prompt_tokens) and model not in self._cut_prompts:
            self._cut_prompts.add(model)
            log.warning("prompt_cut_by_server", model=model, read=figures.prompt_tokens, sent_about=guess.prompt_tokens)
        return figures

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """Make one call, unless the circuit is open, and record how it went."""
        if wait_s := self._breaker.wait_s():
            raise ModelError(kind="LLMError", detail="the server keeps failing and is left alone", retry_after_s=wait_s)
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            self._breaker.release_probe()
            raise
        except (ModelError, TimeoutError) as raised:
            failure = _as_model_error(raised)
            if failure.kind in RETRYABLE:
                self._breaker.record_failure(failure.retry_after_s)
            else:
                self._breaker.record_success()
            raise failure from raised
        self._breaker.record_success()


def was_cut(figures: Usage, sent: int) -> bool:
    """Return True if a server read clearly less than the ``sent`` tokens of a prompt (an estimate)."""
    return not figures.estimated and sent > _LONG_PROMPT and figures.prompt_tokens < sent * _CUT


def _pause(error: Exception) -> bool | float:
    """Return whether to retry, or the seconds before it that the server asks for."""
    # After a time-out the next attempt would only use up the time that is left.
    if not isinstance(error, ModelError) or error.kind not in RETRYABLE - {"TimeoutError"}:
        return False
    if isinstance(error, ServerRefusalError) and error.final:
        return False
    asked = error.retry_after_s
    return True if asked is None else asked <= MAX_RETRY_WAIT_S and asked


def _as_model_error(raised: ModelError | TimeoutError) -> ModelError:
    return raised if isinstance(raised, ModelError) else ModelError(kind="TimeoutError", detail="no reply in time")


def _incomplete(failure: ModelError | TimeoutError) -> ModelError:
    """Return the failure of a reply that had begun: another one may be whole."""
    error = _as_model_error(failure)
    error.incomplete = error.kind in RETRYABLE | {"EmptyReplyError"}
    return error


async def _drain(chunks: AsyncGenerator[bytes]) -> None:
    """Read a body to its end, if that comes soon."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in chunks:
                pass
    except (ModelError, TimeoutError):
        return

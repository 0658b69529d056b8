"""A server that speaks OpenAI's chat completions, through the openai SDK. Every failure becomes a ``ModelError``.

Calls are retried and their usage is counted. An option that a model refused is left out from then on, or sent with
another value.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, TypeVar

import stamina
import structlog

from agent.budget import ModelCall, Usage
from agent.circuit_breaker import CircuitBreaker
from agent.model.chat_reply import CHARACTERS_PER_TOKEN, Reply, join_surrogates
from agent.model.failures import ABOUT_TOOLS, ServerRefusalError
from agent.model.protocol import RETRYABLE, ModelError, Piece, ServerAddress, WriteStream

if TYPE_CHECKING:
    from agent.model.client import SdkClient

T = TypeVar("T")
log = structlog.get_logger()

_LAST_CHUNK_S: Final = 2.0  # wait after the end of a reply: some bodies stay open
# If a server counts less than this share of a long prompt's estimated tokens, it did not read all of it.
_CUT: Final = 0.75
_LONG_PROMPT: Final = 2_000  # tokens; the estimate is good enough for longer prompts

LOWEST_EFFORT: Final = "none"

# Values to try instead, in this order. An option without another value is left out.
_ALTERNATIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_effort": (LOWEST_EFFORT, "minimal", "low"),  # gpt-5.6 accepts tools only with "none"
    "tool_choice": ("auto",),  # some reasoning servers refuse "required"
}
# Optional. A server that refuses one of the first three may not name it.
_UNNAMED: Final = ("reasoning_effort", "stream_options", "response_format")
_OPTIONS: Final = (*_UNNAMED, "temperature", "max_tokens", "tool_choice")  # gpt-5 refuses a temperature
_ABOUT_VALUE: Final = re.compile(r"(?i)\bvalues?\b|should be|must be|one of")
# "System role not supported", "Only user and assistant roles are supported", "roles must alternate user/assistant"
_ABOUT_ROLES: Final = re.compile(
    r"(?i)system.{0,10}\brole|\brole.{0,6}system|\broles?\b.{0,40}(?:alternat|support|allow)|support.{0,10}\bsystem"
    r"|system (?:message|prompt)s?.{0,30}\b(?:not|un)"
)
_REFUSING_STATUSES: Final = frozenset({0, 400, 422, 424, 500})  # llama.cpp reports what a template refuses as 500
_ANY: Final = ""
_WITH_TOOLS: Final = "reasoning_effort with tools"
_SYSTEM_ROLE: Final = ("system role", _ANY)

Body = dict[str, Any]


@dataclass(slots=True, kw_only=True)
class Learned:
    """Facts about one model. They are read from the text of refusals, because servers share no codes."""

    refused: set[tuple[str, str]] = field(default_factory=set)  # pairs of an option and the refused value, or _ANY
    calls_tools: bool = False
    json_only: bool = False  # True if it cannot call tools
    reasons: bool = False  # it reasons before it writes, without being told to
    leaves_open: bool = False  # it ended a reply without closing the answer's tag
    closes: bool = False  # it closed the tag of another one

    def request(self, body: Body) -> Body:
        """Return the request as this model accepts it, with only encodable text."""
        request = body | {option: self._value(option, body) for option in _OPTIONS if option in body}
        messages = [{**message, "content": join_surrogates(message["content"])} for message in body["messages"]]
        if _SYSTEM_ROLE in self.refused:  # put its text before the first user text, and never two of a role in a row
            turns = groupby(messages, key=lambda message: message["role"].replace("system", "user"))
            messages = [{"role": role, "content": "\n\n".join(m["content"] for m in group)} for role, group in turns]
        request["messages"] = messages
        if "max_tokens" in body and request["max_tokens"] is None:
            request["max_completion_tokens"] = body["max_tokens"]  # its newer name, for OpenAI's reasoning models
        return {name: value for name, value in request.items() if value is not None}

    def lesson(self, refusal: ServerRefusalError, body: Body) -> tuple[tuple[str, str] | None, bool]:
        """Return the refused feature (None: do not retry) and whether the reply names it (else it may be temporary)."""
        words = refusal.words
        if refusal.kind not in {"ConfigurationError", "LLMError"} or refusal.status not in _REFUSING_STATUSES:
            return None, False
        if _ABOUT_ROLES.search(words) and _SYSTEM_ROLE not in self.refused:
            return _SYSTEM_ROLE, True
        about_tools = "tools" in body and bool(ABOUT_TOOLS.search(words))
        wanted = (option for option in _OPTIONS if option in body)
        sent: Body = {option: value for option in wanted if (value := self._value(option, body)) is not None}
        named = [option for option in sent if option in words]
        unnamed = [option for option in sent if option in _UNNAMED and not about_tools]
        choice = ["tool_choice"] if sent.get("tool_choice", "auto") != "auto" else []
        if refusal.kind != "ConfigurationError" or not (named or unnamed or choice):
            return None, False
        option = (named or unnamed or choice)[0]
        value, combined = sent[option], option == "reasoning_effort" and about_tools
        is_value = option == "tool_choice" or combined or (option in words and _ABOUT_VALUE.search(words))
        lesson = (_WITH_TOOLS if combined else option, value if is_value and isinstance(value, str) else _ANY)
        return lesson, bool(named) or about_tools

    def _value(self, option: str, body: Body) -> Any:
        """Return the value to send for an option of the request, or None to leave it out."""
        wanted = body[option]
        if (option, _ANY) in self.refused:
            return None
        if not isinstance(wanted, str):
            return wanted
        names = (option, _WITH_TOOLS) if option == "reasoning_effort" and "tools" in body else (option,)
        values = (wanted, *_ALTERNATIVES.get(option, ()))
        return next((value for value in values if not any((name, value) in self.refused for name in names)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeouts:
    """Time-outs in seconds. A model sends nothing while it reasons, and even longer while it is being loaded."""

    connect: float = 5.0
    reply: float = 90.0  # for a decision with its retries, or for the beginning of a stream
    idle: float = 90.0  # until the next byte
    retries: int = 2
    pause: float = 0.5  # before the first retry; it doubles each time
    wait: float = 10.0  # before a retry if the server asks for it; a longer wait is left to the caller


@dataclass(kw_only=True, eq=False)
class ModelServer:
    """One server under one key. The SDK's client is imported and opened by the first call."""

    address: ServerAddress
    timeouts: Timeouts = field(default_factory=Timeouts)
    _client: SdkClient | None = field(default=None, init=False)
    _opening: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def aclose(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.sdk.close()

    async def client(self) -> SdkClient:
        """Return the SDK's client. Raises ``ModelError``."""
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._open)
        return self._client

    def retrying(self, retries: int) -> stamina.BoundAsyncRetryingCaller:
        """Return a caller that tries again after a temporary failure."""
        pause = self.timeouts.pause
        waits = {"wait_initial": pause, "wait_max": pause * 8, "wait_jitter": pause / 4}
        return stamina.AsyncRetryingCaller(attempts=retries + 1, timeout=None, **waits).on(self._wait_before_retry)

    def _wait_before_retry(self, error: Exception) -> bool | float:
        """Return whether to retry, or the seconds before it that the server asks for."""
        # After a time-out another try would only use up the remaining time.
        if not isinstance(error, ModelError) or error.is_final or error.kind not in RETRYABLE - {"TimeoutError"}:
            return False
        asked = error.retry_after_s
        return True if asked is None else asked <= self.timeouts.wait and asked

    def _open(self) -> SdkClient:
        # This takes half a second, so the start and `orion verify` avoid it.
        from agent.model.client import SdkClient, model_errors  # noqa: PLC0415

        with model_errors():
            return SdkClient(self.address, connect_s=self.timeouts.connect, read_s=self.timeouts.idle)


@dataclass(kw_only=True, eq=False)
class ChatServer(ModelServer):
    """A server of chat models. Its clients can share ``breaker`` and ``learned``, the facts about each model."""

    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("model"))
    learned: defaultdict[str, Learned] = field(default_factory=lambda: defaultdict(Learned))
    _cut_prompts: set[str] = field(default_factory=set, init=False)

    def call(self, body: Body) -> ModelCall:
        """Return the request as sent, for traces."""
        sent = self.learned[body["model"]].request(body)
        messages, tools = tuple(sent.pop("messages")), tuple(sent.pop("tools", ()))
        return ModelCall(model=sent.pop("model"), messages=messages, tools=tools, parameters=sent)

    async def reply(self, body: Body) -> tuple[Reply, Usage]:
        """Return a whole reply to ``body`` and its usage. Raises ``ModelError``."""
        client = await self.client()  # the import of the SDK does not count as the server's time

        async def send(request: Body) -> Reply:
            reply = Reply()
            reply.read(await client.post(request))
            reply.check_message()
            return reply

        with self._through_breaker(body):
            reply = await self._request(body, send)
        return reply, self._usage(body, reply)

    def stream(self, body: Body) -> WriteStream:
        """Start a streamed reply. Its usage is known at the end, even if the stream was stopped early."""

        def report(usage: Usage) -> None:
            stream.usage = usage

        sent = {**body, "stream": True, "stream_options": {"include_usage": True}}
        stream = WriteStream(pieces=self._pieces(sent, report), call=self.call(body))
        return stream

    async def _pieces(self, body: Body, report: Callable[[Usage], None]) -> AsyncGenerator[Piece]:
        client, reply = await self.client(), Reply()

        async def begin(request: Body) -> tuple[AsyncGenerator[object], list[Piece]]:
            nonlocal reply
            reply, chunks = Reply(), client.stream(request)
            try:
                return chunks, reply.read(await anext(chunks, {}))  # a refusal may come as the first chunk
            except ModelError:
                await chunks.aclose()
                raise

        is_open = is_refused = False
        try:
            with self._through_breaker(body):
                chunks, first = await self._request(body, begin)
                is_open = True
                async with aclosing(chunks):
                    pieces: list[Piece] | None = first
                    while pieces is not None:
                        for piece in pieces:
                            yield piece
                        pieces = await self._next_pieces(chunks, reply)
                self._check_answer(body, reply)
        except ModelError as error:
            is_refused = not is_open and error.kind != "TimeoutError"
            # The reply had begun, so another one may be complete.
            error.incomplete = is_open and error.kind in RETRYABLE | {"EmptyReplyError"}
            raise
        finally:
            # A stream that was stopped early has no figures from the server; a refused request used no tokens.
            report(Usage(model_calls=1) if is_refused else self._usage(body, reply))

    async def _next_pieces(self, chunks: AsyncGenerator[object], reply: Reply) -> list[Piece] | None:
        """Return the text of the next chunk, or None if the reply ended. Raises ``ModelError``."""
        try:
            async with time_limit(_LAST_CHUNK_S) if reply.finish else nullcontext():  # cheap: once for each chunk
                chunk = await anext(chunks, None)
            return None if chunk is None else reply.read(chunk)
        except ModelError as failure:
            # A reply with all its parts is complete, no matter how its connection ends.
            lost = failure.kind in RETRYABLE and not isinstance(failure, ServerRefusalError)
            if not (lost and reply.is_whole):
                raise
        return None

    def _check_answer(self, body: Body, reply: Reply) -> None:
        reply.check_answer()
        tags, learned = reply.tags, self.learned[body["model"]]
        learned.closes = learned.closes or reply.is_closed
        # Either the server calls half an answer complete, or the model never closes the tag: then accept the next one.
        if tags.in_answer and (learned.closes or not learned.leaves_open or tags.draft[-1].isalnum()):
            learned.leaves_open = True
            raise ModelError(kind="LLMError", detail="the answer's tag was opened and not closed")

    async def _request(self, body: Body, send: Callable[[Body], Awaitable[T]]) -> T:
        """Send without refused options; learn a new refusal once the request succeeds without the option."""
        is_certain, retry, learned = False, self.retrying(self.timeouts.retries), self.learned[body["model"]]
        trial = replace(learned, refused=set(learned.refused))
        async with time_limit(self.timeouts.reply):
            while True:
                try:
                    result = await retry(send, trial.request(body))
                except ServerRefusalError as refusal:
                    lesson, is_named = trial.lesson(refusal, body)
                    if lesson is None:
                        raise
                    if is_certain or is_named:
                        trial.refused.add(lesson)
                    is_certain = True  # a refusal that names nothing may be temporary: send the same request once more
                else:
                    learned.refused |= trial.refused
                    return result

    def _usage(self, body: Body, reply: Reply) -> Usage:
        """Return the usage by the server's figures, or an estimate; learn what they show about the model."""
        figures, model = reply.usage, str(body["model"])
        characters = (sum(len(message["content"]) for message in body["messages"]), sum(map(len, reply.texts)))
        sent, written = (-(-count // CHARACTERS_PER_TOKEN) for count in characters)  # rounded up
        # Reasoning came separately or was counted separately: the model reasons without being told to.
        if reply.reasoning or (figures and figures.reasoning_tokens):
            self.learned[model].reasons = True
        if figures and was_cut(figures, sent) and model not in self._cut_prompts:
            self._cut_prompts.add(model)
            log.warning("prompt_cut_by_server", model=model, read=figures.prompt_tokens, sent_about=sent)
        return figures or Usage(model_calls=1, prompt_tokens=sent, completion_tokens=written, estimated=True)

    @contextmanager
    def _through_breaker(self, body: Body) -> Iterator[None]:
        """Make one call, unless the circuit is open, and record how it went."""
        if wait_s := self.breaker.wait_s():
            raise ModelError(
                kind="LLMError", detail="the server keeps failing and is not called for a while", retry_after_s=wait_s
            )
        try:
            yield
        except (asyncio.CancelledError, GeneratorExit):
            self.breaker.release_probe()
            raise
        except ModelError as failure:
            if failure.kind in RETRYABLE:
                self.breaker.record_failure(failure.retry_after_s)
            else:
                self.breaker.record_success()
            failure.call = self.call(body)
            raise
        self.breaker.record_success()


@asynccontextmanager
async def time_limit(seconds: float) -> AsyncGenerator[None]:
    """Raise ``ModelError`` if the block takes longer."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise ModelError(kind="TimeoutError", detail="no reply in time") from None


def was_cut(figures: Usage, sent: int) -> bool:
    """Return True if a server read clearly less than the ``sent`` tokens of a prompt (an estimate)."""
    return not figures.estimated and sent > _LONG_PROMPT and figures.prompt_tokens < sent * _CUT

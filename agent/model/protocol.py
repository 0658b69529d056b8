"""The interface to a model: ``decide`` returns structure without prose, ``write`` prose without structure.

When the server fails, implementations raise only ``ModelError``. Any other exception is a bug. ``write`` yields the
raw stream with its tags, which ``agent.model.chat_reply`` classifies.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, Protocol

from agent.budget import ModelCall, Usage

if TYPE_CHECKING:  # so that `orion verify` has these errors without importing threads and tool schemas
    from datetime import date

    from agent.actions import Action
    from agent.budget import Budget
    from agent.thread.conversation import Question, ThreadMessage
    from agent.thread.state import Plan
    from agent.tools.tool import ToolResult, ToolSpec
    from verification.judgement import Judgement
    from verification.types import Claim, Source

ModelErrorKind = Literal[
    "ConfigurationError", "AuthenticationError", "TokenLimitError", "TimeoutError", "RateLimitError", "QuotaError",
    "RefusalError", "MalformedControlError", "EmptyReplyError", "LLMError",
]  # fmt: skip

_CONFIGURATION = "Check the configuration: OPENAI_BASE_URL, ORION_MODEL and ORION_WRITE_MODEL."
_CREDENTIALS = "Verify the credentials: OPENAI_API_KEY."
_LENGTH = "Shorten the prompt or raise max_tokens, or the server's own limit for a reply."
_AGAIN = "Try again after a moment."
_NO_TEXT = "The model wrote no text. Where it reasons, lower ORION_WRITE_EFFORT or raise its limit of tokens."
HINTS: dict[ModelErrorKind, tuple[str, ...]] = {
    "ConfigurationError": (_CONFIGURATION,),
    "AuthenticationError": (_CREDENTIALS, _CONFIGURATION),
    "TokenLimitError": (_LENGTH,),
    "TimeoutError": (_AGAIN, _LENGTH),
    "RateLimitError": (f"{_AGAIN} The server limits requests.", _CREDENTIALS),
    "QuotaError": ("The quota of this key is used up: check its plan and billing.", _CREDENTIALS),
    "RefusalError": ("Rephrase the prompt; the model refused it.",),
    "MalformedControlError": ("Use a model that is able to call functions or to write JSON.", _CONFIGURATION),
    "EmptyReplyError": (_NO_TEXT, _CONFIGURATION),
    "LLMError": (_CONFIGURATION, _AGAIN),
}


class ModelError(Exception):
    """The model server failed. ``kind`` says how, ``hints`` say what to do. The text is for logs, never for a person.

    ``usage`` is the known cost of the call, and ``call`` the request, for traces. ``retry_after_s`` is the pause that
    the server asked for, if any.
    """

    incomplete = False  # the reply is empty or broke off, and another one may be complete
    is_final = False  # the server asked not to retry

    def __init__(
        self, kind: ModelErrorKind, detail: str, *, usage: Usage | None = None, call: ModelCall | None = None,
        retry_after_s: float | None = None,
    ) -> None:  # fmt: skip
        super().__init__(f"{kind}: {detail}")
        self.kind, self.detail, self.hints = kind, detail, HINTS[kind]
        self.usage, self.call = usage or Usage(model_calls=1), call or ModelCall()
        self.retry_after_s = retry_after_s


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """One server under one key that speaks OpenAI's API. An empty ``base_url`` is OpenAI itself."""

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    azure_api_version: str = ""  # for an Azure resource, where the model is the name of a deployment
    azure_token: str = field(default="", repr=False)  # used instead of the key there
    # None: not sent, not even the SDK's own
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnContext:
    """Part of a turn that both phases see. ``left_out`` counts passages that did not fit."""

    mission: str
    question: Question
    history: tuple[ThreadMessage, ...]
    answers: dict[str, str]
    results: tuple[ToolResult, ...]
    sources: tuple[Source, ...]
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DecideContext(TurnContext):
    """Everything that a decision may depend on. ``objection`` says what was wrong with the last decision."""

    plan: Plan | None
    tools: tuple[ToolSpec, ...]
    budget: Budget
    used: Usage
    objection: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteContext(TurnContext):
    """The short context for writing, with the sources in full."""

    feedback: str = ""
    previous_draft: str = ""
    kept: str = ""  # the part of the answer that people already see


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One action, its usage, and the request for traces."""

    action: Action
    usage: Usage
    call: ModelCall = field(default_factory=ModelCall)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A plain text, its usage, and the request for traces."""

    text: str
    usage: Usage
    call: ModelCall = field(default_factory=ModelCall)


Piece = tuple[Literal["content", "reasoning"], str]
"""A piece of a stream: raw text, or a server's separate ``reasoning_content``."""


@dataclass(slots=True)
class WriteStream:
    """The written text as it arrives. ``usage`` is complete at its end; ``call`` is the request."""

    pieces: AsyncGenerator[Piece]
    usage: Usage = field(default_factory=Usage)
    call: ModelCall = field(default_factory=ModelCall)


class Model(Protocol):
    """A language model behind a server, or the keyless engine that quotes."""

    @property
    def name(self) -> str:
        """Name in logs, traces and the dialog "Why trust this?"."""

    @property
    def quotes_only(self) -> bool:
        """True if code puts answers together from quotations, so that they are labelled as such."""

    async def decide(self, context: DecideContext) -> Decision:
        """Choose one action. Raises ``ModelError``; kind ``MalformedControlError`` if the output made no sense."""

    def write(self, context: WriteContext) -> WriteStream:
        """Start writing. Errors surface as ``ModelError`` while iterating."""

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        """Plain text for the ``llm_generate`` tool. Raises ``ModelError``."""


ReplyKind = Literal["answered", "partly", "not_in_sources"]
"""Kind of an answer as a whole: it answers the question fully or partly, or only says that the sources do not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeContext:
    """Everything that a judgement may depend on. ``claims`` are sentences of ``answer``."""

    question: str
    answer: str
    claims: tuple[Claim, ...]
    sources: tuple[Source, ...]
    said: str = ""  # before the question: by the person, and the last question to Orion, with its replies
    today: date | None = None  # the day of the question, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """The judge's usable verdicts, their usage, and the request for traces."""

    judgements: Mapping[int, Judgement] = field(default_factory=dict)  # by claim number, from 1
    reply: ReplyKind | None = None  # None if the judge did not say
    usage: Usage = field(default_factory=Usage)
    call: ModelCall = field(default_factory=ModelCall)


class Judge(Protocol):
    """Decides claims that rules cannot."""

    @property
    def name(self) -> str:
        """Name for logs and traces."""

    async def judge(self, context: JudgeContext) -> Opinion:
        """Judge all claims of the context in one call. Raises ``ModelError``."""


RETRYABLE: Final[frozenset[str]] = frozenset({"RateLimitError", "TimeoutError", "LLMError", "KnowledgeAwayError"})
"""Kinds of failure, of a model or of the documents, after which a later try may succeed.

Others need someone to fix something.
"""

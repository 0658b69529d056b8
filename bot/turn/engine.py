"""The engine of a turn: model, judge, index and tools, opened from the settings, and the time-outs of a turn.

It needs neither Slack nor Redis, so `orion ask` can run with it alone.
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypedDict, Unpack

from agent.budget import Budget
from agent.circuit_breaker import CircuitBreaker
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import IndexReport
from agent.model.chat_server import Learned, Timeouts
from agent.model.openai import JUDGE_TIMEOUTS, OpenAIModel
from agent.model.protocol import Judge, Model
from agent.outcome import TurnOutcome
from agent.quoting.model import ExtractiveModel
from agent.tasks import background_tasks
from agent.thread.conversation import Question, viewers_of
from agent.thread.state import ThreadState
from agent.tools.builtin.files import FILE_READ, FileReadTool
from agent.tools.builtin.git import GIT_LOG, GIT_SHOW, GitLogTool, GitShowTool, repositories
from agent.tools.builtin.knowledge import (
    GET_DOCUMENT,
    LIST_DOCUMENTS,
    SEARCH,
    SLACK_SEARCH,
    for_viewers,
    knowledge_tools,
)
from agent.tools.builtin.llm_generate import NAME as LLM_GENERATE
from agent.tools.builtin.llm_generate import LlmGenerate
from agent.tools.builtin.web import WEB_SEARCH, open_searxng
from agent.tools.mcp.config import McpServer, read_servers
from agent.tools.tool import Tool
from agent.turn.events import Emit
from agent.turn.live import Stage
from agent.turn.loop import run_turn
from agent.turn.progress import Policy, Save
from bot.documents.corpus import Corpus
from bot.documents.open import open_index, open_meaning
from bot.errors import WrongUse
from bot.settings import Settings, environment_for_mcp, model_address

if TYPE_CHECKING:
    from agent.knowledge.semantic.ranking import SemanticRanker
    from agent.tools.mcp.tools import McpTools


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTimeouts:
    """All in seconds except ``failures``.

    ``model_s``: how long to wait for a model (or the documents' database) that is down, from its first failure until
    the person is told. ``slack_s``: how long a decided answer waits while Slack is down. Both retry every
    ``pause_least_s`` to ``pause_most_s``. ``call_s`` limits all requests of one Slack call, ``request_s`` each of them,
    and ``first_pause_s`` is the pause before the second. After ``failures`` failures in a row a service is not called
    for ``rest_s``, then for twice as long. If Slack drops a new socket at once, the next one is requested after
    ``socket_pause_s``, then twice as long.
    """

    model: Timeouts = field(default_factory=Timeouts)
    judge: Timeouts = JUDGE_TIMEOUTS
    model_s: float = 180.0
    slack_s: float = 6 * 3600.0
    pause_least_s: float = 2.0
    pause_most_s: float = 60.0
    call_s: float = 60.0
    request_s: float = 15.0
    first_pause_s: float = 0.5
    failures: int = 5
    rest_s: float = 5.0
    socket_pause_s: float = 1.0

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """Take the admin's settings. A judge gets a third of a model's time: a claim without its verdict is cut out."""
        reply = settings.model_timeout_s
        model = Timeouts(reply=reply, idle=reply)
        return cls(model=model, judge=replace(JUDGE_TIMEOUTS, reply=reply / 3, idle=reply))

    def breaker(self, service: str) -> CircuitBreaker:
        """Closed circuit breaker of a service."""
        return CircuitBreaker(service, failures=self.failures, first_pause_s=self.rest_s)

    def pause_s(self, waited_s: float) -> float:
        """Pause before the next try. It grows with the wait, so that a recovering service is not hammered."""
        return min(self.pause_most_s, max(self.pause_least_s, waited_s / 3))


@dataclass(frozen=True, slots=True, kw_only=True)
class Engine:
    """Everything that a turn needs. ``run`` runs one turn. ``mcp`` has the tools of MCP servers.

    ``audiences`` are those of the MCP servers. ``shared``: several machines use the index, which is a database.
    ``meaning`` lets it rank by meaning too.
    """

    model: Model
    tools: Mapping[str, Tool]
    index: KnowledgeIndex
    policy: Policy
    budget: Budget
    report: IndexReport
    mcp: "McpTools | None" = None
    audiences: tuple[str, ...] = ()
    judge: Judge | None = None
    shared: bool = False
    meaning: "SemanticRanker | None" = None
    breaker: CircuitBreaker = field(default_factory=lambda: CircuitBreaker("model"))

    @property
    def tool_names(self) -> frozenset[str]:
        """Names of all current tools, including the one that only questions from Slack can use."""
        return frozenset((*self.tools, *(self.mcp.by_name() if self.mcp else ()), SLACK_SEARCH))

    async def run(  # noqa: PLR0913 - the inputs of one question, each named at the call
        self,
        question: Question,
        state: ThreadState,
        *,
        emit: Emit,
        save: Save | None = None,
        more: Sequence[Tool] = (),
        stage: Stage | None = None,
    ) -> tuple[TurnOutcome, ThreadState]:
        """Run one turn. ``more`` are tools of this question; ``stage`` shows the answer while it grows."""
        viewers = viewers_of(question)
        served = self.mcp.by_name(viewers) if self.mcp else {}
        own = for_viewers(self.tools, viewers, question.documents)
        # If the breaker is open, one call probes the server. The refused decision would stop an early draft.
        early = self.policy.early_draft and not self.breaker.is_open
        return await run_turn(
            question,
            state,
            model=self.model,
            tools={**served, **own, **{tool.spec.name: tool for tool in more}},
            budget=self.budget,
            emit=emit,
            policy=replace(self.policy, early_draft=early),
            save=save,
            judge=self.judge,
            stage=stage,
        )


@asynccontextmanager
async def open_engine(
    settings: Settings, corpus: Corpus, timeouts: TurnTimeouts | None = None
) -> AsyncIterator[Engine]:
    """Open model, tools and index. ``timeouts`` are those of the model."""
    timeouts = timeouts or TurnTimeouts.of(settings)
    breaker = timeouts.breaker("model")
    learned = defaultdict[str, Learned](Learned)
    asking: CallOptions = {"timeouts": timeouts.model, "breaker": breaker, "learned": learned}
    judging: CallOptions = {"timeouts": timeouts.judge, "breaker": breaker, "learned": learned}
    async with AsyncExitStack() as stack:
        index, report = await stack.enter_async_context(open_index(corpus, may_be_away=True))
        meaning = await stack.enter_async_context(open_meaning(settings, index))
        model = await stack.enter_async_context(open_model(settings, **asking))
        judge = await stack.enter_async_context(open_judge(settings, **judging))
        tools, mcp, audiences = await open_tools(settings, stack)
        # A model reads the text around each passage. Without one, the passages are shown as found.
        source_tokens = settings.source_tokens if settings.uses_server else 0
        tools = [*knowledge_tools(index, source_tokens=source_tokens), *tools]
        if settings.uses_server:
            tools.append(LlmGenerate(model))
        yield Engine(
            model=model,
            tools={tool.spec.name: tool for tool in tools},
            mcp=mcp,
            audiences=audiences,
            index=index,
            policy=Policy(general=settings.general, link_hosts=settings.link_hosts),
            budget=Budget(attempts=settings.max_attempts, deadline_s=settings.turn_timeout_s),
            report=report,
            judge=judge,
            shared=bool(corpus.database),
            meaning=meaning,
            breaker=breaker,
        )


class CallOptions(TypedDict, total=False):
    """Time-outs of calls to a server, and the state that its models share."""

    timeouts: Timeouts
    breaker: CircuitBreaker
    learned: defaultdict[str, Learned]


@asynccontextmanager
async def open_model(settings: Settings, **calling: Unpack[CallOptions]) -> AsyncIterator[Model]:
    """Open the configured model, or the engine that quotes."""
    if not settings.uses_server:
        yield ExtractiveModel()
        return
    model = _model(settings, settings.model_name, settings.write_model or settings.model_name, **calling)
    async with aclosing(model), background_tasks() as tasks:
        tasks.create_task(model.client(), name="model-sdk")  # the first question need not wait for the import
        yield model


def open_judge(settings: Settings, **calling: Unpack[CallOptions]) -> AbstractAsyncContextManager[Judge | None]:
    """Open the judge on the same server, by default the deciding model; None without a server or if it is off."""
    if not (settings.uses_server and settings.judge):
        return nullcontext()
    calling.setdefault("timeouts", JUDGE_TIMEOUTS)
    return aclosing(_model(settings, settings.judge_model or settings.model_name, "", **calling))


def _model(settings: Settings, model: str, write_model: str, **calling: Unpack[CallOptions]) -> OpenAIModel:
    return OpenAIModel(
        address=model_address(settings),
        model=model,
        write_model=write_model,
        effort=settings.effort,
        write_effort=settings.write_effort,
        **calling,
    )


ACTIONS: Final = ("respond", "ask_user", "finish_step", "complete", "tool_call")
# Names that no server's tool can take, even if Orion's own tool is not configured.
_DOCUMENTS: Final = (SEARCH, LIST_DOCUMENTS, GET_DOCUMENT)
RESERVED: Final = frozenset(
    (*ACTIONS, *_DOCUMENTS, LLM_GENERATE, GIT_LOG, GIT_SHOW, FILE_READ, WEB_SEARCH, SLACK_SEARCH)
)


async def open_tools(
    settings: Settings, stack: AsyncExitStack
) -> "tuple[list[Tool], McpTools | None, tuple[str, ...]]":
    """Open the tools that the settings name: fixed ones, those of MCP servers, and the servers' audiences.

    Raises ``WrongUse``.
    """
    tools: list[Tool] = []
    if history := repositories(_folders(settings.git, "ORION_GIT"), settings.git_url):
        tools += [GitLogTool(history), GitShowTool(history)]
    if roots := _folders(settings.files, "ORION_FILES"):
        tools.append(FileReadTool(roots))
    if settings.searxng_url:
        tools.append(await stack.enter_async_context(open_searxng(settings.searxng_url)))
    mcp: McpTools | None = None
    if servers := mcp_servers(settings):
        from agent.tools.mcp.tools import open_mcp  # noqa: PLC0415 - a third of a second, only for those who use it

        mcp = await stack.enter_async_context(open_mcp(servers, RESERVED))
    return tools, mcp, tuple(server.audience for server in servers)


def mcp_servers(settings: Settings) -> tuple[McpServer, ...]:
    """The servers of ``ORION_MCP_CONFIG``. Raises ``WrongUse``."""
    path = settings.mcp_config
    if path is None:
        return ()
    try:
        return read_servers(path.read_text(encoding="utf-8-sig"), environment_for_mcp())
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        message = f"ORION_MCP_CONFIG names {path}, which cannot be read ({reason})."
    except ValueError as error:
        message = f"ORION_MCP_CONFIG names {path}, which cannot be used. {error}"
    raise WrongUse(message)


def _folders(folders: Sequence[Path], variable: str) -> Sequence[Path]:
    for folder in folders:
        if not folder.is_dir():
            raise WrongUse(why=f"{variable} names {folder}, which is not a folder. Name existing folders.")
    return folders

"""One run over labelled questions as an experiment in Langfuse: a dataset, its items, a trace with scores each (G5).

Nothing here can fail a run: a Langfuse that is away costs some seconds, and why nothing was sent is told. Scores have
other names than those of people's questions, so that they do not count into the pass rate.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, ClassVar, Final
from urllib.parse import quote

from observability.langfuse.tracing import API_ERRORS, Tracer, TurnTrace, content_of, send_score, trace_id_of, walled

READY_WITHIN_S: Final = 3.0
"""Seconds from the beginning within which Langfuse must know the dataset; else the run goes on without it."""
PUSHED_WITHIN_S: Final = 30.0
"""The longest that the end of a run waits for what is on its way, in seconds; one request fails much sooner."""
TO_BE_REFUSED: Final = "to be refused"
_ONCE: Final[Any] = {"max_retries": 0}
_SILENT: Final = "did not answer in time"
_NO_KEYS: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One labelled question. ``expect`` are texts that its answer must hold, None where it must be refused."""

    id: str
    question: str
    expect: tuple[str, ...] | None
    facts: Mapping[str, str] = field(default_factory=dict)


class ItemTrace(TurnTrace):
    """The trace of one question of a run. ``marks`` stand on each of its observations, ``own`` on its root."""

    name: ClassVar[str] = "eval"

    def __init__(self, client: Any, *, trace_id: str, marks: Mapping[str, str], **told: Any) -> None:
        super().__init__(client, trace_id=trace_id, **told)
        self._marks = marks
        self.own: Mapping[str, str] = {}

    @walled
    def judge(self, *, as_expected: bool, outcome: str) -> None:
        """Whether the answer was what the question's label asks for; the turn has ended."""
        root = self._root.id
        for name, value, kind in (
            ("as_expected", float(as_expected), "BOOLEAN"),
            ("eval_outcome", outcome, "CATEGORICAL"),
        ):
            send_score(self._langfuse, name, value, kind=kind, trace_id=self.trace_id, observation=root)

    def _mark(self, observation: Any) -> None:
        marks = {**self._marks, "langfuse.experiment.item.root_observation_id": self._root.id}
        own = self.own if observation is self._root else {}
        observation._otel_span.set_attributes({**marks, **own})  # noqa: SLF001 (the SDK has no public way to set one)

    def _score(
        self, name: str, value: float | str, kind: str, *, part: str = "", observation: str | None = None
    ) -> None:
        super()._score(f"eval_{name}", value, kind, part=part, observation=observation)


class Experiment(Tracer):
    """One run; ``dataset`` and ``run`` are names for people. In order: ``begin``, ``ready``, ``item`` each, ``finish``.

    ``trouble`` is why nothing, or not everything, was pushed; ``url`` is where the run can be seen once it was.
    """

    environment: ClassVar[str | None] = "sdk-experiment"
    tags: ClassVar[tuple[str, ...]] = ("eval",)

    def __init__(self, *, dataset: str, run: str, **connection: Any) -> None:
        super().__init__(**connection)
        self.dataset, self.run, self.trouble, self.url = dataset, run, "", ""
        self._host = str(connection["host"]).rstrip("/")
        self._facts: Mapping[str, str] = {}
        self._id = trace_id_of(f"{dataset}\n{run}")
        self._dataset_id = ""
        self._began = time.monotonic()
        self._known, self._stored = asyncio.Event(), asyncio.Event()

    def begin(self, items: Sequence[Item]) -> None:
        """Dataset and items are sent, beside whatever the caller does meanwhile."""
        if self._client is None:
            return
        client, loop = self._client, asyncio.get_running_loop()

        def send() -> None:
            found = client.api.datasets.create(name=self.dataset, request_options=_ONCE)
            self._dataset_id = found.id
            loop.call_soon_threadsafe(self._known.set)
            for item in items:
                if self._client is None:
                    return
                client.api.dataset_items.create(dataset_name=self.dataset, **self._body(item))

        self._beside(send, self._stored)

    async def ready(self, facts: Mapping[str, str], *, within_s: float = READY_WITHIN_S) -> None:
        """Wait until the dataset is known; ``within_s`` counts from the beginning. If it is not, nothing is pushed.

        ``facts`` are shown with the run, such as its model.
        """
        self._facts = facts
        if self._client is None:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, self._began + within_s - time.monotonic())):
                await self._known.wait()
        if not self._dataset_id:
            await self._give_up(self.trouble or _SILENT)

    def item(self, item: Item, *, number: int, thread: str, user: str) -> ItemTrace:
        """The trace of one question, begun. ``number`` is its place in the run: an id may stand in a file twice."""
        facts = dict(item.facts)
        marks = {
            "langfuse.experiment.id": self._id,
            "langfuse.experiment.name": self.run,
            "langfuse.experiment.metadata": _json(dict(self._facts)),
            "langfuse.experiment.dataset.id": self._dataset_id,
            "langfuse.experiment.item.id": self.item_id(item),
            "langfuse.experiment.item.metadata": _json(facts),
        }
        trace_id = trace_id_of(f"{self._id}\n{number}\n{item.id}")
        trace = ItemTrace(self._client, trace_id=trace_id, marks=marks, **self._told)
        expected = self._expected(item)
        shown = expected if isinstance(expected, str) else _json(expected)
        trace.own = {"langfuse.experiment.item.expected_output": shown}
        trace.begin(thread=thread, user=user, question=item.question)
        return trace

    def item_id(self, item: Item) -> str:
        """An id for good: Langfuse knows each once in a whole project, so the dataset's name is part of it."""
        return f"{self.dataset}:{item.id}"

    async def finish(self, scores: Mapping[str, float], *, within_s: float = PUSHED_WITHIN_S) -> None:
        """The run is over: its own scores, and all that is still to be sent, within ``within_s`` seconds."""
        client = self._client
        if client is None:
            return
        self._score_run(scores)
        sent = asyncio.Event()

        def flush() -> None:
            client.flush()
            project = client.api.projects.get(request_options=_ONCE).data[0].id
            self.url = f"{self._host}/project/{quote(project)}/experiments/results?baseline={self._id}"

        try:
            async with asyncio.timeout(within_s):
                await self._stored.wait()
                if not self.trouble:
                    self._beside(flush, sent)
                    await sent.wait()
        except TimeoutError:
            self.trouble = _SILENT
        await self.aclose(deadline_s=1.0)

    @property
    def told(self) -> str:
        """What became of it, in one line for a person; empty without keys."""
        if self.url:
            return f"Langfuse: run {self.run} of the dataset {self.dataset}, {self.url}"
        if not self.trouble:
            return ""
        what = "only in part" if self._dataset_id else "not"
        return f"{self._host} {self.trouble}: this run was {what} pushed to Langfuse as an experiment."

    @walled
    def _score_run(self, scores: Mapping[str, float]) -> None:
        client: Any = self._client
        for name, value in scores.items():
            about: dict[str, Any] = {"score_id": f"{self._id}-{name}", "dataset_run_id": self._id}
            client.create_score(name=name, value=value, data_type="NUMERIC", **about)

    async def _give_up(self, why: str) -> None:
        self.trouble = why
        await self.aclose(deadline_s=0.1)

    def _beside(self, work: Callable[[], None], done: asyncio.Event) -> None:
        """In a daemon's thread: the loop's own would be waited for at the end of the process, whatever hangs."""
        loop = asyncio.get_running_loop()

        def run() -> None:
            try:
                work()
            except (*API_ERRORS, LookupError) as error:
                self.trouble = self.trouble or _why(error)
            with suppress(RuntimeError):  # the loop may be gone when the host answers at last
                loop.call_soon_threadsafe(self._known.set)
                loop.call_soon_threadsafe(done.set)

        Thread(target=run, name="langfuse-experiment", daemon=True).start()

    def _body(self, item: Item) -> dict[str, Any]:
        return {
            "id": self.item_id(item),
            "input": content_of(item.question, send=self._send_content),
            "expected_output": self._expected(item),
            "metadata": dict(item.facts),
        }

    def _expected(self, item: Item) -> Any:
        if item.expect is None:
            return TO_BE_REFUSED
        return [content_of(text, send=self._send_content) for text in item.expect]


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _why(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in _NO_KEYS:
        return "refuses LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    if status and status >= 400:  # noqa: PLR2004 (what HTTP calls an error)
        return f"answered {status}"
    if isinstance(error, (ValueError, LookupError)) or status:
        return "does not answer as Langfuse does"
    return f"cannot be reached ({type(error).__name__})"

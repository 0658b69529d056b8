"""Pushes one run over labelled questions to Langfuse with the SDK's own ``run_experiment``.

The run is over by then: a Langfuse that is away or hangs costs the end some seconds and changes no figure.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

from langfuse import Evaluation, Langfuse

from observability.langfuse.client import API_ERRORS, open_client
from observability.langfuse.connection import Tracer
from observability.langfuse.tracing import content_of

PUSHED_WITHIN_S: Final = 60.0
"""The longest that the end of a run waits, in seconds; one request to a host that is away fails much sooner."""
TO_BE_REFUSED: Final = "to be refused"
_NO_KEYS: Final = frozenset({401, 403})


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One labelled question and what became of it. ``expect`` is None where it must be refused.

    ``facts`` are further values for people: outcome, attempts, milliseconds, the id of the turn's own trace.
    """

    id: str
    question: str
    expect: tuple[str, ...] | None
    answer: str
    as_expected: bool
    kind: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """One run. ``dataset`` and ``run`` are names for people; ``shares`` are its scores, ``about`` its facts."""

    dataset: str
    run: str
    items: Sequence[Item]
    shares: Mapping[str, float]
    about: Mapping[str, str] = field(default_factory=dict)


async def push(tracer: Tracer, experiment: Experiment, *, within_s: float = PUSHED_WITHIN_S) -> str:
    """What became of it, in one line for a person; empty without keys. Never raises."""
    if not all(tracer.keys):
        return ""
    try:
        async with asyncio.timeout(within_s):
            trouble = await asyncio.wrap_future(_pushing(tracer, experiment))
    except TimeoutError:
        trouble = "did not answer in time"
    except (*API_ERRORS, LookupError) as error:
        trouble = _why(error)
    if trouble.startswith("http"):
        return f"Langfuse: run {experiment.run} of the dataset {experiment.dataset}, {trouble}"
    return f"{tracer.host} {trouble}: this run was not pushed to Langfuse as an experiment, or only in part."


def _pushing(tracer: Tracer, experiment: Experiment) -> Future[str]:
    """The push, in a daemon's thread: the end of the process would wait for the loop's own threads."""
    done = Future[str]()
    done.set_running_or_notify_cancel()  # whoever stops waiting must not cancel it: the thread ends it by itself

    def push() -> None:
        with open_client(*tracer.keys, tracer.host, tracer.environment) as client:
            try:
                done.set_result(_pushed(client, tracer, experiment))
            except (*API_ERRORS, LookupError) as error:
                done.set_exception(error)

    Thread(target=push, name="langfuse-experiment", daemon=True).start()
    return done


def _pushed(client: Langfuse, tracer: Tracer, experiment: Experiment) -> str:
    """Where the run can be seen. Raises what the API raises."""
    client.create_dataset(name=experiment.dataset)
    data = [_dataset_item(client, tracer, experiment.dataset, item) for item in experiment.items]
    outputs = {
        kept.id: {"answer": _text(tracer, item.answer), "as_expected": item.as_expected, **item.facts}
        for kept, item in zip(data, experiment.items, strict=True)
    }

    def task(*, item: Any, **_: Any) -> Any:
        return outputs[item.id]

    # The SDK hands an evaluator the output, but not the item: what it needs stands in the output.
    def as_expected(*, output: Any, **_: Any) -> Evaluation:
        return Evaluation(name="as_expected", value=float(output["as_expected"]), data_type="BOOLEAN")

    def shares(**_: Any) -> list[Evaluation]:
        return [Evaluation(name=name, value=value) for name, value in experiment.shares.items()]

    done = client.run_experiment(
        name=experiment.dataset,
        run_name=experiment.run,
        data=data,
        task=task,
        evaluators=[as_expected],
        run_evaluators=[shares],
        metadata=dict(experiment.about),
    )
    return done.experiment_url or "did not tell where the run stands"


def _dataset_item(client: Langfuse, tracer: Tracer, dataset: str, item: Item) -> Any:
    """The item under an id for good: Langfuse knows each once in a whole project, so the dataset's is part of it."""
    expected = TO_BE_REFUSED if item.expect is None else [_text(tracer, text) for text in item.expect]
    return client.create_dataset_item(
        dataset_name=dataset,
        id=f"{dataset}:{item.id}",
        input=_text(tracer, item.question),
        expected_output=expected,
        metadata={"kind": item.kind} if item.kind else {},
    )


def _text(tracer: Tracer, text: str) -> Any:
    return content_of(text, send=tracer.send_content)


def _why(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in _NO_KEYS:
        return "refuses LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    if status and status >= 400:  # noqa: PLR2004 (what HTTP calls an error)
        return f"answered {status}"
    if isinstance(error, (ValueError, LookupError)) or status:
        return "does not answer as Langfuse does"
    return f"cannot be reached ({type(error).__name__})"

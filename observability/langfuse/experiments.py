"""Pushes a run over labelled questions to Langfuse with the SDK's own ``run_experiment``.

The run is over by then: if Langfuse fails or hangs, that costs some seconds at the end and changes no figure.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

from langfuse import Evaluation

from observability.langfuse.client import API_ERRORS
from observability.langfuse.tracer import Tracer

PUSH_TIMEOUT_S: Final = 60.0  # a host that refuses connections fails much sooner
TO_BE_REFUSED: Final = "to be refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One labelled question and its answer. Without ``expect`` it must be refused.

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


async def push(tracer: Tracer, experiment: Experiment, *, timeout_s: float = PUSH_TIMEOUT_S) -> str:
    """Push a run and return how that went, in one line for a person; empty without keys. Never raises."""
    await tracer.connect()
    if tracer.client is None:
        return ""
    try:
        async with asyncio.timeout(timeout_s):
            url = await asyncio.wrap_future(_start_push(tracer, experiment))
    except TimeoutError:
        fault = "did not answer in time"
    except (*API_ERRORS, LookupError) as error:
        fault = _reason(error)
    else:
        if url:
            return f"Langfuse: run {experiment.run} of the dataset {experiment.dataset}, {url}"
        fault = "did not say where the run is"
    return f"{tracer.connection.host} {fault}: this run was not pushed to Langfuse as an experiment, or only in part."


async def read_dataset(tracer: Tracer, name: str) -> list[Any]:
    """Return the active items of a dataset that have an expected output. Raises ``LookupError`` with the reason."""
    await tracer.connect()
    if tracer.client is None:
        message = "set LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
        raise LookupError(message)
    try:
        dataset = await asyncio.to_thread(tracer.client.get_dataset, name)
    except API_ERRORS as error:
        message = f"{tracer.connection.host} {_reason(error)}"
        raise LookupError(message) from None
    return [item for item in dataset.items if item.status == "ACTIVE" and item.expected_output and item.input]


def _start_push(tracer: Tracer, experiment: Experiment) -> Future[str]:
    """Push in a daemon thread: the process would wait at its end for a thread of the loop's own pool."""
    done = Future[str]()
    done.set_running_or_notify_cancel()  # if the caller stops waiting, the thread is not cancelled; it ends by itself

    def push() -> None:
        try:
            done.set_result(_push(tracer, experiment))
        except (*API_ERRORS, LookupError) as error:
            done.set_exception(error)

    Thread(target=push, name="langfuse-experiment", daemon=True).start()
    return done


def _push(tracer: Tracer, experiment: Experiment) -> str:
    """Return the address of the run. Raises the API's errors."""
    client, dataset = tracer.client, experiment.dataset
    client.create_dataset(name=dataset)
    outputs, data = {}, []
    for item in experiment.items:
        expected = TO_BE_REFUSED if item.expect is None else list(map(tracer.text, item.expect))
        stored = client.create_dataset_item(
            dataset_name=dataset,
            id=f"{dataset}:{item.id}",  # unique within a whole project
            input=tracer.text(item.question),
            expected_output=expected,
            metadata={"kind": item.kind} if item.kind else {},
        )
        data.append(stored)
        outputs[stored.id] = {"answer": tracer.text(item.answer), "as_expected": item.as_expected, **item.facts}

    def task(*, item: Any, **_: Any) -> Any:
        return outputs[item.id]

    # The SDK gives an evaluator the output, but not the item.
    def as_expected(*, output: Any, **_: Any) -> Evaluation:
        return Evaluation(name="as_expected", value=float(output["as_expected"]), data_type="BOOLEAN")

    def shares(**_: Any) -> list[Evaluation]:
        return [Evaluation(name=name, value=value) for name, value in experiment.shares.items()]

    result = client.run_experiment(
        name=dataset, run_name=experiment.run, data=data, task=task, evaluators=[as_expected],
        run_evaluators=[shares], metadata=dict(experiment.about),
    )  # fmt: skip
    return result.experiment_url or ""


def _reason(error: Exception) -> str:
    status = getattr(error, "status_code", None)
    if status in {401, 403}:
        return "refuses LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY"
    if status and status >= 400:  # noqa: PLR2004 (what HTTP calls an error)
        return f"answered {status}"
    if isinstance(error, (ValueError, LookupError)) or status:
        return "does not answer as Langfuse does"
    return f"cannot be reached ({type(error).__name__})"

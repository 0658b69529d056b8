"""Datasets in Langfuse: disliked and corrected answers, and the runs of `orion eval` as experiments.

Daemon threads send them, because the process would wait at its end for a thread of the event loop's pool. If Langfuse
fails or hangs, that takes some seconds but changes no figures.
"""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from threading import Thread
from typing import Any, Final

import structlog

from observability.langfuse.tracing import Tracer, score_id, trace_id_of

log = structlog.get_logger()

# Questions with disliked answers, and with corrected ones, which `orion eval answers langfuse:NAME` asks again.
CORRECTIONS: Final = "orion-corrections"
PUSH_TIMEOUT_S: Final = 60.0  # a host that refuses connections fails much sooner
TO_BE_REFUSED: Final = "to be refused"


async def send_correction(tracer: Tracer, turn_id: str, question: str, answer: str = "") -> None:
    """Send a turn whose answer a person disliked or, with the right ``answer``, corrected. Returns at once."""
    await tracer.connect()
    if tracer.client is not None:
        arguments = (tracer, tracer.client, trace_id_of(turn_id), question, answer)
        Thread(target=_send_correction, args=arguments, name="langfuse-correction", daemon=True).start()


def _send_correction(tracer: Tracer, client: Any, trace_id: str, question: str, answer: str) -> None:
    from observability.langfuse.client import API_ERRORS  # noqa: PLC0415 (a third of a second and 25 MB)

    traced = trace_id if client.is_sampled(trace_id) else None
    try:
        if traced and not answer and (queue := tracer.connection.annotation_queue):
            item = {"object_id": trace_id, "object_type": "TRACE"}
            client.api.annotation_queues.create_queue_item(queue, **item)
        if not tracer.send_content:  # without texts there is nothing to correct or ask again
            return
        right = tracer.text(answer) or None
        if right:  # a corrected output is a score with this type and name
            key = score_id(trace_id, "correction")
            client.create_score(name="output", value=right, data_type="CORRECTION", trace_id=trace_id, score_id=key)
        client.create_dataset(name=CORRECTIONS)
        client.create_dataset_item(
            dataset_name=CORRECTIONS, id=f"{CORRECTIONS}:{trace_id}", input=tracer.text(question),
            expected_output=right, metadata={"kind": "corrected" if right else "disliked"}, source_trace_id=traced,
        )  # fmt: skip
    except API_ERRORS as error:
        log.warning("correction_not_sent", error_type=type(error).__name__, reason=str(error)[:200])


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


async def push_experiment(tracer: Tracer, experiment: Experiment, *, timeout_s: float = PUSH_TIMEOUT_S) -> str:
    """Push a run, and return one line for a person that says how it went; empty without keys. Never raises."""
    await tracer.connect()
    if tracer.client is None:
        return ""
    from observability.langfuse.client import API_ERRORS  # noqa: PLC0415 (a third of a second and 25 MB)

    done = Future[str]()
    done.set_running_or_notify_cancel()  # if the caller stops waiting, the thread is not cancelled but ends by itself

    def push() -> None:
        try:
            done.set_result(_run_experiment(tracer, experiment))
        except (*API_ERRORS, LookupError) as error:
            done.set_exception(error)

    Thread(target=push, name="langfuse-experiment", daemon=True).start()
    try:
        async with asyncio.timeout(timeout_s):
            url = await asyncio.wrap_future(done)
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
    from observability.langfuse.client import API_ERRORS  # noqa: PLC0415 (a third of a second and 25 MB)

    try:
        dataset = await asyncio.to_thread(tracer.client.get_dataset, name)
    except API_ERRORS as error:
        message = f"{tracer.connection.host} {_reason(error)}"
        raise LookupError(message) from None
    return [item for item in dataset.items if item.status == "ACTIVE" and item.expected_output and item.input]


def _run_experiment(tracer: Tracer, experiment: Experiment) -> str:
    from langfuse import Evaluation  # noqa: PLC0415 (the client has loaded it by now)

    client, dataset = tracer.client, experiment.dataset
    client.create_dataset(name=dataset)
    outputs, data = {}, []
    for item in experiment.items:
        stored = client.create_dataset_item(
            dataset_name=dataset,
            id=f"{dataset}:{item.id}",  # unique within a whole project
            input=tracer.text(item.question),
            expected_output=TO_BE_REFUSED if item.expect is None else list(map(tracer.text, item.expect)),
            metadata={"kind": item.kind} if item.kind else {},
        )
        data.append(stored)
        outputs[stored.id] = {"answer": tracer.text(item.answer), "as_expected": item.as_expected, **item.facts}

    # The SDK gives an evaluator the output, but not the item.
    def as_expected(*, output: Any, **_: Any) -> Evaluation:
        return Evaluation(name="as_expected", value=float(output["as_expected"]), data_type="BOOLEAN")

    result = client.run_experiment(
        name=dataset,
        run_name=experiment.run,
        data=data,
        task=lambda *, item, **_: outputs[item.id],
        evaluators=[as_expected],
        run_evaluators=[lambda **_: [Evaluation(name=name, value=n) for name, n in experiment.shares.items()]],
        metadata=dict(experiment.about),
    )
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

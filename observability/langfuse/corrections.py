"""Sends disliked and corrected answers to Langfuse: an annotation queue, corrected outputs, and a dataset of both."""

from threading import Thread
from typing import Any, Final

import structlog

from observability.langfuse.connection import trace_id_of
from observability.langfuse.tracer import Tracer
from observability.langfuse.tracing import score_id

log = structlog.get_logger()

# Questions with disliked answers, and with corrected ones, which `orion eval answers langfuse:NAME` asks again.
DATASET: Final = "orion-corrections"
_PAGE: Final = 100


async def send_correction(tracer: Tracer, turn_id: str, question: str, answer: str = "") -> None:
    """Send a turn whose answer a person disliked, or corrected: then ``answer`` is the right one.

    A daemon thread sends it, which delays nothing. A failure is logged.
    """
    await tracer.connect()
    if tracer.client is not None:
        arguments = (tracer, tracer.client, trace_id_of(turn_id), question, answer)
        Thread(target=_send, args=arguments, name="langfuse-correction", daemon=True).start()


def _send(tracer: Tracer, client: Any, trace_id: str, question: str, answer: str) -> None:
    from observability.langfuse.client import API_ERRORS  # noqa: PLC0415 (a third of a second and 25 MB)

    try:
        if not answer and tracer.connection.annotation_queue:
            _add_to_queue(client, tracer.connection.annotation_queue, trace_id)
        if tracer.send_content:  # without texts there is nothing to correct or to ask again
            _send_texts(client, trace_id, tracer.text(question), tracer.text(answer))
    except (*API_ERRORS, LookupError) as error:
        log.warning("correction_not_sent", error_type=type(error).__name__, reason=str(error)[:200])


def _add_to_queue(client: Any, named: str, trace_id: str) -> None:
    """Add a trace to the annotation queue with this name or id. Raises ``LookupError`` if it is missing."""
    queues, page, pages = client.api.annotation_queues, 1, 1
    while page <= pages:
        found = queues.list_queues(page=page, limit=_PAGE)
        if queue := next((each for each in found.data if named in {each.name, each.id}), None):
            queues.create_queue_item(queue.id, object_id=trace_id, object_type="TRACE")
            return
        page, pages = page + 1, found.meta.total_pages
    message = f"LANGFUSE_ANNOTATION_QUEUE: there is no queue {named}"
    raise LookupError(message)


def _send_texts(client: Any, trace_id: str, question: str, answer: str) -> None:
    if answer:  # a corrected output is a score of this type and name
        client.create_score(
            name="output", value=answer, data_type="CORRECTION", trace_id=trace_id,
            score_id=score_id(trace_id, "correction"),
        )  # fmt: skip
    client.create_dataset(name=DATASET)
    client.create_dataset_item(
        dataset_name=DATASET, id=f"{DATASET}:{trace_id}", input=question, expected_output=answer or None,
        metadata={"kind": "corrected" if answer else "disliked"}, source_trace_id=trace_id,
    )  # fmt: skip

"""A Langfuse that takes traces, scores and datasets, over real HTTP on a free loopback port.

It reads the wire protocols: OTLP in protobuf, scores as a list. It shows what leaves the process, not that a Langfuse
server accepts it. ``hang``: requests are never answered. ``refuse``: the status of every request but those for traces
and scores; ``refuse_items``: that of requests for items; ``refuse_traces`` and ``refuse_scores``: the statuses of the
next requests for these, each once; ``reject_scores``: so many of each batch are rejected, with 207.
"""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from aiohttp import web
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from observability.langfuse.connection import Connection
from observability.langfuse.tracing import Tracer
from tests.support.http_server import LoopServer

_TIMES = dict.fromkeys(("createdAt", "updatedAt"), "2026-11-22T09:00:00.000Z")
_ONE_PAGE = {"page": 1, "limit": 100, "totalItems": 1, "totalPages": 1}


@asynccontextmanager
async def tracer_to(
    host: str, *, environment: str = "", sample_rate: float = 1.0, queue: str = "", **options: Any
) -> AsyncIterator[Tracer]:
    """Yield a tracer; leaving sends what is left."""
    connection = Connection(
        public_key="pk", secret_key="sk", host=host, environment=environment, sample_rate=sample_rate,
        annotation_queue=queue,
    )  # fmt: skip
    tracer = Tracer(connection, **options)
    try:
        yield tracer
    finally:
        await tracer.aclose(timeout_s=10)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedSpan:
    """One observation. ``attributes`` that hold JSON are decoded; ids are hex."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]

    @property
    def kind(self) -> str:
        """Langfuse's type of observation."""
        return str(self.attributes["langfuse.observation.type"])

    def __getitem__(self, name: str) -> Any:
        return self.attributes.get(f"langfuse.observation.{name}")


class LangfuseReceiver(LoopServer):
    """``async with LangfuseReceiver() as receiver``: ``url`` is the host; ``spans`` and ``scores`` are what came."""

    def __init__(self, *, hang: bool = False, refuse: int = 0, refuse_items: int = 0, version: str = "4.60.0") -> None:
        super().__init__()
        self.spans: list[ReceivedSpan] = []
        self.scores: list[dict[str, Any]] = []
        self.datasets: list[dict[str, Any]] = []
        self.items: list[dict[str, Any]] = []
        self.queued: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.raw = b""
        self.hang = hang
        self.refuse = refuse
        self.refuse_items = refuse_items
        self.refuse_traces: list[int] = []
        self.refuse_scores: list[int] = []
        self.reject_scores = 0
        self.version = version

    def score(self, name: str) -> list[Any]:
        """The values of the scores of this name, in order."""
        return [score["value"] for score in self.scores if score["name"] == name]

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/public/otel/v1/traces", self._traces),
            web.post("/api/public/scores", self._take_scores),
            web.post("/api/public/v2/datasets", self._dataset),
            web.post("/api/public/dataset-items", self._item),
            web.get("/api/public/v2/datasets/{name}", self._dataset_of),
            web.get("/api/public/dataset-items", self._items_of),
            web.post("/api/public/annotation-queues/{queue}/items", self._add_to_queue),
            web.get("/api/public/annotation-queues/queue-1", self._projects),
            web.get("/api/public/projects", self._projects),
            web.get("/api/public/health", self._health),
        ]

    async def _traces(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if self.refuse_traces:
            return web.Response(status=self.refuse_traces.pop(0))
        sent = ExportTraceServiceRequest()
        sent.ParseFromString(body)
        for resource in sent.resource_spans:
            for scope in resource.scope_spans:
                assert scope.scope.name == "langfuse-sdk", "Langfuse shows any other scope's attributes twice"
                self.spans += [_span(span) for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")

    async def _take_scores(self, request: web.Request) -> web.Response:
        batch = json.loads(await self._body(request))
        if self.refuse_scores:
            return web.json_response({"message": "no"}, status=self.refuse_scores.pop(0))
        rejected, self.scores = self.reject_scores, [*self.scores, *batch[self.reject_scores :]]
        if rejected:
            errors = [{"index": n, "message": "Invalid request data"} for n in range(rejected)]
            counts = {"accepted": len(batch) - rejected, "rejected": rejected, "errors": errors}
            return web.json_response(counts, status=207)
        return web.json_response({"accepted": len(batch)}, status=202)

    async def _health(self, _: web.Request) -> web.Response:
        return web.json_response({"status": "OK", "version": self.version})

    async def _dataset(self, request: web.Request) -> web.Response:
        return await self._store(request, self.datasets, {"id": "dataset-1", "metadata": None})

    async def _item(self, request: web.Request) -> web.Response:
        self.refuse = self.refuse or self.refuse_items
        about = {"datasetId": "dataset-1", "status": "ACTIVE", "mediaReferences": []}
        return await self._store(request, self.items, about)

    async def _dataset_of(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in {dataset["name"] for dataset in self.datasets}:
            return web.json_response({"message": "Dataset not found"}, status=404)
        about = {"id": "dataset-1", "name": name, "metadata": None, "projectId": "p1"}
        return web.json_response({**about, **_TIMES})

    async def _items_of(self, request: web.Request) -> web.Response:
        name = request.query["datasetName"]
        latest = {item["id"]: item for item in self.items if item["datasetName"] == name}
        about = {"datasetId": "dataset-1", "status": "ACTIVE", "mediaReferences": [], "projectId": "p1", **_TIMES}
        return web.json_response({"data": [{**item, **about} for item in latest.values()], "meta": _ONE_PAGE})

    async def _add_to_queue(self, request: web.Request) -> web.Response:
        if request.match_info["queue"] != "queue-1":
            return web.json_response({"message": "Annotation queue not found"}, status=404)
        about = {"id": "item-1", "queueId": "queue-1", "status": "PENDING"}
        return await self._store(request, self.queued, about)

    async def _store(self, request: web.Request, where: list[dict[str, Any]], about: dict[str, Any]) -> web.Response:
        """The created objects, as Langfuse returns them."""
        body = json.loads(await self._body(request))
        if self.refuse:
            return web.json_response({"message": "no"}, status=self.refuse)
        where.append(body)
        return web.json_response({**body, "projectId": "p1", **_TIMES, **about})

    async def _projects(self, request: web.Request) -> web.Response:
        await self._body(request)
        if self.refuse:
            return web.json_response({"message": "no"}, status=self.refuse)
        project = {"id": "p1", "name": "Orion", "organization": {"id": "o1", "name": "Fern"}, "metadata": {}}
        return web.json_response({"data": [project]})

    async def _body(self, request: web.Request) -> bytes:
        self.headers.append(dict(request.headers))
        body = await request.read()
        self.raw += body
        if self.hang:
            await self.closing.wait()
        return body


def _span(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes={pair.key: _value(pair.key, pair.value) for pair in span.attributes},
    )


def _value(name: str, value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(name, item) for item in value.array_value.values]
    content = getattr(value, kind) if kind else None
    # The SDK sends each metadata value as JSON, other texts as they are.
    if isinstance(content, str) and (".metadata." in name or content[:1] in {"{", "["}):
        try:
            return json.loads(content)
        except ValueError:
            return content
    return content

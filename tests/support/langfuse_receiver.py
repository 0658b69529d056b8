"""A receiver of observations, scores and datasets as Langfuse is one, over real HTTP on a free loopback port.

It proves what leaves the process, not that a Langfuse server accepts it. ``hang=True``: requests are never answered.
``refuse``: the status that every request but those for traces and scores gets; ``refuse_items``: those for items;
``refuse_traces``: the statuses that the next requests for traces get, each once.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from aiohttp import web
from google.protobuf.json_format import ParseDict  # type: ignore[import-untyped]
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

_IDS = ("traceId", "spanId", "parentSpanId")


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


class LangfuseReceiver:
    """``async with LangfuseReceiver() as receiver``: ``url`` is the host; ``spans`` and ``scores`` are what came."""

    def __init__(self, *, hang: bool = False, refuse: int = 0, refuse_items: int = 0) -> None:
        self.spans: list[ReceivedSpan] = []
        self.scores: list[dict[str, Any]] = []
        self.datasets: list[dict[str, Any]] = []
        self.items: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.raw = b""
        self.url = ""
        self.hang = hang
        self.refuse = refuse
        self.refuse_items = refuse_items
        self.refuse_traces: list[int] = []
        self._closing = asyncio.Event()

    def score(self, name: str) -> list[Any]:
        """The values of the scores of this name, in order."""
        return [score["value"] for score in self.scores if score["name"] == name]

    async def __aenter__(self) -> Self:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/api/public/otel/v1/traces", self._traces)
        app.router.add_post("/api/public/scores", self._take_scores)
        app.router.add_post("/api/public/v2/datasets", self._dataset)
        app.router.add_post("/api/public/dataset-items", self._item)
        app.router.add_get("/api/public/projects", self._projects)
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closing.set()
        await self._runner.cleanup()

    async def _traces(self, request: web.Request) -> web.Response:
        body = await self._body(request)
        if self.refuse_traces:
            return web.Response(status=self.refuse_traces.pop(0))
        for resource in _request(body, request.content_type).resource_spans:
            for scope in resource.scope_spans:
                self.spans += [_span(span) for span in scope.spans]
        return web.Response(content_type="application/x-protobuf")

    async def _take_scores(self, request: web.Request) -> web.Response:
        body = json.loads(await self._body(request))
        self.scores += body if isinstance(body, list) else [body]
        return web.json_response({"successes": [], "errors": []}, status=202)

    async def _dataset(self, request: web.Request) -> web.Response:
        return await self._kept(request, self.datasets, {"id": "dataset-1", "metadata": None})

    async def _item(self, request: web.Request) -> web.Response:
        self.refuse = self.refuse or self.refuse_items
        about = {"datasetId": "dataset-1", "status": "ACTIVE", "mediaReferences": []}
        return await self._kept(request, self.items, about)

    async def _kept(self, request: web.Request, where: list[dict[str, Any]], about: dict[str, Any]) -> web.Response:
        """What was created, as Langfuse tells of it."""
        body = json.loads(await self._body(request))
        if self.refuse:
            return web.json_response({"message": "no"}, status=self.refuse)
        where.append(body)
        times = dict.fromkeys(("createdAt", "updatedAt"), "2026-11-22T09:00:00.000Z")
        return web.json_response({**body, "projectId": "p1", **times, **about})

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
            await self._closing.wait()
        return body


def _request(body: bytes, content_type: str) -> ExportTraceServiceRequest:
    """A body of the protocol, in either of its two forms; one that the protocol does not know is an error."""
    request = ExportTraceServiceRequest()
    if content_type != "application/json":
        request.ParseFromString(body)
        return request
    told = json.loads(body)
    for span in (span for each in told["resourceSpans"] for scope in each["scopeSpans"] for span in scope["spans"]):
        # Where protobuf's own JSON has bytes in base64, OTLP has ids in hex.
        ids = {name: b64encode(bytes.fromhex(span[name])).decode() for name in _IDS if name in span}
        span.update(ids)
    ParseDict(told, request)
    return request


def _span(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes={pair.key: _value(pair.value) for pair in span.attributes},
    )


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(item) for item in value.array_value.values]
    found = getattr(value, kind) if kind else None
    if isinstance(found, str) and found[:1] in ("{", "["):
        try:
            return json.loads(found)
        except ValueError:
            return found
    return found

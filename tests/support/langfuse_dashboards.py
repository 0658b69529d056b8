"""Langfuse's API for dashboards, over real HTTP on a free loopback port; what comes is read by the vendor's own types.

It proves that what we send is what the SDK's version of the API describes, not that a Langfuse server accepts it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import TracebackType
from typing import Any, Self

from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.unstable.dashboard_widgets import CreateDashboardWidgetRequest
from langfuse.api.unstable.dashboards import CreateDashboardPlacementRequest_Widget, CreateDashboardRequest

PAGE = 3
UNSTABLE = "/api/public/unstable/"
AUTHORISED = "Basic cGstMTpzay0x"  # pk-1:sk-1


@dataclass(slots=True)
class LangfuseDashboards:
    """``with LangfuseDashboards() as there``: ``url`` is the host. ``status`` and ``body`` stand in for any answer."""

    status: int = 0
    body: bytes = b""
    widgets: list[dict[str, Any]] = field(default_factory=list)
    boards: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    _server: ThreadingHTTPServer | None = None

    def __enter__(self) -> Self:
        there = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(there.get(self.path))

            def do_POST(self) -> None:
                sent = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                self._answer(there.post(self.path, sent))

            def _answer(self, found: dict[str, Any]) -> None:
                refused = there.status or (0 if self.headers.get("Authorization") == AUTHORISED else 401)
                self.send_response(refused or 200)
                self.end_headers()
                self.wfile.write(there.body or json.dumps(found).encode())

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.shutdown()
        self._server.server_close()

    def get(self, path: str) -> dict[str, Any]:
        if path == "/api/public/projects":
            return {"data": [{"id": "p1"}]}
        what, _, query = path.removeprefix(UNSTABLE).partition("?")
        page = int(dict(pair.split("=") for pair in query.split("&"))["page"])
        rows = self.widgets if what == "dashboard-widgets" else self.boards
        shown = rows[(page - 1) * PAGE : page * PAGE]
        return {"data": shown, "meta": {"page": page, "limit": PAGE, "totalPages": -(-len(rows) // PAGE)}}

    def post(self, path: str, sent: dict[str, Any]) -> dict[str, Any]:
        what = path.removeprefix(UNSTABLE)
        if what == "dashboard-widgets":
            parse_obj_as(CreateDashboardWidgetRequest, sent)
            self.widgets.append({**sent, "id": f"w{len(self.widgets)}"})
            return self.widgets[-1]
        if what == "dashboards":
            parse_obj_as(CreateDashboardRequest, sent)
            self.boards.append({**sent, "id": f"d{len(self.boards)}", "definition": {"widgets": []}})
            return self.boards[-1]
        parse_obj_as(CreateDashboardPlacementRequest_Widget, sent)
        board = next(board for board in self.boards if what == f"dashboards/{board['id']}/placements")
        board["definition"]["widgets"].append(sent)
        return board

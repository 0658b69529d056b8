"""Langfuse's API for dashboards, over real HTTP on a free loopback port; what comes is read by the vendor's own types.

It proves that what we send is what the SDK's version of the API describes, not that a Langfuse server accepts it.
"""

import json
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.unstable.dashboard_widgets import CreateDashboardWidgetRequest
from langfuse.api.unstable.dashboards import CreateDashboardPlacementRequest_Widget, CreateDashboardRequest

PAGE = 3
UNSTABLE = "/api/public/unstable/"
AUTHORISED = "Basic cGstMTpzay0x"  # pk-1:sk-1


@dataclass(slots=True)
class LangfuseDashboards:
    """``status`` and ``body`` replace every reply."""

    status: int = 0
    body: bytes = b""
    widgets: list[dict[str, Any]] = field(default_factory=list)
    boards: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""

    def answer(self, path: str, headers: Message, body: bytes) -> tuple[int, bytes]:
        found = self.post(path, json.loads(body)) if body else self.get(path)
        refused = self.status or (0 if headers.get("Authorization") == AUTHORISED else 401)
        return refused or 200, self.body or json.dumps(found).encode()

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

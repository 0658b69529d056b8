"""The local workspace's page with the echo app behind it, in a browser, for tests of the page."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from playwright.async_api import Browser, Page

from bot.local.model.limits import LENIENT
from bot.local.model.roster import Json
from bot.local.server import LocalWorkspace
from tests.support.local_echo import EchoApp, echoing

RECORD: Json = {
    "turn_id": "turn-1",
    "outcome": "answered",
    "verified": True,
    "question": "How long does it take?",
    "model": "scripted",
    "attempts": [
        {
            "attempt": 1,
            "draft": "It takes **12 minutes** [1].",
            "passed": False,
            "ms": 7.3,
            "repairs": [{"kind": "bold", "count": 1}],
            "violations": [
                {
                    "rule": "claim_supported",
                    "severity": "error",
                    "words": "12 minutes",
                    "detail": "Source 1 says 4 minutes.",
                    "remedy": "Use the number of the source.",
                }
            ],
        },
        {"attempt": 2, "draft": "It takes 4 minutes [1].", "passed": True, "ms": 5.0, "repairs": [], "violations": []},
    ],
    "timings_ms": {"search": 12.5, "write": 1240.0},
    "sources": [{"id": 1, "title": "Fail-over", "url": "/docs/guide.md#steps", "updated_at": "2026-09-01"}],
    "usage": {"model_calls": 3, "prompt_tokens": 2412, "completion_tokens": 188},
}


@dataclass(kw_only=True)
class Stage:
    """A workspace with the echo app in it, and a page that looks at it."""

    workspace: LocalWorkspace
    echo: EchoApp
    page: Page
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    async def open(self, path: str = "") -> Page:
        await self.page.goto(self.workspace.url + path)
        await self.page.wait_for_selector("body[data-ready]")
        return self.page


async def record_of(turn_id: str) -> Json | None:
    return RECORD if turn_id == "turn-1" else None


@asynccontextmanager
async def open_stage(
    browser: Browser,
    docs: Path | None = None,
    *,
    width: int = 1280,
    height: int = 800,
    scheme: str = "light",
    touch: bool = False,
) -> AsyncIterator[Stage]:
    workspace = LocalWorkspace(
        docs=(docs,) if docs else (),
        turn_record=record_of,
        examples=["How long does it take?", "Who decides?"],
        strictness=LENIENT,
    )
    async with workspace, echoing(workspace) as echo:
        dark = scheme == "dark"
        context = await browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if dark else "light",
            has_touch=touch,
            is_mobile=touch,
        )
        stage = Stage(workspace=workspace, echo=echo, page=await context.new_page())
        stage.page.on("request", lambda request: stage.requests.append(request.url))
        stage.page.on("pageerror", lambda error: stage.errors.append(str(error)))
        yield stage
        await context.close()
        assert stage.errors == []
        assert [url for url in stage.requests if not re.match(rf"(http|ws)://{workspace.url[7:]}/", url)] == []

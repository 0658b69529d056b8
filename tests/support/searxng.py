"""A search engine of SearXNG's form on a free loopback port: ``/search?q=…&format=json``, and its ways to fail."""

from typing import Any

from aiohttp import web

from tests.support.http_server import LoopServer


class LocalSearxNG(LoopServer):
    """``async with LocalSearxNG(…) as server``: ``server.url``; ``server.asked`` are the queries that came.

    ``status``, ``raw`` and ``hangs`` are how it fails; it can be told so while it runs.
    """

    def __init__(
        self, *results: dict[str, Any], status: int = 200, raw: bytes | None = None, hangs: bool = False
    ) -> None:
        super().__init__()
        self.results = list(results)
        self.status, self.raw, self.hangs = status, raw, hangs
        self.asked: list[str] = []

    def routes(self) -> list[web.RouteDef]:
        return [web.get("/search", self._search)]

    async def _search(self, request: web.Request) -> web.Response:
        self.asked.append(request.query["q"])
        if self.hangs:
            await self.closing.wait()
        if self.status != 200 or request.query.get("format") != "json":
            headers = {"Location": "http://127.0.0.1:9/elsewhere"} if self.status in {301, 302} else {}
            return web.Response(status=self.status, text="no", headers=headers)
        if self.raw is not None:
            return web.Response(body=self.raw, content_type="application/json")
        return web.json_response({"query": request.query["q"], "results": self.results, "answers": [], "infoboxes": []})

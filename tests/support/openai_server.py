"""A scripted server that speaks OpenAI's chat completions over real HTTP, on a free loopback port.

Four scripts, each used up in order: ``decisions`` (replies that are not streamed and have a system prompt), ``drafts``
(streamed ones), ``judgements`` (claims to be judged; without a script their numbers are) and ``generations`` (a bare
prompt). What goes beyond a script is answered with status 418. ``models`` is its list of models, if it has one. A draft
may be asked for beside a decision that then wants none: where the first search finds something and the first decision
is not to respond, give the same draft again and again (``itertools.repeat``).
"""

import asyncio
import json
import re
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from aiohttp import web
from pydantic import SecretStr

from tests.support.http_server import LoopServer

Mode = Literal["tools", "no_tools"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scripted:
    """One reply. ``before_end`` is waited for after the pieces; ``done`` off leaves out the end mark and the reason.

    ``after`` comes then. ``cut`` closes the connection before anything is said, ``broken`` after the pieces. ``wait_s``
    seconds pass before the reply, ``piece_s`` before each further piece. ``raw`` is sent as it is, ``raw_step`` bytes a
    write, and then the body stays open or is cut.
    """

    pieces: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    calls: tuple[tuple[str, Any], ...] = ()
    status: int = 200
    error: Mapping[str, Any] = field(default_factory=dict)
    finish: str = "stop"
    refusal: str = ""
    usage: tuple[int, int] | None = (100, 20)
    done: bool = True
    broken: bool = False
    cut: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    hangs: bool = False
    raw: bytes | None = None
    raw_end: Literal["", "open", "cut"] = ""
    raw_step: int = 0
    content_type: str = ""
    before_end: asyncio.Event | None = None
    after: tuple[str, ...] = ()
    wait_s: float = 0.0
    piece_s: float = 0.0


def says(*pieces: str, **more: Any) -> Scripted:
    """Text: in one piece where the reply is not streamed."""
    return replace(Scripted(pieces=pieces), **more)


def calls(*named: tuple[str, Any], **more: Any) -> Scripted:
    """Function calls, ``(name, arguments)`` each; arguments that are a string are sent unchanged."""
    return replace(Scripted(calls=named, finish="tool_calls"), **more)


def fails(status: int, message: str = "", code: str | None = None, **headers: str) -> Scripted:
    """An error as OpenAI words it. ``retry_after="3"`` and the like become headers."""
    error = {"message": message, "type": "error", "code": code, "param": None}
    return Scripted(status=status, error=error, headers={k.replace("_", "-"): v for k, v in headers.items()})


_SYNONYMS = {"accommodation": "hotel", "overnight": "hotel", "pets": "dogs"}


def word_vector(text: str) -> list[float]:
    """A vector that is near for texts with the same words or synonyms."""
    vector = [0.01] * 64
    for word in re.findall(r"\w+", text.lower()):
        vector[zlib.crc32(_SYNONYMS.get(word, word).encode()) % 64] += 1.0
    return vector


HANGS = Scripted(hangs=True)
CUT = Scripted(cut=True)
GARBAGE = Scripted(raw=b"<html>bad gateway</html>", content_type="text/html")
RESPOND = calls(("respond", {}))
Script = Iterable[Scripted] | Callable[[Mapping[str, Any]], Scripted]


class ScriptedOpenAI(LoopServer):
    """``async with ScriptedOpenAI(…) as server``: ``server.url`` is a base URL, ``server.requests`` what came."""

    path = "/v1"

    def __init__(
        self,
        *,
        decisions: Script = (),
        drafts: Script = (),
        generations: Script = (),
        judgements: Script | None = None,
        mode: Mode = "tools",
        models: tuple[Mapping[str, Any], ...] | None = None,
        embed: Callable[[str], Sequence[float]] | None = None,
    ) -> None:
        super().__init__()
        self._models = models
        self._embed = embed
        self.embedded: list[str] = []
        self.embed_requests: list[dict[str, Any]] = []
        self.embed_failures: list[Scripted] = []
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.queries: list[str] = []
        self.mode = mode
        self._scripts = {"decide": _taker(decisions), "write": _taker(drafts), "generate": _taker(generations)}
        self._scripts["judge"] = _taker(_agrees if judgements is None else judgements)
        self._left = asyncio.Event()
        self._arrived = asyncio.Condition()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that make this Orion's model."""
        key = SecretStr("sk-test-0123456789abcdef")
        return {"openai_base_url": self.url, "openai_api_key": key, "model": "scripted"}

    def phases(self) -> list[str]:
        """The kinds of requests received, in order."""
        return [_phase(request) for request in self.requests]

    async def wait_for_requests(self, count: int) -> None:
        """Until ``count`` requests have come."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.requests) >= count)

    async def wait_for_disconnect(self) -> None:
        """Until a client has closed its connection before its reply ended."""
        await self._left.wait()

    def routes(self) -> list[web.RouteDef]:
        routes = [
            web.post("/v1/chat/completions", self._complete),
            web.post("/openai/deployments/m/chat/completions", self._complete),  # as an Azure resource
        ]
        if self._models is not None:
            routes.append(web.get("/v1/models", self._list))
        if self._embed is not None:
            routes.append(web.post("/v1/embeddings", self._embeddings))
        return routes

    async def _list(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": self._models})

    async def _embeddings(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.embed_requests.append({**body, "headers": dict(request.headers)})
        if self.embed_failures:
            failed = self.embed_failures.pop(0)
            if failed.cut and request.transport:
                request.transport.abort()
            raw = json.dumps({"error": dict(failed.error)}).encode() if failed.raw is None else failed.raw
            return web.Response(body=raw, status=failed.status, headers=failed.headers)
        assert self._embed is not None
        texts = body["input"]
        self.embedded += texts
        rows = [{"object": "embedding", "index": n, "embedding": [*self._embed(text)]} for n, text in enumerate(texts)]
        usage = {"prompt_tokens": sum(len(text.split()) for text in texts), "total_tokens": 0}
        return web.json_response({"object": "list", "model": body["model"], "data": rows, "usage": usage})

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        try:
            return await self._answer(request)
        except asyncio.CancelledError:
            self._left.set()
            raise

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.headers.append(request.headers)
        self.queries.append(request.query_string)
        async with self._arrived:
            self.requests.append(body)
            self._arrived.notify_all()
        if self.mode == "no_tools" and "tools" in body:
            reply = fails(400, "this model does not support tools")
        else:
            reply = self._scripts[_phase(body)](body)
        if reply.hangs:
            await self.closing.wait()
        await asyncio.sleep(reply.wait_s)
        if reply.cut and request.transport:
            request.transport.abort()
        if reply.status != 200 and reply.raw is None:
            return web.json_response({"error": dict(reply.error)}, status=reply.status, headers=reply.headers)
        if reply.raw is not None and (reply.raw_end or reply.raw_step):
            return await self._stream_raw(request, reply, reply.raw)
        if reply.raw is not None:
            kind = reply.content_type or "application/json"
            return web.Response(body=reply.raw, status=reply.status, content_type=kind, headers=reply.headers)
        return await self._stream(request, body, reply) if body.get("stream") else web.json_response(_whole(reply))

    async def _stream_raw(self, request: web.Request, reply: Scripted, raw: bytes) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": reply.content_type or "text/event-stream"})
        await response.prepare(request)
        step = reply.raw_step or len(raw)
        for start in range(0, len(raw), step):
            await response.write(raw[start : start + step])
        if reply.raw_end == "open":
            await self.closing.wait()
        if reply.raw_end == "cut" and request.transport:
            await asyncio.sleep(0.02)  # until the bytes have left
            request.transport.abort()
        return response

    async def _stream(self, request: web.Request, body: Mapping[str, Any], reply: Scripted) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        with suppress(ConnectionError):
            for channel, pieces in (("reasoning_content", reply.reasoning), ("content", reply.pieces)):
                for piece in pieces:
                    await _send(response, {"choices": [{"index": 0, "delta": {channel: piece}}]})
                    await asyncio.sleep(reply.piece_s)
            if reply.before_end:
                await reply.before_end.wait()
            for piece in reply.after:
                await _send(response, {"choices": [{"index": 0, "delta": {"content": piece}}]})
            if reply.broken and request.transport:
                request.transport.close()
            elif reply.done:
                await _finish(response, reply, with_usage="stream_options" in body)
        return response


async def _finish(response: web.StreamResponse, reply: Scripted, *, with_usage: bool) -> None:
    delta = {"refusal": reply.refusal} if reply.refusal else {}
    await _send(response, {"choices": [{"index": 0, "delta": delta, "finish_reason": reply.finish}]})
    if with_usage and reply.usage:
        await _send(response, {"choices": [], "usage": _usage(reply.usage)})
    await response.write(b"data: [DONE]\n\n")


async def _send(response: web.StreamResponse, chunk: Mapping[str, Any]) -> None:
    await response.write(b"data: " + json.dumps({"object": "chat.completion.chunk", **chunk}).encode() + b"\n\n")


def _whole(reply: Scripted) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": "".join(reply.pieces) or None}
    if reply.refusal:
        message["refusal"] = reply.refusal
    if reply.calls:
        message["tool_calls"] = [
            {"id": f"id_{n}", "type": "function", "function": {"name": name, "arguments": given}}
            for n, (name, arguments) in enumerate(reply.calls, 1)
            for given in [arguments if isinstance(arguments, str) else json.dumps(arguments)]
        ]
    choice = {"index": 0, "message": message, "finish_reason": reply.finish}
    usage = {"usage": _usage(reply.usage)} if reply.usage else {}
    return {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], **usage}


def _usage(figures: tuple[int, int]) -> dict[str, int]:
    return {"prompt_tokens": figures[0], "completion_tokens": figures[1], "total_tokens": sum(figures)}


def _phase(body: Mapping[str, Any]) -> str:
    if body.get("stream"):
        return "write"
    if body["messages"][0]["role"] != "system":
        return "generate"
    return "judge" if body["messages"][-1]["content"].rsplit("\n", 1)[-1].startswith("Judge claims") else "decide"


def _agrees(body: Mapping[str, Any]) -> Scripted:
    """A claim is supported by the title of its first source if its numbers occur before it."""
    known, _, rest = body["messages"][-1]["content"].partition("The answer:\n")
    claims = re.findall(r"^claim (\d+), cites (?:\[(\d+)\])?.*\n((?:\|.*\n)+)", rest, re.MULTILINE)
    said = [
        {
            "claim": int(n),
            "lines": [f"{cited}.0"] if cited else [],
            "supported": all(number in known for number in re.findall(r"\d+", re.sub(r"\[\d+\]", "", text))),
        }
        for n, cited, text in claims
    ]
    return says(json.dumps({"verdicts": said, "reply": "answered"}))


def _taker(script: Script) -> Callable[[Mapping[str, Any]], Scripted]:
    if callable(script):
        return script
    left = iter(script)
    return lambda _: next(left, None) or fails(418, "the script is used up")

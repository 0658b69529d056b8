"""Limits the size of a server's reply. An HTTP client would read all of it, and unpack it to any size."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

import httpx2


class ReplyTooLong(httpx2.ReadError):
    """A server sent more than may be read."""


@dataclass(frozen=True, slots=True)
class _LimitedBody(httpx2.AsyncByteStream):
    reply: httpx2.Response
    limit: int

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async with aclosing(self.reply.aiter_bytes()) as parts:  # else the event loop would close it, in a task
            async for part in parts:
                size += len(part)
                if size > self.limit:
                    raise ReplyTooLong(message="the reply is too long")
                yield part

    async def aclose(self) -> None:
        await self.reply.aclose()


def reply_limit(limit: int) -> Callable[[httpx2.Response], Awaitable[None]]:
    """Return the hook of a client (``event_hooks``) that unpacks each reply as it arrives, up to ``limit`` bytes."""

    async def limit_reply(reply: httpx2.Response) -> None:
        packed = httpx2.Response(reply.status_code, headers=reply.headers, stream=reply.stream)
        reply.stream = _LimitedBody(packed, limit)
        reply.headers.pop("Content-Encoding", None)

    return limit_reply

"""Which Orion a command is about: the one that serves Slack, or a local workspace by its port, over one Redis.

Promises: each keeps its questions, figures and pauses apart under a prefix of its own, which is told here and nowhere
else. Must never change anything.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # what only annotations name is not worth the time to import it
    from redis.asyncio import Redis

SERVED = "orion"
_FIGURES = re.compile(r"orion-local-(\d{1,5}):stats:.*")

LocalOption = Annotated[
    int | None,
    typer.Option(
        "--local", metavar="PORT", min=1, max=65535, help="The local workspace on this port, not what serves Slack."
    ),
]


def prefix_of(port: int | None) -> str:
    """What the keys begin with, of the local workspace on ``port`` or of what serves Slack."""
    return SERVED if port is None else f"orion-local-{port}"


async def local_ports(redis: Redis) -> list[int]:
    """The ports of the local workspaces that have figures in this Redis. Reads every key's name: for small ones."""
    names = [str(name) async for name in redis.scan_iter(match="orion-local-*:stats:*", count=1000)]
    return sorted({int(found[1]) for name in names if (found := _FIGURES.fullmatch(name))})

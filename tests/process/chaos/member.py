"""One Orion process of a chaos run: the product's own parts, put together as `orion serve` and `orion worker` do.

What differs from them is what a run of minutes needs: short leases, a short drain, and tries enough that a question
killed again and again by us is not taken for one that kills.
"""

import asyncio
import os
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bot.app import open_orion
from bot.cli.serve import run_until_stopped
from bot.cli.signals import EndedAtOnce, handle_signals
from bot.documents.open import corpus_of
from bot.queue.queue import Mailbox
from bot.servers.http import SlackEndpoint, build
from bot.servers.http import serve as serve_pages
from bot.settings import Settings
from bot.turn.engine import TurnTimeouts
from observability.logging import configure

MANY_TRIES = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Role:
    """The role of a process: it takes events over a socket or an HTTP ``port``, works (``concurrency`` > 0), or both.

    ``lease_s``, ``drain_s`` and ``request_s`` (how long one call of Slack is waited for) in seconds; ``prefix`` keeps
    workspaces apart in one Redis.
    """

    name: str
    concurrency: int = 50
    socket: bool = False
    port: int | None = None
    lease_s: float = 2.0
    drain_s: float = 2.0
    request_s: float = TurnTimeouts().request_s
    prefix: str = "orion"


def live(role: Role, settings: Settings, log: Path) -> None:
    """The whole life of the process; its log, one JSON object a line, goes to ``log``."""
    with log.open("ab", buffering=0) as out:
        os.dup2(out.fileno(), 1)
        os.dup2(out.fileno(), 2)
    configure(json=True, debug=False, level="DEBUG")
    try:
        asyncio.run(_live(role, settings))
    except EndedAtOnce:
        raise SystemExit(1) from None


async def _live(role: Role, settings: Settings) -> None:
    mailbox_over = partial(Mailbox, lease_s=role.lease_s, max_tries=MANY_TRIES)
    with handle_signals() as stopping:
        async with AsyncExitStack() as stack:
            orion = await stack.enter_async_context(
                open_orion(
                    settings,
                    corpus_of(settings),
                    concurrency=role.concurrency,
                    socket=role.socket,
                    prefix=role.prefix,
                    drain_s=role.drain_s,
                    mailbox_over=mailbox_over,
                    timeouts=TurnTimeouts(request_s=role.request_s),
                )
            )
            if role.port is not None:
                endpoint = SlackEndpoint(app=orion.app, signing_secret=settings.slack_signing_secret.get_secret_value())
                await stack.enter_async_context(serve_pages(build(orion, endpoint), port=role.port))
            await run_until_stopped(orion, stopping, work=role.concurrency > 0)

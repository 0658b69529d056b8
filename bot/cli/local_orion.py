"""The Orion in the local workspace, with faults that a visitor may switch on: a slow model, a lost turn."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.model.protocol import DecideContext, Decision, Model
from agent.texts.catalogue import SUGGESTED_PROMPTS
from bot.app import open_orion
from bot.cli.local import LocalOrion, settings_for
from bot.cli.output import local_prefix, print_text
from bot.cli.serve import run_until_stopped
from bot.cli.signals import Stopping
from bot.documents.open import local_corpus
from bot.local.model.faults import Switch
from bot.local.model.roster import ADMIN
from bot.local.server import LocalWorkspace
from bot.queue.queue import Mailbox
from bot.queue.worker import DRAIN_S
from bot.servers.http import page_routes
from bot.settings import Settings

HELPERS: Final = "#help"
"""Channel for "Ask a human" in the local workspace, unless the settings say otherwise."""
SLOW_S: Final = 10.0
LEASE_S: Final = 5.0  # short: a visitor who killed the worker waits this long for the next one
_NOTICE_S: Final = 8.0
_WILL_KILL: Final = "The next answer breaks off in the middle, as if its worker had died. It is resumed."
_KILLED: Final = "The answer broke off, as if its worker had died. It is resumed in a few seconds."
_TAKEN_OVER: Final = "The answer was resumed. Nothing is lost, nothing is said twice."
_ENDING: Final = "Orion finishes what it is answering, in {seconds:.0f} s at most. Ctrl-C again ends it now."


class FaultyModel:
    """A model that decides ``seconds`` later. ``kill`` loses the next turn, as if its worker died."""

    def __init__(self, model: Model, tell: Callable[[str], None]) -> None:
        self.model, self.tell = model, tell
        # Everything but decisions comes from the other model.
        self.name, self.quotes_only = model.name, model.quotes_only
        self.write, self.generate = model.write, model.generate
        self.seconds = 0.0
        self.kill: Callable[[], None] | None = None
        self.killed = ""  # the message whose turn was lost

    async def decide(self, context: DecideContext) -> Decision:
        """Decide after the delay. Raises ``ModelError``."""
        await asyncio.sleep(self.seconds)
        if self.kill:
            kill, self.kill, self.killed = self.kill, None, context.question.ts
            self.tell(_KILLED)
            kill()
            await asyncio.sleep(LEASE_S)  # cancelled: this turn is lost
        elif context.question.ts == self.killed:
            self.killed = ""
            self.tell(_TAKEN_OVER)
            asyncio.get_running_loop().call_later(_NOTICE_S, self.tell, "")
        return await self.model.decide(context)


async def run(
    settings: Settings, workspace: LocalWorkspace, inside: LocalOrion, folders: Sequence[Path], stopping: Stopping
) -> None:
    """Answer until ``stopping``, for this workspace only: another one in the same Redis has its own questions."""
    own = settings_for(settings, workspace).model_copy(
        update={
            "streams": True,  # the page has a switch that hides them
            "handoff": settings.handoff or HELPERS,
            "admins": settings.admins | {ADMIN},
        }
    )
    port = urlsplit(workspace.url).port or 0
    examples = workspace.workspace.setup.examples
    faulty: list[FaultyModel] = []

    def model_over(model: Model) -> Model:
        faulty.append(FaultyModel(model, workspace.workspace.tell))
        return faulty[0]

    opened = open_orion(
        own, local_corpus(own, port, folders), concurrency=50, socket=True,
        prompts=[{"title": example, "message": example} for example in examples] or SUGGESTED_PROMPTS,
        prefix=local_prefix(port),
        mailbox_over=partial(Mailbox, lease_s=LEASE_S),
        model_over=model_over,
    )  # fmt: skip
    async with opened as orion:
        inside.orion = orion
        inside.pages = {route.path: route.handler for route in page_routes(orion)}
        workspace.workspace.switches.all |= _switches(faulty[0], orion.turns.lose)

        def tell_ending() -> None:
            if orion.turns.in_flight:
                print_text(_ENDING.format(seconds=DRAIN_S))

        stopping.tell = tell_ending
        await run_until_stopped(orion, stopping, work=True)


def _switches(model: FaultyModel, kill: Callable[[], None]) -> dict[str, Switch]:
    def slow(on: bool) -> None:  # noqa: FBT001 - the switch's one value
        model.seconds = SLOW_S if on else 0.0

    def kill_next(_on: bool) -> None:  # noqa: FBT001 - the switch's one value
        model.kill = kill

    return {
        "slow_model": Switch(label="Slow model", tells="The model takes ten seconds to think.", turn=slow),
        "kill_worker": Switch(label="Break off an answer", tells=_WILL_KILL, turn=kill_next, once=True),
    }

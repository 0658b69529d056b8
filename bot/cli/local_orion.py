"""The Orion that lives in the local workspace, and what a visitor may make it suffer: a slow model, a killed worker."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from agent.model.protocol import DecideContext, Decision, Generated, Model, WriteContext, WriteStream
from agent.texts.catalogue import SUGGESTED_PROMPTS
from bot.app import open_orion
from bot.cli.local import LocalOrion, settings_for
from bot.cli.output import prefix_of
from bot.cli.serve import run_until_stopped
from bot.cli.signals import Stopping
from bot.documents.open import corpus_of
from bot.local.model.roster import ADMIN
from bot.local.server import LocalWorkspace
from bot.local.switches import Switch
from bot.servers.http import Pages, page_routes
from bot.settings import Settings

HELPERS: Final = "#help"
"""Where "Ask a human" posts in the local workspace, unless the settings say otherwise."""
SLOW_S: Final = 10.0


@dataclass(slots=True, kw_only=True)
class SlowModel:
    """Another model, ``seconds`` later at each decision."""

    model: Model
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """The other model's name."""
        return self.model.name

    @property
    def quotes_only(self) -> bool:
        """As the other model."""
        return self.model.quotes_only

    async def turn(self, on: bool) -> None:  # noqa: FBT001 - the switch's one value
        """Slow from now on, or no longer."""
        self.seconds = SLOW_S if on else 0.0

    async def decide(self, context: DecideContext) -> Decision:
        """One action, later. Raises ``ModelError``."""
        await asyncio.sleep(self.seconds)
        return await self.model.decide(context)

    def write(self, context: WriteContext) -> WriteStream:
        """Phase two of the other model."""
        return self.model.write(context)

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        """Plain text of the other model. Raises ``ModelError``."""
        return await self.model.generate(prompt, max_tokens=max_tokens, temperature=temperature)


async def live(
    settings: Settings, workspace: LocalWorkspace, inside: LocalOrion, folders: Sequence[Path], stopping: Stopping
) -> None:
    """Reads the documents and answers until ``stopping``.

    It is an Orion for this workspace alone: another one over the same Redis must not take its questions.
    """
    more = {"handoff": settings.handoff or HELPERS, "admins": settings.admins | {ADMIN}}
    own = settings_for(settings, workspace).model_copy(update=more)
    corpus = corpus_of(own, folders, docs_url=f"{workspace.url}/docs/")
    examples = workspace.workspace.setup.examples
    prompts = [{"title": example, "message": example} for example in examples] or SUGGESTED_PROMPTS
    prefix = prefix_of(urlsplit(workspace.url).port)
    switches = workspace.workspace.switches.all

    def slowed(model: Model) -> Model:
        slow = SlowModel(model=model)
        switches["slow_model"] = Switch(
            label="Slow model", tells="The model takes ten seconds to think.", turn=slow.turn
        )
        return slow

    async with open_orion(
        own, corpus, concurrency=50, socket=True, prompts=prompts, prefix=prefix, model_over=slowed
    ) as orion:
        pages = Pages(checks=orion.checks, metrics=orion.metrics, paused=orion.paused, left_alone=orion.left_alone)
        inside.orion = orion
        inside.pages = {route.path: route.handler for route in page_routes(pages)}
        await run_until_stopped(orion, stopping, work=True)

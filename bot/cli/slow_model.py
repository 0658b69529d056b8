"""A model that takes its time when asked to: the local workspace's switch "Slow model"."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Final

from agent.model.protocol import DecideContext, Decision, Generated, Model, WriteContext, WriteStream

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

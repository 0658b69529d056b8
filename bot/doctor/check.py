"""One line of `orion doctor`: what was looked at, how it stands, what to do about it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import NamedTuple

from bot.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. ``remedy`` says what to do when it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


class Wrong(NamedTuple):
    """What was looked at is not as it should be: how it stands, and what to do about it."""

    detail: str
    remedy: str


Found = str | Wrong
"""How a thing stands; an empty text where there is nothing to say."""
Look = Callable[[Settings, float], Awaitable[Found]]
"""Looks at one thing for at most so many seconds."""


class CheckLine(NamedTuple):
    """A check by its name, the variables without which it would say nothing true, and what is looked at after it."""

    name: str
    look: Look
    needs: frozenset[str] = frozenset()
    then: CheckLine | None = None

    async def checks(self, settings: Settings, within_s: float) -> list[Check]:
        """What was found; the next line's checks too where all is well."""
        found = await self.look(settings, within_s)
        if isinstance(found, Wrong):
            return [Check(name=self.name, ok=False, detail=found.detail, remedy=found.remedy)]
        shown = [Check(name=self.name, ok=True, detail=found)] if found else []
        return shown + (await self.then.checks(settings, within_s) if self.then else [])

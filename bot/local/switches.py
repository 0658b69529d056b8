"""What a visitor may make go wrong from the page: a switch stays on, a blow strikes once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from bot.local.model.errors import ApiError
from bot.local.model.faults import Faults
from bot.local.model.roster import Json

STREAM_METHODS: Final = ("chat.startStream", "chat.appendStream", "chat.stopStream")
# Enough to be seen in the log, few enough that the answer comes within seconds.
_POSTS_LIMITED: Final = 3


@dataclass(slots=True, kw_only=True)
class Switch:
    """One fault by name. ``turn`` makes it so; ``once`` marks a blow, which is never on afterwards."""

    label: str
    tells: str
    turn: Callable[[bool], Awaitable[None]]
    once: bool = False
    on: bool = False


class Switches:
    """All faults that the page offers; an app that lives in the workspace may add some of its own."""

    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.all: dict[str, Switch] = {
            "rate_limit": Switch(
                label="Slack is busy (429)", tells="Slack refuses the next three posts.", turn=self._limit, once=True
            ),
            "no_streams": Switch(
                label="No streams", tells="The workspace has no streaming methods.", turn=self._no_streams
            ),
        }

    def shown(self) -> list[Json]:
        """The switches for the page."""
        return [
            {"name": name, "label": one.label, "tells": one.tells, "once": one.once, "on": one.on}
            for name, one in self.all.items()
        ]

    async def turn(self, name: str, *, on: bool) -> None:
        """Turns a switch. Raises ``ApiError`` for a name that is none."""
        if name not in self.all:
            raise ApiError(error="unknown_fault")
        switch = self.all[name]
        await switch.turn(on)
        switch.on = on and not switch.once

    async def _limit(self, _on: bool) -> None:  # noqa: FBT001 - the switch's one value
        self._faults.rate_limit("chat.postMessage", times=_POSTS_LIMITED, retry_after=1)

    async def _no_streams(self, on: bool) -> None:  # noqa: FBT001 - the switch's one value
        (self._faults.missing.update if on else self._faults.missing.difference_update)(STREAM_METHODS)

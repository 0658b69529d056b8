"""The seam every tool stands behind, and the wall round each call.

Promises: ``call_tool`` always returns a ``ToolResult``: unknown tools, bad input, time-outs and bugs are results the
model reads. Must never let an exception of a tool escape, and never log input or output texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from verification.answer import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a tool brought. ``sources`` carry ``id=0``: the turn numbers them. ``hints`` say what to try next."""

    call_id: str
    tool: str
    ok: bool
    content: str = ""
    sources: tuple[Source, ...] = ()
    error: str = ""
    hints: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """How a tool is shown to the model. ``parameters`` is a JSON Schema object."""

    name: str
    description: str
    parameters: Mapping[str, Any] = field(default_factory=dict)


class Tool(Protocol):
    """One ability. ``run`` gets input already checked against ``spec.parameters``."""

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        ...

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """Do it. Expected failures are returned; anything raised is turned into a result by the wall."""
        ...

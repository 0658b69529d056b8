"""What the index holds, source by source, for `orion docs`, App Home and ``/metrics``.

``None`` means the index is away.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.types import Holding, KnowledgeAwayError, SourceState

_KINDS: Final = ("git", "slack", "web")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFigures:
    """One source: ``kind`` is ``folder``, ``git``, ``slack`` or ``web``, ``where`` its path or address."""

    kind: str
    where: str
    held: Holding
    state: SourceState


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeFigures:
    """All sources, by kind and place. Times are seconds since 1970."""

    sources: tuple[SourceFigures, ...]

    @property
    def documents(self) -> int:
        """How many there are."""
        return sum(source.held.documents for source in self.sources)

    @property
    def passages(self) -> int:
        """How many they fall into."""
        return sum(source.held.passages for source in self.sources)

    @property
    def size(self) -> int:
        """Bytes that were read of them."""
        return sum(source.state.size for source in self.sources)

    @property
    def failures(self) -> int:
        """How many were not read when their source was last gone over."""
        return sum(source.state.failures for source in self.sources)

    @property
    def synced(self) -> float | None:
        """When the source that waits longest was last gone over; None where one never was, or there is none."""
        return min((source.state.synced for source in self.sources), default=0.0) or None


def figures_of(index: KnowledgeIndex, names: Sequence[str] = ()) -> KnowledgeFigures:
    """What there is, and the sources of these ``names`` also where nothing is. Raises ``KnowledgeAwayError``."""
    holdings = {holding.source: holding for holding in index.holdings()}
    states = index.states()
    found = []
    for name in {*holdings, *states, *names}:
        prefix, _, rest = name.partition(":")
        kind, where = (prefix, rest) if prefix in _KINDS else ("folder", name)
        held = holdings.get(name) or Holding(source=name)
        state = states.get(name) or SourceState(tried=0.0)
        found.append(SourceFigures(kind=kind, where=where, held=held, state=state))
    return KnowledgeFigures(sources=tuple(sorted(found, key=lambda source: (source.kind, source.where))))


async def knowledge_figures(index: KnowledgeIndex) -> KnowledgeFigures | None:
    """The same beside the event loop; None while the index is away."""
    try:
        return await asyncio.to_thread(figures_of, index)
    except KnowledgeAwayError:
        return None

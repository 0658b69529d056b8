"""What the index holds, source by source, for `orion docs`, App Home and ``/metrics``; None while it is away."""

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
    """All sources, by kind and place, and what they hold together.

    ``size`` is in bytes. ``failures`` were not read when their source was last gone over. ``synced`` is when that was
    for the source that waits longest, in seconds since 1970; None where one never was, or there is none.
    """

    sources: tuple[SourceFigures, ...]
    documents: int
    passages: int
    size: int
    failures: int
    synced: float | None


def figures_of(index: KnowledgeIndex, names: Sequence[str] = ()) -> KnowledgeFigures:
    """What there is, and the sources of these ``names`` also where nothing is. Raises ``KnowledgeAwayError``."""
    holdings = {holding.source: holding for holding in index.holdings()}
    states = index.states()
    found = []
    for name in {*holdings, *states, *names}:
        prefix, _, rest = name.partition(":")
        kind, where = (prefix, rest) if prefix in _KINDS else ("folder", name)
        held = holdings.get(name) or Holding(source=name)
        found.append(SourceFigures(kind=kind, where=where, held=held, state=states.get(name) or SourceState(tried=0.0)))
    return KnowledgeFigures(
        sources=tuple(sorted(found, key=lambda source: (source.kind, source.where))),
        documents=sum(source.held.documents for source in found),
        passages=sum(source.held.passages for source in found),
        size=sum(source.state.size for source in found),
        failures=sum(source.state.failures for source in found),
        synced=min((source.state.synced for source in found), default=0.0) or None,
    )


async def knowledge_figures(index: KnowledgeIndex) -> KnowledgeFigures | None:
    """The same beside the event loop; None while the index is away."""
    try:
        return await asyncio.to_thread(figures_of, index)
    except KnowledgeAwayError:
        return None

"""Figures of the index by source, for `orion docs`, App Home and ``/metrics``."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.readers.reading import advice_for
from agent.knowledge.types import Holding, KnowledgeAwayError, SourceState

_KINDS: Final = ("answers", "feed", "git", "slack", "web")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFigures:
    """One source. ``kind`` is ``folder`` or the part of its name before the colon, ``where`` its path or address."""

    kind: str
    where: str
    held: Holding
    state: SourceState

    @property
    def unread_lines(self) -> tuple[str, ...]:
        """Describe what was not read: documents with reasons, then files by suffix, those with advice first."""
        state = self.state
        more = state.failures - len(state.failed)
        skipped = sorted(state.skipped, key=lambda files: (not advice_for(files[0]), -files[1]))
        return (
            *(f"{name}: {reason}" for name, reason in state.failed),
            *([f"{more:,} more of {self.where}"] if more else []),
            *(
                f"{number:,} file{'' if number == 1 else 's'} {suffix or 'without a suffix'} in {self.where}: "
                f"{advice_for(suffix) or 'a format that is not read'}"
                for suffix, number in skipped
            ),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeFigures:
    """All sources and their totals. ``synced`` is the oldest last sync in seconds since 1970; None if one never was."""

    sources: tuple[SourceFigures, ...]
    documents: int
    passages: int
    size: int
    failures: int
    synced: float | None


def figures_of(index: KnowledgeIndex, names: Sequence[str] = ()) -> KnowledgeFigures:
    """Return the figures of the index, including empty sources of these ``names``. Raises ``KnowledgeAwayError``."""
    holdings = {holding.source: holding for holding in index.holdings()}
    states = index.states()
    sources = []
    for name in {*holdings, *states, *names}:
        prefix, _, rest = name.partition(":")
        kind, where = (prefix, rest) if prefix in _KINDS else ("folder", name)
        held = holdings.get(name) or Holding(source=name)
        sources.append(
            SourceFigures(kind=kind, where=where, held=held, state=states.get(name) or SourceState(tried=0.0))
        )
    return KnowledgeFigures(
        sources=tuple(sorted(sources, key=lambda source: (source.kind, source.where))),
        documents=sum(source.held.documents for source in sources),
        passages=sum(source.held.passages for source in sources),
        size=sum(source.state.size for source in sources),
        failures=sum(source.state.failures for source in sources),
        synced=min((source.state.synced for source in sources), default=0.0) or None,
    )


async def available_figures(index: KnowledgeIndex) -> KnowledgeFigures | None:
    """Return the figures without blocking the event loop; None if the index cannot be reached."""
    try:
        return await asyncio.to_thread(figures_of, index)
    except KnowledgeAwayError:
        return None

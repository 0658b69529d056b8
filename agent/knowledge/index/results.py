"""Turns the rows of an index into passages and documents with their links, the same for every storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

from agent.knowledge.index.semantic_hook import Ranked
from agent.knowledge.types import Document, Holding, Passage

PASSAGE_COLUMNS: Final = (
    "d.id, d.title, p.path, p.text, p.anchor, p.line, p.page, d.updated_at, d.audience, d.url, d.place,"
    " p.number & 1048575, d.chunks"
)
"""What ``passage_of`` reads; the score and the prefix of links come last. The lower 20 bits count in the document."""
DOCUMENT_COLUMNS: Final = "id, title, updated_at, audience, source, url, chunks"
"""What ``document_of`` reads; the text and the prefix of links come last."""
HOLDINGS: Final = (
    "SELECT source, count(*), sum(chunks), min(updated_at), max(updated_at) FROM documents GROUP BY source"
)
"""What ``holding_of`` reads, in any engine."""
CANDIDATES: Final = 4
"""How many times the asked number are looked at, so that other documents and other texts can be preferred."""


Row = Sequence[Any]
"""The values of ``PASSAGE_COLUMNS``, a score, and the setting ``docs_url``."""


def in_turn(ranked: Sequence[Ranked], limit: int, read: Callable[[Sequence[Ranked]], Sequence[Row]]) -> Iterator[Row]:
    """The rows of these, so many read at once as are wanted: mostly the first ones are enough."""
    for at in range(0, len(ranked), limit):
        yield from read(ranked[at : at + limit])


def spread(rows: Iterable[Row], limit: int) -> list[Row]:
    """The best ``limit`` rows, no text twice; one document takes at most half the places while others have any.

    Reads no further than it must.
    """
    first: list[Row] = []
    later: list[Row] = []
    taken: Counter[str] = Counter()
    texts: set[str] = set()
    for row in rows:
        document, text = row[0], row[3]
        if text in texts:
            continue
        texts.add(text)
        taken[document] += 1
        (first if taken[document] <= max(1, limit // 2) else later).append(row)
        if len(first) == limit:
            break
    return [*first, *later][:limit]


def passage_of(row: Sequence[Any]) -> Passage:
    """One passage; its link leads to the page, the line or the heading."""
    document, title, path, text, anchor, line, page, updated_at, audience, url, place, number, of, score, docs_url = row
    link = url or document_url(docs_url or "", document)
    fragment = _fragment(place, anchor=anchor, line=line, page=page)
    return Passage(
        document=document,
        title=title,
        heading=path,
        text=text,
        url=f"{link}#{fragment}" if link and fragment else link,
        line=line,
        page=page,
        updated_at=updated_at,
        audience=audience,
        score=score,
        number=number,
        of=of,
    )


def _fragment(place: str, *, anchor: str, line: int, page: int) -> str:
    """``place`` says what the link's host understands: a heading's anchor, a line, or neither."""
    if page:
        return f"page={page}"
    if place == "line":
        return f"L{line}"
    return quote(anchor) if place == "anchor" else ""


def document_of(row: Sequence[Any]) -> Document:
    """One document."""
    shown, title, updated_at, audience, source, url, passages, text, docs_url = row
    return Document(
        id=shown,
        title=title,
        url=url or document_url(docs_url or "", shown),
        updated_at=updated_at,
        audience=audience,
        source=source,
        passages=passages,
        text=text,
    )


def holding_of(row: Sequence[Any]) -> Holding:
    """What there is of one source."""
    source, documents, passages, oldest, newest = row
    return Holding(source=source, documents=documents, passages=int(passages), oldest=oldest, newest=newest)


def document_url(docs_url: str, document: str) -> str:
    """The link to a document; nothing where no prefix is configured."""
    if not docs_url:
        return ""
    return f"{docs_url}{'' if docs_url.endswith(('/', '=')) else '/'}{quote(document)}"


def meant(documents: Iterable[Document], name_or_id: str) -> str | None:
    """The id of the document that a name means most directly (case and suffix do not matter)."""
    wanted = name_or_id.strip().casefold()
    ranked = [(rank, d.id) for d in documents if (rank := _likeness(d, wanted)) is not None]
    return min(ranked)[1] if ranked else None


def _likeness(document: Document, wanted: str) -> int | None:
    """How directly a name means a document: 0 its id, then its title, file name, file name without suffix."""
    shown = document.id.casefold()
    file_name = shown.rpartition("/")[2]
    names = (shown, document.title.casefold(), file_name, file_name.rpartition(".")[0])
    return names.index(wanted) if wanted in names else None

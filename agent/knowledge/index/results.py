"""Turns the rows of an index into passages and documents with their links, the same for every storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

from agent.knowledge.index.tables import MOST_PASSAGES
from agent.knowledge.types import Document, Holding, Passage

_PASSAGE: Final = """
SELECT p.number, d.id, d.title, p.path, p.text, p.anchor, p.line, p.page, d.updated_at, d.audience, d.url, d.place,
  d.chunks, (SELECT value FROM settings WHERE name = 'docs_url')
FROM passages p JOIN documents d ON d.number = p.number >> 20
"""
"""What ``passage_of`` reads."""
FOUND: Final = _PASSAGE + "WHERE p.number IN ({})"
"""The passages of these numbers, in any order."""
PART: Final = (
    _PASSAGE + "WHERE d.id = ? AND p.number BETWEEN (d.number << 20) + ? AND (d.number << 20) + ? ORDER BY p.number"
)
"""The passages of the document of this id from one number to another."""
DOCUMENTS: Final = """
SELECT id, title, updated_at, audience, source, url, chunks, {text},
  (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents {where}
"""
"""What ``document_of`` reads."""
HOLDINGS: Final = (
    "SELECT source, count(*), sum(chunks), min(updated_at), max(updated_at) FROM documents GROUP BY source"
)
"""What ``holding_of`` reads."""
CANDIDATES: Final = 4
"""How many times the asked number are looked at, so that other documents and other texts can be preferred."""


def spread(passages: Iterable[Passage], limit: int) -> tuple[Passage, ...]:
    """The best ``limit`` passages, no text twice; one document takes at most half the places while others have any.

    Reads no further than it must.
    """
    first: list[Passage] = []
    later: list[Passage] = []
    taken: Counter[str] = Counter()
    texts: set[str] = set()
    for passage in passages:
        if passage.text in texts:
            continue
        texts.add(passage.text)
        taken[passage.document] += 1
        (first if taken[passage.document] <= max(1, limit // 2) else later).append(passage)
        if len(first) == limit:
            break
    return (*first, *later)[:limit]


def passage_of(row: Sequence[Any], score: float = 0.0) -> Passage:
    """One passage; its link leads to the page, the line or the heading."""
    number, document, title, path, text, anchor, line, page, updated_at, audience, url, place, of, docs_url = row
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
        number=number % MOST_PASSAGES,
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

"""Rows of an index as passages and documents with their links, the same for every storage."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final
from urllib.parse import quote

from agent.knowledge.index.tables import MAX_PASSAGES
from agent.knowledge.types import Document, FoundPassage

_PASSAGE: Final = """
SELECT p.number, p.anchor, d.url, d.place, (SELECT value FROM settings WHERE name = 'docs_url'),
  d.id, d.title, p.path, p.text, p.line, p.page, d.updated_at, d.audience, d.chunks
FROM passages p JOIN documents d ON d.number = p.number >> 20
"""
_FIELDS: Final = ("document", "title", "heading", "text", "line", "page", "updated_at", "audience", "of")
"""Columns of a passage, from the second line of the statement."""
FOUND: Final = _PASSAGE + "WHERE p.number IN ({})"  # the passages of these numbers, in any order
# The passages of the document of this id from one number to another.
PART: Final = (
    _PASSAGE + "WHERE d.id = ? AND p.number BETWEEN (d.number << 20) + ? AND (d.number << 20) + ? ORDER BY p.number"
)
# Columns that `document_of` reads, with or without the text.
DOCUMENTS: Final = """
SELECT id, title, updated_at, audience, source, chunks, {}, url, (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents
"""
HOLDINGS: Final = """
SELECT source, count(*), CAST(sum(chunks) AS integer), coalesce(min(nullif(updated_at, '')), ''),
  max(updated_at) FROM documents GROUP BY source
"""
CANDIDATES: Final = 4  # times the requested number, so that other documents and other texts can be preferred


def spread(passages: Iterable[FoundPassage], limit: int) -> tuple[FoundPassage, ...]:
    """Return the best ``limit`` passages, no text twice: one document gets at most half of the places."""
    first: list[FoundPassage] = []
    later: list[FoundPassage] = []
    taken: Counter[str] = Counter()
    texts: set[str] = set()
    for passage in passages:
        if passage.text in texts:
            continue
        texts.add(passage.text)
        taken[passage.document] += 1
        (first if taken[passage.document] <= max(1, limit // 2) else later).append(passage)
        if len(first) == limit:  # the others need not be read
            break
    return (*first, *later)[:limit]


def passage_of(row: Sequence[Any]) -> FoundPassage:
    """Return one passage; its link leads to the page, the line or the heading, as the link's host understands it."""
    number, anchor, url, place, docs_url, *rest = row
    fields = dict(zip(_FIELDS, rest, strict=True))
    link = url or document_url(docs_url or "", fields["document"])
    fragment = {"line": f"L{fields['line']}", "anchor": quote(anchor)}.get(place, "")
    if fields["page"]:
        fragment = f"page={fields['page']}"
    whole = f"{link}#{fragment}" if link and fragment else link
    return FoundPassage(**fields, url=whole, number=number % MAX_PASSAGES)


def document_of(row: Sequence[Any]) -> Document:
    """Return one document."""
    *rest, url, docs_url = row
    fields = dict(zip(("id", "title", "updated_at", "audience", "source", "passages", "text"), rest, strict=True))
    return Document(**fields, url=url or document_url(docs_url or "", fields["id"]))


def document_url(docs_url: str, document: str) -> str:
    """Return the link to a document, empty without a configured prefix."""
    if not docs_url:
        return ""
    return f"{docs_url}{'' if docs_url.endswith(('/', '=')) else '/'}{quote(document)}"


def resolve_document_name(documents: Iterable[Document], name_or_id: str) -> str | None:
    """Return the id of the document that a name fits best (case and suffix do not matter)."""
    wanted = name_or_id.strip().casefold()
    ranked = [(names.index(wanted), each.id) for each in documents if wanted in (names := _names(each))]
    return min(ranked)[1] if ranked else None


def _names(document: Document) -> tuple[str, ...]:
    shown = document.id.casefold()
    file_name = shown.rpartition("/")[2]
    return shown, document.title.casefold(), file_name, file_name.rpartition(".")[0]

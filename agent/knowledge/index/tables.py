"""The tables of an index, the same in SQLite and PostgreSQL: documents, postings, and rows as passages with links.

Postings say which passages have a word, each with the word's weight there.
"""

import hashlib
import json
import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from itertools import chain
from pathlib import Path
from typing import Any, Final, Protocol
from unicodedata import normalize
from urllib.parse import quote

from agent.knowledge.readers.chunking import Chunk
from agent.knowledge.readers.document import ReadDocument
from agent.knowledge.search.full_text import MAX_IMPACT, impacts
from agent.knowledge.types import PATH, Document, FoundPassage, Readable, SourceState

VERSION: Final = 22  # increase it when the tables change, or the words and passages made from the same bytes
# maximum per document: a passage's number has the document's number above its lower 20 bits
MAX_PASSAGES: Final = 1 << 20
# Tables that a new version replaces. `vectors` stays: it is stored by text and expensive to compute.
NAMES: Final = ("documents", "audiences", "settings", "passages", "passage_vectors", "postings", "totals")
SCHEMA: Final = Path(__file__).with_name("schema.sql").read_text(encoding="utf-8")
_AT_ONCE: Final = 400  # maximum values in one statement: older versions of SQLite take 999
_STATE: Final = "source:"  # prefix of the settings that store the sources' states
_PUT_SETTING: Final = "INSERT INTO settings VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value"
_NUMBERS: Final = "SELECT number FROM documents WHERE key IN ({})"
_PUT_AUDIENCES: Final = "INSERT INTO audiences VALUES {} ON CONFLICT DO NOTHING"
_TIDY_AUDIENCES: Final = """
DELETE FROM audiences WHERE NOT EXISTS (SELECT 1 FROM documents d WHERE d.audience = audiences.digest)
"""
_RARITY_SCALE: Final = 1 << 16  # an impact times a rarity fits into 32 bits
_COUNTS: Final = "SELECT word, count(*) FROM postings WHERE word IN ({}) GROUP BY word ORDER BY word"
_BEST: Final = """
WITH words (word, rarity) AS (VALUES {})
SELECT passage, sum(impact * rarity) FROM words JOIN postings ON postings.word = words.word
WHERE passage >> 20 IN (SELECT d.number FROM documents d WHERE {})
GROUP BY passage ORDER BY 2 DESC, passage LIMIT ?
"""
_HAS_PREFIX: Final = """ AND EXISTS (SELECT 1 FROM (VALUES {}) AS prefixes
WHERE column1 IN (substr(d.id, 1, length(column1)), substr(d.source, 1, length(column1))))
"""

Condition = tuple[str, tuple[str | bytes, ...]]  # on a row ``d`` of the documents, with the values of its marks
EVERY: Final[Condition] = ("d.number > 0", ())
Parsed = tuple[Readable, str, ReadDocument, tuple[Chunk, ...]]  # a document ready to be stored, with its digest


class IndexSession(Protocol):
    """A connection for one thread at a time. Statements have ``?`` for each value."""

    def execute(self, statement: str, values: Sequence[Any] = ..., /) -> Any:
        """Run one statement and return its cursor."""

    def transaction(self) -> AbstractContextManager[Any]:
        """Run the block as one transaction."""

    @property
    def is_usable(self) -> bool:
        """False if the connection is lost."""

    def close(self) -> None:
        """Close it."""


def parts(values: Iterable[Any], size: int = _AT_ONCE) -> Iterator[list[Any]]:
    """Return the values in batches."""
    every = list(values)
    return (every[at : at + size] for at in range(0, len(every), size))


def marks(values: Collection[Any]) -> str:
    """Return a ``?`` for each value."""
    return ", ".join("?" * len(values))


def condition_of(audiences: Sequence[str], prefixes: Sequence[str]) -> Condition:
    """Return the condition on documents of these audiences; with ``prefixes`` an id or source must have one of them."""
    condition = f"d.audience IN (NULL{', ?' * len(audiences)})"  # PostgreSQL takes no empty list
    if prefixes:
        condition += _HAS_PREFIX.format(", ".join(["(?)"] * len(prefixes)))
    return condition, (*map(_digest_of_audience, audiences), *prefixes)


def _digest_of_audience(audience: str) -> bytes:
    return hashlib.sha256(audience.encode("utf-8", "surrogatepass")).digest()[:16]


def insert(session: IndexSession, statement: str, rows: Iterable[Sequence[Any]]) -> None:
    """Insert these rows, many per statement."""
    every = list(rows)
    for some in parts(every, _AT_ONCE // len(every[0])) if every else ():
        values = ", ".join([f"({marks(some[0])})"] * len(some))
        session.execute(statement.format(values), [value for row in some for value in row])


def put_setting(session: IndexSession, name: str, value: str) -> None:
    """Store one setting."""
    session.execute(_PUT_SETTING, (name, value))


def notes(session: IndexSession, prefix: str) -> dict[str, str]:
    """Return the settings whose names begin with ``prefix``."""
    rows = session.execute("SELECT name, value FROM settings WHERE substr(name, 1, ?) = ?", (len(prefix), prefix))
    return dict(sorted(rows))


def put_notes(session: IndexSession, new_notes: Mapping[str, str]) -> None:
    """Store these settings in one transaction; remove those with an empty value."""
    if new_notes:
        with session.transaction():
            for name, value in new_notes.items():
                if value:
                    put_setting(session, name, value)
                else:
                    session.execute("DELETE FROM settings WHERE name = ?", (name,))


def states(session: IndexSession) -> dict[str, SourceState]:
    """Return the state of each source by name, without states that another version of Orion wrote."""
    found = {}
    for name, note in notes(session, _STATE).items():
        with suppress(ValueError, TypeError, KeyError):
            fields = json.loads(note)
            pairs = {each: tuple(map(tuple, fields[each])) for each in ("failed", "skipped")}
            found[name.removeprefix(_STATE)] = SourceState(**fields | pairs)
    return found


def put_states(session: IndexSession, states: Mapping[str, SourceState | None]) -> None:
    """Store these states; None removes one."""
    put_notes(session, {f"{_STATE}{n}": json.dumps(asdict(state)) if state else "" for n, state in states.items()})


def rank_by_words(
    session: IndexSession, words: Sequence[str], most: int, seen: Condition = EVERY
) -> list[tuple[int, float]]:
    """Return the numbers of the ``seen`` passages with any of these words, best first, each with its score.

    The score is a share of the highest possible one, that of a passage full of all these words.
    """
    (passages,) = session.execute("SELECT passages FROM totals").fetchone()
    counts = dict.fromkeys(words, 0) | dict(session.execute(_COUNTS.format(marks(words)), words).fetchall())
    rarities = {  # in whole numbers: sums of others differ in their last bits between databases
        word: round(_RARITY_SCALE * math.log(1 + (max(passages, count) - count + 0.5) / (count + 0.5)))
        for word, count in counts.items()
    }
    statement = _BEST.format(", ".join(["(?, ?)"] * len(rarities)), seen[0])
    rows = session.execute(statement, (*chain.from_iterable(rarities.items()), *seen[1], most))
    highest = MAX_IMPACT * max(1, sum(rarities.values()))
    return [(number, score / highest) for number, score in rows]


def make(session: IndexSession, schema: str) -> None:
    """Create the tables. Those of another version are dropped: the documents are read again."""
    for name in NAMES:
        session.execute(f"DROP TABLE IF EXISTS {name}")
    for statement in schema.split(";"):
        session.execute(statement)


def replace(session: IndexSession, batch: Sequence[Parsed], gone: Iterable[str] = ()) -> None:
    """Store these documents in place of those with the same keys, and remove ``gone``, in one transaction."""
    by_key = {parsed[0].key: parsed for parsed in batch}
    with session.transaction():
        for some in parts([*by_key, *gone]):
            for (number,) in session.execute(_NUMBERS.format(marks(some)), some).fetchall():
                _remove(session, number)
        if by_key:
            _insert(session, by_key.values())
        session.execute(_TIDY_AUDIENCES)


def _insert(session: IndexSession, batch: Collection[Parsed]) -> None:
    (first,) = session.execute("SELECT next_document FROM totals").fetchone()
    documents, passages, postings = [], [], []
    for number, (file, digest, document, chunks) in enumerate(batch, first):
        about = (file.key, file.id, document.title, document.updated_at, digest)
        origin = (_digest_of_audience(file.audience), file.source, file.url, file.place)
        documents.append((number, *about, *origin, len(chunks), document.text))
        for passage, chunk in enumerate(chunks, number << 20):
            where = (chunk.path, chunk.heading, chunk.anchor, chunk.line, chunk.page)
            passages.append((passage, *where, chunk.text))
            found = impacts(document.title, chunk.path, chunk.text)
            postings += [(word, passage, impact) for word, impact in found.items()]
    audiences = {_digest_of_audience(file.audience): file.audience for file, *_ in batch}
    insert(session, _PUT_AUDIENCES, audiences.items())
    insert(session, "INSERT INTO documents VALUES {}", documents)
    insert(session, "INSERT INTO passages VALUES {}", passages)
    insert(session, "INSERT INTO postings VALUES {}", sorted(postings))  # in the order of the table: fewer pages change
    totals = (len(passages), first + len(batch))
    session.execute("UPDATE totals SET passages = passages + ?, next_document = ?", totals)


def _remove(session: IndexSession, number: int) -> None:
    reach = (number << 20, (number << 20) + MAX_PASSAGES - 1)
    removed = session.execute("DELETE FROM passages WHERE number BETWEEN ? AND ?", reach).rowcount
    session.execute("DELETE FROM postings WHERE passage BETWEEN ? AND ?", reach)
    session.execute("DELETE FROM documents WHERE number = ?", (number,))
    session.execute("UPDATE totals SET passages = passages - ?", (removed,))


_PASSAGE: Final = """
SELECT p.number, p.anchor, d.url, d.place, (SELECT value FROM settings WHERE name = 'docs_url'),
  d.id, d.title, p.path, p.text, p.line, p.page, d.updated_at, a.audience, d.chunks
FROM passages p JOIN documents d ON d.number = p.number >> 20 JOIN audiences a ON a.digest = d.audience
"""
_FIELDS: Final = ("document", "title", "path", "text", "line", "page", "updated_at", "audience", "of")
"""Columns of a passage, from the second line of the statement."""
FOUND: Final = _PASSAGE + "WHERE p.number IN ({})"  # passages with these numbers, in any order
# Passages of the document with this id, from one number to another.
PART: Final = f"""{_PASSAGE}
WHERE d.id = ? AND p.number BETWEEN (d.number << 20) + ? AND (d.number << 20) + ? AND {{}} ORDER BY p.number
"""
# Columns that `document_of` reads, with or without the text.
DOCUMENTS: Final = """
SELECT id, title, updated_at, a.audience, source, chunks, {}, url,
  (SELECT value FROM settings WHERE name = 'docs_url')
FROM documents d JOIN audiences a ON a.digest = d.audience WHERE {}
"""
# Each document as ``IndexRun.known`` has it.
KNOWN: Final = """
SELECT key, d.digest, id, a.audience, url FROM documents d JOIN audiences a ON a.digest = d.audience
"""
HOLDINGS: Final = """
SELECT source, count(*), CAST(sum(chunks) AS integer), coalesce(min(nullif(updated_at, '')), ''),
  max(updated_at) FROM documents GROUP BY source
"""
CANDIDATES: Final = 4  # times the requested number, so that there are other documents and texts to prefer


def spread(passages: Iterable[FoundPassage], limit: int) -> tuple[FoundPassage, ...]:
    """Return the best ``limit`` passages, no text twice, and at most half of them from one document."""
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
    """Return one passage, with a link to its page, line or heading in the form that the host understands."""
    number, anchor, url, place, docs_url, *rest = row
    fields = dict(zip(_FIELDS, rest, strict=True))
    fields["path"] = tuple(fields["path"].split(PATH)) if fields["path"] else ()
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
    """Return the link to a document, or an empty text without a configured prefix."""
    return docs_url and f"{docs_url}{'' if docs_url.endswith(('/', '=')) else '/'}{quote(document)}"


def resolve_document_name(documents: Iterable[Document], name_or_id: str) -> str | None:
    """Return the id of the document that a name fits best (case, suffix and the form of accents do not matter)."""
    wanted = _fold(name_or_id.strip())
    ranked = []
    for each in documents:
        shown = _fold(each.id)
        file_name = shown.rpartition("/")[2]
        names = (shown, _fold(each.title), file_name, file_name.rpartition(".")[0])
        ranked += [(names.index(wanted), each.id)] if wanted in names else []
    return min(ranked)[1] if ranked else None


def _fold(name: str) -> str:
    return normalize("NFC", name.casefold())  # a Mac stores the dots of an "ü" apart

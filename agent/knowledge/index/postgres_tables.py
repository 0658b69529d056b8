"""The tables of the shared index: how a build writes them, and which passages have the words of a query.

Stored words are removed by the rules that made them, so ``VERSION`` must grow whenever those rules change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from psycopg import Connection, sql

from agent.knowledge.index.build import NOTE, Known, Parsed
from agent.knowledge.search.index_terms import impacts
from agent.knowledge.search.postings import Changes, Ranking, rarities

VERSION: Final = "5"
"""Grows with the tables and with anything that changes what the same bytes become."""

_TABLES: Final = ("passage_vectors", "passages", "documents", "postings", "terms", "totals", "settings")
_SCHEMA: Final = """
CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE totals (passages bigint NOT NULL, place bigint NOT NULL);
CREATE TABLE documents (
  number bigint PRIMARY KEY, key text NOT NULL UNIQUE, id text NOT NULL,
  title text NOT NULL, updated_at text NOT NULL, digest text NOT NULL, audience text NOT NULL, source text NOT NULL,
  url text NOT NULL, place text NOT NULL, chunks integer NOT NULL, text text NOT NULL
);
CREATE TABLE passages (
  number bigint PRIMARY KEY, document bigint NOT NULL, path text NOT NULL, name text NOT NULL, anchor text NOT NULL,
  line integer NOT NULL, page integer NOT NULL, text text NOT NULL
);
CREATE TABLE postings (
  block bigint NOT NULL, word text COLLATE "C" NOT NULL, data bytea NOT NULL, PRIMARY KEY (word, block)
) WITH (fillfactor = 60);
ALTER TABLE postings ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE TABLE passage_vectors (number bigint PRIMARY KEY, digest bytea NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (digest bytea PRIMARY KEY, vector bytea NOT NULL);
INSERT INTO totals VALUES (0, 1);
"""
"""A document's number is the place of its first passage; ``totals.place`` is the next one, and never goes back."""

_TOTALS: Final = "SELECT passages FROM totals"
_POSTINGS: Final = "SELECT word, block, data FROM postings WHERE word = ANY(%s)"
_NUMBERS: Final = """
SELECT ranked.at, (SELECT max(number) FROM documents WHERE number <= ranked.at)
FROM unnest(%s::bigint[]) AS ranked (at)
"""
_PLACE: Final = "UPDATE totals SET passages = passages + %s, place = place + %s RETURNING place"
_INSERT: Final = """
INSERT INTO documents (number, key, id, title, updated_at, digest, audience, source, url, place, chunks, text)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)
"""
_COPY: Final = "COPY passages (number, document, path, name, anchor, line, page, text) FROM STDIN"
_OF_DOCUMENTS: Final = """
SELECT p.document + p.number - (p.document << 20), d.title, p.path, p.text
FROM documents d JOIN passages p ON p.number >= d.number << 20 AND p.number < (d.number + 1) << 20
WHERE d.number = ANY(%s)
"""
_GONE: Final = "SELECT number FROM documents WHERE key = ANY(%s)"
_REMOVE: Final = """
DELETE FROM passages p USING unnest(%s::bigint[]) AS gone (number)
WHERE p.number >= gone.number << 20 AND p.number < (gone.number + 1) << 20
"""
_BLOCK: Final = "SELECT word, data FROM postings WHERE word = ANY(%s) AND block = %s"
_REVISE: Final = """
INSERT INTO postings (block, word, data) SELECT %s, revised.* FROM unnest(%s::text[], %b::bytea[]) AS revised
ON CONFLICT (word, block) DO UPDATE SET data = excluded.data
"""
_MANY_PASSAGES: Final = 2_000
"""After so many in one run the database is told to look at its tables again."""


def prepare(connection: Connection[Any], schema: str) -> None:
    """Make the tables unless they are there. An older version's are dropped: the documents are read again."""
    with connection.transaction():
        connection.execute("SELECT pg_advisory_xact_lock(hashtext('orion tables'), hashtext(%s))", (schema,))
        connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(schema)))
        if _version(connection) == VERSION:
            return
        for table in _TABLES:
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(sql.Identifier(schema, table)))
        connection.execute(_SCHEMA)
        connection.execute("INSERT INTO settings VALUES ('version', %s)", (VERSION,))


def _version(connection: Connection[Any]) -> str:
    if connection.execute("SELECT to_regclass('settings')").fetchone() == (None,):
        return ""
    found = connection.execute("SELECT value FROM settings WHERE name = 'version'").fetchone()
    return str(found[0]) if found else ""


def by_words(connection: Connection[Any], words: Sequence[str], most: int, best: Ranking) -> list[tuple[int, float]]:
    """The numbers of the best passages for these words, best first."""
    (passages,) = connection.execute(_TOTALS).fetchone() or (0,)
    found = connection.execute(_POSTINGS, (list(words),), binary=True)
    ranked = best(found, passages=passages, most=most)
    rows = connection.execute(_NUMBERS, ([place for place, _ in ranked],))
    numbers = {place: (document << 20) + place - document for place, document in rows if document}
    return [(numbers[place], score) for place, score in ranked if place in numbers]


def rarity(connection: Connection[Any], words: Sequence[str]) -> dict[str, float]:
    """What each of these words says among all passages."""
    (passages,) = connection.execute(_TOTALS).fetchone() or (0,)
    return rarities(connection.execute(_POSTINGS, (list(words),), binary=True), words, passages)


class PostgresShelf:
    """The tables, over one connection that holds the lock."""

    def __init__(self, connection: Connection[Any]) -> None:
        self._connection = connection
        self._written = 0

    def known(self) -> Mapping[str, Known]:
        """What is there, by key."""
        rows = self._connection.execute("SELECT key, digest, id, audience, url FROM documents")
        return {key: (digest, shown, audience, url) for key, digest, shown, audience, url in rows}

    def notes(self, prefix: str) -> dict[str, str]:
        """What runs noted under names that begin so. Reading them needs no lock."""
        statement = 'SELECT name, value FROM settings WHERE starts_with(name, %s) ORDER BY name COLLATE "C"'
        return {name.removeprefix(NOTE): value for name, value in self._connection.execute(statement, (NOTE + prefix,))}

    def note(self, notes: Mapping[str, str]) -> None:
        """Store these notes; an empty one is removed."""
        with self._connection.transaction(), self._connection.cursor() as cursor:
            cursor.execute("DELETE FROM settings WHERE name = ANY(%s)", ([NOTE + name for name in notes],))
            kept = [(NOTE + name, value) for name, value in notes.items() if value]
            cursor.executemany("INSERT INTO settings VALUES (%s, %s)", kept)

    def put(self, batch: Sequence[Parsed]) -> None:
        """Store these in place of what has their keys."""
        by_key = {parsed.file.key: parsed for parsed in batch}
        with self._connection.transaction():
            changes = Changes()
            self._remove(list(by_key), changes)
            numbered = [(self._document(parsed), parsed) for parsed in by_key.values()]
            with self._connection.cursor() as cursor, cursor.copy(_COPY) as copy:
                for number, parsed in numbered:
                    for row in _rows(number, parsed, changes):
                        copy.write_row(row)
            self._write(changes)

    def drop(self, keys: Sequence[str]) -> None:
        """Remove these."""
        with self._connection.transaction():
            changes = Changes()
            self._remove(keys, changes)
            self._write(changes)

    def settle(self) -> None:
        """Make room and new statistics after a run that wrote much: the server would come to it later by itself."""
        if self._written > _MANY_PASSAGES:
            for table in ("documents", "passages", "postings"):
                self._connection.execute(sql.SQL("VACUUM (ANALYZE) {}").format(sql.Identifier(table)))

    def _document(self, parsed: Parsed) -> int:
        file, document, passages = parsed.file, parsed.document, len(parsed.chunks)
        (place,) = self._connection.execute(_PLACE, (passages, max(1, passages))).fetchone() or (0,)
        number = int(place) - max(1, passages)
        about = (file.key, file.id, document.title, document.updated_at, document.digest)
        origin = (file.audience, file.source, file.url, file.place)
        self._connection.execute(_INSERT, (number, *about, *origin, passages, document.text))
        self._written += passages
        return number

    def _remove(self, keys: Sequence[str], changes: Changes) -> None:
        numbers = [number for (number,) in self._connection.execute(_GONE, (list(keys),))]
        if not numbers:
            return
        passages = self._connection.execute(_OF_DOCUMENTS, (numbers,)).fetchall()
        for place, title, path, text in passages:
            changes.gone(place, impacts(title, path, text))
        self._connection.execute(_REMOVE, (numbers,))
        self._connection.execute("DELETE FROM documents WHERE number = ANY(%s)", (numbers,))
        self._connection.execute("UPDATE totals SET passages = passages - %s", (len(passages),))

    def _write(self, changes: Changes) -> None:
        for block, words in changes.blocks():
            held = dict(self._connection.execute(_BLOCK, (list(words), block), binary=True).fetchall())
            revised = {word: changes.revised(block, word, held.get(word, b"")) for word in words}
            kept = {word: data for word, data in revised.items() if data}
            self._connection.execute(_REVISE, (block, list(kept), list(kept.values())))
            gone = [word for word in words if word not in kept]
            self._connection.execute("DELETE FROM postings WHERE word = ANY(%s) AND block = %s", (gone, block))


def _rows(number: int, parsed: Parsed, changes: Changes) -> Iterator[tuple[Any, ...]]:
    """The rows of a document's passages; what their words say is noted beside."""
    for n, chunk in enumerate(parsed.chunks):
        changes.come(number + n, impacts(parsed.document.title, chunk.path, chunk.text))
        place = (chunk.heading, chunk.anchor, chunk.line, chunk.page)
        yield (number << 20) + n, number, chunk.path, *place, chunk.text

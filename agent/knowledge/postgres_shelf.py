"""The tables of the shared index, and how a build writes them.

Promises: each batch is one transaction; how many passages have a word is kept beside them, since PostgreSQL does not
know it. Must never be used without the lock that lets one process build at a time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import psycopg
from psycopg import Connection, sql
from psycopg.types.json import Json

from agent.knowledge.index_run import NOTE, Known, Parsed
from agent.knowledge.lexemes import Indexed, indexed

VERSION: Final = "2"
"""Grows with the tables and with anything that changes what the same bytes become."""

_TABLES: Final = ("passage_vectors", "passages", "documents", "terms", "totals", "settings")
_SCHEMA: Final = """
CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE totals (passages bigint NOT NULL, words bigint NOT NULL);
CREATE TABLE terms (word text COLLATE "C" PRIMARY KEY, passages bigint NOT NULL) WITH (fillfactor = 70);
CREATE TABLE documents (
  number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL UNIQUE, id text NOT NULL,
  title text NOT NULL, updated_at text NOT NULL, digest text NOT NULL, audience text NOT NULL, source text NOT NULL,
  url text NOT NULL, place text NOT NULL, chunks integer NOT NULL, text text NOT NULL
);
CREATE TABLE passages (
  number bigint PRIMARY KEY, document bigint NOT NULL, name text NOT NULL, text text NOT NULL, anchor text NOT NULL,
  line integer NOT NULL, page integer NOT NULL, length integer NOT NULL, words tsvector NOT NULL, counts jsonb NOT NULL
);
ALTER TABLE passages ALTER COLUMN words SET STORAGE MAIN, ALTER COLUMN counts SET STORAGE MAIN;
CREATE INDEX passages_words ON passages USING gin (words) WITH (fastupdate = off);
CREATE INDEX passages_document ON passages (document);
CREATE TABLE passage_vectors (number bigint PRIMARY KEY, digest bytea NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (digest bytea PRIMARY KEY, vector bytea NOT NULL);
INSERT INTO totals VALUES (0, 0);
"""
_INSERT: Final = """
INSERT INTO documents (key, id, title, updated_at, digest, audience, source, url, place, chunks, text)
VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) RETURNING number
"""
_COPY: Final = "COPY passages (number, document, name, text, anchor, line, page, length, words, counts) FROM STDIN"
_ADD_WORDS: Final = """
INSERT INTO terms SELECT * FROM unnest(%s::text[], %s::bigint[])
ON CONFLICT (word) DO UPDATE SET passages = terms.passages + excluded.passages
"""
_GONE: Final = "SELECT number FROM documents WHERE key = ANY(%s)"
_TAKE_WORDS: Final = """
UPDATE terms SET passages = terms.passages - gone.passages
FROM (SELECT lexeme, count(*) AS passages FROM passages, unnest(words) WHERE document = ANY(%s) GROUP BY lexeme) gone
WHERE terms.word = gone.lexeme
"""
_TAKE_TOTALS: Final = """
UPDATE totals SET passages = totals.passages - gone.passages, words = totals.words - gone.words
FROM (SELECT count(*) AS passages, coalesce(sum(length), 0) AS words FROM passages WHERE document = ANY(%s)) gone
"""
_RECOUNT: Final = (
    "TRUNCATE terms",
    "INSERT INTO terms SELECT word, ndoc FROM ts_stat(format('SELECT words FROM %I.passages', current_schema()))",
    "DELETE FROM settings WHERE name = 'recount'",
)
_MANY_PASSAGES: Final = 2_000
"""Beyond so many in one run it is cheaper to count all words once at its end."""


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
        with self._connection.transaction():
            self._remove([parsed.file.key for parsed in batch])
            held: Counter[str] = Counter()
            lengths = 0
            with self._connection.cursor() as cursor:
                numbers = [self._document(cursor, parsed) for parsed in batch]
                with cursor.copy(_COPY) as copy:
                    for number, parsed in zip(numbers, batch, strict=True):
                        for row, entry in _rows(number, parsed):
                            copy.write_row(row)
                            held.update(entry.words)
                            lengths += entry.length
            self._count(held, passages=sum(len(parsed.chunks) for parsed in batch), words=lengths)

    def drop(self, keys: Sequence[str]) -> None:
        """Remove these."""
        with self._connection.transaction():
            self._remove(keys)

    def settle(self) -> None:
        """Count all words anew where a run wrote so much that it did not keep count, also an earlier one."""
        if self._connection.execute("SELECT 1 FROM settings WHERE name = 'recount'").fetchone():
            with self._connection.transaction():
                for statement in _RECOUNT:
                    self._connection.execute(statement)
            self._connection.execute("ANALYZE passages")

    def _document(self, cursor: psycopg.Cursor[Any], parsed: Parsed) -> int:
        file, document = parsed.file, parsed.document
        about = (file.key, file.id, document.title, document.updated_at, document.digest)
        origin = (file.audience, file.source, file.url, file.place)
        found = cursor.execute(_INSERT, (*about, *origin, len(parsed.chunks), document.text)).fetchone()
        return int(found[0]) if found else 0

    def _count(self, held: Counter[str], *, passages: int, words: int) -> None:
        self._connection.execute(
            "UPDATE totals SET passages = passages + %s, words = words + %s",
            (passages, words),
        )
        self._written += passages
        if self._written <= _MANY_PASSAGES:
            self._connection.execute(_ADD_WORDS, (list(held), list(held.values())))
        else:
            self._connection.execute("INSERT INTO settings VALUES ('recount', 'yes') ON CONFLICT DO NOTHING")

    def _remove(self, keys: Sequence[str]) -> None:
        numbers = [number for (number,) in self._connection.execute(_GONE, (list(keys),))]
        if not numbers:
            return
        for statement in (_TAKE_WORDS, _TAKE_TOTALS):
            self._connection.execute(statement, (numbers,))
        self._connection.execute("DELETE FROM passages WHERE document = ANY(%s)", (numbers,))
        self._connection.execute("DELETE FROM documents WHERE number = ANY(%s)", (numbers,))


def _rows(number: int, parsed: Parsed) -> Iterator[tuple[tuple[Any, ...], Indexed]]:
    """The rows of a document's passages, each with what is counted of it."""
    for at, chunk in enumerate(parsed.chunks):
        entry = indexed(parsed.document.title, chunk.path, chunk.text)
        place = (chunk.heading, chunk.text, chunk.anchor, chunk.line, chunk.page)
        yield ((number << 20) + at, number, *place, entry.length, entry.vector, Json(entry.counts)), entry

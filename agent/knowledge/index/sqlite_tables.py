"""The tables of one machine's index: how a build writes them, and which passages have the words of a query.

Stored words are removed by the rules that made them, so ``VERSION`` must grow whenever those rules change.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from agent.knowledge.index.build import MOST_PASSAGES, NOTE, Known, Parsed
from agent.knowledge.search.index_terms import impacts
from agent.knowledge.search.postings import BLOCK, Changes, Ranking, rarities

VERSION: Final = 7
"""Grows with the schema and with anything that changes what the same bytes become."""

_SCHEMA: Final = """
CREATE TABLE documents (
  number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, id TEXT NOT NULL, title TEXT NOT NULL,
  updated_at TEXT NOT NULL, digest TEXT NOT NULL, audience TEXT NOT NULL, source TEXT NOT NULL, url TEXT NOT NULL,
  place TEXT NOT NULL, chunks INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE passage_vectors (number INTEGER PRIMARY KEY, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (digest BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE passages (
  number INTEGER PRIMARY KEY, title TEXT NOT NULL, path TEXT NOT NULL, name TEXT NOT NULL, anchor TEXT NOT NULL,
  line INTEGER NOT NULL, page INTEGER NOT NULL, text TEXT NOT NULL
);
CREATE TABLE postings (
  block INTEGER NOT NULL, word TEXT NOT NULL, data BLOB NOT NULL, PRIMARY KEY (block, word)
) WITHOUT ROWID;
CREATE TABLE totals (passages INTEGER NOT NULL, place INTEGER NOT NULL);
INSERT INTO totals VALUES (0, 1)
"""
"""A document's number is the place of its first passage; ``totals.place`` is the next one, and never goes back.
By blocks first: a build writes into the last one, whose words then lie together."""
_TABLES: Final = ("documents", "settings", "passages", "passage_vectors", "postings", "totals")

_BLOCKS: Final = "SELECT passages, (SELECT min(number) FROM documents), place FROM totals"
_POSTINGS: Final = """
SELECT p.word, p.block, p.data FROM json_each(:blocks) b CROSS JOIN json_each(:words) w
CROSS JOIN postings p ON p.block = b.value AND p.word = w.value
"""
_NUMBERS: Final = """
SELECT p.value, (SELECT max(number) FROM documents WHERE number <= p.value) FROM json_each(?) p
"""
_INSERT: Final = """
INSERT INTO documents (number, key, id, title, updated_at, digest, audience, source, url, place, chunks, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_INSERT_PASSAGE: Final = (
    "INSERT INTO passages (number, title, path, name, anchor, line, page, text) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
)
_OF_DOCUMENT: Final = "SELECT number, title, path, text FROM passages WHERE number BETWEEN ? AND ?"
_BLOCK: Final = "SELECT p.word, p.data FROM json_each(?) w CROSS JOIN postings p ON p.block = ? AND p.word = w.value"
_NOTES: Final = "SELECT name, value FROM settings WHERE substr(name, 1, length(:prefix)) = :prefix ORDER BY name"


def prepare(connection: sqlite3.Connection) -> None:
    """Make the tables unless they are there. An older version's are dropped: the documents are read again."""
    with transaction(connection):
        if is_current(connection):
            return
        for name in _TABLES:
            connection.execute(f"DROP TABLE IF EXISTS {name}")
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")


def is_current(connection: sqlite3.Connection) -> bool:
    """Whether the tables are of this version."""
    return bool(connection.execute("PRAGMA user_version").fetchone()[0] == VERSION)


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    done = False
    try:
        yield
        done = True
    finally:
        if done:
            connection.commit()
        else:
            connection.rollback()


def by_words(connection: sqlite3.Connection, words: Sequence[str], most: int, best: Ranking) -> list[tuple[int, float]]:
    """The numbers of the best passages for these words, best first."""
    passages, first, place = connection.execute(_BLOCKS).fetchone()
    if first is None:
        return []
    ranked = best(_postings(connection, words, first, place), passages=passages, most=most)
    rows = connection.execute(_NUMBERS, (json.dumps([place for place, _ in ranked]),))
    numbers = {place: (document << 20) + place - document for place, document in rows if document}
    return [(numbers[place], score) for place, score in ranked if place in numbers]


def rarity(connection: sqlite3.Connection, words: Sequence[str]) -> dict[str, float]:
    """What each of these words says among all passages."""
    passages, first, place = connection.execute(_BLOCKS).fetchone()
    found = () if first is None else _postings(connection, words, first, place)
    return rarities(found, words, passages)


def _postings(
    connection: sqlite3.Connection, words: Sequence[str], first: int, place: int
) -> Iterable[tuple[str, int, bytes]]:
    blocks = list(range(first // BLOCK, place // BLOCK + 1))
    return connection.execute(_POSTINGS, {"blocks": json.dumps(blocks), "words": json.dumps(words)})


class SqliteShelf:
    """The tables, over one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def known(self) -> dict[str, Known]:
        """What is there, by key."""
        rows = self._connection.execute("SELECT key, digest, id, audience, url FROM documents")
        return {key: (digest, shown, audience, url) for key, digest, shown, audience, url in rows}

    def notes(self, prefix: str) -> dict[str, str]:
        """What runs noted under names that begin so."""
        rows = self._connection.execute(_NOTES, {"prefix": f"{NOTE}{prefix}"})
        return {name.removeprefix(NOTE): value for name, value in rows}

    def note(self, notes: Mapping[str, str]) -> None:
        """Store these notes; an empty one is removed."""
        with transaction(self._connection):
            for name, value in notes.items():
                self._connection.execute("DELETE FROM settings WHERE name = ?", (f"{NOTE}{name}",))
                if value:
                    self._connection.execute("INSERT INTO settings VALUES (?, ?)", (f"{NOTE}{name}", value))

    def put(self, batch: Sequence[Parsed]) -> None:
        """Store these in place of what has their keys."""
        with transaction(self._connection):
            changes = Changes()
            for parsed in {parsed.file.key: parsed for parsed in batch}.values():
                self._remove(parsed.file.key, changes)
                self._insert(parsed, changes)
            self._write(changes)

    def drop(self, keys: Sequence[str]) -> None:
        """Remove these."""
        with transaction(self._connection):
            changes = Changes()
            for key in keys:
                self._remove(key, changes)
            self._write(changes)

    def _insert(self, parsed: Parsed, changes: Changes) -> None:
        file, document, chunks = parsed.file, parsed.document, parsed.chunks
        (number,) = self._connection.execute("SELECT place FROM totals").fetchone()
        about = (file.key, file.id, document.title, document.updated_at, document.digest)
        origin = (file.audience, file.source, file.url, file.place)
        self._connection.execute(_INSERT, (number, *about, *origin, len(chunks), document.text))
        self._connection.execute(
            "UPDATE totals SET passages = passages + ?, place = place + ?", (len(chunks), max(1, len(chunks)))
        )
        self._connection.executemany(
            _INSERT_PASSAGE,
            (
                ((number << 20) + n, document.title, c.path, c.heading, c.anchor, c.line, c.page, c.text)
                for n, c in enumerate(chunks)
            ),
        )
        for n, chunk in enumerate(chunks):
            changes.come(number + n, impacts(document.title, chunk.path, chunk.text))

    def _remove(self, key: str, changes: Changes) -> None:
        found = self._connection.execute("SELECT number FROM documents WHERE key = ?", (key,)).fetchone()
        if found is None:
            return
        number = found[0]
        reach = (number << 20, (number << 20) + MOST_PASSAGES - 1)
        passages = self._connection.execute(_OF_DOCUMENT, reach).fetchall()
        for passage, title, path, text in passages:
            changes.gone(number + passage - reach[0], impacts(title, path, text))
        self._connection.execute("DELETE FROM passages WHERE number BETWEEN ? AND ?", reach)
        self._connection.execute("DELETE FROM documents WHERE number = ?", (number,))
        self._connection.execute("UPDATE totals SET passages = passages - ?", (len(passages),))

    def _write(self, changes: Changes) -> None:
        for block, words in changes.blocks():
            held = dict(self._connection.execute(_BLOCK, (json.dumps(words), block)))
            revised = [(block, word, changes.revised(block, word, held.get(word, b""))) for word in words]
            self._connection.executemany("REPLACE INTO postings VALUES (?, ?, ?)", (row for row in revised if row[2]))
            gone = ((block, word) for block, word, data in revised if not data)
            self._connection.executemany("DELETE FROM postings WHERE block = ? AND word = ?", gone)

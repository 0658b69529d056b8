from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from agent.knowledge.index.index import KnowledgeIndex, Ranked
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.encoder import SentenceEncoder, Vectors
from agent.knowledge.semantic.ranking import MEANING_SHARE, SemanticRanks, encoded
from agent.knowledge.types import KnowledgeAwayError
from tests.support.tiny_bert import write_model
from tests.support.waiting import wait_until

TEXTS = {
    "hotel.md": "# Hotel\n\nThe limit is 120 euros a night.\n",
    "lunch.md": "# Lunch\n\nThe canteen of the office.\n\n## Coffee\n\nCoffee is in the canteen.\n",
    "door.md": "# Door\n\nA badge and a note of the doctor.\n",
}


class CountingEncoder(SentenceEncoder):
    """Knows what it was given."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.given: list[str] = []

    def encode(self, texts: Sequence[str]) -> Vectors:
        self.given += texts
        return super().encode(texts)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture
def encoder(model: Path) -> CountingEncoder:
    return CountingEncoder(model)


@pytest.fixture
def index(each_index: KnowledgeIndex) -> KnowledgeIndex:
    return each_index


@pytest.fixture
def docs(tmp_path: Path, index: KnowledgeIndex) -> Path:
    """Three documents of four passages, indexed."""
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, text in TEXTS.items():
        (folder / name).write_text(text)
    index.index([folder])
    return folder


def ranks_of(index: KnowledgeIndex, encoder: SentenceEncoder) -> SemanticRanks:
    return SemanticRanks(encoder, index)


def nearest(ranks: SemanticRanks, query: str, most: int) -> Sequence[Ranked]:
    """The passages nearest in meaning, nearest first, each with its cosine."""
    return [(number, score / MEANING_SHARE) for number, score in ranks.ranked(query, (), most)]


def texts_of(index: KnowledgeIndex, ranked: Sequence[Ranked]) -> list[str]:
    return [passage.text for passage in index.passages(ranked, 100)]


def by_hand(index: KnowledgeIndex, encoder: SentenceEncoder, query: str) -> list[tuple[str, float]]:
    """Every passage with the cosine between its vector and the question's, nearest first."""
    found = []
    for document in index.documents():
        for passage in index.search(f"{document.title} canteen badge limit", limit=20):
            if passage.document == document.id:
                said = encoded(passage.title, passage.path[-1], passage.text)
                found.append((passage.text, float(encoder.question(said) @ encoder.question(query))))
    return sorted(found, key=lambda pair: -pair[1])


@pytest.mark.parametrize(
    ("title", "heading", "text", "said"),
    [
        ("Hotel", "Hotel", "# Hotel\n\nFine.", "Hotel\n\nFine."),
        ("Lunch", "Coffee", "## Coffee\n\nFine.", "Lunch\nCoffee\n\nFine."),
        ("Lunch", "Coffee", "It goes on.", "Lunch\nCoffee\nIt goes on."),
        ("", "", "plain", "plain"),
    ],
)
def test_what_is_encoded_says_title_and_heading_once(title: str, heading: str, text: str, said: str) -> None:
    assert encoded(title, heading, text) == said


def test_the_nearest_are_the_nearest(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    ranks = ranks_of(index, encoder)
    assert ranks.make() == 4
    near = nearest(ranks, "how much is a night", 10)
    expected = [(text, cosine) for text, cosine in by_hand(index, encoder, "how much is a night") if cosine > 0.2]
    assert texts_of(index, near) == [text for text, _ in expected]
    assert np.allclose([cosine for _, cosine in near], [cosine for _, cosine in expected], atol=2e-3)
    assert nearest(ranks, "how much is a night", 2) == near[:2]


def test_nothing_is_near_to_nothing(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    ranks = ranks_of(index, encoder)
    ranks.make()
    assert nearest(ranks, "  \n", 10) == []
    index.meaning = ranks
    assert index.search("hotel", limit=0) == ()


def test_words_alone_find_while_vectors_are_missing(
    index: KnowledgeIndex, docs: Path, encoder: CountingEncoder
) -> None:
    plain = index.search("canteen coffee")
    index.meaning = ranks = ranks_of(index, encoder)
    assert index.search("canteen coffee") == plain
    ranks.make()
    assert {passage.text for passage in index.search("canteen coffee")} > {passage.text for passage in plain}
    (docs / "new.md").write_text("# Sick\n\nA note of the doctor, on paper.\n")
    index.index([docs])
    assert any(passage.document == "new.md" for passage in index.search("paper"))


def test_passage_without_any_of_the_words_is_found(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    assert index.search("travel expenses") == ()
    index.meaning = ranks = ranks_of(index, encoder)
    ranks.make()
    assert index.search("travel expenses")[0].text == by_hand(index, encoder, "travel expenses")[0][0]


def test_what_the_words_found_counts_by_its_nearness_too(
    index: KnowledgeIndex, docs: Path, encoder: CountingEncoder
) -> None:
    for number in range(100):
        (docs / f"{number}.md").write_text(f"# Leave\n\nDays of leave and days {number}.\n")
    index.index([docs])
    index.meaning = ranks = ranks_of(index, encoder)
    ranks.make()
    query = "canteen of the office"
    words, near = index.by_words(query, 80), dict(nearest(ranks, query, 1_000))
    best = words[0][1]
    expected = {n: 0.6 * near[n] + 0.4 * dict(words).get(n, 0.0) / best for n in near}
    found = ranks.ranked(query, words, 10)
    assert [number for number, _ in found] == sorted(expected, key=lambda n: (-expected[n], n))[:10]
    assert [score for _, score in found] == pytest.approx([expected[number] for number, _ in found])
    assert index.search(query, limit=2)[0].text == index.passages(found, 1)[0].text


def test_vectors_are_made_for_what_is_new_alone(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    ranks = ranks_of(index, encoder)
    progress: list[tuple[int, int]] = []
    assert ranks.counts() == (0, 4)
    assert ranks.make(progress=lambda having, every: progress.append((having, every))) == 4
    assert (progress, ranks.make(), len(encoder.given)) == ([(4, 4)], 0, 4)
    (docs / "lunch.md").write_text(TEXTS["lunch.md"] + "\n## Doctor\n\nA sick note.\n")
    index.index([docs])
    encoder.given.clear()
    assert ranks.make() == 3
    assert encoder.given == ["Lunch\nDoctor\n\nA sick note."]  # the others stand as they stood
    assert ranks.counts() == (5, 5)


def test_as_many_new_passages_as_gone_ones_get_vectors(
    index: KnowledgeIndex, docs: Path, encoder: CountingEncoder
) -> None:
    ranks = ranks_of(index, encoder)
    ranks.make()
    (docs / "door.md").write_text("# Door\n\nA badge and the limit.\n")
    index.index([docs])
    assert ranks.counts() == (3, 4)
    assert ranks.make() == 1
    assert ranks.counts() == (4, 4)


def test_what_is_gone_is_not_near_any_more(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    index.meaning = ranks = ranks_of(index, encoder)
    ranks.make()
    (docs / "door.md").unlink()
    index.index([docs])
    assert all(passage.document != "door.md" for passage in index.search("badge"))
    assert len(nearest(ranks, "badge", 10)) == 4  # its vector is still in memory, its passage is not
    ranks.make()
    assert len(nearest(ranks, "badge", 10)) == 3
    assert ranks.counts() == (3, 3)


async def test_two_processes_see_what_either_made(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    one, other = ranks_of(index, encoder), ranks_of(index, encoder)
    one.make()
    assert len(nearest(other, "badge", 10)) == 4
    (docs / "new.md").write_text("# Sick\n\nA note of the doctor.\n")
    index.index([docs])
    one.make()
    await wait_until(lambda: len(nearest(other, "badge", 10)) == 5, "the other has read the new one")


def test_one_makes_vectors_at_a_time(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    one, other = ranks_of(index, encoder), ranks_of(index, encoder)
    seen: list[int] = []
    assert one.make(progress=lambda _, __: seen.append(other.make())) == 4
    assert seen == [0]


def test_stop_ends_it_and_what_was_made_stays(index: KnowledgeIndex, docs: Path, encoder: CountingEncoder) -> None:
    ranks, stop = ranks_of(index, encoder), threading.Event()
    for number in range(80):
        (docs / f"{number}.md").write_text(f"# Leave\n\nDays {number}.\n")
    index.index([docs])
    made = ranks.make(progress=lambda _, __: stop.set(), stop=stop)
    assert 0 < made < 84
    assert ranks.counts() == (made, 84)
    assert ranks.make(stop=stop) == 0
    assert made + ranks.make() == 84


async def test_vectors_of_another_model_are_not_compared(
    index: KnowledgeIndex, docs: Path, encoder: CountingEncoder, tmp_path: Path
) -> None:
    ranks = ranks_of(index, encoder)
    ranks.make()
    other = ranks_of(index, CountingEncoder(write_model(tmp_path / "other", seed=8)))
    assert nearest(other, "badge", 10) == []
    assert other.make() == 4
    assert len(nearest(other, "badge", 10)) == 4
    await wait_until(lambda: nearest(ranks, "badge", 10) == [], "the first has seen that they are none of its own")


def test_changed_document_is_never_taken_for_what_it_was(
    index: KnowledgeIndex, docs: Path, encoder: CountingEncoder
) -> None:
    ranks = ranks_of(index, encoder)
    ranks.make()
    (docs / "hotel.md").write_text("# Hotel\n\nThe limit is 90 euros.\n")
    index.index([docs])
    assert len(texts_of(index, nearest(ranks, "limit", 10))) == 3  # numbers never come back, so the old one is nobody's


def test_an_index_made_anew_by_a_newer_orion_keeps_its_vectors(tmp_path: Path, encoder: CountingEncoder) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "door.md").write_text(TEXTS["door.md"])
    for version in (0, 1):
        with closing(SqliteIndex.open(tmp_path / "k.db")) as index:
            index.index([tmp_path / "docs"])
            assert ranks_of(index, encoder).make() == 1
            with index.session(write=True) as session:
                session.execute(f"PRAGMA user_version = {version}")
    assert len(encoder.given) == 1


MAKER = """
import sys
from pathlib import Path
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from tests.unit.agent.knowledge.semantic.test_semantic_ranks import SentenceEncoder, ranks_of
kind, where, schema, model = sys.argv[1:]
index = SqliteIndex.open(Path(where)) if kind == "sqlite" else PostgresIndex(where, schema=schema)
def progress(having, every):
    print(having, flush=True)
    sys.stdin.readline()
ranks_of(index, SentenceEncoder(Path(model))).make(progress=progress)
"""


def test_maker_that_is_killed_leaves_what_it_made_and_no_lock(
    index: KnowledgeIndex, docs: Path, encoder: CountingEncoder, model: Path, request: pytest.FixtureRequest
) -> None:
    for number in range(80):
        (docs / f"{number}.md").write_text(f"# Leave\n\nDays {number}.\n")
    index.index([docs])
    if isinstance(index, SqliteIndex):
        where = ["sqlite", str(index.path), ""]
    else:
        assert isinstance(index, PostgresIndex)
        where = ["postgres", request.getfixturevalue("postgres_url"), index._schema]
    ranks = ranks_of(index, encoder)
    command = [sys.executable, "-c", MAKER, *where, str(model)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE) as maker:
        assert maker.stdout is not None
        held = int(maker.stdout.readline())
        assert ranks.make() == 0  # it is at it
        maker.kill()
        maker.wait()
    assert ranks.counts() == (held, 84)
    made = 0
    while not made:  # the server may need a moment to see that it is gone
        made = ranks.make()
    assert made == 84 - held
    assert len(nearest(ranks, "days", 100)) == 84


def test_database_that_is_away_is_said_so(encoder: CountingEncoder) -> None:
    with closing(PostgresIndex("postgresql://nobody@127.0.0.1:1/none")) as index:
        ranks = ranks_of(index, encoder)
        for call in (ranks.make, ranks.counts, lambda: nearest(ranks, "badge", 3)):
            with pytest.raises(KnowledgeAwayError):
                call()

"""The contract of both indexes: a deleted document leaves nothing, a killed process loses one batch and no lock."""

import math
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from agent.knowledge.index.index import KnowledgeIndex, Ranked, SeenBy
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.search.full_text import MAX_IMPACT, impacts
from agent.knowledge.sources.feed import FeedSource
from agent.knowledge.sources.file_rules import FILE_NAME
from agent.knowledge.types import IndexReport
from agent.thread.conversation import Viewers
from tests.support.paths import ROOT

OPENED = """
import sys
from pathlib import Path
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
where, schema, docs = sys.argv[1:]
index = PostgresIndex(where, schema=schema) if schema else SqliteIndex.open(Path(where))
"""
HOLDER = f"""{OPENED}
with index.alone("lock") as alone:
    print(alone, flush=True)
    sys.stdin.read()
"""
BUILDER = f"""{OPENED}
def progress(name):
    if name == "n190.md":
        print("True", flush=True)
        sys.stdin.read()
index.index([Path(docs)], progress=progress)
"""


@pytest.fixture
def place(index: KnowledgeIndex, request: pytest.FixtureRequest) -> list[str]:
    """The arguments with which another process finds the same index."""
    if isinstance(index, SqliteIndex):
        return [str(index.path), ""]
    assert isinstance(index, PostgresIndex)
    return [request.getfixturevalue("postgres_url"), index._schema]


def other_process(program: str, place: list[str], docs: Path) -> subprocess.Popen[bytes]:
    """Another process, once it has said that it is where it waits."""
    command = [sys.executable, "-c", program, *place, str(docs)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
    assert process.stdout is not None
    while b"True" not in process.stdout.readline():
        assert process.poll() is None
    return process


def stored_words(index: KnowledgeIndex) -> tuple[Counter[str], int]:
    """Count the entries of each word, and the passages."""
    with index.session() as session:
        words = Counter(word for (word,) in session.execute("SELECT word FROM postings"))
        return words, session.execute("SELECT passages FROM totals").fetchone()[0]


def test_a_removed_document_leaves_no_word_in_the_index(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    before = stored_words(index)
    (docs / "b.md").write_text("Beta opens too")
    (docs / "c.md").write_text("Gamma opens")
    index.index([docs])
    with_others = stored_words(index)
    assert (with_others[0]["open"], with_others[1], before[1]) == (3, 5, 3)
    (docs / "b.md").unlink()
    (docs / "c.md").unlink()
    index.index([docs])
    assert stored_words(index) == before


def test_passages_rank_by_the_plain_formula_and_equal_ones_keep_their_order(
    index: KnowledgeIndex, tmp_path: Path
) -> None:
    texts = ("alpha beta", "alpha", "beta gamma", "alpha beta", "delta", "gamma alpha alpha")
    for n, text in enumerate(texts):
        (tmp_path / f"{n}.md").write_text(text)
    index.index([tmp_path])
    weights = [impacts(str(n), "", text) for n, text in enumerate(texts)]
    expected: Counter[int] = Counter()
    words = ("alpha", "beta", "omega")  # no passage has the last one
    counts = {word: sum(word in each for each in weights) for word in words}
    rarities = {word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in counts.items()}
    for word, rarity in rarities.items():
        share = rarity / sum(rarities.values()) / MAX_IMPACT
        expected.update({n: share * each[word] for n, each in enumerate(weights) if word in each})
    ranked = sorted(expected.items(), key=lambda each: (-round(each[1], 9), each[0]))
    found = index.by_words("alpha beta omega", 9)
    assert [(number >> 20) - 1 for number, _ in found] == [n for n, _ in ranked]
    assert [score for _, score in found] == pytest.approx([score for _, score in ranked], rel=1e-4)


def test_a_pasted_identifier_of_many_parts_is_a_query_like_any_other(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    assert index.search("canteen-opens-" + "-".join(f"w{n}" for n in range(100_000)))


def test_a_number_is_never_reused(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    before = {number for number, _ in index.by_words("canteen opens", 9)}
    (docs / "b.md").write_text("# Beta\n\nThe canteen opens again.\n")
    (docs / "a.md").unlink()
    index.index([docs])
    assert before.isdisjoint(number for number, _ in index.by_words("canteen opens", 9))


def test_a_killed_builder_leaves_its_batches_and_no_lock(index: KnowledgeIndex, docs: Path, place: list[str]) -> None:
    for n in range(100, 200):
        (docs / f"n{n}.md").write_text(f"# Note {n}\n\nNumber {n}.")
    with other_process(BUILDER, place, docs) as builder:
        builder.kill()
    assert len(index.documents()) == index.documents_so_far() == 64
    assert index.index([docs]) == IndexReport(added=38, unchanged=64)
    assert index.documents_so_far() is None
    assert index.search("Number 199")[0].document == "n199.md"


def test_one_process_at_a_time_has_the_lock_and_a_killed_one_releases_it(
    index: KnowledgeIndex, docs: Path, place: list[str]
) -> None:
    with other_process(HOLDER, place, docs) as holder:
        with index.alone("lock", 0.1) as alone:
            assert not alone
        with index.alone("vectors") as alone:
            assert alone
        holder.kill()
        holder.wait()
        with index.alone("lock", 20) as alone:
            assert alone
    with index.alone("lock", float("inf")) as alone:
        assert alone


def test_an_audience_of_thousands_of_people_is_theirs_alone(index: KnowledgeIndex, tmp_path: Path) -> None:
    people = [f"U{sha256(str(number).encode()).hexdigest()[:9].upper()}" for number in range(4_000)]
    (tmp_path / "badges.md").write_text("# Badges\n\nBadge 7.")
    (tmp_path / FILE_NAME).write_text(f"audience = {people}")
    assert index.index([tmp_path]).failed == ()
    member, stranger = (Viewers(team="T", channel="D1", user=user) for user in (people[-1], "U0NEW"))
    assert [passage.document for passage in SeenBy(index, member).search("badge")] == ["badges.md"]
    assert (SeenBy(index, stranger).search("badge"), SeenBy(index, stranger).documents()) == ((), ())
    (tmp_path / FILE_NAME).write_text('audience = "public"')
    index.index([tmp_path])
    assert (index.audiences(), len(SeenBy(index, stranger).documents())) == (("public",), 1)


def test_a_name_that_is_too_long_stops_no_other_document(index: KnowledgeIndex, tmp_path: Path) -> None:
    feed = tmp_path / "wiki.jsonl"
    keys = ("1", "".join(sha256(str(number).encode()).hexdigest() for number in range(60)))
    feed.write_text("".join(f'{{"key": "{key}", "text": "It is.", "audience": "public"}}\n' for key in keys))
    report = index.index([FeedSource(command=(str(feed),))])
    assert (report.added, [reason for _, reason in report.failed]) == (1, ["has a name that is too long"])


def test_a_document_that_is_replaced_during_a_search_is_found(index: KnowledgeIndex, docs: Path) -> None:
    class Edited:
        async def embed_question(self, query: str) -> str:
            return query

        def rank(self, _vector: str, by_words: Sequence[Ranked], _most: int, _seen: object) -> Sequence[Ranked]:
            (docs / "a.md").write_text("# Alpha\n\nThe canteen opens at one.\n")
            index.index([docs])
            return by_words

    index.index([docs])
    index.meaning = Edited()
    assert [passage.title for passage in index.search("canteen", vector="canteen")] == ["Alpha"]

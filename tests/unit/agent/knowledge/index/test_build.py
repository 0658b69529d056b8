"""The contract of a document index, kept by SQLite and PostgreSQL: what changed is taken and what is gone goes."""

import threading
from functools import partial
from pathlib import Path

import pytest

from agent.knowledge.index import build, tables
from agent.knowledge.index.build import MAX_FAILURES
from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.readers.process import DOCUMENT_LIMITS, DocumentReader
from agent.knowledge.types import FoundPassage, Holding, IndexReport, SourceState


def test_search_returns_the_passage_with_its_place(index: KnowledgeIndex, docs: Path) -> None:
    assert index.index([docs], docs_url="https://docs.example/x") == IndexReport(added=2)
    found = index.search("When does the canteen open?")[0]
    assert found == FoundPassage(
        document="a.md",
        title="Alpha",
        path=("Alpha", "Lunch"),
        text="## Lunch\n\nThe canteen opens at noon.",
        url="https://docs.example/x/a.md#lunch",
        line=5,
        updated_at="2026-01-02",
        number=1,
        of=2,
    )


def test_only_changed_documents_are_indexed(index: KnowledgeIndex, docs: Path) -> None:
    seen: list[str] = []
    index.index([docs])
    (docs / "a.md").write_text("# Alpha\n\nDinner is at six.\n")
    (docs / "sub/b.md").unlink()
    (docs / "c.txt").write_text("Third document about lunch")
    report = index.index([docs], progress=seen.append)
    assert report == IndexReport(added=1, changed=1, removed=1)
    assert seen == ["a.md", "c.txt"]
    assert index.index([docs]) == IndexReport(unchanged=2)
    assert index.search("canteen") == ()
    assert [d.id for d in index.documents()] == ["a.md", "c.txt"]


def test_unreadable_files_are_named_and_the_rest_is_indexed(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    (docs / "a.md").write_bytes(b"\0\1binary")
    (docs / "z.pdf").write_bytes(b"%PDF broken")
    (docs / "new.md").write_text("fresh")
    report = index.index([docs])
    assert report == IndexReport(
        added=1,
        unchanged=1,
        failed=(("a.md", "is binary, although its name says text"), ("z.pdf", "is a damaged PDF")),
    )
    assert index.search("canteen") == ()


def test_an_unreadable_file_is_not_tried_again_before_it_changes(index: KnowledgeIndex, docs: Path) -> None:
    (docs / "z.pdf").write_bytes(b"%PDF broken")
    for _ in range(2):
        assert index.index([docs]).failed == (("z.pdf", "is a damaged PDF"),)
    (docs / "z.pdf").write_bytes(b"%PDF broken again")
    assert index.index([docs]).failed == (("z.pdf", "is a damaged PDF"),)
    (docs / "z.pdf").unlink()
    assert index.index([docs]).failed == ()


def test_the_length_of_a_cut_part_is_reported(
    index: KnowledgeIndex, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits = DOCUMENT_LIMITS._replace(max_chars=9_000)
    monkeypatch.setattr(build, "DocumentReader", partial(DocumentReader, limits))  # a limit, not behaviour
    (docs / "long.md").write_text("word " * 2_000)
    for _ in range(2):
        assert index.index([docs]).failed == (("long.md", "is read in part only: it is too long"),)
    (docs / "long.md").write_text("word " * 200)
    assert index.index([docs]) == IndexReport(changed=1, unchanged=2)


def test_a_missing_root_keeps_its_documents(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    docs.rename(docs.with_name("away"))
    report = index.index([docs])
    assert report == IndexReport(failed=((str(docs), "does not exist"),))
    assert len(index.documents()) == 2


def test_a_root_that_is_no_longer_given_is_dropped(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    assert index.index([docs / "sub"]) == IndexReport(changed=1, removed=1)
    assert [d.id for d in index.documents()] == ["b.md"]


def test_a_document_is_found_by_any_of_its_names(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs], docs_url="https://d/?path=")
    for name in ("sub/b.md", "b.md", "B", "beta", " Beta "):
        document = index.document(name)
        assert document is not None
        assert document.id == "sub/b.md"
        assert document.text.startswith("# Beta\n")
        assert document.url == "https://d/?path=sub/b.md"
    assert index.document("gamma") is None
    (docs / "u\u0308ber.md").write_text("# Notes\n\nText.\n")  # as a Mac names it
    index.index([docs])
    assert index.document("ÜBER.md") is not None


def test_title_and_heading_count_more_than_text(index: KnowledgeIndex, docs: Path) -> None:
    (docs / "c.md").write_text("# Other\n\nBeta and beta are words.\n")
    index.index([docs])
    assert index.search("beta")[0].document == "sub/b.md"


def test_the_same_text_is_found_once(index: KnowledgeIndex, docs: Path) -> None:
    for name in ("x.txt", "y.txt"):
        (docs / name).write_text("Identical penguins")
    index.index([docs])
    assert len(index.search("penguins")) == 1


def test_one_document_does_not_crowd_out_others(index: KnowledgeIndex, docs: Path) -> None:
    sections = "\n\n".join(f"## Walrus {n}\n\nA walrus {n}." for n in range(9))
    (docs / "walrus.md").write_text(f"# Walrus\n\n{sections}\n")
    (docs / "zoo.md").write_text("# Zoo\n\nAmong many other animals that live here there is also one walrus.\n")
    index.index([docs])
    found = [passage.document for passage in index.search("walrus", limit=6)]
    assert found == ["walrus.md"] * 3 + ["zoo.md"] + ["walrus.md"] * 2
    assert [passage.document for passage in index.search("walrus", limit=1)] == ["walrus.md"]


def test_any_text_is_a_query(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    for query in ["", " ", "?!", '"', "\0", "NEAR(", "a AND OR NOT", "text:*", "\ud800", "x" * 100_000]:
        assert isinstance(index.search(query), tuple)


def test_without_a_limit_nothing_is_limited(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    assert index.search("canteen", limit=0) == ()
    assert len(index.search("canteen deploys", limit=1)) == 1


def test_a_failing_statement_rolls_everything_back(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])

    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    (docs / "a.md").write_text("changed")
    with pytest.raises(KeyboardInterrupt):
        index.index([docs], progress=interrupt)
    assert index.search("canteen")
    assert index.index([docs]).changed == 1


def test_readers_continue_while_a_writer_indexes(index: KnowledgeIndex, docs: Path) -> None:
    index.index([docs])
    for n in range(150):
        (docs / f"n{n}.md").write_text(f"# Note {n}\n\n" + "The canteen again. " * 20)
    begun, read = threading.Event(), threading.Event()

    def pause(name: str) -> None:
        if name == "n99.md":
            begun.set()
            assert read.wait(20)

    writer = threading.Thread(target=index.index, args=([docs],), kwargs={"progress": pause})
    writer.start()
    assert begun.wait(20)
    found: list[int] = []
    readers = [threading.Thread(target=lambda: found.append(len(index.search("canteen noon")))) for _ in range(8)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join(20)
    read.set()
    writer.join(30)
    assert len(found) == 8
    assert all(found)
    assert len(index.documents()) == 152


def test_only_the_first_of_many_failures_are_kept_by_name(index: KnowledgeIndex, docs: Path) -> None:
    for n in range(MAX_FAILURES + 5):
        (docs / f"e{n:03}.md").touch()
    assert len(index.index([docs]).failed) == MAX_FAILURES + 5
    (state,) = index.states().values()
    assert (len(state.failed), state.failed[0], state.failures) == (100, ("e000.md", "is empty"), 105)


@pytest.mark.parametrize(
    "note", ["nonsense", "[]", "{}", '{"tried": 1, "failed": 3}', '{"tried": 1, "failed": [], "new": 1}', "null"]
)
def test_a_state_is_read_back_unchanged_and_an_empty_note_is_ignored(index: KnowledgeIndex, note: str) -> None:
    state = SourceState(tried=2.5, synced=1.5, seconds=0.5, read=3, size=4, failed=(("ä.md", "is empty"),), failures=8)
    with index.session() as session:
        tables.put_states(session, {"a": state, "b": state})
        tables.put_setting(session, "source:b", note)
    assert index.states() == {"a": state}


def test_each_sources_holdings_are_listed_without_reading_texts(index: KnowledgeIndex, docs: Path) -> None:
    (docs / "sub/b.md").write_text("# Beta\n\nUpdated: 2025-03-04\n\nText.\n")
    index.index([docs])
    assert index.holdings() == (
        Holding(source=str(docs), documents=2, passages=3, oldest="2025-03-04", newest="2026-01-02"),
    )

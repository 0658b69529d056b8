"""The knowledge tools: what they bring becomes sources."""

import asyncio
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.tools.builtin import knowledge
from agent.tools.builtin.knowledge import LIST_TITLE, SearchTool, knowledge_tools
from agent.tools.tool import Tool, ToolFailed, ToolResult
from agent.turn.loop import MAX_RESULT_CHARS
from verification.types import Source


@pytest.fixture
def tools(index: KnowledgeIndex, tmp_path: Path) -> dict[str, Tool]:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "a.md").write_text("# Alpha\n\nLast updated: 2026-01-02\n\n## Lunch\n\nThe canteen opens at noon.\n")
    index.index([folder], docs_url="https://docs.example")
    return {tool.spec.name: tool for tool in knowledge_tools(index)}


async def test_search_returns_one_source_per_run_of_lines(tools: dict[str, Tool]) -> None:
    assert await tools["search"].run({"query": "canteen"}) == ToolResult(
        content="Alpha (a.md, line 5, updated 2026-01-02)",
        sources=(
            Source(
                id=0,
                title="Alpha",
                url="https://docs.example/a.md#lunch",
                text="# Alpha\n\nLast updated: 2026-01-02\n\n## Lunch\n\nThe canteen opens at noon.",
                updated_at="2026-01-02",
                sections=(
                    (0, "https://docs.example/a.md#alpha", "Alpha"),
                    (35, "https://docs.example/a.md#lunch", "Alpha › Lunch"),
                ),
            ),
        ),
    )


async def test_a_passage_that_is_too_long_is_named(index: KnowledgeIndex, tmp_path: Path) -> None:
    for n in range(3):
        (tmp_path / f"{n}.md").write_text(f"# Page {n}\n\n{f'Kiwis ripen in {n} days. ' * 40}")
    index.index([tmp_path])
    search = knowledge_tools(index, source_tokens=300)[0]
    result = await search.run({"query": "kiwis"})
    assert len(result.sources) == 1
    assert result.content.count("Page ") == 3
    assert result.content.endswith("get_document reads one of them.")


@pytest.fixture
def canteen(tmp_path: Path) -> Iterator[SqliteIndex]:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/a.md").write_text("# Alpha\n\nThe canteen opens at noon.\n")
    for n in range(100):
        (tmp_path / f"docs/{n}.md").write_text(f"# Page {n}\n\nText.")
    with SqliteIndex.open(tmp_path / "index.db") as index:
        index.index([tmp_path / "docs"])
    with SqliteIndex(tmp_path / "index.db") as index:
        yield index


@pytest.mark.parametrize(("steps", "is_short"), [(500, True), (30, False)])
async def test_only_a_short_search_stays_in_the_event_loop(canteen: SqliteIndex, steps: int, is_short: bool) -> None:  # noqa: FBT001 - a parameter
    threads = set[int]()
    canteen.on_loop = SqliteIndex(canteen.path, max_steps=steps)
    with canteen.session() as session:
        assert isinstance(session, sqlite3.Connection)
        session.set_trace_callback(lambda _: threads.add(threading.get_ident()))
    for _ in range(20):  # the steps of earlier searches do not count
        result = await SearchTool(canteen).run({"query": "canteen"})
        assert [source.title for source in result.sources] == ["Alpha"]
        assert not (await SearchTool(canteen).run({"query": "elephants"})).sources
    assert bool(threads) == (not is_short)
    assert threading.get_ident() not in threads


async def test_a_locked_index_does_not_block_the_event_loop(canteen: SqliteIndex) -> None:
    with closing(sqlite3.connect(canteen.path)) as other:
        other.executescript("PRAGMA locking_mode = EXCLUSIVE; BEGIN IMMEDIATE; UPDATE totals SET passages = 1; COMMIT")
        async with asyncio.TaskGroup() as group:
            search = group.create_task(SearchTool(canteen).run({"query": "canteen"}))
            await asyncio.sleep(0)  # it meets the lock, and the loop is free to release it
            assert not search.done()
            other.close()
    assert [source.title for source in search.result().sources] == ["Alpha"]


async def test_a_result_says_that_more_was_found(index: KnowledgeIndex, tmp_path: Path) -> None:
    for n in range(5):
        (tmp_path / f"{n}.md").write_text(f"# Page {n}\n\nKiwis ripen in {n} days.")
    index.index([tmp_path])
    search = knowledge_tools(index)[0]
    few = await search.run({"query": "kiwis", "limit": 3})
    assert len(few.sources) == 3
    assert few.content.endswith("More passages fit this query. Narrower words, or a limit of up to 20, bring others.")
    assert "More passages" not in (await search.run({"query": "kiwis"})).content


async def test_an_empty_or_truncated_list_says_so(
    index: KnowledgeIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listing = {tool.spec.name: tool for tool in knowledge_tools(index)}["list_documents"]
    assert (await listing.run({})).content == "There are no documents yet."
    for n in range(3):
        (tmp_path / f"{n}.md").write_text(f"# D{n}")
        (tmp_path / f"{n}.md").write_text(f"# D{n}\n\ntext")
    index.index([tmp_path])
    monkeypatch.setattr(knowledge, "MAX_LISTED", 2)  # a limit, not behaviour
    assert (await listing.run({})).sources[0].text.endswith("\n- and 1 more")
    monkeypatch.setattr(knowledge, "MAX_TEXT_CHARS", 20)  # as above
    assert (await listing.run({})).sources[0].text.endswith("\n- and 2 more")


def test_the_turn_has_a_higher_limit_than_its_tools() -> None:
    assert MAX_RESULT_CHARS > knowledge.MAX_TEXT_CHARS + 500


async def test_nothing_found_is_a_result_with_hints(tools: dict[str, Tool]) -> None:
    result = await tools["search"].run({"query": "zebra", "limit": 3})
    assert (result.ok, result.sources, len(result.hints)) == (True, (), 1)
    with pytest.raises(ToolFailed, match="no document of that name") as failed:
        await tools["get_document"].run({"document": "gamma"})
    assert len(failed.value.hints) == 2


async def test_a_document_is_read_whole_or_says_that_it_was_cut(
    tools: dict[str, Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = await tools["list_documents"].run({})
    assert listed.sources == (Source(id=0, title=LIST_TITLE, text="- Alpha (a.md), updated 2026-01-02"),)
    assert listed.content.startswith("1 documents:\n- Alpha")
    result = await tools["get_document"].run({"document": "alpha"})
    assert result.content == "Alpha (a.md)"
    assert result.sources[0].url == "https://docs.example/a.md"
    assert result.sources[0].text.endswith("The canteen opens at noon.\n")
    monkeypatch.setattr(knowledge, "MAX_TEXT_CHARS", 10)  # a limit, not behaviour
    result = await tools["get_document"].run({"document": "a.md"})
    assert ("the first 10 of" in result.content, len(result.sources[0].text)) == (True, 10)

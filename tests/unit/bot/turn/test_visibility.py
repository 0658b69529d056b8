"""Details of an earlier turn are shown only to those who may see its sources now."""

from pathlib import Path
from typing import Any

import pytest

from agent.knowledge.index.sqlite import SqliteIndex
from agent.thread.conversation import Viewers
from bot.turn.job import Visibility

OPEN, CLOSED = (
    {"id": n, "title": f"Page {n}", "origin": "mcp", "audience": who} for n, who in ((1, "public"), (2, "U1"))
)
REMOVED = {"rule": "claim_supported", "text": "Ann earns 90,000."}


@pytest.mark.parametrize(("user", "seen", "removed"), [("U1", [1, 2], [REMOVED]), ("U2", [1], [])])
async def test_a_removed_sentence_is_shown_to_those_who_may_see_every_source(
    tmp_path: Path, user: str, seen: list[int], removed: list[dict[str, Any]]
) -> None:
    record = {
        "sources": [OPEN, CLOSED],
        "attempts": [{"objected": [REMOVED]}],
        "claims": [{"text": "A claim.", "passages": [{"source": 1}, {"source": 2}]}],
    }
    viewers = Viewers(team="T1", channel="D1", user=user)
    shown = await Visibility(SqliteIndex(tmp_path / "index")).visible_record(record, viewers)
    assert [source["id"] for source in shown["sources"]] == seen
    assert [passage["source"] for passage in shown["claims"][0]["passages"]] == seen
    assert shown["attempts"] == [{"objected": removed}]

"""One process at a time brings an index up to date; whoever dies lets go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.types import KnowledgeAwayError

HOLDER = """
import sys
from pathlib import Path
from agent.knowledge.index.postgres import PostgresIndex
from agent.knowledge.index.sqlite import SqliteIndex
where, schema = sys.argv[1:]
index = PostgresIndex(where, schema=schema) if schema else SqliteIndex.open(Path(where))
with index.alone("lock") as alone:
    print(alone, flush=True)
    sys.stdin.read()
"""


def test_d2_one_at_a_time_and_a_killed_one_lets_go(each_index: KnowledgeIndex, request: pytest.FixtureRequest) -> None:
    if isinstance(each_index, SqliteIndex):
        where = [str(each_index.path), ""]
    else:
        assert isinstance(each_index, PostgresIndex)
        where = [request.getfixturevalue("postgres_url"), each_index._schema]
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, *where], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with each_index.alone("lock", 0.1) as alone:
            assert not alone
        with each_index.alone("vectors") as alone:
            assert alone
        holder.kill()
        holder.wait()
        with each_index.alone("lock", 20) as alone:
            assert alone
    with each_index.alone("lock", float("inf")) as alone:
        assert alone


def test_d2_a_database_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    with (
        PostgresIndex(f"postgresql://nobody@/none?host={tmp_path}") as index,
        pytest.raises(KnowledgeAwayError),
        index.alone("lock"),
    ):
        pytest.fail("nothing holds that lock")

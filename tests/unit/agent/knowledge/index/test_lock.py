"""One process at a time brings an index up to date; whoever dies lets go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent.knowledge.index.lock import only_one_syncs
from agent.knowledge.types import KnowledgeAwayError

HOLDER = """
import sys
from pathlib import Path
from agent.knowledge.index.lock import only_one_syncs
with only_one_syncs(Path(sys.argv[1]), sys.argv[2], wait_s=0) as alone:
    print(alone, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("postgres_url")) if request.param == "postgres" else ""


def test_d2_one_at_a_time_and_a_killed_one_lets_go(tmp_path: Path, database: str) -> None:
    path = tmp_path / "home" / "knowledge.sqlite3"
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path), database], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"True\n"
        with only_one_syncs(path, database, wait_s=0.1) as alone:
            assert not alone
        holder.kill()
        holder.wait()
        with only_one_syncs(path, database, wait_s=20) as alone:
            assert alone
    with only_one_syncs(path, database, wait_s=float("inf")) as alone:
        assert alone


def test_d2_a_database_that_is_away_is_told_as_such(tmp_path: Path) -> None:
    with (
        pytest.raises(KnowledgeAwayError),
        only_one_syncs(tmp_path / "x", f"postgresql://nobody@/none?host={tmp_path}", wait_s=0),
    ):
        pytest.fail("nothing holds that lock")

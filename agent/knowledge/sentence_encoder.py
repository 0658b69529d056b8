"""Sentences become vectors: a BERT of the form of all-MiniLM-L6-v2 in plain numpy, mean pooling, length one.

Promises: the same text gives the same vector whatever it is encoded beside; the folder of a model is read only, and
mapped rather than loaded. Must never reach for a network, and is imported only where the extra ``semantic`` is used.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types
from tokenizers import Tokenizer

Vectors = NDArray[np.float32]
"""One row a text, each of length one."""

_TOKENS_AT_ONCE: Final = 1_024
_QUESTIONS_KEPT: Final = 256
_FEW_ROWS: Final = 64
_ROWS_AT_ONCE: Final = 32
_SEEN_BYTES: Final = 1 << 20
_TYPES: Final = {"F32": np.float32, "F16": np.float16}
_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun 7.1.26: within 1.5e-7, which is what a float32 holds."""
_ERF_P: Final = 0.3275911


class ModelFilesError(Exception):
    """The folder holds no model that can be used; the text says why, fit for the admin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layer:
    """Weights of one layer, each as ``(inputs, outputs)``; the query's are scaled for the dot product already."""

    qkv: Vectors
    qkv_bias: Vectors
    attended: tuple[Vectors, Vectors]
    attended_norm: tuple[Vectors, Vectors]
    wide: tuple[Vectors, Vectors]
    narrow: tuple[Vectors, Vectors]
    narrow_norm: tuple[Vectors, Vectors]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What ``config.json`` says."""

    layers: int
    heads: int
    epsilon: float
    most_tokens: int


class SentenceEncoder:
    """A model in memory. Any number of threads may use it."""

    def __init__(self, folder: Path) -> None:
        """Open the model in ``folder``: ``config.json``, ``model.safetensors``, ``tokenizer.json``.

        Raises ``ModelFilesError``.
        """
        # Two threads of BLAS on two cores that others use as well stand in each other's way: many times slower.
        threadpool_limits(limits=1, user_api="blas")
        self._shape = _shape(folder)
        self._tokenizer = _tokenizer(folder, self._shape.most_tokens)
        weights = _Weights(folder / "model.safetensors")
        self._words = weights.table("embeddings.word_embeddings.weight")
        self._places = weights.table("embeddings.position_embeddings.weight")
        self._places = self._places + weights.table("embeddings.token_type_embeddings.weight")[0]
        self._norm = weights.norm("embeddings.LayerNorm")
        self._layers = tuple(_layer(weights, number, self._shape.heads) for number in range(self._shape.layers))
        self.dimensions = int(self._words.shape[1])
        self.name = _name(folder, weights)
        self.question = lru_cache(maxsize=_QUESTIONS_KEPT)(self._question)

    def _question(self, text: str) -> Vectors:
        """The vector of one text, kept for when it is asked again."""
        vector: Vectors = self.encode([text])[0]
        return vector

    def encode(self, texts: Sequence[str]) -> Vectors:
        """A vector for each text. One that is longer than the model reads is cut."""
        tokens = [self._tokenizer.encode(text).ids for text in texts]
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        for batch in _batches([len(found) for found in tokens]):
            vectors[batch] = self._encoded([tokens[at] for at in batch])
        return vectors

    def _encoded(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        lengths = np.array([len(found) for found in tokens])
        width = int(lengths.max())
        ids = np.zeros((len(tokens), width), np.int64)
        for row, found in enumerate(tokens):
            ids[row, : len(found)] = found
        there = np.arange(width) < lengths[:, None]
        shown = _normed(self._words[ids] + self._places[:width], self._norm, self._shape.epsilon)
        for layer in self._layers:
            shown = self._through(layer, shown, there)
        pooled = np.einsum("bld,bl->bd", shown, there.astype(np.float32))
        lengths_of: Vectors = np.sqrt(np.einsum("bd,bd->b", pooled, pooled))[:, None]
        result: Vectors = pooled / np.maximum(lengths_of, 1e-12)
        return result

    def _through(self, layer: _Layer, shown: Vectors, there: NDArray[np.bool_]) -> Vectors:
        attended = _attended(layer, shown, there, self._shape.heads)
        shown = _normed(shown + _linear(attended, layer.attended), layer.attended_norm, self._shape.epsilon)
        wide = _linear(shown, layer.wide)
        _gelu(wide.reshape(-1, wide.shape[-1]))
        return _normed(shown + _linear(wide, layer.narrow), layer.narrow_norm, self._shape.epsilon)


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which texts go together: of like length, about ``_TOKENS_AT_ONCE`` tokens with what fills up the short ones."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lambda number: lengths[number]):
        if batch and (len(batch) + 1) * lengths[at] > _TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _attended(layer: _Layer, shown: Vectors, there: NDArray[np.bool_], heads: int) -> Vectors:
    """Every token mixed with those it looks at; what only fills up a short text is looked at by none."""
    count, width, size = shown.shape
    mixed = (_product(_flat(shown), layer.qkv) + layer.qkv_bias).reshape(count, width, 3, heads, size // heads)
    query, key, value = mixed.transpose(2, 0, 3, 1, 4)
    looks = query @ key.transpose(0, 1, 3, 2)
    if not there.all():
        looks += np.where(there, np.float32(0), np.float32(-1e9))[:, None, None, :]
    looks -= looks.max(axis=-1, keepdims=True)
    np.exp(looks, out=looks)
    looks /= looks.sum(axis=-1, keepdims=True)
    result: Vectors = (looks @ value).transpose(0, 2, 1, 3).reshape(count, width, size)
    return result


def _linear(shown: Vectors, weights: tuple[Vectors, Vectors]) -> Vectors:
    result = _product(_flat(shown), weights[0])
    result += weights[1]
    return result.reshape(*shown.shape[:2], -1)


def _product(rows: Vectors, weights: Vectors) -> Vectors:
    """``rows @ weights``; with few rows it takes a third less time turned round, as the weights lie in the file."""
    if len(rows) > _FEW_ROWS:
        return rows @ weights
    return np.ascontiguousarray((weights.T @ np.ascontiguousarray(rows.T)).T)


def _flat(shown: Vectors) -> Vectors:
    return shown.reshape(-1, shown.shape[-1])


def _normed(shown: Vectors, weights: tuple[Vectors, Vectors], epsilon: float) -> Vectors:
    shown = shown - shown.mean(axis=-1, keepdims=True)
    variance = np.einsum("bld,bld->bl", shown, shown)[..., None] / np.float32(shown.shape[-1])
    shown /= np.sqrt(variance + np.float32(epsilon))
    shown *= weights[0]
    shown += weights[1]
    return shown


def _gelu(rows: Vectors) -> None:
    """``x`` times the normal distribution's share below ``x``, in place; a few rows at a time stay in the cache."""
    for first in range(0, len(rows), _ROWS_AT_ONCE):
        x = rows[first : first + _ROWS_AT_ONCE]
        size = np.abs(x)
        z = size * np.float32(math.sqrt(0.5))
        t = np.reciprocal(z * np.float32(_ERF_P) + np.float32(1))
        tail = np.full_like(t, _ERF[-1])
        for coefficient in _ERF[-2::-1]:
            tail *= t
            tail += np.float32(coefficient)
        tail *= t
        z *= z
        np.negative(z, out=z)
        np.exp(z, out=z)
        tail *= z
        x += size
        tail *= size
        x -= tail
        x *= np.float32(0.5)


def _layer(weights: _Weights, number: int, heads: int) -> _Layer:
    inside = f"encoder.layer.{number}"
    parts = [weights.linear(f"{inside}.attention.self.{name}") for name in ("query", "key", "value")]
    scale = np.float32(1 / math.sqrt(parts[0][0].shape[1] // heads))
    parts[0] = (parts[0][0] * scale, parts[0][1] * scale)
    return _Layer(
        qkv=np.concatenate([weight.T for weight, _ in parts]).T,
        qkv_bias=np.concatenate([bias for _, bias in parts]),
        attended=weights.linear(f"{inside}.attention.output.dense"),
        attended_norm=weights.norm(f"{inside}.attention.output.LayerNorm"),
        wide=weights.linear(f"{inside}.intermediate.dense"),
        narrow=weights.linear(f"{inside}.output.dense"),
        narrow_norm=weights.norm(f"{inside}.output.LayerNorm"),
    )


class _Weights:
    """The tensors of one ``safetensors`` file: eight bytes of length, so much JSON, then the numbers."""

    def __init__(self, path: Path) -> None:
        try:
            data = np.memmap(path, np.uint8, "r")
            (length,) = struct.unpack("<Q", data[:8].tobytes())
            self._header: Mapping[str, Any] = json.loads(data[8 : 8 + length].tobytes())
        except (OSError, ValueError, struct.error) as error:
            message = f"{path} is no file of weights ({type(error).__name__})"
            raise ModelFilesError(message) from None
        self._path = path
        self._data = data[8 + length :]

    @property
    def fingerprint(self) -> bytes:
        """The header and the end of the file: reading all of it takes longer than opening it."""
        return json.dumps(self._header, sort_keys=True).encode() + self._data[-_SEEN_BYTES:].tobytes()

    def table(self, name: str) -> Vectors:
        """The tensor of that name, as it lies in the file."""
        try:
            entry = self._header[name]
            first, last = entry["data_offsets"]
            found = self._data[first:last].view(_TYPES[entry["dtype"]]).reshape(entry["shape"])
        except (KeyError, TypeError, ValueError) as error:
            message = f"{self._path} has no usable {name} ({type(error).__name__})"
            raise ModelFilesError(message) from None
        return np.asarray(found, np.float32)

    def linear(self, name: str) -> tuple[Vectors, Vectors]:
        """A layer's weights, turned round, and its bias."""
        return self.table(f"{name}.weight").T, self.table(f"{name}.bias")

    def norm(self, name: str) -> tuple[Vectors, Vectors]:
        """What a normed row is multiplied with, and what is added."""
        return self.table(f"{name}.weight"), self.table(f"{name}.bias")


def _name(folder: Path, weights: _Weights) -> str:
    """What tells this model from another: vectors of two models must not be compared."""
    seen = hashlib.sha256(weights.fingerprint)
    for file in ("config.json", "tokenizer.json"):
        seen.update((folder / file).read_bytes())
    return seen.hexdigest()[:16]


def _shape(folder: Path) -> _Shape:
    try:
        config = json.loads((folder / "config.json").read_bytes())
        limit = folder / "sentence_bert_config.json"
        most = (
            json.loads(limit.read_bytes())["max_seq_length"] if limit.is_file() else config["max_position_embeddings"]
        )
        if (config["model_type"], config["hidden_act"]) != ("bert", "gelu"):
            message = f"{folder} holds a model of another kind; one of the form of all-MiniLM-L6-v2 is needed"
            raise ModelFilesError(message)
        return _Shape(
            layers=int(config["num_hidden_layers"]),
            heads=int(config["num_attention_heads"]),
            epsilon=float(config["layer_norm_eps"]),
            most_tokens=min(int(most), int(config["max_position_embeddings"])),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{folder} has no usable config.json ({type(error).__name__})"
        raise ModelFilesError(message) from None


def _tokenizer(folder: Path, most_tokens: int) -> Tokenizer:
    path = folder / "tokenizer.json"
    try:
        text = path.read_text(encoding="utf-8")
        json.loads(text)["model"]["vocab"]  # what is wrong beyond this, the library says in its own words
    except (OSError, ValueError, KeyError, TypeError) as error:
        message = f"{path} is no tokenizer ({type(error).__name__})"
        raise ModelFilesError(message) from None
    tokenizer: Tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.enable_truncation(most_tokens)
    return tokenizer

"""Sentence vectors from a BERT of the form of all-MiniLM-L6-v2, in plain numpy: mean pooling, length one.

A question has some twenty tokens, and each of its products reads all of a layer's weights: laid in narrow blocks that
a core's cache holds, they take a third less time than as they lie in the file.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from agent.knowledge.semantic.model_files import Floats, Weights, name_of, shape_of, tokenizer_of

Vectors = Floats
"""One row a text, each of length one."""

_TOKENS_AT_ONCE: Final = 256
_QUESTIONS_KEPT: Final = 256
_BLOCK: Final = 32
"""Columns of a block of weights: OpenBLAS multiplies some twenty rows with it without rearranging it first."""
_NUMBERS_AT_ONCE: Final = 1 << 15
_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun 7.1.26: within 1.5e-7, which is what a float32 holds."""
_ERF_P: Final = 0.3275911


class _Linear(NamedTuple):
    """``blocks`` are ``(count, inputs, width)``, ``bias`` is ``(count, 1, width)``."""

    blocks: Floats
    bias: Floats

    def of(self, rows: Floats) -> Floats:
        """``(rows, inputs)`` become ``(count, rows, width)``: the outputs, block by block."""
        result: Floats = np.matmul(rows, self.blocks)
        result += self.bias
        return result


class _Norm(NamedTuple):
    scale: Floats
    shift: Floats
    epsilon: np.float32

    def of(self, rows: Floats) -> Floats:
        """``(rows, size)``, in place."""
        size = np.float32(rows.shape[-1])
        rows -= (np.add.reduce(rows, axis=-1) / size)[:, None]
        rows /= np.sqrt(np.vecdot(rows, rows) / size + self.epsilon)[:, None]
        rows *= self.scale
        rows += self.shift
        return rows


class _Layer(NamedTuple):
    """One layer; a block of ``mixed`` is a head of queries, keys or values, the queries scaled for the dot product."""

    mixed: _Linear
    attended: _Linear
    attended_norm: _Norm
    wide: _Linear
    narrow: _Linear
    narrow_norm: _Norm

    def through(self, shown: Floats, there: NDArray[np.bool_]) -> Floats:
        """``shown`` are the tokens of all texts in rows; ``there`` says, by text and token, which are none."""
        looked = _joined(_looked(self.mixed.of(shown), there))
        shown = self.attended_norm.of(_joined(self.attended.of(looked)) + shown)
        wide = self.wide.of(shown)
        _gelu(wide.reshape(-1))
        return self.narrow_norm.of(_joined(self.narrow.of(_joined(wide))) + shown)


class SentenceEncoder:
    """A model in memory. Any number of threads may use it."""

    def __init__(self, folder: Path) -> None:
        """Open the model in ``folder``: ``config.json``, ``model.safetensors``, ``tokenizer.json``.

        Raises ``ModelFilesError``.
        """
        # Two threads of BLAS on two cores that others use as well stand in each other's way: many times slower.
        threadpool_limits(limits=1, user_api="blas")
        shape = shape_of(folder)
        self._tokenizer = tokenizer_of(folder, shape.most_tokens)
        weights = Weights(folder / "model.safetensors")
        self._words = weights.table("embeddings.word_embeddings.weight")
        types = weights.table("embeddings.token_type_embeddings.weight")
        self._places = weights.table("embeddings.position_embeddings.weight") + types[0]
        norm = partial(_norm, weights, np.float32(shape.epsilon))
        self._norm = norm("embeddings.LayerNorm")
        layers = (f"encoder.layer.{number}" for number in range(shape.layers))
        self._layers = tuple(
            _Layer(
                mixed=_mixed(weights, f"{layer}.attention.self", shape.heads),
                attended=_linear(*weights.linear(f"{layer}.attention.output.dense"), _BLOCK),
                attended_norm=norm(f"{layer}.attention.output.LayerNorm"),
                wide=_linear(*weights.linear(f"{layer}.intermediate.dense"), _BLOCK),
                narrow=_linear(*weights.linear(f"{layer}.output.dense"), _BLOCK),
                narrow_norm=norm(f"{layer}.output.LayerNorm"),
            )
            for layer in layers
        )
        self.dimensions = int(self._words.shape[1])
        self.name = name_of(folder, weights)
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
        shown = self._norm.of((self._words[ids] + self._places[:width]).reshape(-1, self.dimensions))
        for layer in self._layers:
            shown = layer.through(shown, there)
        pooled = np.einsum("bld,bl->bd", shown.reshape(*ids.shape, -1), there.astype(np.float32))
        lengths_of: Vectors = np.sqrt(np.einsum("bd,bd->b", pooled, pooled))[:, None]
        result: Vectors = pooled / np.maximum(lengths_of, 1e-12)
        return result


def _batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Which texts go together: of like length, about ``_TOKENS_AT_ONCE`` tokens with what fills up the short ones."""
    batch: list[int] = []
    for at in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[at] > _TOKENS_AT_ONCE:
            yield batch
            batch = []
        batch.append(at)
    if batch:
        yield batch


def _looked(mixed: Floats, there: NDArray[np.bool_]) -> Floats:
    """Every token mixed with those it looks at, by head; what only fills up a short text is looked at by none."""
    query, key, value = mixed.reshape(3, -1, *there.shape, mixed.shape[-1])
    looks = query @ key.swapaxes(-1, -2)
    if not there.all():
        looks += np.where(there, np.float32(0), np.float32(-1e9))[:, None, :]
    looks -= looks.max(axis=-1, keepdims=True)
    np.exp(looks, out=looks)
    looks /= looks.sum(axis=-1, keepdims=True)
    result: Floats = looks @ value
    return result.reshape(len(value), -1, mixed.shape[-1])


def _joined(blocks: Floats) -> Floats:
    """``(count, rows, width)`` become ``(rows, count * width)``."""
    return blocks.swapaxes(0, 1).reshape(blocks.shape[1], -1)


def _gelu(numbers: Floats) -> None:
    """Each times the normal distribution's share below it, in place; so many at a time that they stay in the cache."""
    for first in range(0, len(numbers), _NUMBERS_AT_ONCE):
        x = numbers[first : first + _NUMBERS_AT_ONCE]
        size = np.abs(x)
        t = np.reciprocal(size * np.float32(_ERF_P * math.sqrt(0.5)) + np.float32(1))
        tail = t * np.float32(_ERF[-1] / 2)
        for coefficient in _ERF[-2::-1]:
            tail += np.float32(coefficient / 2)
            tail *= t
        tail *= size
        size *= size
        size *= np.float32(-0.5)
        tail *= np.exp(size, out=size)
        np.maximum(x, np.float32(0), out=x)
        x -= tail


def _mixed(weights: Weights, name: str, heads: int) -> _Linear:
    """Queries, keys and values in one."""
    (query, query_bias), *others = (weights.linear(f"{name}.{part}") for part in ("query", "key", "value"))
    width = len(query_bias) // heads
    scale = np.float32(1 / math.sqrt(width))
    parts = ((query * scale, query_bias * scale), *others)
    return _linear(np.concatenate([weight for weight, _ in parts]), np.concatenate([bias for _, bias in parts]), width)


def _linear(weight: Floats, bias: Floats, width: int) -> _Linear:
    """Blocks of ``width`` columns out of ``(outputs, inputs)``; of fewer, where that does not divide the outputs."""
    width = math.gcd(len(bias), width)
    blocks = np.ascontiguousarray(weight.reshape(-1, width, weight.shape[1]).transpose(0, 2, 1))
    return _Linear(blocks, bias.reshape(-1, 1, width))


def _norm(weights: Weights, epsilon: np.float32, name: str) -> _Norm:
    return _Norm(weights.table(f"{name}.weight"), weights.table(f"{name}.bias"), epsilon)

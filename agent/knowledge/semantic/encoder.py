"""Sentence vectors from a BERT of the form of all-MiniLM-L6-v2, in plain numpy: mean pooling, length one.

A question has some twenty tokens, and each of its products reads all of a layer's weights: laid in narrow blocks that
a core's cache holds, they take a third less time than as they lie in the file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it ships no types

from agent.knowledge.semantic.model_files import Floats, Shape, Weights, name_of, shape_of, tokenizer_of

Vectors = Floats  # one row a text, each of length one

_TOKENS_AT_ONCE: Final = 256
_QUESTIONS_KEPT: Final = 256
_BLOCK: Final = 32  # columns of weights that OpenBLAS multiplies with some twenty rows as they lie
_NUMBERS_AT_ONCE: Final = 1 << 15
_ERF: Final = (0.254829592, -0.284496736, 1.421413741, -1.453152027, 1.061405429)
"""Abramowitz and Stegun 7.1.26: within 1.5e-7, which is what a float32 holds."""
_ERF_P: Final = 0.3275911


Linear = Callable[[Floats], Floats]  # `(rows, inputs)` become `(count, rows, width)`: the outputs, block by block
Norm = Callable[[Floats], Floats]  # each row of `(rows, size)` normed, in place
Layer = Callable[[Floats, NDArray[np.bool_]], Floats]
"""Takes the tokens of all texts in rows, and by text and token, which are there and do not only fill up."""


class SentenceEncoder:
    """A model in memory. Any number of threads may use it."""

    def __init__(self, folder: Path) -> None:
        """Open the model in ``folder``: config.json, model.safetensors, tokenizer.json. Raises ``ModelFilesError``."""
        # Two threads of BLAS on two cores that others use as well stand in each other's way: many times slower.
        threadpool_limits(limits=1, user_api="blas")
        shape = shape_of(folder)
        self._tokenizer = tokenizer_of(folder, shape.most_tokens)
        weights = Weights(folder / "model.safetensors")
        self._words = weights.table("embeddings.word_embeddings.weight")
        types = weights.table("embeddings.token_type_embeddings.weight")
        self._places = weights.table("embeddings.position_embeddings.weight") + types[0]
        self._norm = _norm(weights, "embeddings.LayerNorm", shape.epsilon)
        self._layers = [_layer(weights, f"encoder.layer.{number}", shape) for number in range(shape.layers)]
        self.dimensions = int(self._words.shape[1])
        self.name = name_of(folder, weights)
        self.question = lru_cache(maxsize=_QUESTIONS_KEPT)(self._question)

    def _question(self, text: str) -> Vectors:
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
        shown = self._norm((self._words[ids] + self._places[:width]).reshape(-1, self.dimensions))
        for layer in self._layers:
            shown = layer(shown, there)
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


def _layer(weights: Weights, name: str, shape: Shape) -> Layer:
    """A block of ``mixed`` is a head of queries, keys or values, the queries scaled for the dot product."""
    parts = [weights.linear(f"{name}.attention.self.{part}") for part in ("query", "key", "value")]
    width = len(parts[0][1]) // shape.heads
    scale = np.float32(1 / math.sqrt(width))
    scaled = [(parts[0][0] * scale, parts[0][1] * scale), *parts[1:]]
    mixed = _linear(
        np.concatenate([weight for weight, _ in scaled]), np.concatenate([bias for _, bias in scaled]), width
    )
    attended = _linear(*weights.linear(f"{name}.attention.output.dense"), _BLOCK)
    attended_norm = _norm(weights, f"{name}.attention.output.LayerNorm", shape.epsilon)
    widened = _linear(*weights.linear(f"{name}.intermediate.dense"), _BLOCK)
    narrowed = _linear(*weights.linear(f"{name}.output.dense"), _BLOCK)
    narrowed_norm = _norm(weights, f"{name}.output.LayerNorm", shape.epsilon)

    def through(shown: Floats, there: NDArray[np.bool_]) -> Floats:
        looked = _joined(_looked(mixed(shown), there))
        shown = attended_norm(_joined(attended(looked)) + shown)
        wide = widened(shown)
        _gelu(wide.reshape(-1))
        return narrowed_norm(_joined(narrowed(_joined(wide))) + shown)

    return through


def _linear(weight: Floats, bias: Floats, width: int) -> Linear:
    """Blocks of ``width`` columns out of ``(outputs, inputs)``; of fewer, where that does not divide the outputs."""
    width = math.gcd(len(bias), width)
    blocks = np.ascontiguousarray(weight.reshape(-1, width, weight.shape[1]).transpose(0, 2, 1))
    biases = bias.reshape(-1, 1, width)

    def of(rows: Floats) -> Floats:
        result: Floats = np.matmul(rows, blocks)
        result += biases
        return result

    return of


def _norm(weights: Weights, name: str, epsilon: float) -> Norm:
    scale, shift = weights.table(f"{name}.weight"), weights.table(f"{name}.bias")
    least = np.float32(epsilon)

    def of(rows: Floats) -> Floats:
        size = np.float32(rows.shape[-1])
        rows -= (np.add.reduce(rows, axis=-1) / size)[:, None]
        rows /= np.sqrt(np.vecdot(rows, rows) / size + least)[:, None]
        rows *= scale
        rows += shift
        return rows

    return of

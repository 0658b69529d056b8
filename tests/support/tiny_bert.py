"""A hand-made model of the form of all-MiniLM-L6-v2: the same files, a few kilobytes, weights drawn from a seed.

``write_model`` lays its folder; ``plainly`` reads the same files and follows the architecture word by word, one text at
a time and without any trick, so that the fast way has something to be held to. Its vectors mean nothing, but texts with
the same words are near each other.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

Numbers = NDArray[np.float64]
SIZE, HEADS, LAYERS, WIDE, LONGEST = 16, 4, 2, 32, 24
WORDS = """
the a of to in and is how much may i spend on hotel night travel expenses limit euros lunch canteen coffee laptop
password reset access badge door holiday leave days year sick note doctor ##s ##ing ##ed . , ? !
""".split()  # noqa: SIM905 - words read better as words


def write_model(folder: Path, *, seed: int = 7, dtype: str = "F32", **config: Any) -> Path:
    """The folder of a model. ``config`` takes the place of what ``config.json`` would say."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *(chr(code) for code in range(97, 123) if code != 97)]
    vocabulary = list(dict.fromkeys([*vocabulary, *(f"##{chr(code)}" for code in range(97, 123))]))
    _write_tokenizer(folder, vocabulary)
    said = {
        "model_type": "bert",
        "hidden_act": "gelu",
        "hidden_size": SIZE,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "intermediate_size": WIDE,
        "layer_norm_eps": 1e-12,
        "max_position_embeddings": 2 * LONGEST,
    }
    (folder / "config.json").write_text(json.dumps(said | config))
    (folder / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": LONGEST}))
    draw = np.random.default_rng(seed)
    tensors = {
        name: draw.normal(1 if name.endswith("LayerNorm.weight") else 0, 0.2, shape).astype(
            "<f4" if dtype == "F32" else "<f2"
        )
        for name, shape in _shapes(len(vocabulary))
    }
    _write_tensors(folder / "model.safetensors", tensors, dtype)
    return folder


def _write_tokenizer(folder: Path, vocabulary: list[str]) -> None:
    numbers = {word: number for number, word in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.WordPiece(vocab=numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    special = [("[CLS]", numbers["[CLS]"]), ("[SEP]", numbers["[SEP]"])]
    tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer.enable_padding(length=LONGEST)  # as in the published file: a reader of single texts must turn it off
    tokenizer.save(str(folder / "tokenizer.json"))


def _shapes(words: int) -> Iterable[tuple[str, tuple[int, ...]]]:
    yield "embeddings.word_embeddings.weight", (words, SIZE)
    yield "embeddings.position_embeddings.weight", (2 * LONGEST, SIZE)
    yield "embeddings.token_type_embeddings.weight", (2, SIZE)
    linear = [(f"attention.self.{name}", SIZE, SIZE) for name in ("query", "key", "value")]
    linear += [("attention.output.dense", SIZE, SIZE), ("intermediate.dense", WIDE, SIZE), ("output.dense", SIZE, WIDE)]
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        inside = f"encoder.layer.{layer}"
        for name, outputs, inputs in linear:
            yield f"{inside}.{name}.weight", (outputs, inputs)
            yield f"{inside}.{name}.bias", (outputs,)
        norms += [f"{inside}.attention.output.LayerNorm", f"{inside}.output.LayerNorm"]
    for name in norms:
        yield f"{name}.weight", (SIZE,)
        yield f"{name}.bias", (SIZE,)


def _write_tensors(path: Path, tensors: dict[str, NDArray[Any]], dtype: str) -> None:
    header, at = {}, 0
    for name, tensor in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [at, at + tensor.nbytes]}
        at += tensor.nbytes
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    path.write_bytes(struct.pack("<Q", len(head)) + head + b"".join(tensor.tobytes() for tensor in tensors.values()))


def read_tensors(path: Path) -> dict[str, Numbers]:
    """Every tensor of the file."""
    data = path.read_bytes()
    (length,) = struct.unpack("<Q", data[:8])
    found = {}
    for name, entry in json.loads(data[8 : 8 + length]).items():
        first, last = (8 + length + offset for offset in entry["data_offsets"])
        kind = {"F32": "<f4", "F16": "<f2"}[entry["dtype"]]
        found[name] = np.frombuffer(data[first:last], kind).reshape(entry["shape"]).astype(np.float64)
    return found


def plainly(folder: Path, text: str) -> Numbers:
    """The vector of one text, by the book."""
    tensors = read_tensors(folder / "model.safetensors")
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(LONGEST)
    shown = np.array(
        [
            tensors["embeddings.word_embeddings.weight"][word]
            + tensors["embeddings.position_embeddings.weight"][place]
            + tensors["embeddings.token_type_embeddings.weight"][0]
            for place, word in enumerate(tokenizer.encode(text).ids)
        ]
    )
    shown = _norm(shown, tensors, "embeddings.LayerNorm")
    for layer in range(LAYERS):
        inside = f"encoder.layer.{layer}"
        query, key, value = (
            _dense(shown, tensors, f"{inside}.attention.self.{name}") for name in ("query", "key", "value")
        )
        mixed = np.zeros_like(shown)
        share = SIZE // HEADS
        for head in range(HEADS):
            part = slice(head * share, (head + 1) * share)
            looks = np.exp(query[:, part] @ key[:, part].T / math.sqrt(share))
            mixed[:, part] = looks / looks.sum(axis=1, keepdims=True) @ value[:, part]
        shown = _norm(
            shown + _dense(mixed, tensors, f"{inside}.attention.output.dense"),
            tensors,
            f"{inside}.attention.output.LayerNorm",
        )
        wide = _dense(shown, tensors, f"{inside}.intermediate.dense")
        wide *= np.vectorize(lambda x: 0.5 * (1 + math.erf(x / math.sqrt(2))))(wide)
        shown = _norm(shown + _dense(wide, tensors, f"{inside}.output.dense"), tensors, f"{inside}.output.LayerNorm")
    pooled = shown.mean(axis=0)
    result: Numbers = pooled / np.linalg.norm(pooled)
    return result


def _dense(shown: Numbers, tensors: dict[str, Numbers], name: str) -> Numbers:
    result: Numbers = shown @ tensors[f"{name}.weight"].T + tensors[f"{name}.bias"]
    return result


def _norm(shown: Numbers, tensors: dict[str, Numbers], name: str) -> Numbers:
    centred = shown - shown.mean(axis=1, keepdims=True)
    result: Numbers = centred / np.sqrt((centred**2).mean(axis=1, keepdims=True) + 1e-12)
    return result * tensors[f"{name}.weight"] + tensors[f"{name}.bias"]

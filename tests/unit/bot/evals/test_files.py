"""Labelled rows are read unchanged, and faulty ones are refused with file and line."""

import json
from pathlib import Path

import pytest
from pydantic import Field

from bot.errors import WrongUse
from bot.evals.rows import Row, Sources, Text, percentile, read_rows, share


class Made(Row):
    text: str = "-"
    passes: bool = True
    note: Text = ""
    sources: Sources = Field(default_factory=list)


SOURCE = {"id": 1, "text": "It cools."}


def test_blank_lines_are_skipped_and_half_characters_are_replaced(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 7, "text": "half \\ud83d", "note": null}\n\n{"id": "x", "passes": false, "more": 1}\n')
    first, second = read_rows(path, Made)
    assert (first.id, first.text, first.note, second.id, second.passes) == ("7", "half ?", "", "x", False)


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b'{"a": NaN}', b"\xff\xfe", b'{"a":' * 100_000])
def test_line_other_than_an_object_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": 1}\n' + line + b"\n")
    with pytest.raises(WrongUse, match=r"rows\.jsonl, line 2"):
        list(read_rows(path, Made))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"id": None}, "'id'"),
        ({"id": True}, "'id'"),
        ({"id": 1.5}, "'id'"),
        ({"text": 3}, "'text'"),
        ({"passes": 1}, "'passes'"),
        ({"note": 3}, "'note'"),
        ({"sources": {}}, "'sources'"),
        ({"sources": ["x"]}, r"'sources\.0'"),
        ({"sources": [SOURCE, {"id": 2, "text": 3}]}, r"'sources\.1\.text'"),
        ({"sources": [{"id": True, "text": "x"}]}, r"'sources\.0\.id'"),
        ({"sources": [{"id": 1, "text": " "}]}, "without a text"),
        ({"sources": [SOURCE, SOURCE]}, "two sources have the id 1"),
    ],
)
def test_a_malformed_field_is_named(fields: dict[str, object], said: str, tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(json.dumps({"id": "a", **fields}))
    with pytest.raises(WrongUse, match=rf"f\.jsonl, line 1: .*{said}"):
        list(read_rows(path, Made))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="cannot read"):
        list(read_rows(tmp_path, Made))


def test_shares_and_percentiles_of_nothing_are_zero() -> None:
    assert (share(0, 0), share(1, 3), percentile([], 0.5)) == (0.0, 0.3333, 0.0)
    assert (percentile([3, 1, 2], 0.5), percentile([3, 1, 2], 0.95), percentile([5], 1.0)) == (2, 3, 5)

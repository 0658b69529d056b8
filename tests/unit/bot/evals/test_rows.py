"""Labelled rows: read as they stand, refused with file and line where they are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bot.errors import WrongUse
from bot.evals.rows import Row, percentile, read_rows, share

READERS: dict[str, Callable[[Row], object]] = {
    "id": Row.identity,
    "text": lambda row: row.text("text"),
    "passes": lambda row: row.flag("passes"),
    "expect": lambda row: row.texts("expect"),
}


def test_f8_rows_come_with_their_place_and_blank_lines_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"id": 7, "text": "a", "expect": ["b"], "passes": false}\n\n{"id": "x", "expect": null}\n')
    first, second = read_rows(path)
    assert (first.identity(), first.text("text"), first.texts("expect"), first.flag("passes")) == (
        "7",
        "a",
        ("b",),
        False,
    )
    assert (second.place, second.identity(), second.texts("expect")) == (f"{path}, line 3", "x", None)
    assert second.text("question", "") == ""


@pytest.mark.parametrize("line", [b"{", b"[]", b"3", b'{"a": NaN}', b"\xff\xfe", b'{"a":' * 100_000])
def test_f8_a_line_that_is_no_object_is_named(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"id": 1}\n' + line + b"\n")
    with pytest.raises(WrongUse, match=r"rows\.jsonl, line 2"):
        list(read_rows(path))


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("id", {}),
        ("id", {"id": True}),
        ("id", {"id": 1.5}),
        ("text", {}),
        ("text", {"text": 3}),
        ("passes", {}),
        ("passes", {"passes": 1}),
        ("expect", {}),
        ("expect", {"expect": "x"}),
        ("expect", {"expect": []}),
        ("expect", {"expect": [""]}),
        ("expect", {"expect": [1]}),
    ],
)
def test_f8_a_field_of_the_wrong_form_is_named(name: str, fields: dict[str, object]) -> None:
    with pytest.raises(WrongUse, match=rf"f\.jsonl, line 4: '{name}'"):
        READERS[name](Row(place="f.jsonl, line 4", fields=fields))


def test_f8_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(WrongUse, match="cannot read"):
        list(read_rows(tmp_path))


def test_f8_shares_and_percentiles_of_nothing_are_zero() -> None:
    assert (share(0, 0), share(1, 3), percentile([], 0.5)) == (0.0, 0.3333, 0.0)
    assert (percentile([3, 1, 2], 0.5), percentile([3, 1, 2], 0.95), percentile([5], 1.0)) == (2, 3, 5)

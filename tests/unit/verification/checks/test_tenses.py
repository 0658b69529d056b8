"""What is still to come told as done is suspected; what the page has as done, or the claim as to come, is not."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source


def is_suspected(source: str, text: str) -> bool:
    found = check(Draft(text=f"{text} [1].", sources=(Source(id=1, title="", text=source),))).violations
    return any("still to come" in each.detail for each in found)


@pytest.mark.parametrize(
    ("source", "text", "suspected"),
    [
        ("The v2 API will be switched off in June.", "The v2 API was switched off in June", True),
        ("The old parser may be removed in 5.0.", "The old parser has been removed in 5.0", True),
        ("The certificates have not been checked.", "The certificates were checked", True),
        ("The v2 API will be switched off in June.", "The v2 API will be switched off in June", False),
        ("The v2 API will be switched off in June.", "The v2 API was planned to be switched off in June", False),
        ("The v2 API was switched off, v1 will be switched off too.", "The v2 API was switched off", False),
        ("The v2 API will be switched off in June.", "The v2 API was praised in June", False),
        ("The kettle will be cleaned by hand.", "The lamp shop on the corner was cleaned", False),
        ("Die v2-API wird im Juni abgeschaltet.", "Die v2-API wurde im Juni abgeschaltet", False),
    ],
)
def test_f1_what_is_to_come_told_as_done_is_a_suspicion(source: str, text: str, suspected: bool) -> None:  # noqa: FBT001 - a column of the table
    assert is_suspected(source, text) is suspected

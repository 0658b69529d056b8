"""A command whose head was altered, written without back-ticks."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Draft, Source, Violation

PAGE = (
    "Rotate the secret with `vaultctl rotate <path>` first. Then run `rota swap --week 2026-W48`. The rota is public."
)


def errors(text: str, page: str = PAGE) -> tuple[Violation, ...]:
    return check(Draft(text=text, sources=(Source(id=1, title="", text=page),))).errors


@pytest.mark.parametrize(
    "text",
    [
        "| what |\n|---|\n| Rotate the secret with vaultctl rotate first [1]. |",
        "Then run rota swap, the rotas are open [1].",
        "The open rota-based swap is run then [1].",
        "Then run rotas swap [1].",
    ],
)
def test_the_command_itself_and_other_words_pass(text: str) -> None:
    assert errors(text) == ()


def test_name_that_the_source_has_as_well_passes() -> None:
    assert errors("Then run rota2 swap [1].", f"{PAGE} On the new host it is rota2.") == ()


def test_only_the_first_commands_near_a_claim_are_looked_at() -> None:
    many = " ".join(f"Run `tool{'x' * number} go`." for number in range(40))
    assert errors("Run tool-2 go [1].", many) != ()

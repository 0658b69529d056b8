"""Claims that are a sentence of their source but for a negation; and negations that words cannot tell."""

from __future__ import annotations

from verification.claims.claims import claims
from verification.grounding import check_claims, read_basis
from verification.types import Draft, Source, Violation


def violations_of(source: str, claim: str, *, judged: bool = False) -> tuple[Violation, ...]:
    text = f"{claim} [1]"
    draft = Draft(text=text, sources=(Source(id=1, title="", text=source),), has_judge=judged)
    return check_claims(read_basis(draft, text), claims(text))[1]


def test_negation_more_or_less_is_an_error_where_no_judge_is_asked() -> None:
    for source, claim in [
        ("Deploys are allowed on Friday.", "Deploys are not allowed on Friday."),
        ("The door must not be opened by visitors.", "The door must be opened by visitors."),
        ("The service doesn't restart by itself.", "The service does restart by itself."),
        ("Der Zugang ist am Sonntag erlaubt und kostenlos.", "Der Zugang ist am Sonntag nicht erlaubt und kostenlos."),
        ("El acceso a la sala está permitido.", "El acceso a la sala no está permitido."),
    ]:
        (violation,) = violations_of(source, claim)
        assert violation.severity == "error"
        assert source in violation.detail
        assert [each.severity for each in violations_of(source, claim, judged=True)] == ["warning"]
        assert violations_of(source, source) == ()

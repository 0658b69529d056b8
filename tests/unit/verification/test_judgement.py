"""What a judge said, merged into a verdict: it fails closed at every turn."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.feedback import retry_text
from verification.judgement import (
    UNCONFIRMED,
    Judgement,
    carried,
    judged,
    only_unconfirmed,
    open_claims,
    without_unconfirmed,
)
from verification.types import Claim, Draft, Source, Verdict

SOURCES = (
    Source(
        id=1, title="Kiln › Vents", text="Keep the **vent** open until\nthe cones have fallen.\n\nGlaze dries slowly."
    ),
    Source(id=2, title="Door", text="The door stays shut while the kiln is hot."),
    Source(id=3, title="窯", text="作品は三日間乾かします。"),
)
FAR_OFF = "Nobody should hurry anything along near such heavy machinery [1]."
ALSO_FAR = "Patience is what every newcomer learns before touching levers [2]."


def verdict_of(text: str = f"{FAR_OFF} {ALSO_FAR}") -> Verdict:
    verdict = check(Draft(text=text, sources=SOURCES))
    assert verdict.passed
    return verdict


def yes(claim: int, evidence: str = "Keep the vent open until the cones have fallen.") -> Judgement:
    return Judgement(claim=claim, supported=True, evidence=evidence)


def test_f6_the_claims_that_only_a_judge_can_decide_are_open() -> None:
    assert [claim.text for claim in open_claims(verdict_of())] == [FAR_OFF, ALSO_FAR]
    assert open_claims(verdict_of("The door stays shut while the kiln is hot [2].")) == ()


def test_f6_a_judgement_with_evidence_settles_the_suspicion() -> None:
    before = verdict_of()
    after = judged(before, [yes(1), yes(2, "The door stays shut")], SOURCES)
    assert after.passed
    assert [claim.supported for claim in after.claims] == ["yes", "yes"]
    assert not [v for v in after.violations if v.rule == "claim_supported"]
    assert (after.text, after.chunks) == (before.text, before.chunks)


def test_f6_not_supported_is_an_error_that_tells_the_reason() -> None:
    refuted = Judgement(claim=2, supported=False, reason="The source\nspeaks of a door " + "x" * 500)
    after = judged(verdict_of(), [yes(1), refuted], SOURCES)
    (error,) = after.errors
    assert not after.passed
    assert (error.rule, error.words) == ("claim_supported", ALSO_FAR)
    assert after.text[error.start : error.end] == ALSO_FAR
    assert error.detail.startswith("The judge finds that [2] does not say this: The source speaks of a door")
    assert len(error.detail) < 300
    assert [claim.supported for claim in after.claims] == ["yes", "no"]
    assert "speaks of a door" in retry_text(without_unconfirmed(after), SOURCES)


def test_f6_not_supported_without_a_reason_is_an_error_all_the_same() -> None:
    after = judged(verdict_of(), [yes(1), Judgement(claim=2, supported=False)], SOURCES)
    assert [error.detail for error in after.errors] == ["The judge finds that [2] does not say this."]


@pytest.mark.parametrize(
    "said",
    [
        [],
        [yes(7)],
        [yes(0)],
        [yes(1), yes(1)],
        [yes(1), Judgement(claim=1, supported=False)],
        [yes(1, "")],
        [yes(1, "Keep")],
        [yes(1, " … ")],
        [yes(1, "Keep the vent shut until the cones have fallen.")],
        [yes(1, "The door stays shut while the kiln is hot.")],
        [yes(1, "eep the vent open until the cones")],
        [yes(1, "Keep the vent open … while the kiln is hot")],
    ],
    ids=[
        "silence", "another", "zero", "twice", "contradiction", "none", "short", "dots", "altered", "elsewhere",
        "cut word", "half",
    ],
)  # fmt: skip
def test_f5_whatever_is_no_sound_judgement_leaves_the_claim_unconfirmed(said: list[Judgement]) -> None:
    after = judged(verdict_of(FAR_OFF), said, SOURCES)
    assert [error.detail for error in after.errors] == [UNCONFIRMED]
    assert not after.passed
    assert only_unconfirmed(after)
    assert [claim.supported for claim in after.claims] == ["open"]
    assert without_unconfirmed(after).errors == ()


@pytest.mark.parametrize(
    "evidence",
    [
        "keep the vent open until the cones have fallen",
        "Keep the … the cones have fallen",
        "Keep the vent open until\nthe cones have fallen",
        "Keep the vent [...] Glaze dries slowly.",
        "Kiln › Vents … Glaze dries slowly",
    ],
)
def test_f6_marks_line_ends_and_omissions_do_not_spoil_the_evidence(evidence: str) -> None:
    assert judged(verdict_of(FAR_OFF), [yes(1, evidence)], SOURCES).passed


def test_f6_evidence_without_spaces_is_found_too() -> None:
    claim = Claim(text="急いではいけません[3]。", start=0, end=13, cited=(3,), supported="open")
    open_verdict = Verdict(passed=True, text=claim.text, claims=(claim,))
    assert judged(open_verdict, [yes(1, "三日間乾かします")], SOURCES).passed
    assert not judged(open_verdict, [yes(1, "五日間乾かします")], SOURCES).passed


def test_f6_a_claim_the_rules_decided_is_not_up_for_judgement() -> None:
    verdict = check(Draft(text="The door stays shut for 9 hours [2].", sources=SOURCES))
    assert judged(verdict, [yes(1)], SOURCES) == verdict
    assert not only_unconfirmed(verdict)
    assert not only_unconfirmed(verdict_of())


def test_f4_what_was_confirmed_stays_so_in_the_shortened_text() -> None:
    whole = judged(verdict_of(), [yes(1)], SOURCES)
    kept = verdict_of(FAR_OFF)
    after = carried(kept, whole)
    assert open_claims(after) == ()
    assert not [v for v in after.violations if v.rule == "claim_supported"]
    assert open_claims(carried(verdict_of(ALSO_FAR), whole)) != ()


JUDGEMENTS = st.builds(
    Judgement, claim=st.integers(-1, 4), supported=st.booleans(), evidence=st.text(max_size=30), reason=st.text()
)


@given(st.lists(JUDGEMENTS, max_size=5))
def test_f5_made_up_evidence_never_passes(said: list[Judgement]) -> None:
    after = judged(verdict_of(), said, SOURCES)
    assert not after.passed
    assert len(after.errors) == 2

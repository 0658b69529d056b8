"""A judge's opinions applied to a verdict: it fails closed."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.feedback import retry_text
from verification.judgement import (
    NO_LINE,
    UNCONFIRMED,
    Judgement,
    Line,
    apply_judgements,
    claim_key,
    claims_to_judge,
    only_unconfirmed,
    open_claims,
    without_unconfirmed,
)
from verification.markup.lines import source_lines
from verification.types import Draft, Source, Verdict

SOURCES = (
    Source(
        id=1,
        title="Kiln › Vents",
        text="Keep the **vent** open until\n\nthe cones have fallen.\n \nGlaze dries slowly.",
    ),
    Source(id=2, title="Door", text="The door stays shut while the kiln is hot.", updated_at="2026-01-02"),
)
FAR_OFF = "Nobody should hurry anything along near such heavy machinery [1]."
ALSO_FAR = "Patience is what every newcomer learns before touching levers [2]."


def verdict_of(text: str = f"{FAR_OFF} {ALSO_FAR}") -> Verdict:
    verdict = check(Draft(text=text, sources=SOURCES, has_judge=True))
    assert verdict.passed
    return verdict


def yes(*lines: Line, absent: bool = False) -> Judgement:
    return Judgement(supported=True, lines=lines, absent=absent)


def after(*said: Judgement | None, text: str = f"{FAR_OFF} {ALSO_FAR}") -> Verdict:
    """The verdict with these opinions on its open claims, in order."""
    verdict = verdict_of(text)
    keys = map(claim_key, open_claims(verdict))
    return apply_judgements(verdict, dict(zip(keys, said, strict=False)), SOURCES)


def test_lines_of_a_source_are_numbered_after_its_title_and_date() -> None:
    assert source_lines(SOURCES[0])[1:] == (
        "Keep the **vent** open until",
        "the cones have fallen.",
        "Glaze dries slowly.",
    )
    assert source_lines(SOURCES[1])[0] == "Door, updated 2026-01-02"


@pytest.mark.parametrize(
    "text",
    [
        "a) Fire it slowly to the temperature that the cones of the kiln show,~which takes a night.\nb) Let it cool.",
        "A cab from the airport of the north to the office costs~$20. It is the way for all who come late.",
        "Trains run from four in the morning to midnight, the last~Green Line train leaves the airport at 23:40.",
        "> Kilns are for those who have a need that cannot be met with ovens, most~> pots are baked in~> Ovens.\n> - A",
        "Please contact the Help~Desk~and they will open the door of the kiln for you by hand, with a~password.",
        "<p>The kiln sleeps in the snow at the end of a long road,~and a~Door keeps\\\nit warm.",
        "There is a~[kiln](https://x.example/k) here.",
        "Label: the door of the kiln in the north, and in the south~as well",
        "When the cones of the kiln in the north have fallen, please~ask~(well)~**Ann** Lee~in~#kiln or~<https://x.example/k>",
        "1. Choose [Kiln~   doors](https://x.example/d).\n   - Door A\n\n     The red one.",
        "2. Tick [ ] or [x\n- y](https://x.example/y)\n3. Wait~   one day,~   Monday too.  \n   Ask Ann.\n\n   And Bo.",
        "4. Run\n       make\n\n(a\nlone line)\n\nSee [the~plan](p.md)",
    ],
)
def test_a_wrapped_paragraph_quote_or_item_is_one_line(text: str) -> None:
    """A "~" is a line break that the judge does not see."""
    lines = re.sub(r"~[ >]*", " ", text).replace("  \n", "\n").replace("\n\n", "\n").split("\n")
    assert list(source_lines(Source(id=1, title="Kiln", text=text.replace("~", "\n")))[1:]) == lines


@pytest.mark.parametrize(
    "text",
    [
        "Kiln Works\n12 Main Street\nNorthfield",
        "Name: Ann Lee, who keeps the kiln of the northern works, and\nPhone: 12 34",
        "The kiln sleeps in the snow at the end of the road,  \nand nobody wakes it\\\nbefore the morning comes.",
        f"2026-11-27 08:00:01 INFO the kiln of the north has started\n2026-11-27 08:00:02 INFO it waits\n{'x' * 120}",
        "2026-11-27 08:00:01 INFO the kiln of the north starts\n2026-11-27 08:00:02 INFO the kiln of the north waits",
        "def fire(kiln: Kiln, cones: Sequence[Cone], *, slowly: bool) -> None:\n    kiln.close()\n    kiln.heat(cones)",
        "kiln = open_kiln(with_door=True, in_the_north=True, and_south=False)\nprint(kiln)",
        "```\nThe output of a program that runs for all of the night, and\nends in the morning\n```\nThe end",
        "| Kiln | Door |\n|---|---|\n| the kiln of the north, with two doors | red |\nand so on",
        "## The kiln that is in the north of the works, and its door\nis red",
        "who: is the kiln open today?\nlol\nno\nok",
        "[kiln]: https://x.example/k\n[door]: https://x.example/d",
    ],
)
def test_lines_that_are_meant_stay_lines(text: str) -> None:
    assert list(source_lines(Source(id=1, title="Kiln", text=text))[1:]) == text.split("\n")


def test_the_claims_that_only_a_judge_can_decide_are_open() -> None:
    assert [claim.text for claim in open_claims(verdict_of())] == [FAR_OFF, ALSO_FAR]
    assert open_claims(verdict_of("The door stays shut while the kiln is hot [2].")) == ()


def test_a_quotation_passes_unless_the_judge_refutes_it() -> None:
    verdict = verdict_of(f"The door stays shut while the kiln is hot [2]. {FAR_OFF}")
    quotation, *_ = claims_to_judge(verdict)
    assert quotation.settled_by == "quotation"
    far_off = {claim_key(claim): yes((1, 3)) for claim in open_claims(verdict)}
    opinions = ((None, True, ()), (yes((2, 1)), True, ((2, 1),)), (Judgement(supported=False), False, ()))
    for opinion, passes, lines in opinions:
        judged = apply_judgements(verdict, {**far_off, claim_key(quotation): opinion}, SOURCES)
        assert (judged.passed, judged.claims[0].lines) == (passes, lines)


def test_a_judgement_with_existing_lines_settles_a_claim() -> None:
    before, settled = verdict_of(), after(yes((1, 3)), yes((2, 0), (1, 1)))
    assert settled.passed
    assert [(claim.supported, claim.settled_by) for claim in settled.claims] == [("yes", "judge")] * 2
    assert not [v for v in settled.violations if v.rule == "claim_supported"]
    assert (settled.text, settled.chunks) == (before.text, before.chunks)


def test_a_claim_that_no_source_mentions_needs_no_line() -> None:
    verdict = after(yes(absent=True), Judgement(supported=True, absent=True, empty=True))
    assert verdict.passed
    assert [claim.absent for claim in verdict.claims] == [True, False]  # a greeting is not missing from any source


def test_an_unsupported_claim_is_an_error_with_the_source_words() -> None:
    refuted = Judgement(supported=False, instead="The source\nspeaks of a door " + "x" * 500)
    verdict = after(yes((1, 1)), refuted)
    (error,) = verdict.errors
    assert not verdict.passed
    assert (error.rule, error.words) == ("claim_supported", ALSO_FAR)
    assert verdict.text[error.start : error.end] == ALSO_FAR
    assert error.detail.startswith("The judge finds that [2] does not say this: The source speaks of a door")
    assert len(error.detail) < 300
    assert [(claim.supported, claim.settled_by) for claim in verdict.claims] == [("yes", "judge"), ("no", "judge")]
    assert "speaks of a door" in retry_text(without_unconfirmed(verdict), SOURCES)


def test_a_claim_of_another_source_must_cite_that_source() -> None:
    (error,) = after(yes((2, 1)), yes((2, 1))).errors
    assert (error.detail, error.remedy) == ("[2] says this, not [1].", "Cite [2] for it.")


def test_an_unsound_judgement_leaves_the_claim_unconfirmed() -> None:
    for said in [None, yes(), yes((1, 4)), yes((3, 0)), yes((1, 1), NO_LINE), yes((1, -1)), yes((9, 9), absent=True)]:
        verdict = after(said, text=FAR_OFF)
        assert [error.detail for error in verdict.errors] == [UNCONFIRMED]
        assert not verdict.passed
        assert only_unconfirmed(verdict)
        assert [claim.settled_by for claim in verdict.claims] == ["nobody"]
        assert without_unconfirmed(verdict).errors == ()


def test_a_claim_decided_by_the_rules_is_not_judged() -> None:
    verdict = check(Draft(text="The door stays shut for 9 hours [2].", sources=SOURCES))
    assert apply_judgements(verdict, {claim_key(verdict.claims[0]): yes((2, 1))}, SOURCES) == verdict
    assert not only_unconfirmed(verdict)
    assert not only_unconfirmed(verdict_of())


LINES = st.tuples(st.integers(-2, 4), st.integers(-2, 5))
JUDGEMENTS = st.none() | st.builds(Judgement, supported=st.booleans(), lines=st.lists(LINES, max_size=3).map(tuple))


@given(JUDGEMENTS)
def test_only_lines_of_the_cited_source_support_a_claim(said: Judgement | None) -> None:
    real = {(1, line) for line in range(4)} | {(2, line) for line in range(2)}
    sound = said is not None and said.supported and set(said.lines) <= real and any(line[0] == 1 for line in said.lines)
    assert after(said, text=FAR_OFF).passed is sound

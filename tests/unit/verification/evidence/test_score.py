"""The score of a claim: what lowers it, and its bounds."""

import pytest

from verification.evidence.evidence import Cited, Evidence, score
from verification.evidence.passages import analyse

SOURCE = (
    "Backups are kept for thirty days in the cellar of the old library. The keeper of the archive looks after them, "
    "and a copy goes to the branch office every week so that nothing is lost in a fire."
)


def evidence(claim: str) -> Evidence:
    return Evidence(claim=analyse(claim, "en"), cited=(Cited(id=1, passage=analyse(SOURCE, "en")),))


def test_a_supported_claim_scores_high_and_an_unsupported_one_scores_zero() -> None:
    assert score(evidence("Backups are kept for thirty days in the cellar of the old library.")) > 0.8
    assert score(evidence("Ferdinand Oyelaran paints wonderful giraffes.")) == 0.0


@pytest.mark.parametrize("claim", ["I keep backups for thirty days.", "Are backups kept for thirty days?"])
def test_opinions_and_questions_score_far_lower(claim: str) -> None:
    assert score(evidence(claim)) < 0.6 * score(evidence("Backups are kept for thirty days."))

"""Measures the grounding rules on labelled rows; the threshold for each file is fitted on the other files."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bot.evals.rows import Row, Text, read_rows, share
from verification.evidence.evidence import SUPPORTED
from verification.grounding import check_claims, read_basis
from verification.types import Claim, Draft, Source

_STEPS = 200


class LabelledPair(Row):
    """One labelled pair. Rows of one ``group`` count once; ``supported`` may be written as 1 or 0."""

    source: str
    claim: str
    supported: Literal[0, 1] | bool
    question: Text = ""
    group: Any = None


class Judged(NamedTuple):
    """A row with its verdict: ``score`` is 0 to 1, ``rules`` are those of error level that fired."""

    row: LabelledPair
    score: float
    rules: tuple[str, ...]


class _Group(NamedTuple):
    """A group of rows: supported if any row is, by label and by score; accused if all rows are."""

    score: float
    accused: bool
    supported: bool


def evaluate(paths: Sequence[Path], predictions: Path | None) -> list[dict[str, Any]]:
    """Return a report for each file; ``predictions`` gets a line for each row. Raises ``WrongUse`` and ``OSError``."""
    files = [[_judge(row) for row in read_rows(path, LabelledPair)] for path in paths]
    groups = [_group(judged) for judged in files]
    reports, lines = [], []
    for index, path in enumerate(paths):
        # Fitted on the other files, because no file may choose the threshold that it is measured with.
        others = [group for other, group in enumerate(groups) if other != index and group]
        threshold = fit_threshold(others)
        figures = {"threshold": threshold, "fitted_on": len(others)}
        reports.append({"file": path.name, "rows": len(files[index]), **_figures(groups[index], threshold), **figures})
        for row, score, rules in files[index]:
            line = {"id": row.id, "score": score, "supported": score >= threshold, "rules": rules}
            lines.append(json.dumps(line, ensure_ascii=False) + "\n")
    if predictions is not None:
        predictions.write_text("".join(lines), encoding="utf-8")
    return reports


def _judge(row: LabelledPair) -> Judged:
    draft = Draft(text=row.claim, question=row.question, sources=(Source(id=1, title="", text=row.source),))
    claim = Claim(text=row.claim, start=0, end=len(row.claim), cited=(1,))
    (judged,), violations = check_claims(read_basis(draft, row.claim), (claim,))
    rules = {violation.rule for violation in violations if violation.severity == "error"}
    return Judged(row, judged.score, tuple(sorted(rules)))


def _group(judged: Sequence[Judged]) -> list[_Group]:
    groups: dict[str, list[Judged]] = {}
    for one in judged:
        groups.setdefault(str(one.row.group or one.row.id), []).append(one)
    return [
        _Group(max(one.score for one in each), all(one.rules for one in each), any(one.row.supported for one in each))
        for each in groups.values()
    ]


def fit_threshold(others: Sequence[Sequence[_Group]]) -> float:
    """Return the threshold with the best mean balanced accuracy on the other files, or the product's own."""
    if not others:
        return SUPPORTED
    steps = [step / _STEPS for step in range(_STEPS + 1)]
    return max(steps, key=lambda step: sum(_balanced_accuracy(groups, step) for groups in others))


def _balanced_accuracy(groups: Sequence[_Group], threshold: float) -> float:
    supported = [group.score >= threshold for group in groups if group.supported]
    unsupported = [group.score < threshold for group in groups if not group.supported]
    return (share(sum(supported), len(supported)) + share(sum(unsupported), len(unsupported))) / 2


def _figures(groups: Sequence[_Group], threshold: float) -> dict[str, Any]:
    accused = [group for group in groups if group.accused]
    right = sum(not group.supported for group in accused)
    supported = sum(group.supported for group in groups)
    return {
        "groups": len(groups),
        "supported": supported,
        "balanced_accuracy": round(_balanced_accuracy(groups, threshold), 4),
        "errors": len(accused),
        "precision": share(right, len(accused)),
        "recall": share(right, len(groups) - supported),
        "false_alarms": share(len(accused) - right, supported),
    }

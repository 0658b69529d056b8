"""Faults planted into right answers by a seeded generator, and how many of them the verifier finds, kind by kind.

``python -m tests.support.planted_faults --seed 7 --count 500`` plants as many of each kind and prints the table;
``--missed`` lists what was not found. The same seed plants the same faults; each fault changes one thing only, and says
what no page of its answer says. Must never call a model.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random
from typing import Final, Literal

from tests.support import answer_faults, form_faults, sentence_faults
from tests.support.right_answers import RightAnswer, cited, right_answer
from verification.check import check
from verification.judgement import open_claims
from verification.types import Draft, RuleName, Verdict

Outcome = Literal["error", "set right", "other rule", "warning", "missed"]
OUTCOMES: Final[tuple[Outcome, ...]] = ("error", "set right", "other rule", "warning", "missed")
FOUND: Final[frozenset[Outcome]] = frozenset({"error", "set right"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of fault: the rule that should find it, and how precise it is.

    ``all_found``: every one must be an error of that rule, or be set right where it is mere form or a wrong number.
    """

    name: str
    rule: RuleName
    all_found: bool = True


KINDS: Final[tuple[Kind, ...]] = (
    Kind(name="number", rule="claim_supported"),
    Kind(name="unit", rule="claim_supported"),
    Kind(name="date", rule="claim_supported"),
    Kind(name="time of day", rule="claim_supported"),
    Kind(name="quotation", rule="claim_supported"),
    Kind(name="identifier", rule="claim_supported"),
    Kind(name="version", rule="claim_supported"),
    Kind(name="altered link", rule="citation_resolves"),
    Kind(name="invented link", rule="citation_resolves"),
    Kind(name="wrong citation", rule="claim_supported"),
    Kind(name="unknown citation", rule="citation_resolves"),
    Kind(name="omitted citation", rule="cites_sources"),
    Kind(name="broadcast", rule="no_broadcast"),
    Kind(name="secret", rule="no_secrets"),
    Kind(name="leaked instructions", rule="no_secrets"),
    Kind(name="leaked tag", rule="mrkdwn"),
    Kind(name="leaked JSON", rule="mrkdwn"),
    Kind(name="Markdown bold", rule="no_markdown_bold"),
    Kind(name="block quote", rule="no_blockquotes"),
    Kind(name="other Markdown", rule="mrkdwn"),
    Kind(name="citation of code", rule="claim_supported", all_found=False),
    Kind(name="negation", rule="claim_supported", all_found=False),
    Kind(name="quantifier", rule="claim_supported", all_found=False),
    Kind(name="name", rule="claim_supported", all_found=False),
    Kind(name="role", rule="claim_supported", all_found=False),
    Kind(name="number of another place", rule="claim_supported", all_found=False),
    Kind(name="other language", rule="coherent", all_found=False),
)
PER_SENTENCE: Final = sentence_faults.FAULTS
ON_THE_WHOLE: Final = answer_faults.FAULTS
OF_FORM: Final = form_faults.FAULTS
_TRIES: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    """One fault: the right answer, the draft that has it, and which statement was changed (-1: none of them)."""

    kind: Kind
    right: Draft
    wrong: Draft
    place: int = -1


def plant(kind: Kind, rng: Random) -> Planted | None:
    """One fault of a kind in a right answer drawn for it; None if the answer has no place for it."""
    answer = right_answer(rng)
    lines = answer.lines
    right = answer.draft(answer.laid_out(lines))
    if kind.name in PER_SENTENCE:
        return _in_a_sentence(kind, answer, right, rng)
    whole = ON_THE_WHOLE.get(kind.name) or OF_FORM[kind.name]
    wrong = whole(answer, right, rng)
    if wrong is None or wrong.text == right.text:
        return None
    return Planted(kind=kind, right=right, wrong=wrong)


def _in_a_sentence(kind: Kind, answer: RightAnswer, right: Draft, rng: Random) -> Planted | None:
    """The fault in one statement, its citation untouched."""
    place = rng.randrange(len(answer.facts))
    said = "\n".join(f"{source.title}\n{source.text}" for source in answer.sources)
    wrong = PER_SENTENCE[kind.name](answer.facts[place].text, said, rng)
    if wrong is None or wrong == answer.facts[place].text:
        return None
    lines = [*answer.lines]
    lines[place] = cited(wrong, answer.cited[place])
    return Planted(kind=kind, right=right, wrong=replace(right, text=answer.laid_out(tuple(lines))), place=place)


def planted(count: int, seed: int) -> Iterator[Planted]:
    """``count`` faults, each kind in its turn, no text twice; a kind that has no more to offer is passed over."""
    rng = Random(f"orion {seed}")
    seen: set[tuple[str, str]] = set()
    for kind in cycle(KINDS):
        for _ in range(_TRIES):
            fault = plant(kind, rng)
            if fault and (kind.name, fault.wrong.text) not in seen:
                seen.add((kind.name, fault.wrong.text))
                yield fault
                break
        if len(seen) == count:
            return


def outcome(fault: Planted) -> Outcome:
    """What becomes of a fault: an error of its rule, set right, an error of another rule, a warning, nothing."""
    verdict = check(fault.wrong)
    rules = {violation.rule for violation in verdict.errors}
    if fault.kind.rule in rules:
        return "error"
    if _is_set_right(fault, verdict):
        return "set right"
    if rules:
        return "other rule"
    return "warning" if verdict.violations or open_claims(verdict) else "missed"


def _is_set_right(fault: Planted, verdict: Verdict) -> bool:
    """Whether the answer passes with a wrong number behind a sentence set right, and is what the right one becomes."""
    moved = any(repair.kind == "citation_source" for repair in verdict.repairs)
    return moved and verdict.passed and verdict.text == check(fault.right).text


def main(arguments: list[str]) -> int:
    """Plants, judges and writes the table; 1 if a fault that must be found was not, or a right answer fails."""
    options = argparse.ArgumentParser(
        prog="python -m tests.support.planted_faults", description="Plant faults and count."
    )
    options.add_argument("--seed", type=int, default=1, help="which faults are planted")
    options.add_argument("--count", type=int, default=500, help="how many")
    options.add_argument("--missed", action="store_true", help="list what was not found as an error of its rule")
    given = options.parse_args(arguments)
    results = [(fault, outcome(fault)) for fault in planted(given.count, given.seed)]
    failing = [fault.right.text for fault, _ in results if not check(fault.right).passed]
    sys.stdout.write(f"{table(results)}\n\nRight answers that fail: {len(failing)}\n")
    lost = [(fault, became) for fault, became in results if became not in FOUND]
    for fault, became in lost if given.missed else ():
        sys.stdout.write(f"{became}: {fault.kind.name}: {fault.wrong.text!r}\n")
    return 1 if failing or any(fault.kind.all_found for fault, _ in lost) else 0


def table(results: Iterable[tuple[Planted, Outcome]]) -> str:
    """The outcomes by kind, as the table that stands in the note on verification."""
    counts: dict[str, Counter[Outcome]] = {kind.name: Counter() for kind in KINDS}
    for fault, became in results:
        counts[fault.kind.name][became] += 1
    rows = [(kind.name, f"`{kind.rule}`", counts[kind.name]) for kind in KINDS]
    rows.append(("all", "", sum(counts.values(), Counter[Outcome]())))
    lines = [f"| kind | rule | planted | {' | '.join(OUTCOMES)} |", f"|---|---|{'---|' * (len(OUTCOMES) + 1)}"]
    for name, rule, count in rows:
        cells = [name, rule, str(count.total()), *(str(count[each]) for each in OUTCOMES)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

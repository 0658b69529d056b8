"""What the model is told about a draft that did not pass: English, short, most important first.

Warnings come only beside errors, and are not counted. A secret of the draft is never repeated.
"""

from __future__ import annotations

from typing import Final, get_args

from verification.text.words import content_stems
from verification.types import RuleName, Severity, Source, Verdict, Violation

_ORDER: Final = get_args(RuleName)
_MOST: Final = 10
_MOST_WARNINGS: Final = 3
_LONGEST: Final = 320
_LEAST_SHARED: Final = 2


def retry_text(verdict: Verdict, sources: tuple[Source, ...]) -> str:
    """What to tell the model before the next attempt; empty when no error makes one necessary."""
    errors, warnings = (_merged(verdict, severity) for severity in ("error", "warning"))
    if not errors:
        return ""
    # Warnings are not counted: "1 problem to mend" stood before a list of three points.
    lines = [f"The last draft was not sent: {len(errors)} problem{'s' if len(errors) > 1 else ''} to mend."]
    lines += [f"{number}. {_point(found, verdict, sources)}" for number, found in enumerate(errors[:_MOST], start=1)]
    if len(errors) > _MOST:
        lines.append(f"And {len(errors) - _MOST} more of the same kinds.")
    if warnings:
        lines.append("Also noticed, and no reason by itself to write again:")
        lines += [f"- {_point(found, verdict, sources)}" for found in warnings[:_MOST_WARNINGS]]
    text = "\n".join(lines)
    # Another rule may quote a secret, too.
    secrets = {verdict.text[found.start : found.end] for found in verdict.errors if found.rule == "no_secrets"} - {""}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(_one_line(secret), "…")
    return text


def _merged(verdict: Verdict, severity: Severity) -> list[Violation]:
    """The violations of one severity, most important first, each once that says the same of the same words."""
    found = [each for each in verdict.violations if each.severity == severity]
    found.sort(key=lambda each: (_ORDER.index(each.rule), each.start))
    return list({(each.rule, each.words, each.detail): each for each in reversed(found)}.values())[::-1]


def _point(found: Violation, verdict: Verdict, sources: tuple[Source, ...]) -> str:
    """One line: the words and the sentence they stand in, what is wrong, what to do."""
    words = _one_line(found.words)
    around = (claim.text for claim in verdict.claims if claim.start <= found.start and found.end <= claim.end)
    sentence = _one_line(next(around, "")) if found.rule != "no_secrets" else ""
    place = f' in "{sentence}"' if len(words) < len(sentence) else ""
    quoted = f'"{words}"{place}: ' if words else ""
    hint = _nearest(found, sources) if found.rule == "cites_sources" else ""
    return quoted + " ".join(filter(None, (_ended(found.detail), _ended(found.remedy), hint)))


def _ended(text: str) -> str:
    """The sentence with a full stop, where it has no end of its own."""
    line = _one_line(text)
    return line if not line or line[-1] in ".!?" else f"{line}."


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST].rstrip()}…"


def _nearest(found: Violation, sources: tuple[Source, ...]) -> str:
    """The source that shares most content words with an uncited claim, named where it stands out."""
    stems = content_stems(found.words)
    shared = sorted(((len(stems & content_stems(each.text)), each.id) for each in sources), key=lambda pair: -pair[0])
    if not shared or shared[0][0] < _LEAST_SHARED or (len(shared) > 1 and shared[0][0] == shared[1][0]):
        return ""
    return f"[{shared[0][1]}] is nearest to it."

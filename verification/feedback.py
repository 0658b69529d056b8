"""What the model is told about a draft that did not pass: English, short, most important first.

Warnings come only beside errors, and are not counted. A secret of the draft is never repeated.
"""

from __future__ import annotations

from typing import Final

from verification.text.words import content_stems
from verification.types import RuleName, Severity, Source, Verdict, Violation

_ORDER: Final[tuple[RuleName, ...]] = (
    "not_empty",
    "no_secrets",
    "no_broadcast",
    "no_injection",
    "citation_resolves",
    "claim_supported",
    "cites_sources",
    "no_markdown_bold",
    "no_blockquotes",
    "mrkdwn",
    "addresses_question",
    "coherent",
    "minimum_length",
)
_MOST: Final = 10
_MOST_WARNINGS: Final = 3
_WORDS: Final = 160
_LEAST_SHARED: Final = 2


def retry_text(verdict: Verdict, sources: tuple[Source, ...]) -> str:
    """What to tell the model before the next attempt; empty when no error makes one necessary."""
    errors, warnings = (_merged(verdict, severity) for severity in ("error", "warning"))
    if not errors:
        return ""
    points = [_point(found, verdict, sources) for found in errors[:_MOST]]
    lines = [_opening(len(errors)), *(f"{number}. {point}" for number, point in enumerate(points, start=1))]
    if len(errors) > _MOST:
        lines.append(f"And {len(errors) - _MOST} more of the same kinds.")
    if warnings:
        lines.append("Also noticed, and no reason by itself to write again:")
        lines += [f"- {_point(found, verdict, sources)}" for found in warnings[:_MOST_WARNINGS]]
    return _masked("\n".join(lines), verdict)


def _masked(text: str, verdict: Verdict) -> str:
    """The text with each secret of the draft cut to an ellipsis, also where another rule quotes it."""
    secrets = {verdict.text[found.start : found.end] for found in verdict.errors if found.rule == "no_secrets"} - {""}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(_one_line(secret), "…")
    return text


def _opening(count: int) -> str:
    return f"The last draft was not sent: {count} problem{'s' if count > 1 else ''} to mend."


def _merged(verdict: Verdict, severity: Severity) -> list[Violation]:
    """The violations of one severity, most important first, each once that says the same of the same words."""
    found = [each for each in verdict.violations if each.severity == severity]
    found.sort(key=lambda each: (_ORDER.index(each.rule), each.start))
    return list({(each.rule, each.words, each.detail): each for each in reversed(found)}.values())[::-1]


def _point(found: Violation, verdict: Verdict, sources: tuple[Source, ...]) -> str:
    """One line: the words and the sentence they stand in, what is wrong, what to do."""
    words = _one_line(found.words)
    sentence = _one_line(_sentence(found, verdict))
    place = f' in "{sentence}"' if sentence and len(words) < len(sentence) else ""
    quoted = f'"{words}"{place}: ' if words else ""
    hint = _nearest(found, sources) if found.rule == "cites_sources" else ""
    parts = (_ended(_one_line(found.detail)), _ended(_one_line(found.remedy)), hint)
    return quoted + " ".join(part for part in parts if part)


def _sentence(found: Violation, verdict: Verdict) -> str:
    """The claim in which a violation lies; empty where it lies in none."""
    around = (claim.text for claim in verdict.claims if claim.start <= found.start and found.end <= claim.end)
    return next(around, "") if found.rule != "no_secrets" else ""


def _ended(text: str) -> str:
    """The sentence with a full stop, where it has no end of its own."""
    return text if not text or text[-1] in ".!?" else f"{text}."


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _WORDS * 2 else f"{flat[: _WORDS * 2].rstrip()}…"


def _nearest(found: Violation, sources: tuple[Source, ...]) -> str:
    """The source that shares most content words with an uncited claim, named where it stands out."""
    stems = content_stems(found.words)
    shared = sorted(((len(stems & content_stems(each.text)), each.id) for each in sources), key=lambda pair: -pair[0])
    if not shared or shared[0][0] < _LEAST_SHARED or (len(shared) > 1 and shared[0][0] == shared[1][0]):
        return ""
    return f"[{shared[0][1]}] is nearest to it."

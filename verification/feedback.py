"""Feedback to the model on a draft that did not pass, in English, short, with the most important first.

Warnings are listed only together with errors, and are not counted. A secret of the draft is never repeated.
"""

from html import unescape
from typing import Final, get_args

from verification.text.language import content_stems
from verification.types import RuleName, Severity, Source, Verdict, Violation

_ORDER: Final = get_args(RuleName)
_MAX_ERRORS: Final = 10
_MAX_WARNINGS: Final = 3
_MAX_LINE: Final = 320
_MIN_SHARED: Final = 2


def retry_text(verdict: Verdict, sources: tuple[Source, ...]) -> str:
    """Return the feedback for the next attempt. Empty without errors."""
    errors, warnings = (_unique_violations(verdict, severity) for severity in ("error", "warning"))
    if not errors:
        return ""
    # Warnings are not counted: they would make the number confusing.
    lines = [f"The last draft was not sent: {len(errors)} problem{'s' if len(errors) > 1 else ''} to fix."]
    described = (_describe(violation, verdict, sources) for violation in errors[:_MAX_ERRORS])
    lines += [f"{number}. {line}" for number, line in enumerate(described, start=1)]
    if len(errors) > _MAX_ERRORS:
        lines.append(f"And {len(errors) - _MAX_ERRORS} more of the same kinds.")
    if warnings:
        lines.append("Also noticed, and no reason by itself to write again:")
        lines += [f"- {_describe(violation, verdict, sources)}" for violation in warnings[:_MAX_WARNINGS]]
    text = "\n".join(lines)
    # Another rule may also quote a secret.
    found = (verdict.text[each.start : each.end] for each in verdict.errors if each.rule == "no_secrets")
    secrets = {spelling for secret in found if secret for spelling in (secret, unescape(secret))}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(_one_line(secret), "…")
    return text


def _unique_violations(verdict: Verdict, severity: Severity) -> list[Violation]:
    violations = [each for each in verdict.violations if each.severity == severity]
    violations.sort(key=lambda each: (_ORDER.index(each.rule), each.start))
    return list({(each.rule, each.words, each.detail): each for each in reversed(violations)}.values())[::-1]


def _describe(violation: Violation, verdict: Verdict, sources: tuple[Source, ...]) -> str:
    """Describe a violation in one line: the words and their sentence, the fault, and the remedy."""
    words = _one_line(violation.words)
    around = (claim.text for claim in verdict.claims if claim.surrounds(violation))
    sentence = _one_line(next(around, "")) if violation.rule != "no_secrets" else ""
    # these are most of the draft: quote it once, in full
    if sentence.startswith(words) and 2 * len(words) > len(sentence):
        words = sentence
    place = f' in "{sentence}"' if len(words) < len(sentence) else ""
    quoted = unescape(f'"{words}"{place}: ') if words else ""  # the model wrote "&", not "&amp;"
    hint = ""
    if violation.rule == "cites_sources":  # name the source that clearly shares the most content words, if there is one
        stems = content_stems(violation.words)
        shared = sorted((-len(stems & content_stems(each.text)), each.id) for each in sources)
        if shared and -shared[0][0] >= _MIN_SHARED and (len(shared) == 1 or shared[0][0] != shared[1][0]):
            hint = f"[{shared[0][1]}] is nearest to it."
    lines = filter(None, map(_one_line, (violation.detail, violation.remedy)))
    sentences = (line if line.endswith((".", "!", "?")) else f"{line}." for line in lines)
    return quoted + " ".join([*sentences, hint]).rstrip()


def _one_line(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _MAX_LINE else f"{flat[:_MAX_LINE].rstrip()}…"

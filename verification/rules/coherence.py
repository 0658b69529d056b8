"""Warns where an answer repeats itself, breaks off, gives two numbers for one thing, or is in another language."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from verification.draft_view import Reading
from verification.text.language import detect
from verification.text.lexicon import compiled
from verification.types import Claim, Violation

_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"(?<![\w.,-])([$€£¥]?)([0-9][0-9.,]{0,20}|[0-9])(?=(\s?(?:%|[^\W\d_]+))?)")
_CITED: Final = re.compile(r"\[[0-9][0-9, –-]{0,40}\]")
_LEAST_LETTERS: Final = 20
# In small letters: "Vitamin A" ends in a name.
_OPEN_END: Final = r"(?-i:(?:[,(\[{–—]|\s-|\b(?:{open_ends}))$|(?:[、，（「『]|(?:{open_ends_unparted}))$)"
_PRONOUN: Final = r"(?:{pronouns})\b|{pronouns_unparted}"
_LANGUAGE_NAMED: Final = r"\b(?:{language_names})\b|{language_names_unparted}"


def coherent(reading: Reading) -> tuple[Violation, ...]:
    """Warnings for repeated sentences, a broken-off end, contradicting numbers and another language."""
    told = [(claim, _CITED.sub("", claim.text)) for claim in reading.claims]
    return (
        *_repeated(reading, told),
        *_broken_off(reading),
        *_contradictions(reading, told),
        *_other_language(reading),
    )


Told = list[tuple[Claim, str]]
"""The claims, each with its words without citations."""


def _repeated(reading: Reading, told: Told) -> Iterator[Violation]:
    """Sentences that say word for word what an earlier one said."""
    seen: set[str] = set()
    for claim, text in told:
        words = " ".join(_WORD.findall(text.casefold()))
        if len(words) < _LEAST_LETTERS:
            continue
        if words in seen:
            detail = "This sentence has been said before."
            yield reading.warning("coherent", (claim.start, claim.end), detail, "Say it once.")
        seen.add(words)


def _broken_off(reading: Reading) -> Iterator[Violation]:
    """A last line that ends on a word or a sign after which something must follow."""
    if not reading.prose.strip() or reading.text.rstrip().endswith("`"):
        return
    last = reading.prose.rstrip().rsplit("\n", 1)[-1]
    plain = _CITED.sub("", last).rstrip().rstrip("*_~").rstrip()
    if compiled(_OPEN_END).search(plain[-_LEAST_LETTERS:]) and len(plain) > 1:
        end = len(reading.prose.rstrip())
        span = (end - len(last), end)
        yield reading.warning("coherent", span, "The answer breaks off here.", "Finish the sentence, or end before it.")


def _contradictions(reading: Reading, told: Told) -> Iterator[Violation]:
    """Two sentences of the same words whose one figure differs."""
    said: dict[str, set[str]] = defaultdict(set)
    for claim, text in told:
        subject, figure = _figure(text)
        if not figure:
            continue
        if said[subject] - {figure}:
            other = min(said[subject] - {figure})
            detail = f"The same is said with {other} before and with {figure} here."
            remedy = "Say which figure holds, or name both sources and that they differ."
            yield reading.warning("coherent", (claim.start, claim.end), detail, remedy)
        said[subject].add(figure)


def _figure(text: str) -> tuple[str, str]:
    """The other words and the last figure, empty unless that figure counts something (unit, percent, money)."""
    last = None
    for match in _NUMBER.finditer(text):
        last = match
    if last is None or not (last[1] or last[3]):
        return "", ""
    subject = " ".join(_WORD.findall(f"{text[: last.start()]} # {text[last.end() :]}".casefold()))
    enough = len(subject) >= _LEAST_LETTERS / 2 and not compiled(_PRONOUN).match(subject)
    return (subject, last[0].rstrip(".,")) if enough else ("", "")


def _other_language(reading: Reading) -> Iterator[Violation]:
    """An answer in another language than the question, unless the question speaks of languages."""
    question = reading.draft.question
    asked = detect(question)
    if reading.draft.own_words or asked is None or compiled(_LANGUAGE_NAMED).search(question):
        return
    given = detect(reading.prose)
    if given is not None and given != asked:
        detail = f"The question is in {_NAMES[asked]}, the answer in {_NAMES[given]}."
        remedy = f"Answer in {_NAMES[asked]}."
        yield reading.warning("coherent", (0, len(reading.text)), detail, remedy)


_NAMES: Final = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "id": "Indonesian",
    "ja": "Japanese",
    "zh": "Chinese",
}

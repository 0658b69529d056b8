"""What headings, introductions, questions and offers state after all: a number of their own, or a whole sentence."""

from __future__ import annotations

import re

from verification.text.lexicon import compiled

_FINITE = r"\b(?:{finite})\b|{finite_unparted}"
_TOPIC = r"\W*(?:{topics})\b|.*\S\s(?:you|we|that|who|which)\s"
_CLAUSES = re.compile(r",\s+(?:and|so|und|et|y|dan)\s|;\s|[.。；]\s?")
_NO_FACT = re.compile(r"<[^<>\n]*>|https?://\S+|\[[\d\s,;–-]+\]|:[a-z0-9_+-]{2,30}:")
_LABEL = re.compile(r"^\W*(?:[^\W\d_]+\s)?\d{1,2}\b(?=\s*[.):–—-]|[\s*_]*$)[\s.):–—*_-]*")
_COUNTED = r"\b\d{1,2}\s+(?:[^\W\d_]+\s){0,2}(?:{counted})\b|\d{1,2}\s?(?:つ|点|件|步|条|個|个)"
_DIGITS = re.compile(r"\d+")
_ANNOUNCED = r"[*_~\s]*(?:{announced})\s?[*_~]*[:：][*_~\s]*"


def label_end(heading: str) -> int:
    """Where the label at the head of a heading ends: ``Step 2:``, ``1.``; 0 without one."""
    match = _LABEL.match(heading)
    return match.end() if match else 0


def announcement_end(sentence: str) -> int:
    """Where a label ends that only announces what follows ("Short answer:"); 0 without one."""
    match = compiled(_ANNOUNCED).match(sentence)
    return match.end() if match else 0


def digits(text: str) -> frozenset[str]:
    """The groups of digits in a text, those of links and citations left out."""
    return frozenset(_DIGITS.findall(_NO_FACT.sub(" ", text)))


def own_digits(text: str) -> frozenset[str]:
    """The groups of digits that state something: not those of a label ("Step 2") or a mere count ("3 documents")."""
    if not _DIGITS.search(text):
        return frozenset()
    return frozenset(_DIGITS.findall(compiled(_COUNTED).sub(" ", _LABEL.sub("", _NO_FACT.sub(" ", text)))))


def is_sentence(heading: str) -> bool:
    """True if a heading says something, as "Keys never expire" does and "How keys expire" does not."""
    bare = heading[label_end(heading) :]
    return (
        bool(compiled(_FINITE).search(bare))
        and not compiled(_TOPIC).match(bare)
        and not bare.rstrip("*_~ ").endswith(("?", "？"))
    )


def opens_with_sentence(introduction: str) -> bool:
    """True if an introduction says something before it introduces: "Refunds are free, and these are the rules:"."""
    first, *rest = _CLAUSES.split(introduction, maxsplit=1)
    return bool(rest and rest[0].strip()) and is_sentence(first)

"""What a question is about, as things that can be looked for: words and phrases, with the other words for them.

Promises: a phrase of the thesaurus is one thing ("hand in"), an identifier is found in each of its forms (``SEV 1``,
``sev-1``, ``SEV1``); pure and remembered. Must never drop a word that names a subject.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from agent.knowledge.terms import ASKING, LIGHT, is_function_word, stems
from agent.knowledge.thesaurus import key, phrases, same_thing
from agent.query import ASKS
from verification.language import detect

LITTLE: Final = 0.2
"""The weight of a word that says which kind of answer is wanted."""

_CODE: Final = re.compile(r"\b([a-z]{1,8})[- ](\d{1,6})\b")
_HYPHENED: Final = re.compile(r"\b([a-z]{1,8})-(\d{1,6})\b")
_TYPED: Final = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]+")
_TELLING: Final = 1.5
"""The weight of an identifier such as ``FH-2002``: whoever types one means just that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """One thing asked for: the key it is compared by, the keys of other words for it and of other ways to write it."""

    key: str
    others: frozenset[str] = field(default_factory=frozenset)
    written: frozenset[str] = field(default_factory=frozenset)
    weight: float = 1.0


@lru_cache(maxsize=512)
def concepts(text: str, language: str | None) -> tuple[Concept, ...]:
    """The things that a question names, once each, in order, with keys for a comparison in ``language``."""
    text = _HYPHENED.sub(r"\1\2", text.lower())
    joined = _joined(text)
    found: dict[str, Concept] = {}
    grammar = detect(text)
    for phrase in phrases(text):
        small = len(phrase) == 1 and (phrase[0] in ASKS or is_function_word(phrase[0], grammar))
        for each in () if small else _keys(phrase, language):
            written = frozenset(form for form, parts in joined.items() if phrase[0] in parts)
            others = same_thing(phrase, language)
            found[each] = Concept(key=each, others=others, written=written, weight=_weight(phrase))
    return tuple(found.values())


@lru_cache(maxsize=16_384)
def concepts_in(text: str, language: str | None) -> frozenset[str]:
    """The keys of all things that a text names."""
    named = {each for phrase in phrases(text) for each in (*_keys(phrase, language), *_parts(phrase, language))}
    return frozenset(named.union(_joined(text)))


def _keys(phrase: tuple[str, ...], language: str | None) -> list[str]:
    """A phrase is one key; a single word is its stem, or nothing if it has no subject."""
    if len(phrase) > 1:
        return [key(phrase, language)]
    return stems(phrase[0], language)


def _parts(phrase: tuple[str, ...], language: str | None) -> list[str]:
    """The words of a phrase that keep their own meaning in it: those of "annual leave", but not of "on call"."""
    if len(phrase) == 1 or any(is_function_word(word, None) for word in phrase):
        return []
    return [each for word in phrase for each in stems(word, language)]


def _weight(phrase: tuple[str, ...]) -> float:
    if all(word in LIGHT for word in phrase):
        return LITTLE
    return _TELLING if _TYPED.fullmatch("".join(phrase)) else 1.0


def _joined(text: str) -> dict[str, tuple[str, str]]:
    """Letters and digits that may be one name, written together, with their parts."""
    found = _CODE.finditer(text.lower())
    return {f"{m[1]}{m[2]}": (m[1], m[2]) for m in found if not is_function_word(m[1], None) and m[1] not in ASKING}

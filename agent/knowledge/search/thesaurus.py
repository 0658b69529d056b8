"""Different words for one thing at work, in seven languages: ``maximum`` and ``limit``, ``Urlaub`` and ``leave``.

Promises: pure data and look-ups; a phrase counts as one word. A group is a hint for finding and ranking, never a
statement that its words mean the same: what is quoted stays as it stands. Must stay general:
``words_of_work.txt`` holds words of any workplace only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib import resources
from typing import Final

from agent.knowledge.search.tokens import CJK, stem, words
from verification.text.language import detect

LANGUAGES: Final = ("en", "de", "fr", "es", "id", "ja", "zh")
"""The columns of the file, in their order."""

_LONGEST: Final = 4
_LONGEST_RUN: Final = 8
_SHORTEST_PART: Final = 3
_SCRIPTS: Final = re.compile(rf"{CJK.pattern}+|(?:(?!{CJK.pattern})[^\W_])+")
_LINKS: Final = ("", "s", "es", "n", "en", "er")
"""What German puts between the parts of a compound."""

Group = Mapping[str, tuple[str, ...]]


@cache
def _groups() -> tuple[Group, ...]:
    """Every line of the file: a language's terms for one thing."""
    text = resources.files("agent.knowledge.search").joinpath("words_of_work.txt").read_text(encoding="utf-8")
    lines = (line.split("|") for line in text.splitlines() if line and not line.startswith("#"))
    return tuple(
        {
            name: tuple(filter(None, map(str.strip, each.split(","))))
            for name, each in zip(LANGUAGES, line, strict=False)
        }
        for line in lines
    )


def phrases(text: str, language: str | None = None) -> Iterator[tuple[str, ...]]:
    """The words of a text in order; words that stand together as a phrase of a group come together."""
    found = words(text)
    known = _index(language)
    at = 0
    while at < len(found):
        size = next((n for n in range(_LONGEST, 1, -1) if _key(found[at : at + n], language) in known), 1)
        yield tuple(found[at : at + size])
        at += size


def named(text: str, language: str) -> Iterator[tuple[str, ...]]:
    """As ``phrases``; a run of Chinese or Japanese comes as the longest terms in it and what stands between."""
    for phrase in phrases(text, language):
        if len(phrase) == 1 and CJK.search(phrase[0]):
            yield from ((part,) for part in _cut(phrase[0], language))
        else:
            yield phrase


@lru_cache(maxsize=20_000)
def same_thing(
    phrase: tuple[str, ...], language: str | None, asked: str | None = None, spoken: frozenset[str] = frozenset()
) -> frozenset[str]:
    """The keys, in ``language``, of the other words for a word or phrase of a question in ``asked``.

    ``spoken`` are the languages that they are looked for in, beside English and ``language``.
    """
    columns = {"en", language or "en", *spoken}
    groups = _groups_of(phrase, asked)
    terms = (term for group in groups for name in columns for term in group.get(name, ()))
    return frozenset(_key(words(term), language) for term in terms) - {key(phrase, language)}


def key(phrase: tuple[str, ...], language: str | None) -> str:
    """What a word or phrase is compared by: its stems."""
    return _key(phrase, language)


def meanings(phrase: tuple[str, ...], asked: str | None) -> frozenset[str]:
    """What a word or phrase of a question is called first in English, in each of its senses."""
    return frozenset(group["en"][0] for group in _groups_of(phrase, asked) if group["en"])


def other_words(text: str, asked: str | None = None, *, foreign: bool = False) -> list[str]:
    """What else the things in a text may be called, in its language and in English, without what it says itself.

    ``asked`` is that language where it is known; ``foreign`` asks for the words of all other languages instead.
    """
    asked = asked or detect(text)
    own = {"en", asked or "en"}
    columns = [name for name in LANGUAGES if (name not in own) is foreign]
    things = list(named(text, asked or "en"))
    said = {" ".join(phrase) for phrase in things}
    groups = (group for phrase in things for group in _groups_of(phrase, asked))
    terms = (term for group in groups for name in columns for term in group.get(name, ()))
    return [term for term in dict.fromkeys(terms) if term not in said]


def _groups_of(phrase: tuple[str, ...], asked: str | None) -> Iterator[Group]:
    """The groups that have a word or phrase; those of its parts where it is a compound of theirs."""
    known = _index(asked)
    numbers = known.get(_key(phrase, asked), ()) or known.get(" ".join(phrase), ())
    if not numbers and len(phrase) == 1 and asked == "de":
        numbers = tuple(number for part in _parts(phrase[0]) for number in known.get(part, ()))
    return (_groups()[number] for number in numbers)


@lru_cache(maxsize=8)
def _index(language: str | None) -> dict[str, tuple[int, ...]]:
    """For every term of a language and of English, as written and by its stems, the groups that have it.

    Of a text whose language cannot be told, the words of any language count as they are written.
    """
    found: dict[str, dict[int, None]] = {}
    for number, group in enumerate(_groups()):
        for name in LANGUAGES if language is None else {"en", language}:
            for term in group.get(name, ()):
                said = words(term)
                for each in (_key(said, language), " ".join(said)):
                    found.setdefault(each, {})[number] = None
    return {each: tuple(numbers) for each, numbers in found.items()}


@lru_cache(maxsize=4_096)
def _parts(word: str) -> tuple[str, ...]:
    """The two terms that a German compound is made of; nothing where it is none."""
    known = _index("de")
    for at in range(len(word) - _SHORTEST_PART, _SHORTEST_PART - 1, -1):
        last = next((each for each in (stem(word[at:], "de"), word[at:]) if each in known), "")
        if not last:
            continue
        for link in _LINKS:
            first = word[: at - len(link)] if word[:at].endswith(link) else ""
            whole = next((each for each in (stem(first, "de"), first) if each in known), "")
            if len(first) >= _SHORTEST_PART and whole:
                return whole, last
    return ()


@lru_cache(maxsize=4_096)
def _cut(run: str, language: str) -> tuple[str, ...]:
    known = _index(language)
    parts: list[str] = []
    rest = ""
    at = 0
    while at < len(run):
        size = next((n for n in range(min(_LONGEST_RUN, len(run) - at), 0, -1) if run[at : at + n] in known), 0)
        if size:
            parts += [rest, run[at : at + size]]
            rest = ""
        else:
            rest += run[at]
        at += size or 1
    return tuple(part for piece in (*parts, rest) for part in _SCRIPTS.findall(piece))


def _key(found: Iterable[str], language: str | None) -> str:
    return " ".join(stem(word, language) for word in found)

"""What a question is about, as things that can be looked for: words and phrases, with the other words for them.

Promises: a phrase of the thesaurus is one thing ("hand in"), an identifier is found in each of its forms (``SEV 1``,
``sev-1``, ``SEV1``); pure and remembered. Must never drop a word that names a subject.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from agent.knowledge.search.thesaurus import key, meanings, named, phrases, same_thing
from agent.knowledge.search.tokens import ASKING, CJK, LIGHT, is_function_word, stem, stems
from agent.quoting.implied import converse, implied, implied_by_form
from agent.quoting.nouns import is_done, is_verb, last_verb, names_subject, nouns, way_asked
from agent.quoting.query import ASKS
from verification.text.language import detect
from verification.text.stopwords import CJK_FUNCTION

LITTLE: Final = 0.2
"""The weight of a word that says which kind of answer is wanted."""

UNKNOWN: Final = 0.4
"""The weight of a word of another language than the texts' that has no known translation."""

_UNSPACED: Final = frozenset({"ja", "zh"})
_GRAMMAR: Final = re.compile(rf"[\u3040-\u309f{CJK_FUNCTION}]")
_CODE: Final = re.compile(r"\b([a-z]{1,8})[- ](\d{1,6})\b")
_HYPHENED: Final = re.compile(r"\b([a-z]{1,8})-(\d{1,6})\b")
_NOT: Final = re.compile(r"\b([a-z]+?)n['’]t\b")
_SHORTENED: Final = {"ca": "can", "wo": "will", "sha": "shall"}
_OKAY: Final = re.compile(
    r"(?:(?<=['’]s )|(?<=whose )|(?<=my )|(?<=has to ))ok(?:ay)?\b|(?:(?<=\bto )|(?<=\bmust ))ok(?:ay)?(?= \w)"
)
"""Of somebody, or to be given: "my manager's OK", "who has to okay it"."""
_FROM_ON: Final = re.compile(r"\bà partir (?:de|du|des|d['’])")
_CLASSIFIER: Final = re.compile(r"(?<=几)[位个名次台份种条项张家本封辆间](?!月)")
"""Chinese counts people, machines and letters by words that name none of them."""
_BETWEEN: Final = frozenset({"まで", "から", "より", "ほど", "ごろ", "ずつ"})
"""Japanese for "until", "from", "than" …"""
_MENT: Final = re.compile(r"([a-z]{3,})ment")
_SEVERAL: Final = re.compile(r"(?<=\b\d{3})s\b")
"""Of a code that comes often: "429s"."""
_TYPED: Final = re.compile(r"(?=[a-z]*\d)(?=\d*[a-z])[a-z0-9]+")
_KINDS: Final = LIGHT.union(
    """
        amount spend spent paid money price expensive deadline length duration sum much heavy wide tall deep reason
        nobody anybody
    """.split()  # noqa: SIM905 - words read better as words
)
"""Words that a thing of the right kind answers, whatever it is called: what something costs is an amount of money."""

_BOUNDS: Final = frozenset({("up", "to"), ("at", "most"), ("at", "least")})
_PARTED: Final = re.compile(r"\b([a-z]+) (it|this|that|them|these|those) (over|on|off|in|up|down|back|out|away)\b")
"""A verb and its particle with a pronoun between them: "carry it over"."""
_APART: Final = re.compile(
    r"\b(turn|switch|hand|give|bring|take|put|roll|shut|log|sign|fill|set|call|carry|send)"
    r"((?: (?!(?:if|when|before|after|is|are|was|i|we|you)\b)\w+){1,4}) (on|off|in|over|up|down|back|out|away)"
    r"(?=\W*$|[,;.?!]| (?:for|at|by|when|before|after|without|again)\b)"
)
"""The same with a noun: "turn a flag on"."""

_PARTICLES: Final = frozenset(
    """
        about across ahead along apart around aside away back by down for forward in into off on out over
        through to together up with
    """.split()  # noqa: SIM905 - words read better as words
)
"""What a verb ends with that is more than one word."""

_TELLING: Final = 1.5
"""The weight of an identifier such as ``FH-2002``: whoever types one means just that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """One thing asked for: the key it is compared by, the keys of other words for it and of other ways to write it.

    ``parts`` are the words of a phrase that say something by themselves: "switched with …" for "switch on".
    ``is_noun`` says that it is asked for by a noun, which what is quoted must name; ``is_implied`` that nothing need.
    """

    key: str
    others: frozenset[str] = field(default_factory=frozenset)
    written: frozenset[str] = field(default_factory=frozenset)
    parts: frozenset[str] = field(default_factory=frozenset)
    weight: float = 1.0
    is_noun: bool = False
    is_verb: bool = False
    is_implied: bool = False


@lru_cache(maxsize=512)
def concepts(
    text: str, language: str | None, spoken: frozenset[str] = frozenset(), asked: str | None = None
) -> tuple[Concept, ...]:
    """The things that a question names, once each, in order, with keys for a comparison in ``language``.

    ``spoken`` are the languages of the texts it is compared with, ``asked`` is its own where that is known.
    """
    text = _PARTED.sub(r"\1 \3 \2", _HYPHENED.sub(r"\1\2", _plain(text)))
    joined = _joined(text)
    found: dict[str, Concept] = {}
    asked = asked or detect(text)
    english = asked in {"en", None}
    insisted = nouns(text) if english else frozenset()
    last = last_verb(text) if english else ""
    way = way_asked(text) if english else ""
    spared = implied(text) if english else frozenset[str]()
    abroad = asked is not None and language is not None and asked != language
    for phrase in named(text, asked) if asked in _UNSPACED and abroad else phrases(text, asked):
        weight = _weight(phrase, asked, abroad=abroad)
        for each in _keys(phrase, language, whole=abroad) if weight else ():
            written = frozenset(form for form, parts in joined.items() if phrase[0] in parts)
            meant = {stem(word, "en") for word in meanings(phrase, asked)} if abroad else {each}
            spare = meant <= implied_by_form(text) if abroad and meant else spared.issuperset(phrase)
            others = same_thing(phrase, language, asked, spoken).union(
                *(converse(text).get(word, ()) for word in meant)
            )
            others |= _parting(others) | _verb_of(phrase)
            if abroad:  # a translation is the thing itself
                written, others = written | others, frozenset()
            is_noun = _is_insisted(phrase, asked) if abroad else not spare and not insisted.isdisjoint(phrase)
            does = not is_noun and phrase[0] != way and _is_done(phrase, last)
            found[each] = Concept(
                key=each,
                others=others,
                written=written,
                parts=_said_apart(phrase, language),
                weight=weight,
                is_noun=is_noun,
                is_verb=does,
                is_implied=spare,
            )
    return tuple(found.values())


@lru_cache(maxsize=16_384)
def concepts_in(text: str, language: str | None) -> frozenset[str]:
    """The keys of all things that a text names."""
    found = phrases(text, language)
    here = {each for phrase in found for each in (*_keys(phrase, language), *_parts(phrase, language))}
    if language in _UNSPACED:
        here.update(key(phrase, language) for phrase in named(text, language))
    return frozenset(here.union(_joined(text)))


def _parting(keys: frozenset[str]) -> frozenset[str]:
    """Of "switch on" the verb, which may stand apart from its particle: "switched with … on"."""
    parts = (key.split() for key in keys)
    return frozenset(verb for verb, *rest in parts if verb in {"turn", "switch"} and rest in (["on"], ["off"]))


def _verb_of(phrase: tuple[str, ...]) -> frozenset[str]:
    """Of a noun the verb that it is made of: "movement"."""
    found = _MENT.fullmatch(phrase[0]) if len(phrase) == 1 else None
    return frozenset({stem(found[1], "en")} if found and is_verb(found[1]) else ())


def _plain(text: str) -> str:
    """A text in lower case without what only makes it look different: "haven't", "429s", "her OK"."""
    text = _NOT.sub(lambda found: f"{_SHORTENED.get(found[1], found[1])} not", text.lower())
    text = _CLASSIFIER.sub("", _FROM_ON.sub("de ", _APART.sub(r"\1 \3\2", text)))
    return _SEVERAL.sub("", _OKAY.sub("approval", text))


def _is_done(phrase: tuple[str, ...], last: str) -> bool:
    """Whether a word or phrase may be a verb: "hand in", but not "notice period"."""
    return (is_done(phrase[0]) or phrase[0] == last) and (len(phrase) == 1 or phrase[-1] in _PARTICLES)


def _keys(phrase: tuple[str, ...], language: str | None, *, whole: bool = False) -> list[str]:
    """A phrase is one key; a single word is its stem, or nothing if it has no subject."""
    if len(phrase) > 1 or (whole and CJK.search(phrase[0])):
        return [key(phrase, language)]
    return stems(phrase[0], language)


def _parts(phrase: tuple[str, ...], language: str | None) -> list[str]:
    """The words of a phrase that keep their own meaning in it: those of "annual leave", but not of "on call"."""
    if len(phrase) == 1 or any(is_function_word(word, None) for word in phrase):
        return []
    return [each for word in phrase for each in stems(word, language)]


def _said_apart(phrase: tuple[str, ...], language: str | None) -> frozenset[str]:
    """The words of a phrase, where they are more than a day or a number."""
    if len(phrase) == 1 or all(word in LIGHT or is_function_word(word, language) for word in phrase):
        return frozenset()
    return frozenset(stems(" ".join(phrase), language))


def _weight(phrase: tuple[str, ...], asked: str | None, *, abroad: bool) -> float:
    """What a phrase of a question counts for; nothing, if it only asks or carries grammar."""
    if len(phrase) == 1 and (phrase[0] in ASKS or phrase[0] in _BETWEEN or is_function_word(phrase[0], asked)):
        return 0.0
    if (
        phrase[0] == "how"
        or phrase in _BOUNDS
        or all(word in _KINDS or word.removesuffix("s") in _KINDS for word in phrase)
    ):
        return LITTLE
    if _TYPED.fullmatch("".join(phrase)) or (asked in _UNSPACED and phrase[0].isascii() and phrase[0].isalpha()):
        return _TELLING
    return _weight_abroad(phrase, asked) if abroad else 1.0


def _weight_abroad(phrase: tuple[str, ...], asked: str | None) -> float:
    """What a word counts for where the texts speak another language: as its meaning; little, where that is unknown."""
    meant = meanings(phrase, asked)
    if meant and meant <= _KINDS | ASKING:
        return 0.0 if meant <= ASKING else LITTLE
    if not meant and CJK.search(phrase[0]):
        return UNKNOWN if len(_GRAMMAR.sub("", phrase[0])) > 1 else 0.0
    return 1.0 if meant else UNKNOWN


def _is_insisted(phrase: tuple[str, ...], asked: str | None) -> bool:
    """Whether what a foreign word means is a noun."""
    meant = meanings(phrase, asked)
    return bool(meant) and not any(is_verb(each) for each in meant) and any(map(names_subject, meant))


def _joined(text: str) -> dict[str, tuple[str, str]]:
    """Letters and digits that may be one name, written together, with their parts."""
    found = _CODE.finditer(text.lower())
    return {f"{m[1]}{m[2]}": (m[1], m[2]) for m in found if not is_function_word(m[1], None) and m[1] not in ASKING}

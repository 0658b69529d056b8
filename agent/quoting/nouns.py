"""Which words of an English question stand where a noun or what describes one stands: "the *billing database*".

Promises: pure, by position and small closed lists; what may be a verb counts as one. A noun that is asked for must be
named by what is quoted; a verb may well be put in another word. Must never guess: where unsure, a word is no noun.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from agent.knowledge.search.tokens import ASKING, LIGHT, is_function_word, stem

_TOKEN: Final = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*|[?.,;:!()]")
_OPENS: Final = frozenset(
    """
        the a an our your my their its his her this that these those every each any some no another both of
        for in on at with from by per about under during after before between into within without above
        below against which what whose many much or and is are was were does do did may can must should will
        has have could would been be
    """.split()  # noqa: SIM905 - words read better as words
)
"""After these comes a noun, or what describes it; after ``to`` may come a verb as well."""
_SUBJECTS: Final = frozenset("i we you they he she it one somebody someone anybody anyone everybody everyone".split())  # noqa: SIM905 - as above
"""After these comes a verb."""

VERBS: Final = frozenset(
    """
        accept access acknowledge act activate add adjust agree alert allow answer appear apply appoint
        approve arrange arrive ask assign attach attend audit authorise authorize avoid back bear become
        begin belong block book borrow break bring build buy call cancel carry catch cause change charge
        check choose claim clean clear click close collect come complain complete compare configure confirm
        connect contact contain continue control copy cost count cover create cross cut deal debug decide
        declare decline define delete deliver demand deny depend deploy deserve describe design destroy
        detect determine develop die differ disable discuss do drop earn edit eat employ enable encrypt end
        enforce enrol enter equip erase escalate exceed exist expect expire explain extend face fail fall
        feel fetch file fill find finish fire fit fix flag fly follow forbid force forget form forward get
        give go grant guard handle hang happen head hear help hire hit hold identify ignore implement
        improve include increase inform inspect install introduce invite involve join judge jump keep know
        label last launch lead leak learn leave lend let lift limit link list live load lock log look lose
        maintain make manage mark matter mean measure meet mention merge migrate miss move mute name need
        note notice notify obtain occur offer open operate order organise overlap owe own page park pass pay
        perform permit pick place plan point post prepare present press prevent print produce promote
        protect provide publish pull purchase push put quit raise reach react read receive recognise
        recommend record recover redeem reduce refer refund refuse register reimburse reject release rely
        remain remember remind remove rename renew rent repair repeat replace reply report request require
        reserve reset resign resolve respond rest restart restore retain retry return reveal review revoke
        reward ring rise roll rotate rule run save say schedule search seat see select sell send separate serve
        set settle share ship show shut sign silence sit skip smoke solve speak spend split stand start
        state stay steal step stop store submit subscribe suffer suggest supply support suppose suspend swap
        switch take talk teach tell test thank think throw touch train transfer travel treat trigger trust
        try turn understand update upgrade use validate verify drive ride sleep practise gather assemble
        survive reuse photograph commute relocate view visit wait wake walk want warn wash
        watch wear weigh win wipe wonder work worry write allocate archive commit expose lapse issue occupy
        oversee disappear vanish
    """.split()  # noqa: SIM905 - words read better as words
)
"""Words that may be the verb of a question. Many are nouns as well; those are not insisted on."""

GENERIC: Final = frozenset(
    """
        address amount area basis case category condition consequence contact cost count date deadline
        definition detail difference duration example expression fact form frequency goal idea information
        instruction item kind length level limit list location longest manner maximum meaning measure method
        minimum mode name number option order part place percentage period person piece place point position
        possibility price procedure process purpose range rate reason recommendation requirement
        responsibility result role rule share side situation size sort stage step subject sum task term
        thing time topic total type use user value way word week command consequence tool system program app
        question matter issue scheme format convention pattern structure style empty free available
        necessary ready different certain big bigger biggest high higher highest large larger largest long
        longer low lower lowest most least early earliest late latest old older oldest short shorter
        shortest small smaller smallest good best better worst bad current currently exact general main new
        own possible proper right same single nobody nothing none someone somebody anybody anyone everybody
        everyone money specific usual various whole full real inside outside
        problem trouble advance ahead beforehand code codes job
    """.split()  # noqa: SIM905 - words read better as words
)
"""Nouns and adjectives that say how something is asked for, not what."""


_WAY: Final = re.compile(r"\bhow (?:(?:do|can|should|could|must) (?:i|we|you|one)|to) ([^\W_]+)", re.IGNORECASE)
_HELPERS: Final = frozenset("do does did can could may might must should will would".split())  # noqa: SIM905 - as above
_LEAST_CLAUSE: Final = 2
_PARTICIPLES: Final = frozenset(
    """
        woken taken given known shown written broken kept sent held paid left lost found made built rebuilt bought
        sold told met chosen begun driven flown spoken stolen forgotten gone seen worn thrown drawn grown frozen
        hidden eaten beaten fallen risen rung
    """.split()  # noqa: SIM905 - words read better as words
)
_VERB_STEMS: Final = frozenset(stem(word, "en") for word in VERBS)
_MIXED: Final = re.compile(r"\d[^\W\d]|[^\W\d]\d")
_DETERMINERS: Final = frozenset("the a an our your my their its his her this that these those of for".split())  # noqa: SIM905 - as above


@lru_cache(maxsize=512)
def nouns(question: str) -> frozenset[str]:
    """The words, in lower case, that a quotation has to name in one way or another."""
    found: set[str] = set()
    last = last_verb(question)
    inside = skip = False
    tokens = _TOKEN.findall(question.lower())
    for before, token, after in zip(["", *tokens], tokens, [*tokens[1:], ""], strict=False):
        if token in _OPENS:
            inside, skip = True, False
        elif token in _SUBJECTS:
            inside, skip = True, True
        elif not token[0].isalnum() or is_function_word(token, "en"):
            inside = skip = False
        elif skip:
            skip = False
        elif inside or token.isdigit():
            describes = before in _DETERMINERS and after[:1].isalnum() and not is_function_word(after, "en")
            found.update(part for part in re.split(r"[-'’]", token) if _is_noun(part, describes=describes))
    return frozenset(found - {last})


@lru_cache(maxsize=512)
def last_verb(question: str) -> str:
    """The word in lower case that ends a question after ``do`` or ``can`` and must be its verb, no other being one."""
    clause = re.split(r"[,;:.()]", question.lower().strip(" ?!."))[-1]
    tokens: list[str] = _TOKEN.findall(clause)
    helper = next((at for at, token in enumerate(tokens) if token in _HELPERS), len(tokens))
    said = tokens[helper + 1 :]
    if len(said) < _LEAST_CLAUSE or is_function_word(said[-1], "en") or any(map(_does, said)):
        return ""
    return said[-1]


@lru_cache(maxsize=512)
def way_asked(question: str) -> str:
    """What is to be done, in lower case, where a question asks how: "how do I *cancel* a flight?"."""
    found = _WAY.search(question)
    return found[1].lower() if found else ""


def _does(word: str) -> bool:
    """Whether a word may be a verb in any of its forms, or only takes the place of one."""
    return word in ASKING or is_verb(word) or is_verb(re.sub(r"(?:ed|ing)$", "", word))


def _is_noun(word: str, *, describes: bool) -> bool:
    """``describes``: it stands between an article and another noun, as in "the billing service"."""
    if word in ASKING or word in LIGHT or is_function_word(word, "en") or _MIXED.search(word):
        return False
    if re.search(r"(?:ed|ly)$", word) or (word.endswith("ing") and not describes):
        return False
    if word in _PARTICIPLES and not describes:
        return False
    return not is_verb(word) and GENERIC.isdisjoint(_singular(word))


def names_subject(word: str) -> bool:
    """Whether an English word or phrase, in lower case, may be a noun that says what is asked about."""
    return _is_noun(word.rsplit(maxsplit=1)[-1], describes=False)


def is_verb(word: str) -> bool:
    """Whether an English word, in lower case, may be a verb in its plain form."""
    return not VERBS.isdisjoint(_singular(word))


def is_done(word: str) -> bool:
    """Whether an English word, in lower case, may be a verb in any of its forms."""
    return stem(word, "en") in _VERB_STEMS


def _singular(word: str) -> set[str]:
    return {word, word.removesuffix("s"), word.removesuffix("es")}

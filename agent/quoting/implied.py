"""Words of a question that no answer need say again: "where do I *leave* my bike?", "… with *a colleague*".

Promises: pure; closed lists of everyday English words, told apart by the form of the question. Such a word still counts
where it is said; only its absence costs little. Must never make little of the word that names the subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent.knowledge.search.tokens import is_function_word, stem, words
from agent.quoting.answer_type import counted

_WHERE: Final = r"\b(?:where|wo|où|dónde|di mana)\b"
_WHEN: Final = r"\b(?:when|what time|wann|quand|à quelle heure|cuándo|a qué hora|kapan)\b"
_LENGTH: Final = r"\b(?:how long|wie lange|combien de temps|cuánto tiempo|berapa lama)\b"
_HOW_MUCH: Final = r"\b(?:how (?:much|many)|wie ?viele?|combien|cuánt[oa]s?|berapa)\b"


def _stems(listed: str) -> frozenset[str]:
    return frozenset(stem(word, "en") for word in listed.split())


_BY_FORM: Final = tuple(
    (re.compile(asked, re.IGNORECASE), _stems(listed))
    for asked, listed in (
        (_WHERE, "leave put place park keep store find stand hang sit lie see look live be located bring pick fetch"),
        (
            rf"{_LENGTH}|\bhow many (?:\w+ )?(?:minutes|hours|days|weeks|months|years)\b",
            "take last stay remain run go valid",
        ),
        (
            rf"{_HOW_MUCH}|\bwhat(?: is|['’]s| are) (?:the|our|my)\b",
            "earn receive get pay spend cost reimburse claim budget allowance stipend grant sum",
        ),
        (r"\bwho(?:m|se)?\b", "handle manage run deal look care responsible charge contact turn speak write reach"),
        (r"\bwho(?:m|se)?\b", "broken damaged lost stolen missing urgent"),
        (_WHEN, "happen start begin come"),
        (r"\bhow (?:do|can|could|should|would) (?:i|we|you|one)\b", "request obtain arrange perform"),
    )
)
"""What each question word implies: whoever asks where something is left, put or found asks where it is."""

_DOCUMENTS: Final = _stems("handbook documentation wiki docs intranet manual runbook playbook guideline page")
"""Where everything that can be answered stands."""

_EMPTY: Final = frozenset(
    """
        kind kinds sort sorts type types manner case cases situation example thing things stuff detail details info idea
        matter necessary certain different proper exact general usual whole full real possible best right currently
        towards toward per via against among question questions anyone anybody someone somebody everyone everybody
        nobody several multiple various few couple myself yourself himself herself ourselves themselves itself always
        ever never away together alone ago
        command commands everything anything something nothing still yet already quite rather really actually
        automatically manually usually normally tells telling instead anyway today tonight tomorrow beforehand
        afterwards afterward vs versus behind mine yours ours theirs
    """.split()  # noqa: SIM905 - words read better as words
)

_PERSON: Final = "colleague|coworker|co-worker|teammate|employee|person|somebody|someone|friend|member|worker|staff"
_SOMEBODY: Final = re.compile(
    rf"\b(?:an?|another|some|any|each|every|all)\s+((?:{_PERSON})s?)\b"
    rf"|\b(?:one|some|any) of (?:my|our|the)\s+((?:{_PERSON})s)\b",
    re.IGNORECASE,
)
"""One of those whom everything is about anyway."""

_BEHIND: Final = _stems("engineer employee person member staff worker")
"""Behind a word that says which one, these say nothing more: "the secondary *engineer*"."""

_OWNED: Final = re.compile(r"\b([A-Z][\w-]*\w)['’]s\b|\b(?:at|in|for|of) ([A-Z][\w-]*\w)\b")
_CALLED: Final = r"\bat {name}\b|\b{name}(?:['’]s)?(?: \w+){{0,2}} (?:team|staff|employees|handbook)\b"

_CONVERSE: Final = tuple(
    (re.compile(asked, re.IGNORECASE), _stems(said), _stems(others))
    for asked, said, others in (
        (
            rf"{_LENGTH}|\b(?:until|till) when\b|{_WHEN}|\bhow many\b",
            "keep store retain save hold stay remain live survive exist available last preserve",
            "delete remove erase purge expire",
        ),
        (rf"{_WHEN}|{_LENGTH}|\bhow late\b", "close shut", "open"),
        (rf"{_WHEN}|{_LENGTH}", "expire end", "valid"),
    )
)
"""In a question for a time one says it by its opposite: what is kept for a year is deleted after one."""


@lru_cache(maxsize=512)
def implied(question: str) -> frozenset[str]:
    """The words of an English question, in lower case, that an answer need not say."""
    said = words(question)
    form = implied_by_form(question)
    found = {word for word in said if word in _EMPTY or stem(word, "en") in form}
    found.update(word for pair in _SOMEBODY.findall(question.lower()) for word in pair if word)
    return frozenset((found | _behind(said)) - set(counted(question)))


@lru_cache(maxsize=512)
def implied_by_form(question: str) -> frozenset[str]:
    """The stems of the English words that the form of a question implies, whatever its language."""
    return _DOCUMENTS.union(*(stems for asked, stems in _BY_FORM if asked.search(question)))


@lru_cache(maxsize=512)
def converse(question: str) -> Mapping[str, frozenset[str]]:
    """For words of a question for a time, the stems that say the same from the other side."""
    return {word: others for asked, said, others in _CONVERSE if asked.search(question) for word in said}


def own_names(question: str, texts: Iterable[str]) -> frozenset[str]:
    """Names in a question, in lower case, by which texts call those they are for: "at Acme", "the Acme team"."""
    asked = {name for pair in _OWNED.findall(question) for name in pair if name}
    called = {name: re.compile(_CALLED.format(name=re.escape(name))) for name in asked}
    return frozenset(name.lower() for text in texts for name, said in called.items() if said.search(text))


def _behind(said: Sequence[str]) -> set[str]:
    """Words for a person that follow the word that says which one."""
    return {
        word for before, word in pairwise(said) if stem(word, "en") in _BEHIND and not is_function_word(before, "en")
    }

"""Words of a question that no answer need say again: "where do I *leave* my bike?", "… with *a colleague*".

Promises: pure; closed lists of everyday English words, told apart by the form of the question. Such a word still counts
where it is said; only its absence costs little. Must never make little of the word that names the subject.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Final

from agent.knowledge.terms import is_function_word, stem, words
from agent.quoting.measures import counted


def _stems(listed: str) -> frozenset[str]:
    return frozenset(stem(word, "en") for word in listed.split())


_BY_FORM: Final = tuple(
    (re.compile(asked, re.IGNORECASE), _stems(listed))
    for asked, listed in (
        (
            r"\bwhere\b",
            "leave put place park keep store find stand hang sit lie see look live be located bring pick fetch",
        ),
        (
            r"\bhow long\b|\bhow many (?:\w+ )?(?:minutes|hours|days|weeks|months|years)\b",
            "take last stay remain run go",
        ),
        (
            r"\bhow (?:much|many)\b|\bwhat(?: is|['’]s| are) (?:the|our|my)\b",
            "earn receive get pay spend cost reimburse claim budget allowance stipend grant sum",
        ),
        (
            r"\bwho(?:m|se)?\b",
            (
                "handle manage run deal look care responsible charge contact turn speak write reach broken damaged "
                "lost stolen missing urgent"
            ),
        ),
        (r"\bwhen\b|\bwhat time\b", "happen start begin come"),
    )
)
"""What each question word implies: whoever asks where something is left, put or found asks where it is."""

_DOCUMENTS: Final = _stems("handbook documentation wiki docs intranet manual runbook playbook guideline page")
"""Where everything that can be answered stands."""

_EMPTY: Final = _stems(
    """
        kind sort type manner case situation example thing stuff detail information info idea matter
        necessary certain different proper exact general usual whole full real possible best right
        currently towards toward per via against among question questions anyone anybody someone somebody
        everyone everybody nobody several multiple various few couple
        myself yourself himself herself ourselves themselves itself always ever never still yet already quite rather
        really actually automatically manually usually normally
    """
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

_CONVERSE: Final = tuple(
    (re.compile(asked, re.IGNORECASE), _stems(said), _stems(others))
    for asked, said, others in (
        (
            r"\bhow long\b|\b(?:until|till) when\b|\bwhen\b|\bhow many\b",
            "keep store retain save hold stay remain live exist available last preserve",
            "delete remove erase purge expire",
        ),
        (r"\bwhen\b|\bwhat time\b|\bhow (?:long|late)\b", "close shut", "open"),
        (r"\bwhen\b|\bhow long\b", "expire end", "valid"),
    )
)
"""In a question for a time one says it by its opposite: what is kept for a year is deleted after one."""


@lru_cache(maxsize=512)
def implied(question: str) -> frozenset[str]:
    """The stems of a question's words that an answer need not say."""
    found = set(_DOCUMENTS | _EMPTY)
    for asked, stems in _BY_FORM:
        if asked.search(question):
            found |= stems
    found.update(stem(word, "en") for pair in _SOMEBODY.findall(question.lower()) for word in pair if word)
    found |= _behind(question)
    return frozenset(found - {stem(word, "en") for word in counted(question)})


def _behind(question: str) -> set[str]:
    """Words for a person that follow the word that says which one."""
    said = words(question)
    return {
        stem(word, "en")
        for before, word in pairwise(said)
        if stem(word, "en") in _BEHIND and not is_function_word(before, "en")
    }


@lru_cache(maxsize=512)
def converse(question: str) -> Mapping[str, frozenset[str]]:
    """For words of a question for a time, the stems that say the same from the other side."""
    return {word: others for asked, said, others in _CONVERSE if asked.search(question) for word in said}

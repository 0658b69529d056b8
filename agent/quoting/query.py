"""What to search for: the question itself, or a follow-up completed from the questions before it.

Promises: pure; a question that stands on its own stays exactly as it is; a follow-up keeps its own words first. Must
never take words from answers: what Orion said is no evidence of what is asked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from agent.knowledge.search.thesaurus import other_words, phrases
from agent.knowledge.search.tokens import LIGHT, subject_tokens, words
from agent.thread.conversation import Message
from verification.text.language import detect
from verification.values.dates import MONTHS, WEAK, WEEKDAYS

MOST_STEPS: Final = 3
"""How many follow-ups in a row are traced back."""

_OPENING: Final = re.compile(
    r"\W*(?:(?:and|but|or|also|so|then|same|what (?:about|if)|how about"
    r"|und|aber|oder|auch|was ist (?:mit|bei)|wie (?:ist|sieht) (?:es|das)|et|mais|ou|aussi|qu['’]en est-il"
    r"|y|e|pero|o|también|qué (?:pasa|hay) con|dan|tapi|atau|juga|bagaimana (?:dengan|kalau)|kalau)\b"
    r"|では|じゃあ|それで|また|那么|那|还有|而且)",
    re.IGNORECASE,
)
_POINTING: Final = re.compile(
    r"\b(?:it|its|they|them|their|this|that|these|those|he|she|him|(?:an?|the) (?:new|old|other) one|another one"
    r"|dafür|davon|damit|dort|dies|diese[rs]?|deren|dessen|cela|ça|celui-ci|celle-ci|eso|esto|ello|itu|tersebut)\b"
    r"|それ|その|これ|この|它|这个|那个|这|呢[?？]?$",
    re.IGNORECASE,
)
_COUNTING: Final = re.compile(r"\bhow many (?:do|does|did|can|may|must|should|have|has)\b", re.IGNORECASE)
"""What is counted was said before."""
ASKS: Final = frozenset(
    """
    what which who whom whose where when why how is are was were do does did can could may must should will has have
    explain define describe show list tell was welche welcher welches wer wo wann warum wie ist sind kann darf muss
    que quel quelle quels quelles qui où quand pourquoi comment est sont peut qué cuál quién dónde cuándo cómo es son
    apa siapa kapan mana mengapa bagaimana berapa apakah
    """.split()  # noqa: SIM905 - words read better as words
)
"""What a full question opens with: "what is fencing?" has one subject and needs no other."""
_MOST_OPENED: Final = 4
_MOST_POINTED: Final = 2
_CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_SHORT_CJK: Final = 8
_DIGITS: Final = re.compile(r"\d+")
_NUMBER: Final = re.compile(r"(?<![\w.,])\d{1,9}(?:,\d{3})*(?![\w.,]*\d)")
_MOST_DIGITS: Final = 18
_CODE: Final = re.compile(r"\b([A-Za-z]{1,8})([- ]?)(\d{1,6})\b")


def search_query(question: str, history: tuple[Message, ...]) -> str:
    """The question, with the subject of the previous question(s) behind it where it needs one."""
    earlier = _earlier(question, history)
    if not needs_subject(question):
        return question
    own = subject_tokens(question)
    taken = {token.casefold() for token in own}
    added: list[str] = []
    for text in earlier:
        for token in _subjects(text):
            if token.casefold() not in taken and not any(_stands_for(token, mine) for mine in own):
                taken.add(token.casefold())
                added.append(token)
        if not needs_subject(text):
            break
    return " ".join([question.strip(), *added])


def _subjects(text: str) -> Iterator[str]:
    """What a text is about: its subject words, phrases whole ("fail over" without its "over" is something else)."""
    together = [phrase for phrase in phrases(text) if len(phrase) > 1]
    for token in subject_tokens(text):
        yield next((" ".join(phrase) for phrase in together if token.casefold() in phrase), token)


def wider_query(question: str, history: tuple[Message, ...]) -> str:
    """The question with other words for the same things and other forms of its numbers, if there are any."""
    query = search_query(question, history)
    added = [*other_words(query, spoken_in(question, history)), *_other_forms(query)]
    return " ".join([query, *added]) if added else ""


def query_abroad(question: str, history: tuple[Message, ...]) -> str:
    """The question in the words of all other languages, where it names anything they have a word for."""
    query = search_query(question, history)
    return " ".join(other_words(query, spoken_in(question, history), foreign=True))


def spoken_in(question: str, history: tuple[Message, ...]) -> str | None:
    """The language of a question; of the questions before it where it is too short to tell."""
    return detect(question) or next(filter(None, map(detect, _earlier(question, history))), None)


def _other_forms(query: str) -> Iterator[str]:
    """``3000`` for ``3,000`` and the reverse, ``FH-2002`` for ``FH2002``, ``SEV1`` for ``sev 1``."""
    for found in _NUMBER.finditer(query):
        digits = re.sub(r"\D", "", found[0])
        if len(digits) > _MOST_DIGITS:
            continue
        yield from (form for form in (digits, f"{int(digits):,}") if form != found[0])
    for letters, between, digits in _CODE.findall(query):
        yield f"{letters}{digits}" if between else f"{letters}-{digits}"


def needs_subject(question: str) -> bool:
    """Whether a question leaves out what it is about."""
    subjects = [token for token in subject_tokens(question) if token.casefold() not in LIGHT]
    if _CJK.search(question):
        return len(question.strip()) <= _SHORT_CJK or bool(_OPENING.match(question) and len(question) <= 2 * _SHORT_CJK)
    if _OPENING.match(question):
        return len(subjects) <= _MOST_OPENED
    if _COUNTING.search(question):
        return len(subjects) <= _MOST_POINTED
    if _POINTING.search(question):
        return len(subjects) <= _MOST_POINTED
    if not subjects:
        return True
    first = next(iter(words(question)), "")
    return len(subjects) == 1 and first not in ASKS


def _earlier(question: str, history: tuple[Message, ...]) -> Iterator[str]:
    """The questions before this one, latest first; this one itself may stand at the end of the history."""
    asked = [m.text for m in history if m.role == "user" and m.addressed and subject_tokens(m.text)]
    if asked and asked[-1].strip() == question.strip():
        asked.pop()
    yield from list(reversed(asked))[:MOST_STEPS]


def _stands_for(theirs: str, mine: str) -> bool:
    """Whether ``mine`` takes the place of ``theirs``: another day, another month, another number of one series."""
    one, other = theirs.casefold(), mine.casefold()
    if one in WEEKDAYS and other in WEEKDAYS:
        return True
    if one in MONTHS and other in MONTHS and one not in WEAK:
        return True
    return bool(_DIGITS.search(one)) and _DIGITS.sub("#", one) == _DIGITS.sub("#", other)

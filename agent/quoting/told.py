"""What a message only tells, apart from what it asks; and questions that ask whether something told still holds.

Promises: pure, linear but for what ``_LONGEST_CLAIM`` bounds; both parts are made of the message's own words, but for
the shortest question for a meaning; a sentence with a question mark is never taken for told. Must never decide what the
answer is.
"""

from __future__ import annotations

import re
from typing import Final

from agent.quoting.parts import ASKS_UNSPACED, AUXILIARY, INTERROGATIVE, LED
from verification.text.language import detect

_CIRCUMSTANCE: Final = (
    r"(?:if|when(?:ever)?|while|once|unless|until|because|since|as|for|in|on|at|by|from|to|with|without|before|after"
    r"|during|between|within|under|over|about|of|and|but|or|so|also"
    r"|wenn|falls|während|bei|beim|für|nach|vor|ohne|mit|im|am|zu|zum"
    r"|zur|und|si|pendant|pour|dans|après|avant|sans|avec|en|à|au|et|cuando|durante|para|por|después|antes|sin|con|y|kalau|jika|untuk|saat|di|pada|dan)\b"
)
"""What opens a part of a question itself: "if I lose it, whom do I tell?"."""
_TOLD: Final = (
    re.compile(
        rf"(?!\W*+(?:{INTERROGATIVE}|{AUXILIARY}))(?P<told>[^?？]*[^\W\d]{{2}}[.!…])\s++(?P<asks>[^.!…?？]*[?？]\W*)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?!\W*(?:{_CIRCUMSTANCE}|{INTERROGATIVE}|{AUXILIARY}))(?P<told>(?:[^?？:]|:(?!\s))+?)"
        rf"(?:[,;.!…]|\s[-–—])\s+(?:(?:and|so|but|also|und|et|y|dan)\s+)?"
        rf"(?P<asks>(?:{LED}{INTERROGATIVE}|{AUXILIARY}).*)",
        re.IGNORECASE | re.DOTALL,
    ),
    # Fewer words before a colon are the subject: "Interns: how long is the probation period?"
    re.compile(
        rf"(?!\W*(?:{_CIRCUMSTANCE}|{INTERROGATIVE}|{AUXILIARY}))(?P<told>(?:[^\s?？:]++\s++){{3,}}[^\s?？:]++):\s+"
        rf"(?P<asks>(?:{LED}{INTERROGATIVE}|{AUXILIARY}).*)",
        re.IGNORECASE | re.DOTALL,
    ),
)
_TOLD_AFTER: Final = re.compile(
    rf"(?P<asks>[^?？]+[?？])\s++(?P<told>(?!\W*+(?:{_CIRCUMSTANCE}|{INTERROGATIVE}|{AUXILIARY}))[^\w?？]*+\w[^?？]*+)",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"(?<!\w)['\"“‘„«]([^'\"“”‘’„«»\n]{2,60})['\"”’“»](?!\w)")
_MEANING: Final = re.compile(
    r"what(?:['’]s| is| are| does| do)(?: (?:we|you|they|people)(?= mean))?(?: mean by)?"
    r"(?: (?:that|this|it|they|those|these|mean|supposed to mean|again|here|exactly|anyway))+\W*",
    re.IGNORECASE,
)
_REQUESTS: Final = re.compile(
    r"(?:^|[.!…]\s+)(?:[^\W_]+ ){0,2}?(?:please|describe|explain|define|list|show|tell me|give me)\b|\balso\b",
    re.IGNORECASE,
)
"""What asks for something without a question mark."""
_TOLD_QUOTED: Final = re.compile(
    rf"(?P<told>[^?？]{{0,300}}{_QUOTED.pattern}[^?？,;.!…]{{0,60}})[,;.!…]\s+(?P<asks>{_MEANING.pattern})",
    re.IGNORECASE | re.DOTALL,
)
_QUOTES: Final = "'\"“”‘’„«»` "
_MOST_TOLD: Final = 400
_LONGEST_CLAIM: Final = 300
"""Of more characters a message is no such question, and comparing would take long."""
_CLAIMED: Final = re.compile(
    r"\W*is it (?:(?:still|really|actually) )?(?:true|right|correct|the case) that (.+?)\W*"
    r"|\W*(?:is|are) (.+ (?:limit|deadline|allowance|rule|rate|threshold|period|amount|price)\b.*) still"
    r" (?:right|true|correct|valid|current|in force|up to date)\W*"
    r"|\W*(?:is|are|do|does|did) ([^?？]+ still [^?？]*\d[^?？]*?)\W*"
    r"|\W*(?:is|are|do|does|did) ([^?？]+?(?:\b|[€$£])\d[\d.,]*(?: [^\W\d]+)? or [€$£]?\d[^?？]*?)\W*"
    r"|\W*(?:is|are|do|does|did) ([^?？]+?(?:\b|[€$£])\d[^?？]*?), or"
    r" (?:less|more|fewer|longer|shorter|later|earlier)\W*",
    re.IGNORECASE,
)
_ONE_NAME: Final = r"[^,;:.!?？]+?"
_MEANT_BY: Final = re.compile(
    r"\W*what (?:(?:do|does) (?:we|you|they|people|everybody|everyone)(?: (?:all|here))? mean|is meant)(?: here)? by"
    rf" (?:the (?:word|term) )?({_ONE_NAME})(?: (?:here|around here))?\W*"
    r"|\W*was (?:(?:versteht|meint) man|verstehen wir|meinen wir)(?: (?:bei uns|hier|denn))? (?:unter|mit)"
    rf" (?:(?:ein|d)e[mr] )?({_ONE_NAME})\W*"
    r"|\W*(?:qu['’]entend-on|qu['’]est-ce qu['’]on entend|que veut-on dire)(?: (?:ici|chez nous))?"
    rf" par ({_ONE_NAME})\W*"
    rf"|\W*qué (?:se entiende|entendemos|se quiere decir)(?: aquí)? (?:por|con) ({_ONE_NAME})\W*"
    rf"|\W*apa yang (?:dimaksud|kita maksud) dengan ({_ONE_NAME})\W*",
    re.IGNORECASE,
)
_ASKED_MEANING: Final = ("What is {}?", "Was ist {}?", "Qu'est-ce que {} ?", "¿Qué es {}?", "Apa itu {}?")
"""The shortest question for a meaning, in the language of each form of ``_MEANT_BY``."""
_CHECKS: Final = re.compile(
    r"\W*(?:(?:and|so|but) )?"
    r"(?:which (?:one |of (?:them|these|those|the two) |figure |number |amount |rule )?"
    r"(?:is|are|counts?|holds?|appl(?:y|ies)|(?:do|should) (?:i|we) (?:use|follow|take|trust))?"
    r"|(?:is|are) (?:that|this|it|these|they)|what is|what do (?:they|both|the two)(?: pages| documents)? say"
    r"|what are (?:the|these|those|both) (?:two|both|figures|numbers|amounts|limits|deadlines)(?: [^\W\d]+)?"
    r"|does (?:that|this|it))"
    r"(?: (?:still|really|actually))?"
    r"(?: (?:right|true|correct|valid|the case|so|current|newer|the newer one|hold|apply|count|in force|up to date))?"
    r"(?: (?:now|today|any ?more|at the moment))?\W*",
    re.IGNORECASE,
)


def told_and_asked(text: str) -> tuple[str, str]:
    """What is told before a question or behind it, and the question: "I lost my badge. | Whom do I tell?".

    Of what is told, only what stands in quotation marks, if anything does: "somebody said 'toil', what is that?".
    """
    told, asks = _around(text)
    asks = _meaning_asked(asks)
    if _asks_too(told):
        return "", text
    named = _QUOTED.findall(told)
    if named and _MEANING.fullmatch(asks):
        return "", f"What is {' and '.join(named)}?"
    return " ".join(named) or _shortened(told), asks


def _meaning_asked(question: str) -> str:
    """A question such as "What do people here mean by 'fencing'?" in its shortest form, any other as it is."""
    found = _MEANT_BY.fullmatch(question) if len(question) <= _LONGEST_CLAIM else None
    meant = next(filter(None, found.groups())).strip(_QUOTES) if found else ""
    return _ASKED_MEANING[(found.lastindex or 1) - 1].format(meant) if found and meant else question


def _asks_too(told: str) -> bool:
    """Whether what seems to be told asks for something, in words that need no question mark."""
    unspaced = detect(told) in {"ja", "zh"}
    return bool(_REQUESTS.search(told) or (unspaced and ASKS_UNSPACED.search(told)))


def _around(text: str) -> tuple[str, str]:
    """What stands before a question or behind it and asks nothing, and the question."""
    found = next(filter(None, (form.fullmatch(text) for form in (*_TOLD, _TOLD_QUOTED))), None)
    told, asks = (found["told"], found["asks"]) if found else ("", text)
    behind = _TOLD_AFTER.fullmatch(asks)
    return (f"{told} {behind['told']}".strip(), behind["asks"]) if behind else (told, asks)


def _shortened(told: str) -> str:
    """What was told last, where much was: a page that somebody pasted says nothing of what is asked."""
    return told if len(told) <= _MOST_TOLD else told[-_MOST_TOLD:].partition(" ")[2]


def is_check(question: str) -> bool:
    """Whether a question only asks if what was told before it holds: "is that still right?", "which one counts?"."""
    return _CHECKS.fullmatch(question) is not None


def claimed(question: str) -> str:
    """What a question asks the truth of: "is it still true that *we have 60 days*?"; else nothing."""
    found = _CLAIMED.fullmatch(question) if len(question) <= _LONGEST_CLAIM else None
    return next(filter(None, found.groups())) if found else ""

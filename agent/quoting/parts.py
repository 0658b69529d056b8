"""A message that asks for several things, as questions that each ask for one.

Promises: pure; every part is made of the question's own words in their order. Questions one behind the other are always
told apart, and so is what is only told around them; two things in one question ("the hotel limit and the meal limit")
only on request, since "and" also stands inside names. Must never make more than ``MOST`` parts.
"""

from __future__ import annotations

import re
from typing import Final

from agent.knowledge.terms import is_function_word, words
from agent.query import ASKS
from verification.language import detect

MOST: Final = 5

_AND: Final = r"(?:and|und|et|y|e|dan|also|sowie|ainsi que|además|serta)"
_LED: Final = (
    r"(?:(?:up to|between|within|during|in|at|for|by|on|from|to|after|until|above|um|für|ab|bis|nach|à|en|a|con|de|pada"
    r"|dalam)\s+)?"
)
_INTERROGATIVE: Final = (
    r"(?:how|what|who|whom|whose|when|where|which|why|wie|was|wer|wen|wem|wann|wo|warum|welche[rsnm]?|qui|quand"
    r"|où|combien|comment"
    r"|quel(?:le)?s?|pourquoi|cuánt[oa]s?|cuándo|quién(?:es)?|dónde|qué|cuál(?:es)?|cómo|berapa|kapan|siapa"
    r"|bagaimana|apa(?:kah)?|di mana)\b"
)
_AUXILIARY: Final = (
    r"(?:(?:am|have|has|could|would|shall) (?:i|we|you|it|they)|is|are|do|does|did|can|may|must|should|will"
    r"|ist|sind|kann|darf|muss|gibt es|est-ce|puis-je|puede|puedo|debo|bolehkah)\s"
)
_SPLIT: Final = re.compile(
    rf"(?<=[?？。])\s*(?=\S)|[,;]?\s+{_AND}\s+(?={_LED}{_INTERROGATIVE}|{_AUXILIARY})|,\s+(?={_INTERROGATIVE})",
    re.IGNORECASE,
)
_SPLIT_UNSPACED: Final = re.compile(r"(?<=[?？。])\s*(?=\S)|[、，；](?:また|そして|それと|以及|还有|并且|而且)?")
_ASKS_UNSPACED: Final = re.compile(
    r"[何誰几哪谁]|いくら|いつ|どこ|どの|どれ|どう|なぜ|多[少久长大]|什么|怎么|如何|ですか|ますか|吗|[?？]"
)
_ASKS: Final = re.compile(rf"{_INTERROGATIVE}|[?？]", re.IGNORECASE)
_TWO: Final = {
    name: re.compile(rf"\s+(?:{joins})\s+", re.IGNORECASE)
    for name, joins in (("en", "and"), ("de", "und|sowie"), ("fr", "et"), ("es", "y|e"), ("id", "dan|serta"))
}
_TOKEN: Final = re.compile(r"\S+")
_CIRCUMSTANCE: Final = (
    r"(?:if|when(?:ever)?|while|once|unless|until|because|since|as|for|in|on|at|by|from|to|with|without|before|after"
    r"|during|between|within|under|over|about|of|and|but|or|so|also"
    r"|wenn|falls|während|bei|beim|für|nach|vor|ohne|mit|im|am|zu|zum"
    r"|zur|und|si|pendant|pour|dans|après|avant|sans|avec|en|à|au|et|cuando|durante|para|por|después|antes|sin|con|y|kalau|jika|untuk|saat|di|pada|dan)\b"
)
"""What opens a part of a question itself: "if I lose it, whom do I tell?"."""
_TOLD: Final = (
    re.compile(
        rf"(?!\W*+(?:{_INTERROGATIVE}|{_AUXILIARY}))(?P<told>[^?？]*[^\W\d]{{2}}[.!…])\s++(?P<asks>[^.!…?？]*[?？]\W*)",
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?!\W*(?:{_CIRCUMSTANCE}|{_INTERROGATIVE}|{_AUXILIARY}))(?P<told>[^?？:]+?)"
        rf"(?:[,;.!…]|\s[-–—])\s+(?:(?:and|so|but|also|und|et|y|dan)\s+)?"
        rf"(?P<asks>(?:{_LED}{_INTERROGATIVE}|{_AUXILIARY}).*)",
        re.IGNORECASE | re.DOTALL,
    ),
)
_TOLD_AFTER: Final = re.compile(
    rf"(?P<asks>[^?？]+[?？])\s++(?P<told>(?!\W*+(?:{_CIRCUMSTANCE}|{_INTERROGATIVE}|{_AUXILIARY}))[^?？]*\w[^?？]*)",
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
_MOST_TOLD: Final = 400
_LONGEST_CLAIM: Final = 300
"""Of more characters a message is no such question, and comparing would take long."""
_CLAIMED: Final = re.compile(
    r"\W*is it (?:(?:still|really|actually) )?(?:true|right|correct|the case) that (.+?)\W*"
    r"|\W*(?:is|are) (.+ (?:limit|deadline|allowance|rule|rate|threshold|period|amount|price)\b.*) still"
    r" (?:right|true|correct|valid|current|in force|up to date)\W*"
    r"|\W*(?:is|are|do|does|did) ([^?？]+ still [^?？]*\d[^?？]*?)\W*",
    re.IGNORECASE,
)
_CHECKS: Final = re.compile(
    r"\W*(?:(?:and|so|but) )?"
    r"(?:which (?:one |of (?:them|these|those|the two) |figure |number |amount |rule )?"
    r"(?:is|are|counts?|holds?|appl(?:y|ies)|(?:do|should) (?:i|we) (?:use|follow|take|trust))?"
    r"|(?:is|are) (?:that|this|it|these|they)|what is|what do (?:they|both|the two)(?: pages| documents)? say"
    r"|does (?:that|this|it))"
    r"(?: (?:still|really|actually))?"
    r"(?: (?:right|true|correct|valid|the case|so|current|newer|the newer one|hold|apply|count|in force|up to date))?"
    r"(?: (?:now|today|any ?more|at the moment))?\W*",
    re.IGNORECASE,
)


def questions(text: str) -> list[str]:
    """The questions of one message, in their order."""
    unspaced = detect(text) in {"ja", "zh"}
    pieces = [
        piece.strip() for piece in (_SPLIT_UNSPACED if unspaced else _SPLIT).split(text) if piece and piece.strip()
    ]
    if unspaced:
        asks = all(_ASKS_UNSPACED.search(piece) for piece in pieces)
    else:
        asks = all(set(words(piece)) & ASKS or _ASKS.search(piece) for piece in pieces[:1])
    return pieces[:MOST] if pieces and asks else [text]


def told_before(text: str) -> tuple[str, str]:
    """What is told before a question or behind it, and the question: "I lost my badge. | Whom do I tell?".

    Of what is told, only what stands in quotation marks, if anything does: "somebody said 'toil', what is that?".
    """
    told, asks = _around(text)
    if _asks_too(told):
        return "", text
    named = _QUOTED.findall(told)
    if named and _MEANING.fullmatch(asks):
        return "", f"What is {' and '.join(named)}?"
    return " ".join(named) or _shortened(told), asks


def _asks_too(told: str) -> bool:
    """Whether what seems to be told asks for something, in words that need no question mark."""
    unspaced = detect(told) in {"ja", "zh"}
    return bool(_REQUESTS.search(told) or (unspaced and _ASKS_UNSPACED.search(told)))


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


def two_things(text: str) -> tuple[str, str] | None:
    """A question for two things as two questions for one each; None where it asks for one."""
    language = detect(text)
    found = _TWO.get(language or "en", _TWO["en"]).search(text)
    if not found or set(words(text[found.end() :])) & ASKS:
        return None
    before, behind = text[: found.start()], text[found.end() :]
    first = _TOKEN.match(behind)
    again = f" {first[0]} " if first and _is_small(first[0], language) else ""
    start = before.rindex(again) + 1 if again and again in before else _start_of_last(before, language)
    end = _end_of_first(behind, language)
    if start is None or end is None:
        return None
    return f"{before}{behind[end:]}", f"{before[:start]}{behind}"


def _start_of_last(text: str, language: str | None) -> int | None:
    """Where the thing begins that a text ends with: behind the last small word; None where there is none."""
    start = None
    for token in reversed(list(_TOKEN.finditer(text))):
        if _is_small(token[0], language):
            break
        start = token.start()
    return start


def _end_of_first(text: str, language: str | None) -> int | None:
    """Where the thing ends that a text begins with, after its article; None where there is none."""
    end, named = 0, False
    for token in _TOKEN.finditer(text):
        if _is_small(token[0], language):
            if named:
                break
        else:
            named = True
            end = token.start() + len(token[0].rstrip("?.!,;"))
            if token[0][-1] in "?.!,;":
                break
    return end if named else None


def _is_small(token: str, language: str | None) -> bool:
    plain = token.strip("?.!,;:\"'()").lower()
    return plain in ASKS or is_function_word(plain, language)

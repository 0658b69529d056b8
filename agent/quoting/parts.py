"""A message that asks for several things, as questions that each ask for one.

Promises: pure; every part is made of the question's own words in their order. Questions one behind the other are always
told apart; two things in one question ("the hotel limit and the meal limit") only on request, since "and" also stands
inside names. Must never make more than ``MOST`` parts.
"""

from __future__ import annotations

import re
from typing import Final

from agent.knowledge.search.tokens import is_function_word, words
from agent.quoting.query import ASKS
from verification.text.language import detect

MOST: Final = 5

_AND: Final = r"(?:and|und|et|y|e|dan|also|sowie|ainsi que|además|serta)"
LED: Final = (
    r"(?:(?:up to|between|within|during|in|at|for|by|on|from|to|after|until|above|um|für|ab|bis|nach|à|en|a|con|de|pada"
    r"|dalam)\s+)?"
)
"""What may stand before a question word: "*until* when do I claim?"."""
INTERROGATIVE: Final = (
    r"(?:how|what|who|whom|whose|when|where|which|why|wie|was|wer|wen|wem|wann|wo|warum|welche[rsnm]?|qui|quand"
    r"|où|combien|comment"
    r"|quel(?:le)?s?|pourquoi|cuánt[oa]s?|cuándo|quién(?:es)?|dónde|qué|cuál(?:es)?|cómo|berapa|kapan|siapa"
    r"|bagaimana|apa(?:kah)?|di mana)\b"
)
AUXILIARY: Final = (
    r"(?:(?:am|have|has|could|would|shall) (?:i|we|you|it|they)|is|are|do|does|did|can|may|must|should|will"
    r"|ist|sind|kann|darf|muss|gibt es|est-ce|puis-je|puede|puedo|debo|bolehkah)\s"
)
_SPLIT: Final = re.compile(
    rf"(?<=[?？。])\s*(?=\S)|[,;]?\s+{_AND}\s+(?={LED}{INTERROGATIVE}|{AUXILIARY})|,\s+(?={INTERROGATIVE})",
    re.IGNORECASE,
)
_SPLIT_UNSPACED: Final = re.compile(r"(?<=[?？。])\s*(?=\S)|[、，；](?:また|そして|それと|以及|还有|并且|而且)?")
ASKS_UNSPACED: Final = re.compile(
    r"[何誰几哪谁]|いくら|いつ|どこ|どの|どれ|どう|なぜ|多[少久长大]|什么|怎么|如何|ですか|ますか|吗|[?？]"
)
_ASKS: Final = re.compile(rf"{INTERROGATIVE}|[?？]", re.IGNORECASE)
_TWO: Final = {
    name: re.compile(rf"\s+(?:{joins})\s+", re.IGNORECASE)
    for name, joins in (("en", "and"), ("de", "und|sowie"), ("fr", "et"), ("es", "y|e"), ("id", "dan|serta"))
}
_TOKEN: Final = re.compile(r"\S+")


def questions(text: str) -> list[str]:
    """The questions of one message, in their order."""
    unspaced = detect(text) in {"ja", "zh"}
    pieces = [
        piece.strip() for piece in (_SPLIT_UNSPACED if unspaced else _SPLIT).split(text) if piece and piece.strip()
    ]
    if unspaced:
        asks = all(ASKS_UNSPACED.search(piece) for piece in pieces)
    else:
        asks = all(set(words(piece)) & ASKS or _ASKS.search(piece) for piece in pieces[:1])
    return pieces[:MOST] if pieces and asks else [text]


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

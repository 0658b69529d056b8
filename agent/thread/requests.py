"""Whether a question asks to make something from the person's own words (translate this, write a limerick).

Such an answer cannot be verified against sources and is labelled so (F1). A request counts only if its material is in
the message itself, or if play is asked for: a question about documents must not come through here.
"""

from __future__ import annotations

import re

_WORK_ON = (
    r"translate|rephrase|reword|rewrite|proofread|shorten|correct|summari[sz]e|polish"  # en
    r"|übersetze?|formuliere?|korrigiere?|kürze?|fasse"  # de
    r"|traduis(?:ez)?|reformule[z]?|corrige[zs]?|raccourcis|résume[z]?"  # fr
    r"|traduce|traduzca|reformula|corrige|acorta|resume"  # es
    r"|terjemahkan|perbaiki|ringkas|tulis ulang"  # id
)
_MATERIAL = re.compile(
    rf"^\W*(?:please\s+|bitte\s+)?(?:{_WORK_ON})\b[^\n:\"“„«「]{{0,80}}[:\n\"“„«「](?P<rest>.+)",
    re.IGNORECASE | re.DOTALL,
)
_CJK = re.compile(
    r"(?:翻訳|訳して|要約|言い換え|翻译|改写|润色|缩写)[^:：\n「『“]{0,40}[:：\n「『“](?P<rest>.+)",
    re.DOTALL,
)
_PLAY = re.compile(
    r"^\W*(?:please\s+|bitte\s+)?(?:write|compose|make|tell|schreib|erzähl|dichte|écris|raconte|escribe|cuenta|tulis|buat)\w*\s"
    r"(?:[\w']+\s){0,3}?(?:limerick|haiku|poem|rhyme|joke|gedicht|witz|reim|poème|blague|poema|chiste|puisi|pantun)\b",
    re.IGNORECASE,
)
_LEAST_MATERIAL = 3  # words that must follow: `summarise: on-call` still asks for a document


def from_own_words(question: str) -> bool:
    """Whether the person handed over the words to work on, or asked for play."""
    if _PLAY.search(question):
        return True
    found = _MATERIAL.search(question)
    if found:
        return len(found["rest"].split()) >= _LEAST_MATERIAL
    found = _CJK.search(question)
    return found is not None and len(found["rest"].strip()) >= 2 * _LEAST_MATERIAL

"""A question without what is only said to be polite: "hi, quick question: …", "does anyone know …", "…, thanks!".

Promises: pure; what is left are the question's own words in their order; a message that is nothing but courtesy stays
whole. Must never take away a word that may be part of what is asked.
"""

from __future__ import annotations

import re
from typing import Final

_WHO: Final = r"(?:you|u|someone|somebody|anyone|anybody)"
_FIRST: Final = (
    (
        r"(?:hi|hello|hey|hiya|good (?:morning|afternoon|evening)|dear)\b"
        r"(?: (?:all|team|everyone|everybody|there|orion|folks|guys))?(?=[\s,.!:;–—]|-\s)"
    ),
    (
        r"(?:just )?(?:an? |one |another )?"
        r"(?:quick|short|small|little|simple|stupid|silly|dumb|random) (?:question|one|q)\b(?!['’&-]\w)"
    ),
    (
        r"(?:just )?(?:one|two|three|another|a couple of|a few|several|some|[2-9]) "
        r"(?:(?:more|quick|short|small|other) )*(?:things?|questions?)(?=\s*[:–—]|\s-\s)"
    ),
    r"(?:sorry|excuse me)\b(?: to (?:bother|ask)(?: you)?(?: again)?\b)?(?:,? but\b)?",
    r"please\b",
    (
        rf"(?:can|could|would|will) {_WHO} (?:please )?(?:quickly )?"
        r"(?:tell|remind|show|explain to|help) (?:me|us)\b(?: understand| out)?"
    ),
    (
        rf"(?:do|does) {_WHO}(?: here)?(?: happen to| by any chance)? (?:know|remember|recall)\b(?: off ?hand)?"
        r"(?:[,:]? (?:if|whether)\b)?"
    ),
    r"i(?:['’]d| would) (?:like|love|want) to (?:know|ask|understand)\b",
    (
        r"i(?:['’]m| am| was| have been|['’]ve been) (?:just )?(?:wondering|curious|not sure|unsure)\b"
        r"(?: (?:if|whether)\b)?"
    ),
    (
        r"i (?:just )?(?:wonder|(?:need|want|wanted) to (?:know|ask|understand|find out)|forgot|can['’]?t remember"
        r"|don['’]t know)\b(?= (?:how|what|who|whom|whose|when|where|which|why|if|whether|about)\b)"
    ),
    r"(?:any|anyone got any|anybody got any) (?:idea|clue)\b",
    r"(?:(?:just )?out of (?:pure )?curiosity|just curious|just checking|by the way|btw)\b(?=[\s,.:–—-])",
    r"(?:ok(?:ay)?|well|um+|hm+|right)(?=\s*[,.:–—]|\s-)",
    r"(?:tell|remind) (?:me|us)\b(?! about)",
    r"for (?:my|your) (?:information|understanding)\b",
)
_OPENING: Final = re.compile(rf"\W*(?:{'|'.join(_FIRST)})[\s,.:;!–—-]*", re.IGNORECASE)
_CLOSING: Final = re.compile(
    r"[\s,.;:!–—-]*\b(?:please|pls|thanks(?: a lot| so much| in advance)?|thank you(?: very much| so much| in advance)?"
    r"|thx|cheers|asap|btw|by the way|any idea|do you know|does any(?:one|body) know|again)"
    r"(?P<end>[\s.!]*[?？]?)[\s.!)]*$",
    re.IGNORECASE,
)


def without_courtesy(text: str) -> str:
    """The question itself."""
    left = text
    while (found := _OPENING.match(left)) and found.end():
        left = left[found.end() :]
    while found := _CLOSING.search(left):
        before = left[: found.start()].rstrip("?？")
        left = before + ("?" if len(before) < found.start() or "?" in found["end"] else "")
    return left if re.search(r"\w", left) else text

r"""Answers that a model serialised: JSON, a Python or JavaScript literal, an XML element, literal ``\n``.

Serialisation says nothing to a reader. If the value has one text, that text is the answer.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import Final

from verification.markup.edits import Edit, apply_edits
from verification.markup.inline import HTML_TAGS, LEAKED_TAGS
from verification.markup.scanner import segments
from verification.types import Repair

_MAX_LENGTH: Final = 100_000  # a longer text is not parsed
_MAX_DEPTH: Final = 4
_MIN_WORDS: Final = 5  # a code block with JSON may be the answer, unless its one text is a sentence
_ANSWERS: Final = frozenset({"answer", "final", "response"})
_NOT_SHOWN: Final = frozenset(LEAKED_TAGS) - _ANSWERS  # reasoning, in no notation
_CONTROL: Final = frozenset({"action", "tool"})  # a message to the machinery is not an answer
_EMPTY: Final = frozenset({"null", "none", "nil", "undefined", "nan", "true", "false"})
_PAIRS: Final = {"{": "}", "[": "]", "(": ")", '"': '"', "'": "'"}
_KEY: Final = re.compile(r"([{,]\s*)([A-Za-z_]\w{0,40})\s*:")
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
_ASSIGNED: Final = re.compile(
    rf"(?:return\s+)?(?:{'|'.join(sorted(_ANSWERS))}|text|message|summary|question|result|output|content|reply|respond|complete)"
    r"\s*(?:[:=]|\()\s*([\"'].*[\"'])\s*\)?;?",
    re.DOTALL,
)
_ELEMENT: Final = re.compile(
    r"(?:<\?xml[^<>]{0,100}\?>\s*)?<([A-Za-z][\w.-]{0,30})(?:\s[^<>\n]{0,200})?>(.*)</\1>", re.DOTALL
)
_FENCED: Final = re.compile(
    r"(`{3,}|~{3,})[ \t]*(?:json|python|javascript|js|xml)?[ \t]*\n(.*)\n[ \t]*\1", re.DOTALL | re.IGNORECASE
)
# "C:\new" is a path: a line end follows the end of a sentence, or a list or another line end follows it.
_LINE_END: Final = re.compile(
    r"(?:(?:\\r)?\\n){2,}|(?<![A-Za-z]:)(?<=[.!?:;,)\]*_。！？：])[ ]?(?:\\r)?\\n"
    r"|(?:\\r)?\\n(?=\s*(?:[-*•]|\d{1,3}[.)])\s)"
)


def is_serialised(text: str) -> bool:
    """Return True if the text as a whole is a serialised value. A text in quotes is only a quotation."""
    value = _parse(text.strip())
    return value is not None and not (isinstance(value[0], str) and value[0].strip())


def unwrap(text: str) -> tuple[str, tuple[Repair, ...]]:
    """Return the one text of a serialised value with real line ends."""
    count = 0
    for _ in range(_MAX_DEPTH):
        value = _parse(text.strip())
        texts = [*_texts(value[0])] if value else []
        if len(texts) != 1:
            break
        text, count = texts[0], count + 1
    outside_code = (segment for segment in segments(text) if segment.kind == "text")
    ends = (match for segment in outside_code for match in _LINE_END.finditer(text, segment.start, segment.end))
    edits = [Edit(match.start(), match.end(), "\n" * match[0].count("n")) for match in ends]
    count += len(edits)
    return apply_edits(text, edits), (Repair(kind="serialised", count=count),) if count else ()


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in a value, without keys, numbers, empty texts and reasoning."""
    if isinstance(value, str) and value.strip():
        yield value
    elif isinstance(value, dict) and _CONTROL.isdisjoint(value):
        shown = (each for key, each in value.items() if str(key).casefold() not in _NOT_SHOWN)
        yield from (text for each in shown for text in _texts(each))
    elif isinstance(value, (list, tuple, set)):
        yield from (text for each in value for text in _texts(each))


def _parse(text: str) -> tuple[object] | None:
    """Return the value that the text is, in a tuple, or None for a text that is not serialised."""
    if not text or len(text) > _MAX_LENGTH:
        return None
    if text.casefold() in _EMPTY:
        return (None,)
    if fenced := _FENCED.fullmatch(text):
        value = _parse(fenced[2].strip())
        texts = [*_texts(value[0])] if value else []
        return value if len(texts) == 1 and len(texts[0].split()) >= _MIN_WORDS else None
    if element := _ELEMENT.fullmatch(unescape(text) if text.startswith("&lt;") else text):
        return (element[2],) if element[1].lower() not in HTML_TAGS | _NOT_SHOWN else None
    if assigned := _ASSIGNED.fullmatch(text):
        text = assigned[1]
    if text[-1] != _PAIRS.get(text[0]):
        return None
    return _literal(text)


def _literal(text: str) -> tuple[object] | None:
    plain = _TRAILING_COMMA.sub(r"\1", _KEY.sub(r'\1"\2":', text)) if text[0] in "{[" else text
    loads: tuple[Callable[[str], object], ...] = (lambda each: json.loads(each, strict=False), ast.literal_eval)
    for load in loads:
        for form in dict.fromkeys((text, plain)):
            try:
                value = load(form)
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                continue
            # "[1, 2]" are citations.
            return None if isinstance(value, list) and value and all(type(each) is int for each in value) else (value,)
    return None

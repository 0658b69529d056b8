"""Types the characters of a model's stream while they arrive: thinking, answer, or untagged. No I/O.

The result never depends on where the stream is cut, and at most ``MAX_TAG`` characters are held back. Inside thinking
only its own closing tag counts, so that a model that reasons about ``<answer>`` leaks nothing.
"""

import re
from itertools import groupby
from operator import attrgetter
from typing import Literal, NamedTuple

Kind = Literal["thinking", "answer", "untagged"]

MAX_TAG = 128  # the longest tag, attributes included; anything longer is text

# Possessive quantifiers (`*+`, `++`) never backtrack, so no text can slow a match down.
_ATTRIBUTE = r"""\s++[A-Za-z_:][\w:.-]*+(?:\s*+=\s*+(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>=]++))"""
_TAG = re.compile(rf"<\s*+(/?)\s*+(thinking|think|answer)(?:{_ATTRIBUTE})*+\s*+>", re.IGNORECASE)


def _prefixes(word: str) -> str:
    """Pattern for every beginning of ``word``, the empty one included: ``ab`` gives ``(?:a(?:b)?)?``."""
    return "".join(f"(?:{letter}" for letter in word) + ")?" * len(word)


# Text that could still become a tag when more arrives: a tag cut anywhere before its last character.
_UNFINISHED_ATTRIBUTE = r"""\s++[A-Za-z_:][\w:.-]*+(?:\s*+(?:=\s*+(?:"[^"<>]*+|'[^'<>]*+|[^\s"'<>=]++)?)?)?"""
_UNFINISHED = re.compile(
    rf"<\s*+(?:/?\s*+(?:{_prefixes('thinking')}|{_prefixes('answer')}))"
    rf"|<\s*+/?\s*+(?:thinking|think|answer)(?:{_ATTRIBUTE})*+(?:\s*+|{_UNFINISHED_ATTRIBUTE})",
    re.IGNORECASE,
)


class TypedText(NamedTuple):
    """A run of text of one kind. ``section`` grows by one with every tag that changed something."""

    kind: Kind
    text: str
    section: int = 0


class TagStream:
    """The state machine: ``feed`` what arrives, ``close`` at the end."""

    def __init__(self) -> None:
        self.answered = self.in_answer = False  # an ``<answer>`` was opened; it is still open
        self.length = 0  # characters that may be part of the draft
        self._in_thinking = self._thinking_ended = False
        self._section = self._untagged_from = 0
        self._held = ""
        self._pieces: list[TypedText] = []

    def feed(self, chunk: str) -> list[TypedText]:
        """Return the typed text that is certain now that ``chunk`` has arrived."""
        text = self._held + chunk
        typed: list[TypedText] = []
        start = 0
        for tag in _TAG.finditer(text):
            if tag.end() - tag.start() > MAX_TAG:
                continue
            self._emit(typed, text[start : tag.start()])
            self._turn(tag[1] + ("answer" if tag[2][0] in "aA" else "thinking"))
            start = tag.end()
        # Start of the part that could still be a tag; a tag contains no ``<``, so only the last one matters.
        last = text.rfind("<", max(start, len(text) - MAX_TAG + 1))
        hold = last if last >= 0 and _UNFINISHED.fullmatch(text, last) else len(text)
        self._emit(typed, text[start:hold])
        self._held = text[hold:]
        return typed

    def close(self) -> list[TypedText]:
        """Return the text held back: it did not become a tag."""
        typed: list[TypedText] = []
        self._emit(typed, self._held)
        self._held = ""
        return typed

    @property
    def draft(self) -> str:
        """The text to verify, stripped: the answers as paragraphs, else the untagged text after the last thinking."""
        if not self.answered:
            return "".join(piece.text for piece in self._pieces if piece.section >= self._untagged_from).strip()
        answers = groupby((each for each in self._pieces if each.kind == "answer"), key=attrgetter("section"))
        return "\n\n".join(filter(None, ("".join(each.text for each in run).strip() for _, run in answers)))

    def _emit(self, typed: list[TypedText], text: str) -> None:
        if not text:
            return
        kind: Kind = "thinking" if self._in_thinking else "answer" if self.in_answer else "untagged"
        typed.append(TypedText(kind, text, self._section))
        if kind != "thinking":
            self._pieces.append(typed[-1])
            self.length += len(text)

    def _turn(self, tag: str) -> None:
        """Change state as a tag says; a tag that makes no sense here is dropped."""
        match tag:
            case "answer" if not (self.in_answer or self._in_thinking):
                self.answered = self.in_answer = True
            case "/answer" if self.in_answer:
                self.in_answer = self._in_thinking = False
            case "thinking" if not self._in_thinking:
                self._in_thinking = True
            # Even without an opening tag: some chat templates open the thinking for the model.
            case "/thinking" if self._in_thinking or not self.in_answer:
                self._in_thinking, self._thinking_ended = False, True
            case _:
                return
        self._section += 1
        if tag == "/thinking" or (tag == "thinking" and not self._thinking_ended):
            self._untagged_from = self._section


def draft_of(text: str) -> str:
    """Return the draft of a whole text at once."""
    tags = TagStream()
    tags.feed(text)
    tags.close()
    return tags.draft

"""Types the characters of a model's stream while they arrive: thinking, answer, or untagged. No I/O.

The result never depends on where the stream is cut, and at most ``MAX_TAG`` characters are held back. Inside thinking
only its own closing tag counts, so that a model that reasons about ``<answer>`` leaks nothing. Untagged text is
thinking to a listener; if a stream has no ``<answer>``, ``DraftReader`` makes the draft from it.
"""

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["thinking", "answer", "untagged"]

MAX_TAG = 128  # the longest tag, attributes included; what is longer is text

# Possessive quantifiers (`*+`, `++`) never backtrack, so no text can make a match take long.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedText:
    """A run of text of one kind. ``section`` grows by one with every tag that changed something."""

    kind: Kind
    text: str
    section: int = 0


class TagStream:
    """The state machine: ``feed`` what arrives, ``close`` at the end.

    ``answered``: an ``<answer>`` was opened. ``untagged_from`` is the section from which untagged text may count as the
    draft: what follows the last ``</thinking>``, or everything if there was no such tag.
    """

    def __init__(self) -> None:
        self.answered = False
        self.untagged_from = 0
        self._kind: Kind = "untagged"
        self._around_thinking: Kind = "untagged"
        self._section = 0
        self._thinking_ended = False
        self._held = ""

    @property
    def in_answer(self) -> bool:
        """True after an ``<answer>`` that was not closed yet."""
        return "answer" in {self._kind, self._around_thinking if self._kind == "thinking" else ""}

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
        # Start of the part that could still be a tag; a tag holds no ``<``, so only the last one matters.
        last = text.rfind("<", max(start, len(text) - MAX_TAG + 1))
        hold = last if last >= 0 and _UNFINISHED.fullmatch(text, last) else len(text)
        self._emit(typed, text[start:hold])
        self._held = text[hold:]
        return typed

    def close(self) -> list[TypedText]:
        """Return what was held back: it became no tag, so it is text."""
        typed: list[TypedText] = []
        self._emit(typed, self._held)
        self._held = ""
        return typed

    def _emit(self, typed: list[TypedText], text: str) -> None:
        if text:
            typed.append(TypedText(kind=self._kind, text=text, section=self._section))

    def _turn(self, tag: str) -> None:
        """Change state as a tag says; a tag that makes no sense here is dropped."""
        match tag, self._kind:
            case "answer", "untagged":
                self.answered = True
                self._enter("answer")
            case "/answer", "answer":
                self._enter("untagged")
            case "/answer", "thinking" if self._around_thinking == "answer":
                self._enter("untagged")
            case "thinking", "untagged" | "answer":
                self._around_thinking = self._kind
                self._enter("thinking")
                if not self._thinking_ended:
                    self.untagged_from = self._section
            # Also without an opening tag: some chat templates open the thinking for the model.
            case "/thinking", "untagged" | "thinking":
                self._enter(self._around_thinking if self._kind == "thinking" else "untagged")
                self._thinking_ended = True
                self.untagged_from = self._section
            case _:
                pass

    def _enter(self, kind: Kind) -> None:
        self._kind = kind
        self._section += 1


class DraftReader:
    """Reads a phase-two stream and makes the draft: the answer, or the untagged text after the last thinking.

    ``fallback`` is true when the stream had no ``<answer>``, so that the caller can log it. ``length`` counts the
    characters that may be part of the draft.
    """

    def __init__(self) -> None:
        self._stream = TagStream()
        self._pieces: list[TypedText] = []
        self.length = 0

    def feed(self, chunk: str, *, reasoning: bool = False) -> tuple[tuple[str, str], ...]:
        """Return ``(kind, text)`` of what is certain now. ``reasoning`` text is always thinking."""
        return (("thinking", chunk),) if reasoning else self._keep(self._stream.feed(chunk))

    def close(self) -> tuple[tuple[str, str], ...]:
        """Return ``(kind, text)`` of what was held back."""
        return self._keep(self._stream.close())

    @property
    def fallback(self) -> bool:
        """True if no ``<answer>`` was opened."""
        return not self._stream.answered

    @property
    def draft(self) -> str:
        """The text to verify, stripped; several answers become paragraphs of one."""
        if self.fallback:
            since = self._stream.untagged_from
            return "".join(p.text for p in self._pieces if p.kind == "untagged" and p.section >= since).strip()
        sections: dict[int, list[str]] = {}
        for piece in self._pieces:
            if piece.kind == "answer":
                sections.setdefault(piece.section, []).append(piece.text)
        return "\n\n".join(filter(None, ("".join(texts).strip() for texts in sections.values())))

    def _keep(self, typed: list[TypedText]) -> tuple[tuple[str, str], ...]:
        kept = [piece for piece in typed if piece.kind != "thinking"]
        self._pieces += kept
        self.length += sum(len(piece.text) for piece in kept)
        return tuple((piece.kind, piece.text) for piece in typed)


def draft_of(text: str) -> str:
    """Return the draft of a whole text at once."""
    reader = DraftReader()
    reader.feed(text)
    reader.close()
    return reader.draft

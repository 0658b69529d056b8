"""The few places of a long text that are worth a closer look, so that costly patterns need not run over all of it.

What is left out cannot hold what is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Final

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_DIGITS: Final = re.compile(r"\d+")
_RUN: Final = re.compile(r"\d+|[^\W\d_]+")
_SPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")
_FEW: Final = 8
"""Words that are looked up one by one; more are found in one walk."""
_SHORT: Final = 500
"""Characters of a text, such as a sentence, of which every run is asked about; of longer ones each different run."""


def around(text: str, trigger: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """The stretches between blanks or line ends that hold what ``trigger`` finds; with a back-tick, to a line end."""
    position = 0
    while match := trigger.search(text, position):
        at = match.start()
        start = max(text.rfind(" ", position, at) + 1, text.rfind("\n", position, at) + 1, position)
        line_end = _find(text, "\n", at)
        end = _find(text, " ", at, line_end)
        if text.find("`", start, end) >= 0:
            end = line_end
        yield start, end
        position = max(end, match.end())


def _find(text: str, mark: str, start: int, end: int | None = None) -> int:
    """Where the mark stands first, else the end."""
    last = len(text) if end is None else end
    at = text.find(mark, start, last)
    return last if at < 0 else at


def is_spaced(text: str) -> bool:
    """Whether words can be told by their letters alone: not so in Chinese and Japanese."""
    return text.isascii() or not _SPACED.search(text)


def openings(text: str, wanted: Callable[[str], bool]) -> list[int] | None:
    """Where runs of digits and wanted runs of letters begin; None in Chinese and Japanese, where a run is no word.

    ``wanted`` is asked once for each different run of letters.
    """
    if not is_spaced(text):
        return None
    if len(text) <= _SHORT:
        return [m.start() for m in _RUN.finditer(text) if (run := m.group()).isdecimal() or wanted(run)]
    found = [match.start() for match in _DIGITS.finditer(text)]
    hot = {word for word in set(_LETTERS.findall(text)) if wanted(word)}
    if len(hot) > _FEW:
        found += [match.start() for match in _LETTERS.finditer(text) if match.group() in hot]
    else:
        for word in hot:
            found += _whole(text, word)
    return sorted(found)


class Tokens:
    """The tokens of a text that may open something, one after another: those that begin at ``starts``.

    ``token`` must match runs of digits and runs of letters, the latter perhaps with others behind hyphens
    (``hyphenated``). Without ``starts`` (None) every token may open something.
    """

    __slots__ = ("_hyphenated", "_left", "_text", "_token")

    def __init__(
        self, text: str, token: re.Pattern[str], starts: Iterable[int] | None, *, hyphenated: bool = False
    ) -> None:
        self._text = text
        self._token = token
        self._hyphenated = hyphenated
        self._left = None if starts is None else iter(starts)

    def behind(self, position: int) -> re.Match[str] | None:
        """The first that does not begin before ``position``, the end of a token or 0; positions must not go back."""
        if self._left is None:
            return self._token.search(self._text, position)
        for start in self._left:
            if start >= position and not (self._hyphenated and self._is_joined(start, position)):
                return self._token.match(self._text, start)
        return None

    def after(self, position: int) -> re.Match[str] | None:
        """Like ``behind`` for any position: where it lies inside a run, what is left of that is a token as well."""
        return self._token.search(self._text, position) if self._is_inside(position) else self.behind(position)

    def _is_inside(self, position: int) -> bool:
        """Whether a run goes on at ``position``."""
        around_it = self._text[position - 1 : position + 1] if position else ""
        if len(around_it) < 2 or not around_it.isalnum():  # noqa: PLR2004 - a character on either side
            return False
        return around_it.isdecimal() or all(map(is_letter, around_it))

    def _is_joined(self, start: int, position: int) -> bool:
        """Whether letters begin at ``start`` that stand behind a hyphen and so inside a longer token."""
        if start - 2 < position or self._text[start - 1] != "-":
            return False
        return is_letter(self._text[start]) and is_letter(self._text[start - 2])


def _whole(text: str, word: str) -> Iterator[int]:
    """Where ``word`` stands as a run of letters of its own."""
    at = text.find(word)
    while at >= 0:
        end = at + len(word)
        if not (at and is_letter(text[at - 1])) and not (end < len(text) and is_letter(text[end])):
            yield at
        at = text.find(word, end)


def is_letter(character: str) -> bool:
    """Whether it belongs to a run of letters: neither a digit nor a sign."""
    return character.isalnum() and not character.isdecimal()

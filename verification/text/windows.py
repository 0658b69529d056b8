"""The few places of a long text that are worth a closer look, so that costly patterns need not run over all of it.

What is left out cannot hold what is looked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_SPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]")


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

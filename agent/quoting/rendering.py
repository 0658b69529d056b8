"""Passages as Markdown: each under its title, its best sentence in bold, every sentence, item and row cited."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from agent.quoting.passages import Found
from agent.quoting.small_talk import line
from agent.quoting.units import QuotableUnit
from verification.evidence.passages import sentence_spans
from verification.types import Source

_FENCE: Final = re.compile(r"`{3,}")
_MARKED: Final = re.compile(r"[*_\[\]<>|~]")
_SENTENCE_ENDS: Final = (".", "!", "?", "…", ":", ";", "。", "！", "？", '."', ".)", ".”")


def rendered(passages: Sequence[Found], language: str | None) -> str:
    """All passages, the first as the quotation and the others as what is said elsewhere."""
    return "\n\n".join(
        _passage(line("also" if number else "quoted", language, title=_title(found.best)), found.units, found.best)
        for number, found in enumerate(passages)
    )


def beginning(source: Source, units: Sequence[QuotableUnit], language: str | None) -> str:
    """Units of a source that is shown for itself: a list, or how an attached file begins."""
    return _passage(line("quoted", language, title=source.title), units, None)


def _title(unit: QuotableUnit) -> str:
    title = unit.source.title
    return " › ".join((title, *(part for part in unit.context.split(" › ") if part and part not in title.split(" › "))))


def _passage(opening: str, units: Sequence[QuotableUnit], best: QuotableUnit | None) -> str:
    lines: list[str] = [opening]
    previous: QuotableUnit | None = None
    for unit in units:
        number = f"[{unit.source.id}]"
        text = _bold(unit.text) if unit is best else unit.text
        same_block = previous is not None and previous.block == unit.block
        if unit.kind == "code":
            lines += ["", _fenced(unit.text), *([number] if previous is None else [])]
        elif unit.kind == "sentence" and previous is not None and previous.kind == "sentence" and same_block:
            lines[-1] += f" {text} {number}"
        elif unit.kind in {"sentence", "field"}:
            lines += ["", f"{text} {number}"]
        else:
            marker = "-" if unit.kind == "row" else unit.marker
            # Of several sentences the last is ended too: only behind a full stop a number speaks for them all.
            is_ended = unit.text.endswith(_SENTENCE_ENDS) or len(sentence_spans(unit.text, None)) <= 1
            ended = text if is_ended else f"{text}."
            lines += [*([] if same_block else [""]), f"{'    ' * unit.depth}{marker} {ended} {number}"]
        previous = unit
    return "\n".join(lines)


def _bold(text: str) -> str:
    """In bold but for the mark that ends it: the citation behind it belongs to the sentence. Marked text stays."""
    words = text.rstrip(".!?。！？")
    # Slack shows no bold that begins or ends with code.
    plain = words and words == words.strip("`") and not _MARKED.search(words)
    return f"**{words}**{text[len(words) :]}" if plain else text


def _fenced(code: str) -> str:
    """A code block whose fence is longer than any in it."""
    longest = max(map(len, _FENCE.findall(code)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{code}\n{fence}"

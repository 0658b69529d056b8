"""Passages as Markdown: each under its title, its best sentence in bold, every sentence, item and row cited."""

import re
from collections.abc import Sequence
from typing import Final

from agent.quoting.passages import RankedPassage
from agent.quoting.small_talk import Line, phrase
from agent.quoting.units import QuotableUnit
from verification.evidence.passages import sentence_spans
from verification.types import Source

_FENCE: Final = re.compile(r"`{3,}")
_MARKED: Final = re.compile(r"[*_\[\]<>|~]")
_SENTENCE_ENDS: Final = (".", "!", "?", "…", ":", ";", "。", "！", "？", '."', ".)", ".”")


def render_passages(passages: Sequence[RankedPassage], bold: str, language: str | None) -> str:
    """Return all passages: the first as the quotation, the others as "also from", the sentence ``bold`` in bold."""
    parts = []
    for number, passage in enumerate(passages):
        name: Line = ("also_part" if number else "part") if passage.is_excerpt else ("also" if number else "quoted")
        title, context = passage.best.source.title, passage.best.context.split(" › ")
        path = (title, *(part for part in context if part and part not in title.split(" › ")))
        head = phrase(name, language, title=" › ".join(path))
        parts.append(_render(head, passage.units, bold))
        bold = "" if any(bold in unit.text for unit in passage.units) else bold
    return "\n\n".join(parts)


def render_units(source: Source, units: Sequence[QuotableUnit], language: str | None) -> str:
    """Return units of a source shown on its own: a list, or the beginning of an attached file."""
    return _render(phrase("quoted", language, title=source.title), units, "")


def _render(opening: str, units: Sequence[QuotableUnit], bold: str) -> str:
    lines: list[str] = [opening]
    previous: QuotableUnit | None = None
    for unit in units:
        number = f"[{unit.source.id}]"
        text = unit.text.replace(bold, _bold(bold), 1) if bold else unit.text
        bold = "" if text != unit.text else bold
        same_block = previous is not None and previous.block == unit.block
        if unit.kind == "code":
            fence = "`" * (max(map(len, _FENCE.findall(unit.text)), default=2) + 1)  # longer than any back-ticks inside
            lines += ["", f"{fence}\n{unit.text}\n{fence}", *([number] if previous is None else [])]
        elif unit.kind == "sentence" and previous is not None and previous.kind == "sentence" and same_block:
            lines[-1] += f" {text} {number}"
        elif unit.kind in {"sentence", "field"}:
            lines += ["", f"{text} {number}"]
        else:
            marker = "-" if unit.kind == "row" else unit.marker
            # The last of several sentences needs an end too: only after a full stop does a number count for them all.
            is_ended = unit.text.endswith(_SENTENCE_ENDS) or len(sentence_spans(unit.text, None)) <= 1
            ended = text if is_ended else f"{text}."
            goes_on = previous is not None and same_block and previous.kind != "sentence"
            lines += [*([] if goes_on else [""]), f"{'    ' * unit.depth}{marker} {ended} {number}"]
        previous = unit
    return "\n".join(lines)


def _bold(text: str) -> str:
    """Make a sentence bold except its last mark: the citation after it belongs to the sentence. Marked text stays."""
    words = text.rstrip(".!?。！？")
    # Slack shows no bold that begins or ends with code.
    plain = words and words == words.strip("`") and not _MARKED.search(words)
    return f"**{words}**{text[len(words) :]}" if plain else text

"""The dialog "Why trust this?": each claim with the passage that supports it, and who checked it. Pure."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from itertools import groupby, takewhile
from typing import Any, Final

from agent.json_data import objects, string
from agent.quoting.model import ExtractiveModel
from agent.texts.catalogue import say, truncate
from bot.delivery.blocks import context, dialog, escape, join_lines, list_sources, plain_text, section, short_id
from bot.delivery.rich_text import Block
from bot.stores.passages import MAX_PASSAGE, MAX_PASSAGES
from bot.stores.turn_records import sources_of
from verification.markup.mrkdwn import strip_mrkdwn
from verification.rules.secrets import mask_secrets
from verification.types import Source

_MAX_CLAIMS: Final = 30
_MAX_REMOVED: Final = 8
_MAX_CLAIM_LENGTH: Final = 600
_MAX_QUOTED_CLAIM_LENGTH: Final = 80  # its passage has all of its words
_MAX_SECTION_LENGTH: Final = 2_800
# A removed sentence may be shown only if it broke one of these rules, never if it broke a safety rule.
_REMOVAL_REASONS: Final = {
    "claim_supported": "reason_claim",
    "cites_sources": "reason_citation",
    "citation_resolves": "reason_citation",
}
_HEADING: Final = re.compile(r"^#{1,6}(?= )", re.MULTILINE)
_ROW: Final = re.compile(r"^\|(.*)\|$", re.MULTILINE)
QUOTING: Final = frozenset({"", ExtractiveModel.name})
"""Models that only quote. A language model is named even when it quotes."""
_CITATION: Final = re.compile(r"\s?\[\d+\]")
_CHECKERS: Final = frozenset({"quotation", "rule", "judge"})


def trust_modal(
    record: Mapping[str, Any] | None, today: date, language: str | None = None, *, missing: str = "trust_unknown"
) -> Block:
    """Return the dialog as a view of a stored turn, which may lack fields. For None, ``missing`` says why."""
    close = plain_text(say("trust_close", language))
    if record is None:
        return dialog("trust_title", [section(say(missing, language))], language, close=close)
    sources = {source.id: source for source in sources_of(record)}
    claims = objects(record, "claims")[:_MAX_CLAIMS]
    blocks = [section(_headline(record, claims, language))]
    shown = (claim for claim in claims if _words(claim) and claim.get("is_empty") is not True)
    above = ""  # the passage shown last
    for checked, group in groupby(shown, lambda claim: _check_line(claim, sources, today, language)):
        for passages, alike in groupby(group, _passage_texts):  # neighbours with the same passages show them once
            blocks.append(_claims_block([*alike], above, language))
            above = "".join(passages[-1:])
        blocks.append(context([checked]))
    if more := len(objects(record, "claims")) - len(claims):
        blocks.append(context([say("and_more", language, n=str(more))]))
    if sources and not claims:
        listed = join_lines(list_sources(sources.values(), today, language), _MAX_SECTION_LENGTH, language)
        blocks.append(section(f"*{say('trust_sources', language)}*\n{listed}"))
    blocks += [*_removed_sentences(record, language), *_origin(record, language)]
    return dialog("trust_title", blocks, language, close=close)


def _headline(record: Mapping[str, Any], claims: Sequence[Mapping[str, Any]], language: str | None) -> str:
    if string(record, "outcome") == "partial":
        return say("trust_is_partial", language)
    if record.get("verified") is not True:
        return say("trust_is_unverified", language)
    checkers = {string(claim, "settled_by") for claim in claims}
    if "nobody" in checkers:
        return say("trust_is_ruled", language)
    quoted = checkers == {"quotation"} and string(record, "model") in QUOTING
    return say("trust_is_quoted" if quoted else "trust_is_verified", language)


def _words(claim: Mapping[str, Any]) -> str:
    text = _without_signs(strip_mrkdwn(string(claim, "text")))
    return truncate(" ".join(text.split()), _MAX_CLAIM_LENGTH)


def _passage_texts(claim: Mapping[str, Any]) -> list[str]:
    # cut rows may be longer by their columns' names
    named = (string(passage, "text")[: 2 * MAX_PASSAGE] for passage in objects(claim, "passages")[:MAX_PASSAGES])
    return [_without_signs(mask_secrets(text)).replace("`", "") for text in named]


def _claims_block(claims: Sequence[Mapping[str, Any]], above: str, language: str | None) -> Block:
    """Return the claims, of quotations their beginnings, and their passages with the common words highlighted.

    If the passages are of several sources, each ends with the number of its source. "…" replaces a long introduction
    that the passage ``above`` has, too.
    """
    texts, named = _passage_texts(claims[0]), objects(claims[0], "passages")
    headings: list[Block] = []
    for claim in claims:
        words = _words(claim)
        stated = truncate(words, _MAX_QUOTED_CLAIM_LENGTH) if any(words in text for text in texts) else words
        absent = f"\n{say('trust_absent', language)}" if claim.get("is_absent") is True else ""
        headings.append({"type": "rich_text_section", "elements": _rich_words([(stated, True), (absent, False)])})
    quotes: list[Block] = []
    is_of_several = len({passage.get("source") for passage in named}) > 1
    for number, (text, passage) in enumerate(zip(texts, named, strict=False)):
        source = f" [{passage.get('source')}]" if is_of_several else ""
        cut = f"\n({say('trust_cut', language)})" if passage.get("is_cut") is True else ""
        spans = sorted(span for claim in claims for span in _highlights(claim, number, text))
        start = 0 if number else _end_of_repetition(text, above)
        if any(_words(claim) in text[:start] for claim in claims):
            start = 0
        parts = [("…\n" if start else "", False), *_highlighted_parts(text, spans, start), (f"{source}{cut}", False)]
        quotes += [{"type": "rich_text_quote", "elements": _rich_words(parts)}] if text.strip() else []
    return {"type": "rich_text", "elements": [*headings, *quotes]}


def _highlights(claim: Mapping[str, Any], number: int, text: str) -> Iterable[tuple[int, int]]:
    """Yield the spans of a quotation, or of the words that a claim has in common, in one of its passages."""
    words, marks = _words(claim), objects(claim, "passages")[number].get("marks")
    if words in text:
        start = text.index(words)
        marks = [] if words == text.strip() else [[start, start + len(words)]]
    for mark in marks if isinstance(marks, list) else []:
        match mark:
            case [int(start), int(end)] if 0 <= start < end <= len(text):
                yield start, end


def _without_signs(passage: str) -> str:
    """Blank the signs of headings and table rows. The length stays the same, because highlights count characters."""
    passage = _HEADING.sub(lambda found: " " * len(found[0]), passage)
    return _ROW.sub(lambda found: f" {found[1].replace('|', '·')} ", passage)


def _check_line(claim: Mapping[str, Any], sources: Mapping[int, Source], today: date, language: str | None) -> str:
    """Name the sources of a claim's passages, or those it cites, and the checker. A link leads to the first passage."""
    passages = objects(claim, "passages")
    named = [passage.get("source") for passage in passages] or claim.get("cited")
    numbers = dict.fromkeys(n for n in (named if isinstance(named, list) else ()) if isinstance(n, int))
    first = {n: each for each in reversed(passages) if isinstance(n := each.get("source"), int)}
    sections = {n: {name: each[name] for name in ("url", "title") if string(each, name)} for n, each in first.items()}
    shown = (replace(sources[number], **sections.get(number, {})) for number in numbers if number in sources)
    checker = string(claim, "settled_by")
    checked = say(f"trust_by_{checker if checker in _CHECKERS else 'nobody'}", language)
    return " · ".join((*list_sources(shown, today, language), checked))


def _end_of_repetition(passage: str, above: str) -> int:
    """Return the end of the lines that both passages begin with, or 0 if the rest is longer."""
    lines = zip(passage.splitlines(keepends=True)[:-1], above.splitlines(keepends=True), strict=False)
    end = sum(len(line) for line, _ in takewhile(lambda pair: pair[0] == pair[1], lines))
    return end if 2 * end > len(passage) else 0


def _highlighted_parts(passage: str, spans: Sequence[tuple[int, int]], position: int = 0) -> Iterable[tuple[str, bool]]:
    """Split the passage from ``position`` on into highlighted and other parts."""
    for start, end in spans:
        yield passage[position:start], False
        yield passage[max(start, position) : end], True
        position = max(position, end)
    yield passage[position:], False


def _rich_words(parts: Iterable[tuple[str, bool]]) -> list[Block]:
    """Return plain text elements for a rich text block: nothing in them is markup."""
    bold = {"style": {"bold": True}}
    return [{"type": "text", "text": text, **(bold if marked else {})} for text, marked in parts if text]


def _removed_sentences(record: Mapping[str, Any], language: str | None) -> Iterable[Block]:
    """Yield the removed sentences, struck through, with reasons, but none that broke a safety rule."""
    if string(record, "outcome") != "partial":
        return
    posted, removed = _plain_words(string(record, "answer")), {}
    objected = [one for attempt in objects(record, "attempts") for one in objects(attempt, "objected")]
    unsafe = {string(one, "text") for one in objected if string(one, "rule") not in _REMOVAL_REASONS}
    for sentence in objected:
        words = " ".join(string(sentence, "text").split())
        if words and _plain_words(words) not in posted and string(sentence, "text") not in unsafe:
            removed[truncate(words, _MAX_CLAIM_LENGTH)] = say(_REMOVAL_REASONS[string(sentence, "rule")], language)
    if removed:
        yield section(f"*{say('trust_left_out', language)}*")
        pairs = [
            [{"type": "text", "text": words, "style": {"strike": True}}, {"type": "text", "text": f" {why}"}]
            for words, why in list(removed.items())[:_MAX_REMOVED]
        ]
        items = [{"type": "rich_text_section", "elements": pair} for pair in pairs]
        yield {"type": "rich_text", "elements": [{"type": "rich_text_list", "style": "bullet", "elements": items}]}


def _plain_words(text: str) -> str:
    """Return the words without citations: a corrected sentence may cite another source."""
    return " ".join(_CITATION.sub("", strip_mrkdwn(text)).split())


def _origin(record: Mapping[str, Any], language: str | None) -> Iterable[Block]:
    drafts = len(objects(record, "attempts"))
    retried = drafts > 1 and string(record, "outcome") == "answered"
    lines = [say("trust_drafts", language, n=str(drafts))] if retried else []
    if (model := string(record, "model")) not in QUOTING:
        lines.append(say("trust_model", language, model=escape(model)))
    if turn := string(record, "turn_id"):
        lines.append(say("trust_id", language, id=escape(short_id(turn))))
    if lines:
        yield context([" · ".join(lines)])

"""The dialog behind "Why trust this?": each claim beside the passage that bears it out, and who checked it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from itertools import chain, groupby
from typing import Any, Final

from agent.quoting.model import ExtractiveModel
from agent.texts.catalogue import say
from agent.turn.plan_view import cut
from bot.delivery.blocks import Block, clipped, context, plain_text, section, short_id
from bot.delivery.links import escape, source_line
from bot.slack.payload import objects, string
from bot.stores.turn_records import sources_of
from verification.markup.mrkdwn import plain

_MOST_CLAIMS: Final = 30
_MOST_LEFT_OUT: Final = 8
_LONGEST_CLAIM: Final = 600
_LONGEST_PASSAGE: Final = 600
_ROOM: Final = 2_800
# What was left out may be shown only where it broke no rule of safety.
_WHY: Final = {
    "claim_supported": "reason_claim",
    "cites_sources": "reason_citation",
    "citation_resolves": "reason_citation",
}
_HEADING: Final = re.compile(r"^#{1,6}(?= )", re.MULTILINE)
_ROW: Final = re.compile(r"^\|(.*)\|$", re.MULTILINE)
_QUOTING: Final = frozenset({"", ExtractiveModel.name})
"""Models that write nothing; a language model may also say no more than its sources, and is named all the same."""
_CITATION: Final = re.compile(r"\s?\[\d+\]")
_CHECKERS: Final = frozenset({"quotation", "rule", "judge"})


def trust_modal(record: Mapping[str, Any] | None, today: date, language: str | None = None) -> Block:
    """The dialog as a view. A record of an older version shows what it has.

    ``record`` is a stored turn (``turn_id, outcome, verified, answer, attempts, claims, sources, model``); None when
    gone.
    """
    blocks = [section(say("trust_unknown", language))] if record is None else _told(record, today, language)
    return {
        "type": "modal",
        "title": plain_text(say("trust_title", language)),
        "close": plain_text(say("trust_close", language)),
        "blocks": blocks,
    }


def _told(record: Mapping[str, Any], today: date, language: str | None) -> list[Block]:
    lines = {source.id: source_line(source, today, language) for source in sources_of(record)}
    claims = objects(record, "claims")[:_MOST_CLAIMS]
    blocks = [section(_headline(record, claims, language))]
    for checked, group in groupby(claims, lambda claim: _checked(claim, lines, language)):
        shown = list(chain.from_iterable(map(_claim, group)))
        blocks += [*shown, context([checked])] if shown else []
    if more := len(objects(record, "claims")) - len(claims):
        blocks.append(context([say("and_more", language, n=str(more))]))
    if lines and not claims:
        blocks.append(section(f"*{say('trust_sources', language)}*\n{clipped([*lines.values()], _ROOM, language)}"))
    return [*blocks, *_left_out(record, language), *_origin(record, language)]


def _headline(record: Mapping[str, Any], claims: Sequence[Mapping[str, Any]], language: str | None) -> str:
    if string(record, "outcome") == "partial":
        return say("trust_is_partial", language)
    if record.get("verified") is not True:
        return say("trust_is_unverified", language)
    checkers = {string(claim, "settled_by") for claim in claims}
    if "nobody" in checkers:
        return say("trust_is_ruled", language)
    quoted = checkers == {"quotation"} and string(record, "model") in _QUOTING
    return say("trust_is_quoted" if quoted else "trust_is_verified", language)


def _claim(claim: Mapping[str, Any]) -> Iterable[Block]:
    """The claim, and the passage with the words marked that both have. A quotation stands in its passage once."""
    text = cut(_read(plain(string(claim, "text"))).strip(), _LONGEST_CLAIM)
    if not text:
        return
    passage, marks = _read(string(claim, "passage")[:_LONGEST_PASSAGE]), claim.get("marks")
    unmarked = passage.replace("`", "")
    elements: list[Block] = []
    if text in unmarked:
        start = unmarked.index(text)
        passage, marks = unmarked, [] if text == unmarked.strip() else [[start, start + len(text)]]
    else:
        elements.append({"type": "rich_text_section", "elements": _words([(text, True)])})
    if passage:
        elements.append({"type": "rich_text_quote", "elements": _words(_parts(passage, marks))})
    yield {"type": "rich_text", "elements": elements}


def _read(passage: str) -> str:
    """The passage without the signs of headings and table rows; as long as before, for the marks count characters."""
    passage = _HEADING.sub(lambda found: " " * len(found[0]), passage)
    return _ROW.sub(lambda found: f" {found[1].replace('|', '·')} ", passage)


def _checked(claim: Mapping[str, Any], lines: Mapping[int, str], language: str | None) -> str:
    number = claim.get("source")
    line = lines.get(number, "") if isinstance(number, int) else ""
    checker = string(claim, "settled_by")
    checked = say(f"trust_by_{checker if checker in _CHECKERS else 'nobody'}", language)
    return " · ".join(filter(None, (line, checked)))


def _parts(passage: str, marks: object) -> Iterable[tuple[str, bool]]:
    """The passage in stretches that are marked or not. Marks that fit no text are left away."""
    position = 0
    for mark in marks if isinstance(marks, list) else []:
        match mark:
            case [int(start), int(end)] if position <= start < end <= len(passage):
                yield passage[position:start], False
                yield passage[start:end], True
                position = end
            case _:
                continue
    yield passage[position:], False


def _words(parts: Iterable[tuple[str, bool]]) -> list[Block]:
    """Plain text for a rich text block: nothing in it is markup."""
    style = {True: {"style": {"bold": True}}, False: {}}
    return [{"type": "text", "text": text, **style[marked]} for text, marked in parts if text]


def _left_out(record: Mapping[str, Any], language: str | None) -> Iterable[Block]:
    """What was written and not posted, struck through, and why; nothing that broke a rule of safety."""
    if string(record, "outcome") != "partial":
        return
    posted, found = _bare(string(record, "answer")), {}
    objected = [one for attempt in objects(record, "attempts") for one in objects(attempt, "objected")]
    unsafe = {string(one, "text") for one in objected if string(one, "rule") not in _WHY}
    for sentence in objected:
        words = " ".join(string(sentence, "text").split())
        if words and _bare(words) not in posted and string(sentence, "text") not in unsafe:
            found[cut(words, _LONGEST_CLAIM)] = say(_WHY[string(sentence, "rule")], language)
    if found:
        yield section(f"*{say('trust_left_out', language)}*")
        items = [_struck(words, why) for words, why in list(found.items())[:_MOST_LEFT_OUT]]
        yield {"type": "rich_text", "elements": [{"type": "rich_text_list", "style": "bullet", "elements": items}]}


def _bare(text: str) -> str:
    """The words alone: what was set right since may cite another source."""
    return " ".join(_CITATION.sub("", plain(text)).split())


def _struck(words: str, why: str) -> Block:
    struck = {"type": "text", "text": words, "style": {"strike": True}}
    return {"type": "rich_text_section", "elements": [struck, {"type": "text", "text": f" {why}"}]}


def _origin(record: Mapping[str, Any], language: str | None) -> Iterable[Block]:
    tries = len(objects(record, "attempts"))
    lines = (
        [say("trust_tries", language, n=str(tries))] if tries > 1 and string(record, "outcome") == "answered" else []
    )
    if (model := string(record, "model")) not in _QUOTING:
        lines.append(f"{say('trust_model', language)}: {escape(model)}")
    if turn := string(record, "turn_id"):
        lines.append(f"{say('trust_id', language)}: {escape(short_id(turn))}")
    if lines:
        yield context([" · ".join(lines)])

"""The trust modal and the App Home as Slack views. Pure: plain records and numbers go in, view dictionaries come out.

Promises: Slack's limits hold whatever a record says; a record of an older version shows what it has; every word is in
the language that is asked for (English for any but the seven). Must never show an exception, a prompt or a text that
was not posted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Literal, get_args

from agent.texts.catalogue import say
from bot.delivery.blocks import LONGEST_TEXT, Block, button, clipped, context, section
from bot.delivery.links import age, escape, source_line
from bot.slack.payload import mapping, objects, string
from verification.types import RuleName, Source

TRY_ACTION = "orion_try"
_ROOM = LONGEST_TEXT - 20  # for the heading of a section
_LONGEST_DOUBT = 80
_CLEAN = {"✓"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """One place Orion reads: its name (perhaps none), how many documents, how many bytes (0 where nobody counted)."""

    name: str
    documents: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFigures:
    """What App Home shows; counts are of the last ``days`` days.

    ``newest`` is when the newest document changed, an ISO 8601 date or timestamp; ``synced`` when the documents were
    last brought up to date, in seconds since 1970; ``pass_rate`` is 0 to 1, None before the first answer.
    """

    collections: tuple[Collection, ...]
    newest: str = ""
    synced: float | None = None
    pass_rate: float | None = None
    answered: int = 0
    partial: int = 0
    failed: int = 0
    refused: int = 0
    days: int = 14
    paused: bool = False


def trust_modal(record: Mapping[str, Any] | None, today: date, language: str | None = None) -> Block:
    """The answer to "Why trust this?": rules passed, attempts, repairs, and the sources with title, link and age.

    ``record`` is a stored turn (``turn_id, outcome, verified, answer, attempts, sources, model``); None when gone.
    """
    blocks = [section(say("trust_unknown", language))] if record is None else _trust_blocks(record, today, language)
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": say("trust_title", language)},
        "close": {"type": "plain_text", "text": say("trust_close", language)},
        "blocks": blocks,
    }


def home_view(figures: HomeFigures, today: date, language: str | None = None) -> Block:
    """App Home: what Orion knows, how well it does, and a button to try it (A10)."""
    places = [f"• {_place(place, language)}" for place in figures.collections]
    changed = age(figures.newest, today, language)
    newest = [say("home_newest", language, age=changed)] if changed else []
    if figures.synced:
        newest.append(say("home_synced", language, when=_moment(figures.synced)))
    knows = clipped([*(places or [f"• {say('home_nothing', language)}"]), *newest], _ROOM, language)
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Orion"}},
        *([section(say("home_paused", language))] if figures.paused else []),
        section(say("home_intro", language)),
        {"type": "divider"},
        section(f"*{say('home_knows', language)}*\n{knows}"),
        section(f"*{say('home_does', language)}*\n{_success(figures, language)}"),
        {"type": "actions", "elements": [button(say("home_try", language), TRY_ACTION, "home")]},
    ]
    return {"type": "home", "blocks": blocks}


def _moment(seconds: float) -> str:
    """A time as Slack shows it to each reader, in the own time zone and language."""
    plain = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"<!date^{int(seconds)}^{{date_short_pretty}} {{time}}|{plain}>"


def _place(place: Collection, language: str | None) -> str:
    count = say("home_documents", language, n=f"{place.documents:,}")
    held = (say("home_document", language) if place.documents == 1 else count) + _bytes(place.size)
    return f"{escape(place.name)}: {held}" if place.name else held


def _trust_blocks(record: Mapping[str, Any], today: date, language: str | None) -> list[Block]:
    attempts = objects(record, "attempts")
    signs = _signs(_counted(attempts), string(record, "answer"))
    rules = [f"{sign} {say(f'rule_{rule}', language)}{doubt}" for rule, (sign, doubt) in signs.items()]
    blocks = [section(_headline(record, language)), _listed("rules", rules, language)]
    if {sign for sign, _ in signs.values()} != _CLEAN:
        blocks.append(context([say("trust_signs", language)]))
    if attempts:
        tried = [_attempt_line(number, attempt, language) for number, attempt in enumerate(attempts, 1)]
        blocks.append(_listed("attempts", tried, language))
    if sources := [_source(source) for source in objects(record, "sources")]:
        blocks.append(_listed("sources", [source_line(source, today, language) for source in sources], language))
        if {source.id for source in sources} != set(range(1, len(sources) + 1)):
            blocks.append(context([say("trust_numbers", language)]))
    names = {"model": string(record, "model"), "turn": string(record, "turn_id")}
    if origin := [f"{say(f'trust_{of}', language)}: {escape(name)}" for of, name in names.items() if name]:
        blocks.append(context([" · ".join(origin)]))
    return blocks


def _listed(heading: Literal["rules", "attempts", "sources"], lines: Sequence[str], language: str | None) -> Block:
    return section(f"*{say(f'trust_{heading}', language)}*\n{clipped(lines, _ROOM, language)}")


def _headline(record: Mapping[str, Any], language: str | None) -> str:
    if string(record, "outcome") == "partial":
        return say("trust_is_partial", language)
    return say("trust_is_verified" if record.get("verified") is True else "trust_is_unverified", language)


def _counted(attempts: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """The attempt that counted, which is the last one that passed, else the last."""
    return next((a for a in reversed(attempts) if a.get("passed") is True), attempts[-1] if attempts else {})


def _signs(attempt: Mapping[str, Any], posted: str) -> dict[RuleName, tuple[str, str]]:
    """Each rule with its sign in this attempt, and the words that it doubts where they were posted."""
    signs: dict[RuleName, tuple[str, str]] = dict.fromkeys(get_args(RuleName), ("✓", ""))
    for violation in objects(attempt, "violations"):
        rule: Any = string(violation, "rule")
        if string(violation, "severity") == "error":
            signs[rule] = ("✗", "")
        elif signs.get(rule) == ("✓", ""):
            signs[rule] = ("△", _doubt(string(violation, "words"), posted))
    return {rule: signs[rule] for rule in get_args(RuleName)}


def _doubt(words: str, posted: str) -> str:
    if not words or words not in posted:
        return ""
    plain = " ".join(words.split())
    return f": “{escape(plain if len(plain) <= _LONGEST_DOUBT else plain[: _LONGEST_DOUBT - 1] + '…')}”"


def _attempt_line(number: int, attempt: Mapping[str, Any], language: str | None) -> str:
    parts = [say("trust_passed" if attempt.get("passed") is True else "trust_failed", language)]
    faults = sorted({string(v, "rule") for v in objects(attempt, "violations") if string(v, "severity") == "error"})
    mended = [f"{string(r, 'kind')} ×{mapping(r).get('count', 1)}" for r in objects(attempt, "repairs")]
    if faults:
        parts.append(say("trust_against", language, rules=", ".join(faults)))
    if mended:
        parts.append(say("trust_repaired", language, kinds=", ".join(mended)))
    return f"{number}. " + escape("; ".join(parts))


def _source(source: Mapping[str, Any]) -> Source:
    number = source.get("id")
    return Source(
        id=number if isinstance(number, int) else 0,
        title=string(source, "title"),
        url=string(source, "url"),
        updated_at=string(source, "updated_at"),
    )


def _success(figures: HomeFigures, language: str | None) -> str:
    if figures.pass_rate is None:
        return say("home_no_answers", language)
    counts = {name: f"{getattr(figures, name):,}" for name in ("answered", "partial", "failed", "refused")}
    rate = say("home_rate", language, rate=f"{figures.pass_rate:.1%}", days=str(figures.days))
    return f"{rate}\n{say('home_counts', language, **counts)}"


def _bytes(size: int) -> str:
    if not size:
        return ""
    kilobytes = size / 1024
    return f", {kilobytes:,.0f} KB" if kilobytes < 1024 else f", {kilobytes / 1024:,.1f} MB"  # noqa: PLR2004 - KB in a MB

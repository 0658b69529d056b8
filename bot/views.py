"""The trust modal and the App Home as Slack views. Pure: plain records and numbers go in, view dictionaries come out.

Promises: Slack's limits hold whatever a record says; a record of an older version shows what it has. Must never show an
exception, a prompt or a text that was not posted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, get_args

from bot.blocks import LONGEST_TEXT, Block, button, clipped, context, section
from bot.mrkdwn_links import age, escape, source_line
from bot.payload import mapping, objects, string
from bot.wording import TRUST_UNKNOWN
from verification.answer import RuleName, Source

TRY_ACTION = "orion_try"
_ROOM = LONGEST_TEXT - 20  # for the heading of a section
_PAUSED = "*⏸ Paused by an admin.* Questions are kept, and answered when I go on."
_RULES: dict[str, str] = {
    "not_empty": "It says something",
    "minimum_length": "It is long enough for the question",
    "no_markdown_bold": "No stray Markdown emphasis",
    "no_blockquotes": "No block quotes",
    "mrkdwn": "Its Slack markup is right",
    "no_broadcast": "It calls nobody who was not named",
    "addresses_question": "It speaks to the question",
    "coherent": "It is coherent and in the right language",
    "cites_sources": "Every claim has a citation",
    "citation_resolves": "Every citation and link resolves",
    "claim_supported": "Every claim stands in what it cites",
    "no_secrets": "No secrets",
    "no_injection": "No instruction from a source was followed",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    """One place Orion reads: its name, how many documents, how many bytes (0 where nobody counted)."""

    name: str
    documents: int
    size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFigures:
    """What App Home shows; counts are of the last ``days`` days.

    ``newest`` is when the newest document changed, an ISO 8601 date or timestamp; ``pass_rate`` is 0 to 1, None
    before the first answer.
    """

    collections: tuple[Collection, ...]
    newest: str = ""
    pass_rate: float | None = None
    answered: int = 0
    partial: int = 0
    failed: int = 0
    refused: int = 0
    days: int = 1
    paused: bool = False


def trust_modal(record: Mapping[str, Any] | None, today: date) -> Block:
    """The answer to "Why trust this?": rules passed, attempts, repairs, and the sources with title, link and age.

    ``record`` is a stored turn (``turn_id, outcome, verified, attempts, sources, model``); None when it is gone.
    """
    blocks = [section(TRUST_UNKNOWN)] if record is None else _trust_blocks(record, today)
    return {
        "type": "modal",
        "title": {"type": "plain_text", "text": "Why trust this?"},
        "close": {"type": "plain_text", "text": "Close"},
        "blocks": blocks,
    }


def home_view(figures: HomeFigures, today: date) -> Block:
    """App Home: what Orion knows, how well it does, and a button to try it (A10)."""
    places = [
        f"• {escape(place.name)}: {place.documents:,} documents{_bytes(place.size)}" for place in figures.collections
    ]
    changed = age(figures.newest, today)
    knows = clipped([*(places or ["• nothing yet"]), *([f"The newest changed {changed}."] if changed else [])], _ROOM)
    blocks = [
        {"type": "header", "text": {"type": "plain_text", "text": "Orion"}},
        *([section(_PAUSED)] if figures.paused else []),
        section("I answer from your team's documents and check every answer against them before I send it."),
        {"type": "divider"},
        section(f"*What I know*\n{knows}"),
        section(f"*How I do*\n{_success(figures)}"),
        {"type": "actions", "elements": [button("Try it", TRY_ACTION, "home")]},
    ]
    return {"type": "home", "blocks": blocks}


def _trust_blocks(record: Mapping[str, Any], today: date) -> list[Block]:
    attempts = objects(record, "attempts")
    blocks = [section(_headline(record)), section(f"*Rules*\n{clipped(_rule_lines(attempts), _ROOM)}")]
    if attempts:
        lines = [_attempt_line(number, attempt) for number, attempt in enumerate(attempts, 1)]
        blocks.append(section(f"*Attempts*\n{clipped(lines, _ROOM)}"))
    if sources := [_source_line(source, today) for source in objects(record, "sources")]:
        blocks.append(section(f"*Sources*\n{clipped(sources, _ROOM)}"))
    names = {"Model": string(record, "model"), "Turn": string(record, "turn_id")}
    if origin := [f"{label}: {escape(name)}" for label, name in names.items() if name]:
        blocks.append(context([" · ".join(origin)]))
    return blocks


def _headline(record: Mapping[str, Any]) -> str:
    if string(record, "outcome") == "partial":
        return "*◐ Partial.* Sentences that could not be verified were left out before the answer was sent."
    if record.get("verified") is True:
        return "*✓ Verified.* Every rule passed before the answer was sent."
    return "*Not verified.* This message makes no claim that was checked against your documents."


def _rule_lines(attempts: Sequence[Mapping[str, Any]]) -> list[str]:
    """Each rule with its mark in the attempt that counted, which is the last one that passed, else the last."""
    counted = next((a for a in reversed(attempts) if a.get("passed") is True), attempts[-1] if attempts else {})
    worst: dict[str, str] = {}
    for violation in objects(counted, "violations"):
        rule = string(violation, "rule")
        worst[rule] = "✗" if string(violation, "severity") == "error" else worst.get(rule, "△")
    return [f"{worst.get(rule, '✓')} {_RULES[rule]}" for rule in get_args(RuleName)]


def _attempt_line(number: int, attempt: Mapping[str, Any]) -> str:
    state = "passed" if attempt.get("passed") is True else "did not pass"
    faults = sorted({string(v, "rule") for v in objects(attempt, "violations") if string(v, "severity") == "error"})
    mended = [f"{string(r, 'kind')} ×{mapping(r).get('count', 1)}" for r in objects(attempt, "repairs")]
    parts = [state]
    if faults:
        parts.append("against: " + ", ".join(faults))
    if mended:
        parts.append("form repaired: " + ", ".join(mended))
    return f"{number}. " + escape("; ".join(parts))


def _source_line(source: Mapping[str, Any], today: date) -> str:
    number = source.get("id")
    known = Source(
        id=number if isinstance(number, int) else 0,
        title=string(source, "title"),
        url=string(source, "url"),
        updated_at=string(source, "updated_at"),
    )
    return source_line(known, today)


def _success(figures: HomeFigures) -> str:
    if figures.pass_rate is None:
        return "No answers yet."
    span = "today" if figures.days == 1 else f"in {figures.days} days"
    return (
        f"{figures.pass_rate:.1%} of my answers passed every rule {span}: {figures.answered:,} answered, "
        f"{figures.partial:,} partial, {figures.failed:,} failed, {figures.refused:,} refused."
    )


def _bytes(size: int) -> str:
    if not size:
        return ""
    kilobytes = size / 1024
    return f", {kilobytes:,.0f} KB" if kilobytes < 1024 else f", {kilobytes / 1024:,.1f} MB"  # noqa: PLR2004 - KB in a MB

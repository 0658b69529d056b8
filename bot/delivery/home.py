"""App Home as a view: documents, sample questions and figures; for admins also recent failures. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any, Final

from agent.json_data import objects, string
from agent.knowledge.types import Document
from agent.texts.catalogue import join_names, say, truncate
from bot.channel_settings import ChannelSettings
from bot.delivery.blocks import MAX_TEXT_LENGTH, button, escape, join_lines, link, section, short_id, with_age
from bot.delivery.dialogs import REASONS, AnswerList, channel_blocks
from bot.delivery.rich_text import Block
from bot.delivery.trust import QUOTING
from observability.stats import Summary

TRY_ACTION: Final = "orion_try"
_MAX_SECTION_LENGTH: Final = MAX_TEXT_LENGTH - 60  # for the heading of a section
_MAX_DOCUMENTS: Final = 10
_MAX_UNREAD: Final = 10
_MAX_BUTTON_LENGTH: Final = 71
_HEADER: Final[Block] = {"type": "header", "text": {"type": "plain_text", "text": "Orion"}}


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeFigures:
    """Figures for App Home of one person."""

    documents: Sequence[Document] = ()  # the newest of ``total`` that the person may see
    total: int = 0
    size: int = 0  # bytes; 0 if unknown
    synced: float | None = None  # seconds since 1970
    questions: tuple[str, ...] = ()  # some that the documents answer
    stats: Summary = field(default_factory=Summary)  # of the last ``days`` days
    days: int = 14
    paused: bool = False
    quotes: bool = False  # Orion works without a model
    disliked: Sequence[Mapping[str, Any]] | None = None  # like ``failures``, turn records with ``at``; None: no admin
    failures: Sequence[Mapping[str, Any]] | None = None
    channels: Mapping[str, ChannelSettings] = field(default_factory=dict)  # for admins
    unread: Sequence[str] = ()  # for admins: what was not read, and why
    answers: AnswerList = field(default_factory=AnswerList)
    refusal: str = ""  # the text for a person without access, who sees nothing else


def home_view(figures: HomeFigures, today: date, language: str | None = None) -> Block:
    """Return the page as a view."""
    if figures.refusal:
        texts = [section(say(name, language)) for name in ("home_intro", figures.refusal)]
        return {"type": "home", "blocks": [_HEADER, *texts]}
    blocks = [
        _HEADER,
        *([section(say("home_paused", language))] if figures.paused else []),
        section(say("home_intro", language)),
        *_question_blocks(figures.questions, language),
        {"type": "divider"},
        section(_with_heading("home_knows", _document_lines(figures, today, language), language)),
        section(_with_heading("home_does", _success_lines(figures, language), language)),
        *figures.answers.blocks(today, language),
        *_admin_blocks(figures, language),
    ]
    return {"type": "home", "blocks": blocks}


def _with_heading(heading: str, lines: Sequence[str], language: str | None) -> str:
    return f"*{say(heading, language)}*\n{join_lines(lines, _MAX_SECTION_LENGTH, language)}"


def _question_blocks(questions: Sequence[str], language: str | None) -> list[Block]:
    """Return a button for each sample question, or one general button without any."""
    if not questions:
        return [{"type": "actions", "elements": [button(say("home_try", language), TRY_ACTION, "home")]}]
    numbered = enumerate(questions[:3], 1)
    buttons = [button(truncate(one, _MAX_BUTTON_LENGTH), f"{TRY_ACTION}_{n}", one) for n, one in numbered]
    return [section(f"*{say('home_ask', language)}*"), *({"type": "actions", "elements": [one]} for one in buttons)]


def _document_lines(figures: HomeFigures, today: date, language: str | None) -> list[str]:
    """List the newest documents with links and ages, their number, and the time of the last sync."""
    if not figures.total:
        return [f"• {say('home_nothing', language)}"]
    name = "home_document" if figures.total == 1 else "home_documents"
    kilobytes = max(1, figures.size / 1024)
    size = f", {kilobytes:,.0f} KB" if kilobytes < 1024 else f", {kilobytes / 1024:,.1f} MB"  # noqa: PLR2004 - KB in a MB
    lines = [say(name, language, n=f"{figures.total:,}") + (size if figures.size else "")]
    if figures.synced:
        lines.append(say("home_synced", language, when=_date_token(figures.synced)))
    shown = figures.documents[:_MAX_DOCUMENTS]
    lines += [f"• {with_age(link(one.url, one.title), one.updated_at, today, language)}" for one in shown]
    if more := figures.total - len(shown):
        lines.append(say("and_more", language, n=f"{more:,}"))
    return lines


def _success_lines(figures: HomeFigures, language: str | None) -> list[str]:
    stats, lines = figures.stats, [say("home_no_answers", language)]
    if stats.pass_rate is not None or stats.quoted or stats.refused:
        counts = {name: f"{getattr(stats, name):,}" for name in ("partial", "failed", "refused")}
        counts["answered"] = f"{stats.answered + stats.quoted:,}"
        lines = [say("home_counts", language, days=str(figures.days), **counts)]
    if figures.quotes and (stats.quoted or stats.pass_rate is not None):
        lines.insert(0, say("home_quotes_only", language))
    elif stats.pass_rate is not None:
        lines.insert(0, say("home_rate", language, rate=f"{stats.pass_rate:.1%}"))
    if wrong := stats.verifier:
        accepts = {"passed": f"{wrong.false_accepts:,}", "should_fail": f"{wrong.should_fail:,}"}
        rejects = {"stopped": f"{wrong.false_rejects:,}", "should_pass": f"{wrong.should_pass:,}"}
        lines.append(say("home_wrong", language, **accepts, **rejects))
    return lines


def _admin_blocks(figures: HomeFigures, language: str | None) -> list[Block]:
    """List disliked and failed answers without the question's text: the admin may not be in that conversation."""
    if figures.disliked is None or figures.failures is None:
        return []
    nothing, disliked, quotes = [say("home_none", language)], list[str](), list[str]()
    for record in figures.disliked:
        # Show each chosen complaint once. `orion report` shows the comments.
        chosen = {reason for complaint in objects(record, "complaints") for reason in complaint.get("reasons", [])}
        named = join_names([say(f"wrong_{reason}", language) for reason in REASONS if reason in chosen], language)
        (quotes if string(record, "model") in QUOTING else disliked).append(_record_line(record, named))
    failures = [_record_line(record, string(record, "outcome")) for record in figures.failures] or nothing
    unread = [f"• {escape(line)}" for line in figures.unread[:_MAX_UNREAD]]
    if more := len(figures.unread) - len(unread):
        unread.append(say("and_more", language, n=f"{more:,}"))
    return [
        {"type": "divider"},
        section(_with_heading("home_disliked", disliked or nothing, language)),
        *([section(_with_heading("home_disliked_quotes", quotes, language))] if quotes else []),
        section(_with_heading("home_failures", failures, language)),
        *([section(_with_heading("home_unread", unread, language))] if unread else []),
        *channel_blocks(figures.channels, language),
    ]


def _record_line(record: Mapping[str, Any], what: str) -> str:
    at = record.get("at")
    parts = [_date_token(at) if isinstance(at, float) else "", escape(what), f"`{short_id(string(record, 'turn_id'))}`"]
    return "• " + " · ".join(filter(None, parts))


def _date_token(seconds: float) -> str:
    """Return a date token, which Slack shows in each reader's time zone and language."""
    plain = datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return f"<!date^{int(seconds)}^{{date_short_pretty}} {{time}}|{plain}>"

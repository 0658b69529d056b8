"""The report as a message in Slack, and its text for a terminal. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date
from itertools import islice
from typing import Final

from agent.texts.catalogue import join_names, say, truncate
from bot.delivery.blocks import button, context, escape, join_lines, link, section, with_age
from bot.delivery.dialogs import SAVE_ACTION
from bot.delivery.rich_text import Block
from bot.reports.report import Report, ReportedQuestion
from observability.stats import Tally, percent
from verification.markup.mrkdwn import strip_mrkdwn

# Together they fit into one message: 12,000 characters in 50 blocks.
MAX_TOPICS: Final = 8
MAX_QUESTIONS: Final = 3  # questions per topic
MAX_LINES: Final = 6  # lines of each other section
_MAX_QUESTION_CHARS: Final = 120
_MAX_TITLE_CHARS: Final = 80
_MAX_SECTION_CHARS: Final = 2_000


def report_title(report: Report, language: str | None = None) -> str:
    """Return the heading, which is also the text for notifications."""
    return say("report_title", language, first=report.first.isoformat(), last=report.last.isoformat())


def report_blocks(report: Report, today: date, language: str | None = None, *, can_save: bool) -> list[Block]:
    """Return the report's blocks; ``can_save`` adds a button to each topic."""
    week, before = report.week, report.before
    spent, spent_before = _spent(week, report.cost), _spent(before, report.cost_before)
    figures = [
        say("report_rate", language, rate=percent(week.pass_rate), before=percent(before.pass_rate)),
        say("report_turns", language, turns=f"{week.turns:,}", before=f"{before.turns:,}"),
        say("report_tokens", language, tokens=spent, before=spent_before),
    ]
    disliked = []
    for asked in report.disliked:
        reasons = join_names([say(f"wrong_{reason}", language) for reason in asked.reasons], language)
        said = escape(truncate(asked.said, _MAX_QUESTION_CHARS))
        disliked.append("• " + " · ".join(filter(None, (_question_link(asked), reasons, said))))
    overdue = [
        f"• {link(one.link, truncate(one.question, _MAX_QUESTION_CHARS))} · {one.review} · <@{one.owner}>"
        for one in report.overdue
    ]
    stale = [
        f"• {with_age(link(old.url, truncate(old.title, _MAX_TITLE_CHARS)), old.updated_at, today, language)} · ×{n}"
        for old, n in report.stale
    ]
    return [
        section(f"*{report_title(report, language)}*"),
        section("\n".join(figures)),
        *_topic_blocks(report, language, can_save=can_save),
        *_section("report_disliked", disliked, language, report.disliked_elsewhere),
        *_section("report_overdue", overdue, language),
        *_section("report_stale", stale, language),
    ]


def report_text(report: Report, today: date) -> str:
    """Return the report for a terminal: the texts of its blocks, without links."""
    blocks = report_blocks(report, today, can_save=False)
    parts = [part["text"] for block in blocks for part in (block.get("elements") or [block["text"]])]
    return "\n\n".join(map(strip_mrkdwn, parts))


def _topic_blocks(report: Report, language: str | None, *, can_save: bool) -> list[Block]:
    topics = dict(islice(report.topics.items(), MAX_TOPICS))
    rest = len(report.topics) - len(topics)
    notes = [say("and_more", language, n=str(rest))] if rest else []
    notes += _elsewhere(report.unanswered_elsewhere, language)
    nothing = [] if topics or notes else [say("home_none", language)]
    return [
        section("\n".join([f"*{say('report_unanswered', language)}*", *nothing])),
        *(_topic_block(*topic, language, can_save=can_save) for topic in topics.items()),
        *([context(notes)] if notes else []),
    ]


def _topic_block(document: str, asked: Sequence[ReportedQuestion], language: str | None, *, can_save: bool) -> Block:
    title = escape(truncate(document, _MAX_TITLE_CHARS)) or say("report_no_document", language)
    lines = [f"• {_question_link(one)}" for one in asked[:MAX_QUESTIONS]]
    if rest := len(asked) - len(lines):
        lines.append(say("and_more", language, n=str(rest)))
    block = section("\n".join([f"{title} ({len(asked)})", *lines]))
    newest = asked[0].turn_id
    return block | ({"accessory": button(say("save_title", language), SAVE_ACTION, newest)} if can_save else {})


def _section(
    name: str, lines: Sequence[str], language: str | None, elsewhere: Counter[str] | None = None
) -> Iterable[Block]:
    shown = list(lines[:MAX_LINES])
    if rest := len(lines) - len(shown):
        shown.append(say("and_more", language, n=str(rest)))
    shown += _elsewhere(elsewhere, language) if elsewhere else []
    if shown:
        yield section(f"*{say(name, language)}*\n{join_lines(shown, _MAX_SECTION_CHARS, language)}")


def _question_link(asked: ReportedQuestion) -> str:
    return link(asked.link, truncate(asked.question, _MAX_QUESTION_CHARS))


def _elsewhere(hidden: Counter[str], language: str | None) -> list[str]:
    counts = {"report_direct": hidden["direct"], "report_private": hidden["private"]}
    return [say(name, language, n=str(count)) for name, count in counts.items() if count]


def _spent(tally: Tally, cost: float | None) -> str:
    tokens = tally["usage:prompt_tokens"] + tally["usage:completion_tokens"]
    return f"{tokens:,}{'' if cost is None else f' (${cost:,.2f})'}"

"""The report for a terminal: a table for each part, as wide as the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.box import SIMPLE_HEAD
from rich.table import Table

from bot.reports.report import Figures, Hidden, Report
from observability.stats import percent


def report_tables(report: Report) -> Iterator[Table]:
    """Yield the figures, and each part that has something to show."""
    figures = _table(f"{report.first} to {report.last} (UTC)", "", "this week", "week before")
    for name, week, before in zip(
        ("pass rate", "turns", "tokens", "cost"), _cells(report.week), _cells(report.before), strict=True
    ):
        figures.add_row(name, week, before)
    yield figures
    unanswered = _table("Questions without an answer", "nearest document", "question")
    for topic in report.topics:
        for number, asked in enumerate(topic.asked):
            title = topic.document or "No document near"
            unanswered.add_row("" if number else f"{title} ({len(topic.asked)})", _lines(asked.question, asked.link))
    disliked = _table("Disliked answers", "reasons", "question")
    for asked in report.disliked:
        reasons = ", ".join(reason.replace("_", " ") for reason in asked.reasons)
        disliked.add_row(_lines(reasons, asked.said), _lines(asked.question, asked.link))
    overdue = _table("Saved answers whose review is due", "due", "owner", "question")
    for answer in report.overdue:
        overdue.add_row(str(answer.review), answer.name, _lines(answer.question, answer.link))
    stale = _table("Cited documents that are older than a year", "updated", "cited", "document")
    for document in report.stale:
        stale.add_row(document.updated_at, str(document.citations), _lines(document.title, document.url))
    unanswered.caption = _elsewhere(report.unanswered_elsewhere)
    disliked.caption = _elsewhere(report.disliked_elsewhere)
    yield from (table for table in (unanswered, disliked, overdue, stale) if table.row_count or table.caption)


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, padding=(0, 1, 0, 0), title_justify="left", caption_justify="left")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table


def _cells(figures: Figures) -> tuple[str, str, str, str]:
    dollars = "–" if figures.cost is None else f"${figures.cost:,.2f}"
    return percent(figures.tally.pass_rate), f"{figures.tally.turns:,}", f"{figures.tokens:,}", dollars


def _elsewhere(hidden: Hidden) -> str | None:
    counts = {"direct chats": hidden.direct, "private channels": hidden.private}
    shown = " and ".join(f"{count} in {where}" for where, count in counts.items() if count)
    return f"Not shown: {shown}." if shown else None


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))

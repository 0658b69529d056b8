"""The HTML report on a run of labelled questions: one file without scripts, and the same bytes for the same run."""

import base64
import hashlib
import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Final

from bot.evals.answers import EvalReply, EvalRun, Result
from bot.evals.rows import by_kind, percentile
from verification.types import Source

RESULTS: Final[Mapping[Result, str]] = {
    "answered": "✓ answered as expected",
    "refused": "⊘ refused as expected",
    "wrong": "✗ wrong",
    "error": "! errors",
}
_HERE: Final = Path(__file__).parent
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_COLUMNS: Final = ("Question", "Result", "Answer", "Documents", "Expected", "Time")
_LONG: Final = 220  # characters of an answer that are visible when folded


def report_page(run: EvalRun) -> str:
    """Return the whole page."""
    style = (_HERE / "report.css").read_text(encoding="utf-8")
    replies = run.replies
    return Template((_HERE / "report.html").read_text(encoding="utf-8")).substitute(
        style=style,
        # Allow this style and nothing else, because the page shows texts that anyone may have written.
        allowed=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        file=escape(run.file),
        model=escape(run.model),
        when=run.began.strftime("%Y-%m-%d %H:%M UTC"),
        count=len(replies),
        totals=_totals(replies),
        charts="\n".join((_by_kind(replies), _by_attempt(replies), _rules(replies))),
        heads="".join(f'<th scope="col">{name}</th>' for name in _COLUMNS),
        # Wrong results come first, because people open the page for them.
        questions="\n".join(
            map(_question, sorted(replies, key=lambda one: (one.result != "error", one.result != "wrong")))
        ),
    )


def escape(text: str) -> str:
    """Escape a text for the page: markup, quotes that would end an attribute, and control characters."""
    return html.escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n")))


def _totals(replies: Sequence[EvalReply]) -> str:
    counts = Counter(reply.result for reply in replies)
    answerable = sum(reply.asked.expect is not None for reply in replies)
    judged = [reply for reply in replies if reply.is_judged]
    passed = sum(reply.outcome == "answered" for reply in judged)
    times = [reply.ms for reply in replies]
    tiles = (
        ("Answered as expected", *_of(counts["answered"], answerable)),
        ("Refused as expected", *_of(counts["refused"], len(replies) - answerable)),
        ("Wrong", str(counts["wrong"]), f"of {len(replies)}"),
        ("Errors", str(counts["error"]), "no verdict: model, documents or budget"),
        ("Passed verification", *_of(passed, len(judged), "judged answers")),
        ("Time, median", _time(percentile(times, 0.5)), f"95 of 100 within {_time(percentile(times, 0.95))}"),
    )
    return "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd><dd>{about}</dd></div>" for name, value, about in tiles)


def _of(part: int, total: int, what: str = "") -> tuple[str, str]:
    return (f"{100 * part / total:.1f} %" if total else "–", f"{part} of {total} {what}".rstrip())


def _by_kind(replies: Sequence[EvalReply]) -> str:
    rows = []
    for kind, each in {"all": replies, **by_kind(replies, lambda reply: reply.asked.kind)}.items():
        counts = Counter(reply.result for reply in each)
        right = (counts["answered"] + counts["refused"]) / max(1, len(each))
        rows.append(_row(kind, right, [counts[result] for result in RESULTS]))
    return _chart("As expected, by kind", rows, heads=("Kind", "Share", *RESULTS.values()))


def _by_attempt(replies: Sequence[EvalReply]) -> str:
    judged = [reply for reply in replies if reply.is_judged]
    drafts = [reply.attempts for reply in judged if reply.outcome == "answered"]
    rows = []
    for number in range(1, max([3, *drafts]) + 1):
        passed = sum(1 for each in drafts if each <= number)
        name = f"{number} draft{'' if number == 1 else 's'}"
        rows.append(_row(name, passed / max(1, len(judged)), _of(passed, len(judged))))
    note = "Of the answers that verification judged; partial ones count as not passed."
    return _chart("Passed verification after at most", rows, note=note)


def _rules(replies: Sequence[EvalReply]) -> str:
    found = Counter(sorted(rule for reply in replies for rule in reply.failed_rules)).most_common()
    rows = [_row(rule, count / found[0][1], [count]) for rule, count in found]
    note = "Each rule once a draft; a draft that failed was rewritten." if rows else "No draft failed a rule."
    return _chart("Rules that failed a draft", rows, note=note)


def _chart(title: str, rows: Iterable[str], *, heads: Sequence[str] = (), note: str = "") -> str:
    head = "".join(f'<th scope="col">{name}</th>' for name in heads)
    return (
        f"<section><table><caption>{title}</caption>{head and f'<thead><tr>{head}</tr></thead>'}"
        f'<tbody>{"".join(rows)}</tbody></table><p class="soft small">{note}</p></section>\n'
    )


def _row(name: str, part: float, numbers: Iterable[object]) -> str:
    """Return a line of a chart: its name, a bar of this share, and the numbers of the bar."""
    bar = f'<meter value="{part:.4f}" aria-label="{escape(name)}">{100 * part:.0f} %</meter>'
    cells = "".join(f'<td class="number">{number}</td>' for number in numbers)
    return f'<tr><th scope="row" dir="auto">{escape(name)}</th><td class="drawn">{bar}</td>{cells}</tr>\n'


def _question(reply: EvalReply) -> str:
    asked = reply.asked
    about = " · ".join(filter(None, (asked.id, asked.kind, asked.thread and f"thread {asked.thread}")))
    outcome = reply.outcome.replace("_", " ") + (f" ({reply.reason})" if reply.reason else "")
    drafts = f"{reply.attempts} drafts" if reply.attempts > 1 else ""
    result = [f'<strong class="result">{RESULTS[reply.result]}</strong>', escape(outcome), drafts]
    result += [escape(rule) for rule in dict.fromkeys(reply.failed_rules)]
    documents = ["nearest"] if reply.sources and reply.outcome == "refused" else []
    cells = (
        _lines(result),
        _answer(html.unescape(reply.text)),
        _lines([*documents, *map(_document, reply.sources)]),
        _lines(map(escape, asked.expect)) if asked.expect else "to be refused",
        _time(reply.ms),
    )
    row = "".join(f'<td data-name="{name}">{cell}</td>' for name, cell in zip(_COLUMNS[1:], cells, strict=True))
    head = f'<div class="text" dir="auto">{escape(asked.question)}</div><div class="soft small">{escape(about)}</div>'
    return f'<tr class="{reply.result}"><th scope="row">{head}</th>{row}</tr>'


def _answer(text: str) -> str:
    whole = f'<div class="text" dir="auto">{escape(text)}</div>'
    folded = f'<details><summary dir="auto">{escape(" ".join(text[:_LONG].split()))}…</summary>{whole}</details>'
    return folded if len(text) > _LONG else whole


def _document(source: Source) -> str:
    name = escape(f"[{source.id}] {source.title}")
    is_web = source.url.startswith(("https://", "http://"))
    return f'<a rel="noreferrer" href="{escape(source.url)}">{name}</a>' if is_web else name


def _lines(entries: Iterable[str]) -> str:
    items = "".join(f'<li dir="auto">{entry}</li>' for entry in entries if entry)
    return f"<ul>{items}</ul>"


def _time(ms: float) -> str:
    return f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s".replace(".0 ", " ")  # noqa: PLR2004 - a second

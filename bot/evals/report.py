"""The HTML report on a run of labelled questions (G5).

One file without a script, the same run giving the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import html
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final

from bot.evals.answers import Replied, Result, Run, whole
from bot.evals.rows import percentile
from verification.types import Source

RESULTS: Final[Mapping[Result, str]] = {
    "answered": "answered as expected",
    "refused": "refused as expected",
    "wrong": "wrong",
    "error": "errors",
}
_SIGNS: Final[Mapping[Result, str]] = {"answered": "✓", "refused": "⊘", "wrong": "✗", "error": "!"}
_NAMED: Final[Mapping[Result, str]] = {**RESULTS, "error": "error"}
_STYLE: Final = Path(__file__).with_name("report.css")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SECOND: Final = 1000
_LONG: Final = 220
"""Characters of an answer that stand there unfolded."""


def report_page(run: Run) -> str:
    """The whole page."""
    style = _STYLE.read_text(encoding="utf-8")
    allowed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    title = f"Answers to {run.file}"
    when = run.began.strftime("%Y-%m-%d %H:%M UTC")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'sha256-{allowed}'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{shown(title)}</title>
<style>{style}</style>
</head>
<body>
<main>
<h1>{shown(title)}</h1>
<p class="soft">{len(run.replies)} questions through the whole agent, model {shown(run.model)}, begun {when}.</p>
{_totals(run.replies)}
<div class="charts">
{_by_kind(run.replies)}
{_by_attempt(run.replies)}
{_rules(run.replies)}
{_latency(run.replies)}
</div>
{_questions(run.replies)}
</main>
</body>
</html>
"""


def shown(text: str) -> str:
    """Anybody's text as text of the page: no markup, no quote that ends an attribute, no control character."""
    return html.escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", whole(text).replace("\r\n", "\n")))


def _totals(replies: Sequence[Replied]) -> str:
    counts = Counter(reply.result for reply in replies)
    answerable = sum(1 for reply in replies if reply.asked.expect is not None)
    judged = [reply for reply in replies if reply.judged]
    passed = sum(1 for reply in judged if reply.outcome == "answered")
    times = [reply.ms for reply in replies]
    tiles = [
        ("Answered as expected", *_of(counts["answered"], answerable)),
        ("Refused as expected", *_of(counts["refused"], len(replies) - answerable)),
        ("Wrong", str(counts["wrong"]), f"of {len(replies)}"),
        ("Errors", str(counts["error"]), "no verdict: model, documents or budget"),
        ("Passed verification", *_of(passed, len(judged), "judged answers")),
        ("Time, median", _time(percentile(times, 0.5)), f"95 of 100 within {_time(percentile(times, 0.95))}"),
    ]
    drawn = "\n".join(f"<div><dt>{name}</dt><dd>{value}</dd><dd>{about}</dd></div>" for name, value, about in tiles)
    return f'<dl class="totals">\n{drawn}\n</dl>'


def _of(part: int, total: int, what: str = "") -> tuple[str, str]:
    return (f"{100 * part / total:.1f} %" if total else "–", f"{part} of {total} {what}".rstrip())


def _by_kind(replies: Sequence[Replied]) -> str:
    kinds: dict[str, list[Replied]] = {}
    for reply in replies:
        kinds.setdefault(reply.asked.kind, []).append(reply)
    named = [(kind or "no kind", kinds[kind]) for kind in sorted(kinds, key=lambda kind: (not kind, kind))]
    groups = [("all", replies), *(named if set(kinds) - {""} else [])]
    signs = {result: f'<span class="is-{result}">{sign}</span>' for result, sign in _SIGNS.items()}
    heads = "".join(
        f'<th scope="col" class="number">{signs[result]} <span class="word">{name}</span></th>'
        for result, name in RESULTS.items()
    )
    rows = [_kind_row(kind, Counter(reply.result for reply in each)) for kind, each in groups]
    head = f'<thead><tr><th scope="col">Kind</th><th scope="col" class="drawn">Share</th>{heads}</tr></thead>'
    key = ", ".join(f"{signs[result]} {name}" for result, name in RESULTS.items())
    return _chart("Results by kind", rows, head=head, note=f'<span class="key">{key}</span>')


def _kind_row(kind: str, counts: Mapping[Result, int]) -> str:
    total = sum(counts.values())
    said = ", ".join(f"{counts.get(result, 0)} {name}" for result, name in RESULTS.items())
    parts = [(result, counts.get(result, 0) / total if total else 0.0) for result in RESULTS]
    numbers = "".join(f'<td class="number">{counts.get(result, 0)}</td>' for result in RESULTS)
    return _row(kind, _bar(f"{kind}: {said}", parts), numbers)


def _by_attempt(replies: Sequence[Replied]) -> str:
    judged = [reply for reply in replies if reply.judged]
    drafts = [reply.attempts for reply in judged if reply.outcome == "answered"]
    rows = []
    for number in range(1, max([3, *drafts]) + 1):
        passed = sum(1 for each in drafts if each <= number)
        rate, of = _of(passed, len(judged))
        name = f"{number} draft{'' if number == 1 else 's'}"
        bar = _bar(f"{name}: {rate}, {of}", [("plain", passed / len(judged) if judged else 0.0)])
        rows.append(_row(name, bar, f'<td class="number">{rate}</td><td class="number soft">{of}</td>'))
    note = "Of the answers that verification judged; partial ones count as not passed."
    return _chart("Passed verification after at most", rows, note=note)


def _latency(replies: Sequence[Replied]) -> str:
    spans = list(pairwise(_edges([reply.ms for reply in replies])))
    counts = [sum(1 for reply in replies if low <= reply.ms < high) for low, high in spans]
    rows = []
    for (low, high), count in zip(spans, counts, strict=True):
        name = f"{_time(low)} – {_time(high)}"
        bar = _bar(f"{name}: {count} questions", [("plain", count / max(counts))])
        rows.append(_row(name, bar, f'<td class="number">{count}</td>'))
    return _chart("Time a question took", rows)


def _edges(times: Sequence[float]) -> list[float]:
    """1, 2, 5, 10, 20, … milliseconds round all of them."""
    if not times:
        return []
    steps = [step * 10**power for power in range(9) for step in (1.0, 2.0, 5.0)]
    first = max((number for number, edge in enumerate(steps) if edge <= min(times)), default=-1)
    last = next((number for number, edge in enumerate(steps) if edge > max(times)), len(steps))
    return [
        0.0 if first < 0 else steps[first],
        *steps[first + 1 : last],
        steps[last] if last < len(steps) else math.inf,
    ]


def _rules(replies: Sequence[Replied]) -> str:
    counts = Counter(rule for reply in replies for rule in reply.failed_rules)
    most = max(counts.values(), default=1)
    rows = [
        _row(rule, _bar(f"{rule}: {count} drafts", [("wrong", count / most)]), f'<td class="number">{count}</td>')
        for rule, count in sorted(counts.items(), key=lambda found: (-found[1], found[0]))
    ]
    note = "Each rule once a draft; a draft that failed was written anew." if rows else "No draft failed a rule."
    return _chart("Rules that failed a draft", rows, note=note)


def _chart(title: str, rows: Iterable[str], *, head: str = "", note: str = "") -> str:
    told = f'<p class="soft small">{note}</p>' if note else ""
    body = "\n".join(rows)
    table = f'<table class="chart"><caption>{title}</caption>{head}<tbody>\n{body}\n</tbody></table>'
    return f"<section>{table}{told}</section>"


def _row(name: str, bar: str, numbers: str) -> str:
    return f'<tr><th scope="row" dir="auto">{shown(name)}</th><td class="drawn">{bar}</td>{numbers}</tr>'


def _bar(said: str, parts: Iterable[tuple[str, float]]) -> str:
    """One bar of parts (class, share of the whole) beside each other; ``said`` is what it shows, in words."""
    drawn, begins = "", 0.0
    for name, part in parts:
        if part:
            drawn += f'<rect class="{name}" x="{begins:.2f}" y="0" width="{100 * part:.2f}" height="10"/>'
            begins += 100 * part
    title = f"<title>{shown(said)}</title>"
    return f'<svg class="bar" role="img" viewBox="0 0 100 10" preserveAspectRatio="none">{title}{drawn}</svg>'


def _questions(replies: Sequence[Replied]) -> str:
    counts = Counter(reply.result for reply in replies)
    choices = [
        ("all", f"all {len(replies)}"),
        *((result, f"{name} {counts[result]}") for result, name in RESULTS.items()),
    ]
    shows = "\n".join(
        f'<input type="radio" name="show" id="show-{value}"{" checked" if value == "all" else ""}>'
        f'<label for="show-{value}">{name}</label>'
        for value, name in choices
    )
    names = ("Question", "Result", "Answer", "Documents", "Expected", "Time")
    heads = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in names)
    rows = "\n".join(map(_question, replies))
    return f"""<section id="questions">
<h2 id="every">Every question</h2>
{shows}
<table class="asked" role="table" aria-labelledby="every">
<thead role="rowgroup"><tr role="row">{heads}</tr></thead>
<tbody role="rowgroup">
{rows}
</tbody>
</table>
</section>"""


def _question(reply: Replied) -> str:
    asked = reply.asked
    about = " · ".join(filter(None, (asked.id, asked.kind, "" if asked.alone else f"thread {asked.thread}")))
    head = f'<div class="text" dir="auto">{shown(asked.question)}</div><div class="soft small">{shown(about)}</div>'
    outcome = reply.outcome.replace("_", " ") + (f" ({reply.reason})" if reply.reason else "")
    sign = f"{_SIGNS[reply.result]} {_NAMED[reply.result]}"
    result = f'<div class="strong is-{reply.result}">{sign}</div><div class="soft small">{shown(outcome)}</div>'
    rules = ", ".join(dict.fromkeys(reply.failed_rules))
    drafts = f"{reply.attempts} drafts" if reply.attempts > 1 else ""
    result += "".join(f'<div class="soft small">{shown(each)}</div>' for each in (drafts, rules) if each)
    cells = (
        ("Result", result),
        ("Answer", _answer(_decoded(reply.text))),
        ("Documents", _nearest(reply) + _listed([_document(source) for source in reply.sources])),
        (
            "Expected",
            _listed([f'<span dir="auto">{shown(text)}</span>' for text in asked.expect or ()]) or "to be refused",
        ),
        ("Time", _time(reply.ms)),
    )
    row = "".join(f'<td role="cell" data-name="{name}">{cell or "–"}</td>' for name, cell in cells)
    return f'<tr role="row" class="{reply.result}"><th scope="row" role="rowheader">{head}</th>{row}</tr>'


def _answer(text: str) -> str:
    whole_text = f'<div class="text" dir="auto">{shown(text)}</div>'
    if len(text) <= _LONG:
        return whole_text if text else ""
    beginning = f'<span class="cut">{shown(" ".join(text[:_LONG].split()))}…</span><span class="less">less</span>'
    return f'<details><summary dir="auto">{beginning}</summary>{whole_text}</details>'


def _decoded(text: str) -> str:
    """Slack's three escapes as what they stand for; everything else as it was sent."""
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")


def _nearest(reply: Replied) -> str:
    """Who refuses cites nothing: it names where an answer might stand."""
    return '<div class="soft small">nearest</div>' if reply.sources and reply.outcome == "refused" else ""


def _document(source: Source) -> str:
    """Its number and title; a link only where it leads to the web."""
    name = f"[{source.id}] {source.title}"
    if source.url.startswith(("https://", "http://")):
        return f'<a dir="auto" rel="noreferrer" href="{shown(source.url)}">{shown(name)}</a>'
    return f'<span dir="auto">{shown(name)}</span>'


def _listed(entries: Sequence[str]) -> str:
    return f"<ul>{''.join(f'<li>{entry}</li>' for entry in entries)}</ul>" if entries else ""


def _time(ms: float) -> str:
    if math.isinf(ms):
        return "more"
    return f"{ms:.0f} ms" if ms < _SECOND else f"{ms / _SECOND:.1f} s".replace(".0 ", " ")

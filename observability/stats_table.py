"""The figures of `orion stats` as tables by day, channel, rule and model, with cost if prices are known."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from observability.stats import LATENCY_MS, TARGET, Summary, Tally, percent

By = Literal["day", "channel", "rule", "model"]
_BARS: Final = "▁▂▃▄▅▆▇█"
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """US dollars per million tokens. Without a separate price, cached tokens cost as much as others."""

    input: float
    output: float
    cached_input: float | None = None

    def of(self, prompt: int, cached: int, completion: int) -> float:
        """Return the cost of these tokens."""
        cached_price = self.input if self.cached_input is None else self.cached_input
        return ((prompt - cached) * self.input + cached * cached_price + completion * self.output) / _MILLION


Prices = Mapping[str, Price]


def read_prices(path: Path) -> Prices:
    """Read a TOML file with a table for each model: ``input``, ``output``, optionally ``cached_input``.

    Raises ``OSError``, and ``ValueError`` for a file of another form.
    """
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8"))
        return {model: Price(**{name: float(price) for name, price in each.items()}) for model, each in read.items()}
    except (TypeError, AttributeError) as error:
        message = 'each model needs a table, such as ["gpt-5-mini"] with input = 0.25 and output = 2.0'
        raise ValueError(message) from error


def cost(tally: Tally, prices: Prices) -> float | None:
    """Return US dollars for the models with a price, or None if no model has one."""
    known = [prices[model].of(*tokens) for model, tokens in tally.models().items() if model in prices]
    return sum(known) if known else None


def sparkline(summary: Summary) -> str:
    """Draw the pass rate of each day as a bar from 0 to 1, or as a dot if nothing was judged."""
    # Eight steps from 0 to 1, not from the worst day to the best: a dip of one point must not look like a collapse.
    rates = [tally.pass_rate for tally in summary.days.values()]
    return "".join("·" if rate is None else _BARS[min(7, int(rate * 8))] for rate in rates)


def stats_table(summary: Summary, by: By = "day", *, of: str = "", prices: Prices | None = None) -> Table:
    """Return the figures as a table of 80 columns; ``of`` names their owner."""
    heads, rows = _TABLES[by](summary, prices or {})
    rules = ", ".join(f"{rule} {count}" for rule, count in summary.group("rule").items()) or "none"
    attempts = ", ".join(f"{n}: {count}" for n, count in sorted(summary.group("attempts").items())) or "none"
    verifier = summary.verifier or "The verifier's own errors: orion eval verifier FILE --keep measures them."
    title = f"Pass rate {percent(summary.pass_rate)} {sparkline(summary)} (target {percent(TARGET)})"
    # No padding: ten columns fit into a terminal of 80.
    table = Table(
        title=f"{title}, {of}" if of else title,
        caption=Text(f"Attempts {attempts}. Failure reasons: {rules}.\n{verifier}"),
        box=SIMPLE_HEAD,
        padding=0,
        min_width=60,  # else title and caption wrap to the width of two narrow columns
    )
    for column in heads:
        table.add_column(column, justify="left" if column == by else "right", no_wrap=column != "pass rate")
    for row in rows[:-1]:
        table.add_row(*row)
    table.add_section()
    table.add_row(*rows[-1])
    return table


Rows = tuple[tuple[str, ...], list[tuple[str, ...]]]


def _days(summary: Summary, prices: Prices) -> Rows:
    """Return a row for each day. The last column is cost if a price is known, else tokens."""
    priced = cost(summary, prices) is not None
    last = "cost" if priced else "tokens"
    heads = ("day", "turns", "pass rate", "refused", "answered", "partial", "failed", "p50", "p95", last)
    named: list[tuple[str, Tally]] = [*summary.days.items(), ("all", summary)]
    tokens = [f"{tally['usage:prompt_tokens'] + tally['usage:completion_tokens']:,}" for _, tally in named]
    spent = [_dollars(cost(tally, prices)) for _, tally in named] if priced else tokens
    rows = []
    for (name, tally), each in zip(named, spent, strict=True):
        shares = (percent(tally.pass_rate), percent(tally.refused_share))
        counted = map(str, (tally.answered, tally.partial, tally.failed))
        rows.append((name, str(tally.turns), *shares, *counted, _seconds(tally, 0.5), _seconds(tally, 0.95), each))
    return heads, rows


def _channels(summary: Summary, _: Prices) -> Rows:
    heads = ("channel", "turns", "pass rate", "answered", "partial", "failed")
    named = [*((name, tally["turns"], tally) for name, tally in summary.channels().items())]
    return heads, [
        (name, str(turns), percent(each.pass_rate), *map(str, (each.answered, each.partial, each.failed)))
        for name, turns, each in [*named, ("all", summary.turns, summary)]
    ]


def _rules(summary: Summary, _: Prices) -> Rows:
    rules = summary.group("rule")
    every = sum(rules.values())
    rows = [(rule, str(count), percent(count / every)) for rule, count in rules.items()]
    return ("rule", "failed drafts", "share"), [*rows, ("all", str(every), "")]


def _models(summary: Summary, prices: Prices) -> Rows:
    rows = [
        (model, *(f"{count:,}" for count in tokens), _dollars(prices[model].of(*tokens) if model in prices else None))
        for model, tokens in summary.models().items()
    ]
    total = (sum(counts) for counts in zip((0, 0, 0), *summary.models().values(), strict=True))
    every = ("all", *(f"{count:,}" for count in total), _dollars(cost(summary, prices)))
    return ("model", "prompt", "cached", "completion", "cost"), [*rows, every]


_TABLES: Final = {"day": _days, "channel": _channels, "rule": _rules, "model": _models}


def _seconds(tally: Tally, quantile: float) -> str:
    bound = tally.latency_ms(quantile)
    if bound is None:
        return f"> {LATENCY_MS[-1] / 1000:g} s" if tally.turns else "–"
    return f"≤ {bound / 1000:g} s"


def _dollars(amount: float | None) -> str:
    return "–" if amount is None else f"${amount:,.2f}"

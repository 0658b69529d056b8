"""The figures of `orion stats` as a table, with cost if prices are known."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from observability.stats import LATENCY_MS, TARGET, Summary, Tally, percent

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


def stats_table(summary: Summary, *, of: str = "", prices: Prices | None = None) -> Table:
    """Return the figures of each day as a table of 80 columns; ``of`` names their owner.

    The last column is cost if a price is known, else tokens.
    """
    rules = ", ".join(f"{rule} {count}" for rule, count in summary.group("rule").items()) or "none"
    attempts = ", ".join(f"{n}: {count}" for n, count in sorted(summary.group("attempts").items())) or "none"
    verifier = summary.verifier or "The verifier's own errors: orion eval verifier FILE --keep measures them."
    title = f"Pass rate {percent(summary.pass_rate)} {sparkline(summary)} (target {percent(TARGET)})"
    priced = cost(summary, prices or {}) is not None
    # No padding: ten columns fit into a terminal of 80.
    table = Table(
        title=f"{title}, {of}" if of else title,
        caption=Text(f"Attempts {attempts}. Failure reasons: {rules}.\n{verifier}"),
        box=SIMPLE_HEAD,
        padding=0,
    )
    heads = (
        "turns",
        "pass rate",
        "refused",
        "answered",
        "partial",
        "failed",
        "p50",
        "p95",
        "cost" if priced else "tokens",
    )
    for column in ("day", *heads):
        table.add_column(column, justify="left" if column == "day" else "right", no_wrap=column != "pass rate")
    for name, tally in (*summary.days.items(), ("all", summary)):
        if name == "all":
            table.add_section()
        shares = (percent(tally.pass_rate), percent(tally.refused_share))
        counted = map(str, (tally.answered, tally.partial, tally.failed))
        spent = cost(tally, prices or {})
        tokens = f"{tally['usage:prompt_tokens'] + tally['usage:completion_tokens']:,}"
        dollars = "–" if spent is None else f"${spent:,.2f}"
        times = (_seconds(tally, 0.5), _seconds(tally, 0.95))
        table.add_row(name, str(tally.turns), *shares, *counted, *times, dollars if priced else tokens)
    return table


def _seconds(tally: Tally, quantile: float) -> str:
    bound = tally.latency_ms(quantile)
    if bound is None:
        return f"> {LATENCY_MS[-1] / 1000:g} s" if tally.turns else "–"
    return f"≤ {bound / 1000:g} s"

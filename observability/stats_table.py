"""The figures of `orion stats` as a table, with cost if prices are known."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import structlog
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from observability.stats import LATENCY_MS, TARGET, Summary, Tally, percent

_MILLION: Final = 1_000_000
log = structlog.get_logger()


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


def read_prices(home: Path) -> Prices:
    """Read a ``Price`` for each model from ``prices.toml``; empty if the file is missing or unusable."""
    path = home / "prices.toml"
    try:
        read = tomllib.loads(path.read_text(encoding="utf-8-sig")) if path.exists() else {}
        return {model: Price(**{name: float(price) for name, price in each.items()}) for model, each in read.items()}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        remedy = 'each model needs a table, such as ["gpt-5-mini"] with input = 0.25 and output = 2.0'
        log.warning("prices_not_read", file=str(path), reason=str(error), remedy=remedy)
        return {}


def cost(tally: Tally, prices: Prices) -> float | None:
    """Return US dollars for the models with a price, or None if no model has one."""
    known = [prices[model].of(*tokens) for model, tokens in tally.models().items() if model in prices]
    return sum(known) if known else None


def stats_table(summary: Summary, *, of: str = "", prices: Prices | None = None) -> Table:
    """Return the figures of each day of ``of`` as a table of 80 columns, the last one cost if a price is known."""
    rules, failed = (
        ", ".join(f"{name} {count}" for name, count in summary.group(group).items()) or "none"
        for group in ("rule", "failed")
    )
    attempts = ", ".join(f"{n}: {count}" for n, count in sorted(summary.group("attempts").items())) or "none"
    verifier = summary.verifier or "The verifier's own errors: orion eval verifier FILE --keep measures them."
    title = f"Pass rate {percent(summary.pass_rate)} (target {percent(TARGET)})"
    priced = cost(summary, prices or {}) is not None
    # No padding: ten columns fit into a terminal of 80.
    table = Table(
        title=f"{title}, {of}" if of else title,
        caption=Text(f"Attempts {attempts}. Failure reasons: {rules}.\nFailed turns: {failed}.\n{verifier}"),
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

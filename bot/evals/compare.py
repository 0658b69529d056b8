"""Sets two reports of `orion eval … --json` side by side: what got better and what got worse, by figure, kind and row.

A row that was right and is wrong now counts as worse; times are shown but decide nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

from rich.table import Table

from bot.errors import WrongUse
from bot.evals.files import read_json

Report = Mapping[str, Any]
Direction = Literal["better", "worse", "same"]

# fmt: off
_MORE_IS_BETTER: Final = frozenset({
    "answered_as_expected", "answered_share", "refused_as_expected", "refused_share", "as_expected",
    "balanced_accuracy", "precision", "recall", "ndcg_at_10", "mrr_at_10", "recall_at_5",
})
_LESS_IS_BETTER: Final = frozenset({
    "false_accepts", "false_rejects", "false_accept_rate", "false_reject_rate", "false_alarms", "p50_ms", "p95_ms",
})
# fmt: on
_TIMES: Final = frozenset({"p50_ms", "p95_ms"})
_SIZES: Final = ("rows", "groups", "should_answer", "should_refuse", "should_pass", "should_fail", "docs", "queries")
_ROWS_THAT_WENT_WRONG: Final = ("not_as_expected", "accepted", "rejected")


class Change(NamedTuple):
    """One figure before and after; ``of`` is the kind of rows it counts, empty for all."""

    of: str
    name: str
    before: float
    after: float

    @property
    def direction(self) -> Direction:
        """Whether it got better."""
        if self.before == self.after:
            return "same"
        return "better" if (self.after > self.before) == (self.name in _MORE_IS_BETTER) else "worse"


class Comparison(NamedTuple):
    """One measurement before and after. Rows are told by their ids, with what became of them where that is known."""

    file: str
    changes: tuple[Change, ...]
    better: tuple[str, ...]
    worse: tuple[str, ...]
    still_wrong: int
    by_row: bool

    @property
    def is_worse(self) -> bool:
        """Whether anything got worse that does not depend on the machine's speed."""
        fell = any(change.direction == "worse" and change.name not in _TIMES for change in self.changes)
        return bool(self.worse) or (fell and not self.by_row)

    def to_json(self) -> dict[str, Any]:
        """As ``orion eval compare --json`` prints it."""
        shown = [
            {"of": c.of, "figure": c.name, "before": c.before, "after": c.after, "change": c.direction}
            for c in self.changes
        ]
        rows = {"better": list(self.better), "worse": list(self.worse), "still_wrong": self.still_wrong}
        return {"file": self.file, "is_worse": self.is_worse, "figures": shown, **(rows if self.by_row else {})}


def compare_files(before: Path, after: Path) -> list[Comparison]:
    """The reports of both files, paired in order. Raises ``WrongUse`` for what cannot be compared."""
    earlier, later = _reports(before), _reports(after)
    if len(earlier) != len(later):
        message = f"{before} holds {len(earlier)} reports and {after} {len(later)}: measure the same files twice."
        raise WrongUse(message)
    return [compare(one, other) for one, other in zip(earlier, later, strict=True)]


def compare(before: Report, after: Report) -> Comparison:
    """Two reports on one file. Raises ``WrongUse`` where they measure different things."""
    _same_measurement(before, after)
    was, now = _wrong(before), _wrong(after)
    earlier, later = before.get("kinds") or {}, after.get("kinds") or {}
    of_kinds = [change for kind in later if kind in earlier for change in _changes(kind, earlier[kind], later[kind])]
    return Comparison(
        file=str(after["file"]),
        changes=(*_changes("", before, after), *(change for change in of_kinds if change.direction != "same")),
        better=tuple(f"{row} ({was[row]})" if was[row] else row for row in was if row not in now),
        worse=tuple(f"{row} ({now[row]})" if now[row] else row for row in now if row not in was),
        still_wrong=len(was.keys() & now.keys()),
        by_row=any(name in after for name in _ROWS_THAT_WENT_WRONG),
    )


def _reports(path: Path) -> Sequence[Report]:
    raw = read_json(path)
    reports = raw if isinstance(raw, list) else [raw]
    if not reports or not all(isinstance(each, Mapping) and "file" in each for each in reports):
        message = f"{path} is no report: write one with `orion eval answers … --json > {path}`."
        raise WrongUse(message)
    return reports


def _same_measurement(before: Report, after: Report) -> None:
    if (file := str(after["file"])) != str(before["file"]):
        message = f"One report is about {before['file']} and the other about {file}: nothing can be compared."
        raise WrongUse(message)
    if _names(before) != _names(after):
        message = f"The reports about {file} are of two kinds: compare answers with answers, verifier with verifier."
        raise WrongUse(message)
    for name in _SIZES:
        if before.get(name) != after.get(name):
            message = (
                f"{file} had {before.get(name)} {name.replace('_', ' ')} and now has {after.get(name)}: not the same."
            )
            raise WrongUse(message)


def _names(report: Report) -> set[str]:
    return report.keys() & (_MORE_IS_BETTER | _LESS_IS_BETTER | set(_ROWS_THAT_WENT_WRONG))


def _changes(of: str, before: Report, after: Report) -> list[Change]:
    known = [name for name in after if name in _MORE_IS_BETTER | _LESS_IS_BETTER and name in before]
    return [Change(of, name, _number(before[name]), _number(after[name])) for name in known]


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        message = f"A report holds {value!r} in the place of a number."
        raise WrongUse(message)
    return value


def _wrong(report: Report) -> dict[str, str]:
    """The rows that went wrong, by id, with what became of them."""
    found: dict[str, str] = {}
    for name in _ROWS_THAT_WENT_WRONG:
        for row in report.get(name) or ():
            named = row if isinstance(row, Mapping) else {"id": row, "as": name}
            found[str(named.get("id"))] = what_became_of(named)
    return found


def what_became_of(row: Mapping[str, Any]) -> str:
    """What a report says of a row that went wrong, beside its id."""
    said = [value for name, value in row.items() if name != "id"]
    return ", ".join("+".join(value) if isinstance(value, list) else str(value) for value in said)


def comparison_table(found: Comparison) -> Table:
    """The figures before and after, then the rows that went over."""
    table = Table(found.file, "before", "after", "", caption="worse" if found.is_worse else "nothing got worse")
    for change in found.changes:
        name = f"{f'· {change.of}: ' if change.of else ''}{change.name.replace('_', ' ')}"
        direction = "" if change.direction == "same" else change.direction
        table.add_row(name, f"{change.before:g}", f"{change.after:g}", direction)
    if found.by_row:
        table.add_section()
        for name, rows in (("better", found.better), ("worse", found.worse)):
            table.add_row(f"rows that got {name}", "", str(len(rows)), ", ".join(rows))
        table.add_row("rows still wrong", "", str(found.still_wrong), "")
    return table

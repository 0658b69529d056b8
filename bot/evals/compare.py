"""Compares two reports of `orion eval … --json` by figure, kind and row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.table import Table

from bot.errors import WrongUse
from bot.evals.files import read_json

Report = Mapping[str, Any]

_FIGURES: Final = {  # True: more is better
    **dict.fromkeys((
        "answered_as_expected", "answered_share", "refused_as_expected", "refused_share", "as_expected",
        "balanced_accuracy", "precision", "recall", "ndcg_at_10", "mrr_at_10", "recall_at_5",
    ), True),
    **dict.fromkeys((
        "false_accepts", "false_rejects", "false_accept_rate", "false_reject_rate", "false_alarms", "p50_ms", "p95_ms",
    ), False),
}  # fmt: skip
_TIMES: Final = frozenset({"p50_ms", "p95_ms"})
# If these differ, the questions differ.
_SIZES: Final = ("rows", "groups", "should_answer", "should_refuse", "should_pass", "should_fail", "docs", "queries")
_ROWS_THAT_WENT_WRONG: Final = ("not_as_expected", "accepted", "rejected")


def compare_files(before: Path, after: Path) -> list[dict[str, Any]]:
    """Compare the reports of two files, paired in order. Raises ``WrongUse`` if they cannot be compared."""
    earlier, later = _reports(before), _reports(after)
    if len(earlier) != len(later):
        message = f"{before} has {len(earlier)} reports and {after} {len(later)}: measure the same files twice."
        raise WrongUse(message)
    return list(map(compare, earlier, later))


def compare(before: Report, after: Report) -> dict[str, Any]:
    """Compare two reports on one file, as ``orion eval compare --json`` prints it. Raises ``WrongUse``."""
    _same_measurement(before, after)
    figures, earlier = _changes("", before, after), before.get("kinds") or {}
    for kind, later in (after.get("kinds") or {}).items():
        figures += [change for change in _changes(kind, earlier.get(kind, {}), later) if change["change"] != "same"]
    was, now = _wrong(before), _wrong(after)
    better, worse = (
        [f"{row} ({one[row]})" if one[row] else row for row in one if row not in other]
        for one, other in ((was, now), (now, was))
    )
    if any(name in after for name in _ROWS_THAT_WENT_WRONG):
        rows = {"better": better, "worse": worse, "still_wrong": len(was.keys() & now.keys())}
        return {"file": str(after["file"]), "is_worse": bool(worse), "figures": figures, **rows}
    # Reports without rows have only figures. Ignore the machine's speed.
    fell = any(change["change"] == "worse" and change["figure"] not in _TIMES for change in figures)
    return {"file": str(after["file"]), "is_worse": fell, "figures": figures}


def _reports(path: Path) -> Sequence[Report]:
    raw = read_json(path)
    reports = raw if isinstance(raw, list) else [raw]
    if not reports or not all(isinstance(each, Mapping) and "file" in each for each in reports):
        raise WrongUse(why=f"{path} is not a report: write one with `orion eval answers … --json > {path}`.")
    return reports


def _same_measurement(before: Report, after: Report) -> None:
    if (file := str(after["file"])) != str(before["file"]):
        raise WrongUse(why=f"One report is about {before['file']} and the other about {file}: nothing can be compared.")
    named = {*_FIGURES, *_ROWS_THAT_WENT_WRONG}
    if before.keys() & named != after.keys() & named:
        message = f"The reports about {file} are of two kinds: compare answers with answers, verifier with verifier."
        raise WrongUse(message)
    if other := next((name for name in _SIZES if before.get(name) != after.get(name)), ""):
        was, now = before.get(other), after.get(other)
        raise WrongUse(why=f"{file} had {was} {other.replace('_', ' ')} and now has {now}: not the same.")


def _changes(of: str, before: Report, after: Report) -> list[dict[str, Any]]:
    """Each figure of both reports; ``of`` is the kind of rows it counts, empty for all."""
    found = []
    for name in after.keys() & before.keys() & _FIGURES.keys():
        was, now = before[name], after[name]
        if not all(isinstance(value, int | float) for value in (was, now)):
            raise WrongUse(why=f"A report has {was!r} and {now!r} where numbers should be.")
        direction = "same" if was == now else "better" if (now > was) is _FIGURES[name] else "worse"
        found.append({"of": of, "figure": name, "before": was, "after": now, "change": direction})
    return sorted(found, key=lambda change: [*_FIGURES].index(change["figure"]))


def _wrong(report: Report) -> dict[str, str]:
    rows = [
        row if isinstance(row, Mapping) else {"id": row, "as": name}
        for name in _ROWS_THAT_WENT_WRONG
        for row in report.get(name) or ()
    ]
    return {str(row.get("id")): describe_result(row) for row in rows}


def describe_result(row: Mapping[str, Any]) -> str:
    """Return a report's entry for a wrong row, without its id."""
    said = [value for name, value in row.items() if name != "id"]
    return ", ".join("+".join(value) if isinstance(value, list) else str(value) for value in said)


def comparison_table(found: Report) -> Table:
    """Return the figures before and after, then the rows that changed."""
    table = Table(found["file"], "before", "after", "", caption="worse" if found["is_worse"] else "nothing got worse")
    for change in found["figures"]:
        name = (f"· {change['of']}: " if change["of"] else "") + change["figure"].replace("_", " ")
        direction = "" if change["change"] == "same" else change["change"]
        table.add_row(name, f"{change['before']:g}", f"{change['after']:g}", direction)
    if "still_wrong" in found:
        table.add_section()
        for name in ("better", "worse"):
            table.add_row(f"rows that got {name}", "", str(len(found[name])), ", ".join(found[name]))
        table.add_row("rows still wrong", "", str(found["still_wrong"]), "")
    return table

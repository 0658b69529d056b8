"""The one table of a chaos run: what was done, what was promised, what was found."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

from rich.console import Console
from rich.table import Table

from tests.process.chaos.ledger import Ledger

PROMISED_NONE = ("lost", "told", "twice", "out_of_order", "at_once", "misremembered", "left_behind")
"""Books that must show 0. The others are told because they happened, and broke nothing."""
HEADINGS = {
    "asked": "questions",
    "told": "given up and told",
    "twice": "answered twice",
    "out_of_order": "out of order",
    "at_once": "two turns at once",
    "misremembered": "stale saves",
    "left_behind": "status left behind",
    "second_posts_deleted": "second posts deleted",
    "overtaken": "delivered late by Slack",
}
COLUMNS = ("asked", *PROMISED_NONE, "second_posts_deleted", "overtaken")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One scenario. ``wrong`` is what broke besides the books."""

    name: str
    done: str
    ledger: Ledger
    seconds: float = 0.0
    wrong: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        return not self.wrong and not any(getattr(self.ledger, name) for name in PROMISED_NONE)


def sum_ledgers(ledgers: Sequence[Ledger]) -> Ledger:
    """Several books as one."""
    counts = {
        spec.name: sum(getattr(one, spec.name) for one in ledgers) for spec in fields(Ledger) if spec.name != "notes"
    }
    return Ledger(**counts, notes=tuple(note for one in ledgers for note in one.notes))


def show(rows: Sequence[Row], title: str) -> None:
    """Prints the table, and below it where each broken promise was broken."""
    table = Table(title=title, show_lines=True)
    table.add_column("scenario")
    table.add_column("what was done", max_width=34)
    for name in COLUMNS:
        table.add_column(HEADINGS.get(name, name), justify="right", max_width=10)
    table.add_column("s", justify="right")
    table.add_column("held")
    for row in rows:
        counts = [str(getattr(row.ledger, name)) for name in COLUMNS]
        table.add_row(row.name, row.done, *counts, f"{row.seconds:.0f}", "yes" if row.holds else "NO")
    console = Console(width=max(170, Console().width))
    console.print(table)
    for row in rows:
        for note in (*row.wrong, *row.ledger.notes):
            console.print(f"{row.name}: {note}", highlight=False)

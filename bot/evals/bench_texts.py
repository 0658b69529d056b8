"""Answers and sources for the bench. The same number gives the same texts; other numbers share only the vocabulary."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import chain, cycle, islice
from typing import Final

from verification.types import Draft, Source

_WORDS: Final = {
    "system": ("billing ledger", "search cluster", "payment gateway", "mail relay", "image store", "event queue"),
    "owner": ("Platform", "Data", "Finance", "Support", "Security", "Network", "Storage", "Mobile", "Legal"),
    "verb": ("restarts", "drains", "reloads", "rotates", "archives", "verifies", "migrates", "compacts"),
    "things": ("expired sessions", "stale indexes", "old certificates", "failed uploads", "cold partitions"),
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
    "month": ("January", "February", "March", "April", "June", "July", "August", "September", "October"),
}
_FACTS: Final = (  # as a source has it, and in other words
    ("The {system} {verb} {things} every {n} minutes", "Every {n} minutes the {system} {verb} {things}"),
    ("The {owner} team owns the {system} of `{host}`", "The {system} of `{host}` belongs to the {owner} team"),
    (
        "At most {n} percent of the {things} may be lost when the {system} of `{host}` stops",
        "When the {system} of `{host}` stops, no more than {n} % of the {things} may be lost",
    ),
    (
        "The {system} was moved to `{host}` on {day} {month} {year}",
        "On {day} {month} {year} the {system} was moved to `{host}`",
    ),
    (
        "On {weekday} at {hour}:30 the {system} {verb} {things} for the {owner} team of `{host}`",
        "On {weekday}, from {hour}:30, the {system} {verb} {things} for the {owner} team of `{host}`",
    ),
)
_FILLER: Final = "If the {things} grow faster than usual, the person on call of `{host}` tells the {owner} channel."
_FACT_LENGTH: Final = 110
"""Characters of one fact with its mark and its citation, about."""


def turn(
    number: int, *, length: int = 2000, count: int = 8, source_length: int = 2000, reworded: bool = False
) -> Draft:
    """An answer of about ``length`` characters with ``count`` sources of ``source_length``, no two turns alike.

    A long answer says again what its sources hold; ``reworded``, in other words than theirs.
    """
    chance = random.Random(number)  # noqa: S311 - the same texts in every run
    each = min(1 + length // (_FACT_LENGTH * count), source_length // 200)
    pages = [[_fact(chance) for _ in range(each)] for _ in range(count)]
    told = (
        f"{page[at][reworded]} [{n}]" for at in cycle(range(each)) for n, page in enumerate(pages, start=1)
    )  # an endless round of every source's facts
    return Draft(
        text=_answer(told, length),
        question=_filled("What is there to know about the {system} and its {things}?", chance),
        sources=tuple(_source(n, page, source_length, chance) for n, page in enumerate(pages, start=1)),
    )


def _fact(chance: random.Random) -> tuple[str, str]:
    """A fact as a source has it, and in other words."""
    values = _values(chance)
    plain, reworded = chance.choice(_FACTS)
    return plain.format(**values), reworded.format(**values)


def _source(number: int, facts: list[tuple[str, str]], length: int, chance: random.Random) -> Source:
    """A page that holds the facts between other sentences."""
    fillers = iter(lambda: _filled(_FILLER, chance), "")
    pairs = chain.from_iterable(zip((f"{fact}." for fact, _ in facts), fillers, strict=False))
    text = "\n\n".join([*pairs, *islice(fillers, length // 60)])
    title = _filled("Handbook of the {system}", chance)
    return Source(id=number, title=title, url=f"https://docs.example/page-{number}", text=text[:length])


def _answer(told: Iterator[str], length: int) -> str:
    """The Markdown that models write: headings, bold text, a paragraph, a list."""
    text = ""
    while len(text) < length:
        text += (
            f"## Rules\n\n**{next(told)}.** {next(told)}.\n\n" + "".join(f"- {next(told)}\n" for _ in range(3)) + "\n"
        )
    return text[:length].rpartition("\n")[0]


def _filled(template: str, chance: random.Random) -> str:
    return template.format(**_values(chance))


def _values(chance: random.Random) -> dict[str, object]:
    picked: dict[str, object] = {name: chance.choice(words) for name, words in _WORDS.items()}
    host = f"{chance.choice('abcdefgh')}{chance.randrange(10_000)}-{chance.randrange(1_000)}"
    numbers = {"n": chance.randrange(2, 95), "day": chance.randrange(1, 28), "year": chance.randrange(1990, 2026)}
    return {**picked, **numbers, "hour": chance.randrange(10, 19), "host": host}

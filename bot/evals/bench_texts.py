"""Answers and sources for the bench. The same number gives the same texts; other numbers share only the vocabulary."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import cycle
from typing import Final

from verification.types import Draft, Source

_SYSTEMS: Final = (
    *("billing ledger", "search cluster", "payment gateway", "mail relay", "image store", "event queue", "build farm"),
    *("login service", "report engine", "backup vault", "metrics store", "support desk", "package mirror"),
    *("load balancer", "data warehouse", "chat bridge", "invoice printer", "access proxy", "staging network"),
    *("office printer", "video archive", "customer portal", "price catalogue"),
)
_OWNERS: Final = (
    "Platform",
    "Data",
    "Finance",
    "Support",
    "Security",
    "Network",
    "Storage",
    "Mobile",
    "Design",
    "Legal",
)
_VERBS: Final = (
    "restarts",
    "drains",
    "reloads",
    "rotates",
    "archives",
    "verifies",
    "migrates",
    "throttles",
    "compacts",
)
_THINGS: Final = (
    *("expired sessions", "stale indexes", "old certificates", "failed uploads", "cold partitions", "open connections"),
    *("unpaid orders", "temporary accounts", "queued messages", "broken thumbnails", "nightly snapshots"),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_MONTHS: Final = ("January", "February", "March", "April", "June", "July", "August", "September", "October", "November")
_FACTS: Final = (
    "The {system} {verb} {things} every {n} minutes",
    "The {owner} team owns the {system} and answers within {n} hours",
    "Run `{tool} {flag}` on the host `{host}` before anybody touches the {system}",
    "At most {n} percent of the {things} may be lost when the {system} stops",
    "The {system} was moved to the new data centre on {day} {month} {year}",
    "Access to the {system} must be approved by the {owner} lead and ends after {n} days",
    "Logs of the {system} are kept for {n} days in `/var/log/{host}`",
    "On {weekday} at {hour}:30 the {system} {verb} {things} for the {owner} team",
)
_RETOLD: Final = (
    "Every {n} minutes the {system} {verb} {things}",
    "The {system} belongs to the {owner} team, which answers within {n} hours",
    "Before anybody touches the {system}, run `{tool} {flag}` on `{host}`",
    "When the {system} stops, no more than {n} % of the {things} may be lost",
    "On {day} {month} {year} the {system} was moved to the new data centre",
    "The {owner} lead must approve access to the {system}, which ends after {n} days",
    "`/var/log/{host}` keeps the logs of the {system} for {n} days",
    "On {weekday}, from {hour}:30, the {system} {verb} {things} for the {owner} team",
)
"""The same facts in the same order, in other words."""
_FILLERS: Final = (
    "Nobody remembers why the {system} was built that way, but the {owner} team wrote down what it learned from it.",
    "If the {things} grow faster than usual, the person on call opens a ticket and tells the {owner} channel.",
    "A new colleague should read the guide of the {system} first, then shadow somebody for {n} days.",
    "The budget of {amount} euros for {year} covers licences, hardware and the support contract of the {system}.",
    "Before each release the {owner} engineers compare the {things} with those of the {weekday} before.",
    "See https://docs.example/{host}/guide for pictures, and ask the {owner} lead about exceptions.",
    "Requests from other departments are collected until {weekday} and discussed in the weekly meeting.",
    "When the alarm of the {system} rings twice within {n} minutes, the shift leader calls the supplier.",
)
_LONGEST: Final = 150
_SENTENCE: Final = 110
"""Characters of one fact, its mark and its line end, about."""


def turn(
    number: int, *, length: int = 2000, count: int = 8, source_length: int = 2000, reworded: bool = False
) -> Draft:
    """An answer of about ``length`` characters with ``count`` sources of ``source_length``, no two turns alike.

    A long answer says again what its sources hold; ``reworded``, in other words than theirs.
    """
    chance = random.Random(number)  # noqa: S311 - the same texts in every run
    each = min(1 + length // (_SENTENCE * count), source_length // _LONGEST - 1)
    facts = [[_fact(chance) for _ in range(each)] for _ in range(count)]
    told = [[retold if reworded else fact for fact, retold in page] for page in facts]
    sources = tuple(
        _source(n, [fact for fact, _ in page], source_length, chance) for n, page in enumerate(facts, start=1)
    )
    return Draft(
        text=answer_text(length, number, told).rpartition("\n")[0],
        question=f"What is there to know about the {chance.choice(_SYSTEMS)} and its {chance.choice(_THINGS)}?",
        sources=sources,
    )


def _source(number: int, facts: list[str], length: int, chance: random.Random) -> Source:
    """A page that holds the facts between other sentences."""
    lines = [f"{fact}." for fact in facts]
    while sum(map(len, lines)) + len(lines) < length - _LONGEST:
        lines.insert(chance.randrange(len(lines) + 1), _sentence(_FILLERS, chance))
    lines += [_sentence(_FILLERS, chance) for _ in range(4)]  # of these, one is cut
    paragraphs = ("\n\n" if at % 4 == 3 else " " for at in range(len(lines)))  # noqa: PLR2004 - four to a paragraph
    text = "".join(line + gap for line, gap in zip(lines, paragraphs, strict=True))
    title = _sentence(("Handbook of the {system}",), chance)
    return Source(id=number, title=title, url=f"https://docs.example/page-{number}", text=text[:length])


def answer_text(length: int, number: int = 0, told: list[list[str]] | None = None) -> str:
    """An answer of ``length`` characters in the Markdown that models write; without ``told`` its facts are new."""
    chance = random.Random(-1 - number)  # noqa: S311 - the same texts in every run
    facts = _told(told) if told else ((_sentence(_FACTS, chance), n) for n in cycle(range(1, 9)))
    pieces: list[str] = []
    size = 0
    while size < length:
        pieces.append(_section(facts, chance))
        size += len(pieces[-1])
    return "".join(pieces)[:length]


def _told(told: list[list[str]]) -> Iterator[tuple[str, int]]:
    """Each source's facts in turn with its number, over and over."""
    deepest = max(map(len, told))
    return cycle([(facts[at], n) for at in range(deepest) for n, facts in enumerate(told, start=1) if at < len(facts)])


def _section(facts: Iterator[tuple[str, int]], chance: random.Random) -> str:
    """A heading, a paragraph, a list and a table of facts."""
    cited = (f"{fact} [{n}]" for fact, n in facts)
    head = _sentence(("## Rules of the {system}\n\n", "### The {owner} team\n\n"), chance)
    paragraph = f"**{next(cited)}.** {next(cited)}.\n\n"
    items = "".join(f"- {next(cited)}\n" for _ in range(3))
    link = f"[page](https://docs.example/page-{chance.randrange(1, 9)})"
    row = f"| rule | source |\n|---|---|\n| {next(cited)} | {link} |\n\n"
    return f"{head}{paragraph}{items}\n{row if chance.random() < 0.3 else ''}"  # noqa: PLR2004 - a table in some


def _fact(chance: random.Random) -> tuple[str, str]:
    """A fact as a source has it, and in other words."""
    number = chance.randrange(len(_FACTS))
    words = _words(chance)
    return _FACTS[number].format(**words), _RETOLD[number].format(**words)


def _sentence(patterns: tuple[str, ...], chance: random.Random) -> str:
    return chance.choice(patterns).format(**_words(chance))


def _words(chance: random.Random) -> dict[str, object]:
    """What the sentences are filled with."""
    return {
        "system": chance.choice(_SYSTEMS),
        "owner": chance.choice(_OWNERS),
        "verb": chance.choice(_VERBS),
        "things": chance.choice(_THINGS),
        "n": chance.randrange(2, 95),
        "tool": f"{chance.choice(('ops', 'ctl', 'run', 'adm'))}{chance.randrange(100)}",
        "flag": f"--{chance.choice(('check', 'force', 'drain', 'promote'))}",
        "host": f"node-{chance.randrange(1000)}",
        "day": chance.randrange(1, 29),
        "month": chance.choice(_MONTHS),
        "year": chance.randrange(2015, 2027),
        "weekday": chance.choice(_DAYS),
        "hour": chance.randrange(8, 19),
        "amount": chance.randrange(1000, 90_000),
    }

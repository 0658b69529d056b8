"""Faults planted into right answers by a seeded generator: what is precise must all be found, with the right rule.

The prose is written for this test. Each fault changes one thing of one sentence; the untouched answers must pass.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable

import pytest

from verification.answer import Draft, Source, Violation
from verification.claims import claims
from verification.examination import grounds
from verification.grounding import ground
from verification.recitation import recite

SOURCES: tuple[Source, ...] = (
    Source(
        id=1,
        title="Kiln schedule",
        url="https://pottery.example/kiln",
        text=(
            "The kiln heats up for 9 hours and cools down for 14 hours. The first firing reaches 980 °C. "
            "Glazed ware is fired on Tuesday at 18:45. The kiln was overhauled on 12 April 2022. "
            "At least 40 pieces are needed before a firing starts. The door must not be opened above 95 °C. "
            'The manual says: "Keep the vent open until the cones have fallen." '
            "Start it with `kilnctl run --slow-cool` on the controller. The controller runs firmware v3.8.2. "
            "Settings are read from /etc/kiln/profile.toml. Error K2071 means a broken thermocouple."
        ),
    ),
    Source(
        id=2,
        title="Harbour rules",
        url="https://harbour.example/rules",
        text=(
            "Boats longer than 24 metres need a pilot. The fee is 315 euros a night, and 20 % less in winter. "
            "The lock opens at 06:15 and closes at 21:30. Captain Moreau signs every permit in Brest. "
            "Permits are valid until 30 September 2026. Anchoring is forbidden inside the basin. "
            "All crews report to the harbour office within 3 days. Fuel is sold by Kerlann in the eastern basin. "
            "The radio call sign is set in HARBOUR_CALLSIGN. Requests go to https://harbour.example/permits. "
            'A sign at the gate reads: "No vessel may leave without clearance."'
        ),
    ),
    Source(
        id=3,
        title="Bibliothek",
        url="https://buch.example/haus",
        text=(
            "Die Ausleihe dauert 28 Tage. Die Mahngebühr beträgt 1,50 Euro pro Woche. "
            "Das Magazin öffnet um 10 Uhr und schließt um 19 Uhr. Der Lesesaal wurde am 7. Juni 2019 eröffnet. "
            "Höchstens 6 Bände dürfen mitgenommen werden. Taschen sind im Lesesaal nicht erlaubt. "
            "Die Sammlung umfasst 84.300 Bände."
        ),
    ),
    Source(
        id=4,
        title="Orchard notes",
        url="https://orchard.example/notes",
        text=(
            "Each row holds 52 trees. Pruning takes 11 weeks and begins on 8 January 2025. "
            "The pump delivers 640 litres an hour. Frost fans always run below 2 °C. "
            "Pickers always wear gloves. Rainer leads the night shift."
        ),
    ),
)

RIGHT: tuple[str, ...] = (
    "The kiln heats up for 9 hours and cools down for 14 hours [1].",
    "The first firing reaches 980 °C [1].",
    "Glazed ware is fired on Tuesday at 18:45 [1].",
    "The kiln was overhauled on 12 April 2022 [1].",
    "At least 40 pieces are needed before a firing starts [1].",
    "The door must not be opened above 95 °C [1].",
    'The manual says: "Keep the vent open until the cones have fallen." [1]',
    "Start it with `kilnctl run --slow-cool` on the controller [1].",
    "The controller runs firmware v3.8.2 [1].",
    "Settings are read from /etc/kiln/profile.toml [1].",
    "Error K2071 means a broken thermocouple [1].",
    "Boats longer than 24 metres need a pilot [2].",
    "The fee is 315 euros a night, and 20 % less in winter [2].",
    "The lock opens at 06:15 and closes at 21:30 [2].",
    "Captain Moreau signs every permit in Brest [2].",
    "Permits are valid until 30 September 2026 [2].",
    "Anchoring is forbidden inside the basin [2].",
    "All crews report to the harbour office within 3 days [2].",
    "Fuel is sold by Kerlann in the eastern basin [2].",
    "The radio call sign is set in HARBOUR_CALLSIGN [2].",
    "Requests go to https://harbour.example/permits [2].",
    'A sign at the gate reads: "No vessel may leave without clearance." [2]',
    "Die Ausleihe dauert 28 Tage [3].",
    "Die Mahngebühr beträgt 1,50 Euro pro Woche [3].",
    "Das Magazin öffnet um 10 Uhr und schließt um 19 Uhr [3].",
    "Der Lesesaal wurde am 7. Juni 2019 eröffnet [3].",
    "Höchstens 6 Bände dürfen mitgenommen werden [3].",
    "Taschen sind im Lesesaal nicht erlaubt [3].",
    "Die Sammlung umfasst 84.300 Bände [3].",
    "Each row holds 52 trees [4].",
    "Pruning takes 11 weeks and begins on 8 January 2025 [4].",
    "The pump delivers 640 litres an hour [4].",
    "Pickers always wear gloves [4].",
)

MONTHS = ("January", "April", "September", "Juni")
Fault = Callable[[str, random.Random], str | None]


def _swap(sentence: str, pattern: str, change: Callable[[re.Match[str]], str], rng: random.Random) -> str | None:
    found = [m for m in re.finditer(pattern, sentence) if "[" not in sentence[max(0, m.start() - 1) : m.start()]]
    if not found:
        return None
    match = rng.choice(found)
    return sentence[: match.start()] + change(match) + sentence[match.end() :]


def number(sentence: str, rng: random.Random) -> str | None:
    if re.search(r"`|/|v\d|K\d|20\d\d|\d:\d|Uhr", sentence):
        return None
    return _swap(sentence, r"(?<![\d.,])\d+(?![\d.,]*\d)", lambda m: str(int(m[0]) * 2 + rng.randint(103, 199)), rng)


def unit(sentence: str, rng: random.Random) -> str | None:
    other = {"hours": "minutes", "days": "weeks", "metres": "kilometres", "euros": "dollars", "weeks": "months"}
    other |= {"Tage": "Wochen", "Euro": "Dollar", "%": "euros"}
    pattern = r"(?<=\d )(?:hours|days|metres|euros|weeks|Tage|Euro|%)"
    return _swap(sentence, pattern, lambda m: other[m[0]], rng)


def date(sentence: str, rng: random.Random) -> str | None:
    if not any(month in sentence for month in MONTHS):
        return None
    kind = rng.randrange(3)
    if kind == 0:
        return _swap(
            sentence, r"\d{1,2}(?=\.? (?:January|April|September|Juni))", lambda m: str(int(m[0]) % 27 + 1), rng
        )
    if kind == 1:
        return _swap(sentence, r"20\d\d", lambda m: str(int(m[0]) - rng.randint(1, 9)), rng)
    month = "Mai" if "Juni" in sentence else "March"
    return _swap(sentence, r"January|April|September|Juni", lambda _: month, rng)


def time_of_day(sentence: str, rng: random.Random) -> str | None:
    if " Uhr" in sentence:
        return _swap(sentence, r"\d+(?= Uhr)", lambda m: str(int(m[0]) + rng.randint(1, 4)), rng)
    return _swap(sentence, r"\d\d(?=:\d\d)", lambda m: f"{(int(m[0]) + rng.randint(1, 4)) % 24:02}", rng)


def quote(sentence: str, rng: random.Random) -> str | None:
    other = {"open": "shut", "fallen": "melted", "vessel": "person", "clearance": "payment", "leave": "enter"}
    return _swap(sentence, "|".join(other), lambda m: other[m[0]], rng) if '"' in sentence else None


def identifier(sentence: str, rng: random.Random) -> str | None:
    other = {
        "--slow-cool": "--fast-cool",
        "kilnctl": "kilnadm",
        "profile.toml": "profile.yaml",
        "/etc/kiln": "/var/kiln",
    }
    other |= {"HARBOUR_CALLSIGN": "HARBOUR_CALL", "K2071": f"K20{rng.randint(72, 99)}"}
    return _swap(sentence, "|".join(map(re.escape, other)), lambda m: other[m[0]], rng)


def version(sentence: str, rng: random.Random) -> str | None:
    return _swap(sentence, r"v3\.8\.2", lambda _: f"v3.{rng.randint(9, 20)}.{rng.randint(0, 5)}", rng)


def link(sentence: str, rng: random.Random) -> str | None:
    return _swap(sentence, r"(?<=example/)permits", lambda _: rng.choice(("pilots", "permits/new", "form")), rng)


def citation(sentence: str, rng: random.Random) -> str | None:
    right = int(sentence[sentence.rindex("[") + 1 : sentence.rindex("]")])
    wrong = rng.choice([source.id for source in SOURCES if source.id != right])
    return sentence.replace(f"[{right}]", f"[{wrong}]")


def negation(sentence: str, rng: random.Random) -> str | None:
    for right, wrong in (("must not be", "must be"), ("need a", "do not need a"), ("nicht erlaubt", "erlaubt")):
        if right in sentence:
            return sentence.replace(right, wrong)
    return None


def opposite(sentence: str, rng: random.Random) -> str | None:
    other = {"forbidden": "allowed", "always": "never", "longer": "shorter", "At least": "At most", "before": "after"}
    other |= {"Höchstens": "Mindestens"}
    return _swap(sentence, "|".join(other), lambda m: other[m[0]], rng)


def name(sentence: str, rng: random.Random) -> str | None:
    other = {"Moreau": "Lefort", "Brest": "Calais", "Kerlann": "Tavenec"}
    return _swap(sentence, "|".join(other), lambda m: other[m[0]], rng)


FAULTS: dict[str, Fault] = {
    fault.__name__: fault
    for fault in (number, unit, date, time_of_day, quote, identifier, version, link, citation, negation, opposite, name)
}
ALL_FOUND = ("number", "unit", "date", "time_of_day", "quote", "identifier", "version", "link", "citation")
FLOORS = {"negation": 0.9, "opposite": 0.8, "name": 0.9}
ROUNDS = 40


def judge(text: str) -> tuple[Violation, ...]:
    return ground(grounds(Draft(text=text, sources=SOURCES), text), claims(text))[1]


def errors(text: str) -> list[Violation]:
    return [violation for violation in judge(text) if violation.severity == "error"]


def planted(kind: str) -> list[str]:
    rng = random.Random(f"orion {kind}")
    made = [FAULTS[kind](sentence, rng) for _ in range(ROUNDS) for sentence in rng.sample(RIGHT, len(RIGHT))]
    wrong = [text for text in made if text is not None and text not in RIGHT]
    return list(dict.fromkeys(wrong))[:60]


@pytest.mark.parametrize("sentence", RIGHT)
def test_f1_the_originals_pass(sentence: str) -> None:
    assert errors(sentence) == []


def test_f1_the_originals_pass_as_one_answer() -> None:
    assert errors("\n".join(RIGHT)) == []


@pytest.mark.parametrize("kind", [kind for kind in ALL_FOUND if kind != "citation"])
def test_f1_precise_faults_are_all_found(kind: str) -> None:
    missed = [text for text in planted(kind) if not errors(text)]
    assert planted(kind)
    assert missed == []


def test_f1_wrong_citations_are_all_found_or_set_right() -> None:
    missed = []
    for text in planted("citation"):
        offered = grounds(Draft(text=text, sources=SOURCES), text)
        if not judge(text) and not recite(offered, text, ground(offered, claims(text))[0])[1]:
            missed.append(text)
    assert missed == []


@pytest.mark.parametrize("kind", sorted(FLOORS))
def test_f1_turned_sentences_and_swapped_names_are_mostly_found(kind: str) -> None:
    texts = planted(kind)
    found = [text for text in texts if errors(text)]
    assert len(found) >= FLOORS[kind] * len(texts), sorted(set(texts) - set(found))


def test_f1_the_generator_plants_five_hundred_faults_of_every_kind() -> None:
    rng = random.Random(20_261_121)
    kinds: Counter[str] = Counter()
    while kinds.total() < 500:
        kind = rng.choice(sorted(FAULTS))
        text = FAULTS[kind](rng.choice(RIGHT), rng)
        kinds[kind] += text is not None
    assert set(kinds) == set(FAULTS)

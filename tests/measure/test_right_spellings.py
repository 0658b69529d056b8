"""Right answers in units, ranges, dates and spellings other than the page's: with a judge, no rule may fail one."""

import pytest

from verification.check import check
from verification.types import Draft, Source

PAGE = """The backup window is 02:00–04:30 UTC. The fee is 1/3 of the price. The rate rose from 4 % to 6.5 %.
The audit took place on 2024-03-05. Chapter IV covers leave. The third floor is closed. Use version 3.11.4 or newer.
The call starts at 9:15 CET. Tickets cost $12.50. A desk costs 300 kr a month.
Visitors must not smoke, and must not vape. She wrote: "R&amp;D pays for it all, every time".
See [the guide](https://docs.example/a|b) and https://docs.example/手引き/始め.
The range is −5 to 35 °C. The disk holds 1.5 TB. A parcel weighs up to 2.5 kg. The pool is 25 m long.
The limit is 10⁶ rows. Between 10 and 15 people attend. The deadline is the 15th of May 2025.
Half of the staff work remotely. Q3 2024 revenue was 4.2 million euros. The room is 12 ft by 10 ft.
The budget is CHF 1'200."""
RIGHT = (
    "The backup window runs from 2 am to 4:30 am UTC [1].",
    "The backup window is two and a half hours long, from 02:00 to 04:30 UTC [1].",
    "The fee is about 33 % of the price [1].",
    "The rate rose by 2.5 percentage points to 6.5 % [1].",
    "The audit took place on Tuesday, March 5, 2024 [1].",
    "The audit was on 05.03.2024 [1].",
    "Chapter 4 covers leave [1].",
    "Floor 3 is closed [1].",
    "You need v3.11.4 or newer [1].",
    "The call begins at a quarter past nine CET [1].",
    "Tickets cost 12,50 $, or USD 25 for two [1].",
    "A desk is kr 300 a month, so 3,600 kr a year [1].",
    "Visitors must neither smoke nor vape [1].",
    "She wrote “R&D pays for it all, every time” [1].",
    "See [the guide](https://docs.example/a|b) [1].",
    "See https://docs.example/%E6%89%8B%E5%BC%95%E3%81%8D/%E5%A7%8B%E3%82%81 [1].",
    "It works between 23 °F and 95 °F [1].",
    "The disk holds 1,500 GB [1].",
    "A parcel may weigh at most 2,500 g [1].",
    "The limit is one million rows [1].",
    "10–15 people attend [1].",
    "The deadline is 2025-05-15 [1].",
    "50 % of the staff work remotely [1].",
    "Revenue in Q3 '24 was €4.2m [1].",
    "The room measures 120 square feet (12 ft × 10 ft) [1].",
    "The budget is 1,200 Swiss francs [1].",
)
ONLY_WITH_A_JUDGE = ("The call starts at 09:15 CET (8:15 UTC) [1].",)


@pytest.mark.parametrize("text", [*RIGHT, *ONLY_WITH_A_JUDGE])
def test_right_answer_in_another_spelling_fails_no_rule(text: str) -> None:
    draft = Draft(text=text, sources=(Source(id=1, title="Handbook", url="https://docs.example/h", text=PAGE),))
    alone = [] if text in ONLY_WITH_A_JUDGE else [draft]
    for each in (*alone, Draft(text=text, sources=draft.sources, has_judge=True)):
        assert check(each).errors == ()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("The fee is 40 % of the price [1].", "40 %"),
        ("Revenue in Q3 2024 was €4.7m [1].", "4.7m"),
        ("The audit took place on 6 March 2024 [1].", "6 March 2024"),
        ("The disk holds 1,700 GB [1].", "1,700 GB"),
    ],
)
def test_another_value_in_these_spellings_still_fails(text: str, words: str) -> None:
    draft = Draft(text=text, sources=(Source(id=1, title="Handbook", text=PAGE),))
    assert [error.words for error in check(draft).errors] == [words]

"""What is quoted together: paragraphs, steps, lists, tables, and what contradicts them."""

from __future__ import annotations

from agent.quoting.excerpt import MOST_EXCERPTS, MOST_ITEMS, Choice, choose, closest, opening
from agent.quoting.ranking import Asked
from agent.quoting.units import units_of
from verification.types import Source


def chosen(question: str, *texts: str) -> Choice | None:
    sources = [Source(id=n, title=f"D{n}", url=f"http://d/{n}", text=text) for n, text in enumerate(texts, start=1)]
    units = [unit for source in sources for unit in units_of(source)]
    return choose(Asked(text=question), units, is_left_out=lambda _: False)


def quoted(question: str, *texts: str) -> list[str]:
    choice = chosen(question, *texts)
    return [unit.text for unit in choice.main.units] if choice else []


def test_b_a_line_of_facts_is_quoted_alone() -> None:
    assert quoted("Who is the owner?", "Some text.\n\nOwner: the edge lead\n\nMore.") == ["Owner: the edge lead"]


def test_b_all_that_another_document_says_otherwise_is_quoted() -> None:
    sources = [
        Source(id=1, title="Claims 2024", updated_at="2024-01-01", text="Hand in a claim within 60 days."),
        Source(
            id=2,
            title="Claims",
            updated_at="2026-01-01",
            text="## Handing in\n\nA claim later than 90 days is not paid.\n\n1. Submit the claim within 30 days.",
        ),
    ]
    units = [unit for source in sources for unit in units_of(source)]
    choice = choose(Asked(text="Within how many days do I hand in a claim?"), units, is_left_out=lambda _: False)
    assert choice is not None
    assert [unit.text for unit in choice.main.units] == [
        "A claim later than 90 days is not paid.",
        "Submit the claim within 30 days.",
    ]


def test_b_a_quotation_that_gives_no_reason_is_not_called_the_answer_to_a_why() -> None:
    without = chosen("Why are flags removed?", "Flags are removed after 60 days.")
    given = chosen("Why are flags removed?", "Flags are removed because old ones confuse.")
    assert without is not None
    assert given is not None
    assert (without.is_sure, given.is_sure) == (False, True)


def test_b_a_figure_of_something_else_is_not_quoted_beside_what_differs() -> None:
    texts = (
        "The hotel limit is 150 euros.\n\nThe meal limit is 60 euros.",
        "The hotel limit is 120 euros.\n\nThe meal limit is 45 euros.",
    )
    sources = [Source(id=n, title=f"Travel 202{n}", text=text) for n, text in enumerate(texts, start=4)]
    units = [unit for source in sources for unit in units_of(source)]
    choice = choose(Asked(text="What is the hotel limit?"), units, is_left_out=lambda _: False)
    assert choice is not None
    assert choice.other is not None
    assert "meal" not in " ".join(unit.text for excerpt in choice.excerpts for unit in excerpt.units)


def test_b_another_figure_of_the_place_that_answers_best_is_quoted_beside_it() -> None:
    old = Source(id=1, title="Claims 2024", updated_at="2024-01-01", text="Receipts: hand in a claim in 60 days.")
    new = Source(
        id=2,
        title="Claims",
        updated_at="2026-01-01",
        text="Hand in a claim by 90 days after, later ones are not paid.\n\n1. Hand in the claim within 30 days.",
    )
    units = [unit for source in (old, new) for unit in units_of(source)]
    choice = choose(Asked(text="Within how many days do I hand in a claim?"), units, is_left_out=lambda _: False)
    assert choice is not None
    assert choice.other is not None
    assert [len(choice.main.units), len(choice.other.units)] == [2, 1]


def test_b_a_sentence_that_leads_on_brings_its_list() -> None:
    text = "Pack these for the trip:\n\n- a lamp\n- a map\n\nNothing else."
    assert quoted("What do I pack for the trip?", text) == ["Pack these for the trip:", "a lamp", "a map"]
    assert quoted("What do I pack for the trip?", "Pack for the trip:") == ["Pack for the trip:"]


def test_b_steps_of_the_same_section_answer_a_how() -> None:
    text = "## Renew\n\nTo renew the badge takes a day.\n\n1. Ask.\n2. Wait.\n\n## Lose\n\n1. Cry."
    assert quoted("How do I renew the badge?", text) == ["To renew the badge takes a day.", "Ask.", "Wait."]
    assert quoted("Is it possible to renew the badge in a day?", text) == ["To renew the badge takes a day."]


def test_b_a_how_gets_the_steps_of_a_document_and_not_what_it_says_of_itself() -> None:
    about = Source(id=1, title="Badge", url="", text="Use this page to renew the badge of a visitor.")
    steps = Source(id=2, title="Badge › Renewing", url="", text="1. Ask for a badge.\n2. Hand the old one in.")
    other = Source(id=3, title="Visits › Arriving", url="", text="1. Renew the trust of the visitor.")
    units = [unit for source in (about, steps, other) for unit in units_of(source)]

    def quotes(question: str) -> list[str]:
        choice = choose(Asked(text=question), units, is_left_out=lambda _: False)
        return [unit.text for unit in choice.main.units] if choice else []

    assert quotes("How do I renew the badge of a visitor?") == ["Ask for a badge.", "Hand the old one in."]
    assert quotes("Which page renews the badge of a visitor?") == [about.text]


def test_b_items_that_fit_equally_are_quoted_together_unless_they_are_many() -> None:
    text = "## Colours\n\n" + "\n".join(f"- tone {n}" for n in range(3))
    assert len(quoted("Which colours?", text)) == 3
    many = "## Colours\n\n" + "\n".join(f"- tone {n}" for n in range(MOST_ITEMS + 1))
    assert len(quoted("Which colours?", many)) == 1


def test_b_code_brings_the_sentence_before_it_but_no_line_of_facts() -> None:
    code = "```\nfrobnicate all\n```"
    assert quoted("frobnicate all", f"Do this now.\n\n{code}") == ["Do this now.", "frobnicate all"]
    assert quoted("frobnicate all", f"Owner: edge lead\n\n{code}") == ["frobnicate all"]


def test_b_other_numbers_in_the_same_document_or_of_other_things_are_no_contradiction() -> None:
    for texts in (
        ("The meal limit is 45 euros. The meal limit abroad is 60 euros.",),
        ("The meal limit is 45 euros.", "The hotel limit in capitals of Europe is 190 euros."),
        ("The meal limit is 45 euros.", "The meal limit is 45 euros."),
        ("The meal limit is 45 euros.", "The meal limit is fair."),
    ):
        choice = chosen("What is the meal limit?", *texts)
        assert choice is not None
        assert choice.other is None
    choice = chosen("What is the meal limit?", "The meal limit is 45 euros.", "The meal limit is 60 euros.")
    assert choice is not None
    assert choice.other is not None


def test_b_two_versions_of_a_document_contradict_each_other_in_other_words() -> None:
    def sources(*titles: str) -> list[Source]:
        texts = ("Attach the photograph and submit the claim within 30 days.", "Hand in every receipt within 60 days.")
        return [Source(id=n, title=titles[n], url=f"http://d/{n}", text=text) for n, text in enumerate(texts)]

    def other(*titles: str) -> Choice | None:
        units = [unit for source in sources(*titles) for unit in units_of(source)]
        question = "Within how many days must I submit a receipt?"
        return choose(Asked(text=question), units, is_left_out=lambda _: False)

    choice = other("Expenses › Handing in", "Expenses 2024 › Receipts")
    assert choice is not None
    assert choice.other is not None
    alone = other("Expenses", "Gardening for all")
    assert alone is not None
    assert alone.other is None


def test_b_nothing_that_fits_is_no_choice() -> None:
    assert chosen("What is the meal limit?", "Cats sleep.") is None
    assert chosen("What is the meal limit?") is None


def test_b_a_document_begins_with_its_first_paragraph_list_or_table() -> None:
    def begins(text: str, *, without: str = "") -> list[str]:
        source = Source(id=1, title="D", text=text)
        choice = opening(source, is_left_out=lambda unit: unit.text == without)
        return [unit.text for unit in choice.main.units] if choice else []

    assert begins("# D\n\nLast updated: 2026-01-01\n\nOne. Two.\n\nThree.") == ["One.", "Two."]
    assert begins("These:\n\n- a\n- b\n\nMore.") == ["These:", "a", "b"]
    assert begins("- a\n- b\n\nMore.") == ["a", "b"]
    assert begins("One.\n\nTwo.", without="One.") == []
    assert begins("Owner: nobody") == []


def test_b_a_short_section_is_quoted_whole_and_no_other() -> None:
    text = "## Limits\n\nTen calls a minute.\n\nAbove that you get an error.\n\n## Other\n\nThe sky is blue."
    assert quoted("How many calls a minute?", text) == ["Ten calls a minute.", "Above that you get an error."]
    long = f"## Limits\n\nTen calls a minute.\n\nAbove that {'many ' * 100}things happen."
    assert quoted("How many calls a minute?", long) == ["Ten calls a minute."]


def test_b_the_first_that_covers_enough_is_the_answer_where_it_is_nearly_the_best() -> None:
    text = "## Idempotency\n\nSend an `Idempotency-Key`. Using a key again with another body is answered with 422."
    others = ("The body is small. The sky is blue.", "Keep your key. Another body is known.")
    question = "What happens if I reuse an idempotency key with a different body?"
    assert any("422" in unit for unit in quoted(question, text, *others))


def test_h1_what_comes_nearly_as_close_is_quoted_beside_it_once_each() -> None:
    kinds = ("steel", "wooden", "glass", "brass")
    texts = [f"Tents with {kind} poles are kept in hall {hall}." for kind, hall in zip(kinds, "ABCD", strict=True)]
    choice = chosen("Which halls are folding tents kept in?", *texts, texts[0])
    assert choice is not None
    assert len(choice.excerpts) == MOST_EXCERPTS
    said = [unit.text for excerpt in choice.excerpts for unit in excerpt.units]
    assert len(said) == len(set(said)) == MOST_EXCERPTS


def test_h1_what_says_it_all_stands_alone() -> None:
    choice = chosen("Where are tents kept?", "Tents are kept in hall 2.", "Ropes are kept in hall 3.")
    assert choice is not None
    assert (choice.is_sure, choice.beside) == (True, ())


def test_h1_the_closest_is_no_answer_and_far_off_is_nothing() -> None:
    sources = [Source(id=1, title="Hall", url="", text="Tents are kept in hall 2.")]
    units = [unit for source in sources for unit in units_of(source)]
    near = closest(Asked(text="Where are boats and tents repaired?"), units, is_left_out=lambda _: False)
    assert near is not None
    assert not near.is_sure
    assert closest(Asked(text="Who plays the organ?"), units, is_left_out=lambda _: False) is None
    assert closest(Asked(text="Where are tents kept?"), units, is_left_out=lambda _: True) is None

"""Passages that fit a question, and questions that none fits."""

from __future__ import annotations

from agent.files import ORIGIN as FILE
from agent.quoting.passages import MAX_PASSAGE_CHARS, MAX_PASSAGES, best_passages, word_weights
from verification.types import Source


def source(number: int, title: str, text: str, *, updated: str = "", origin: str = "document") -> Source:
    return Source(id=number, title=title, text=text, updated_at=updated, origin=origin)


PLANTS = (
    source(1, "Ferns", "## Water\n\nFerns are watered on Mondays.\n\n## Light\n\nFerns stand in the shade."),
    source(2, "Cacti", "## Water\n\nCacti are watered once a month.\n\n## Light\n\nCacti stand in the sun."),
)


def test_the_heading_and_the_title_tell_passages_apart() -> None:
    best = best_passages(word_weights("How much light do cacti need?"), PLANTS, set())[0]
    assert (best.best.source.title, best.best.context, best.best.text) == ("Cacti", "Light", "Cacti stand in the sun.")


def test_the_search_decides_what_is_shown_and_the_closest_sentence_what_comes_first() -> None:
    pages = [
        source(n, f"Page {n}", f"Kiwis {words}.")
        for n, words in enumerate(["are small", "ripen", "are green", "ripen long"])
    ]
    found = best_passages(word_weights("How long do kiwis ripen?"), pages, set())
    assert [each.best.source.id for each in found] == [1, 0, 2]


def test_an_attached_file_is_compared_with_what_the_search_brought() -> None:
    pages = [source(n, f"Page {n}", f"Kiwis ripen on shelf {n}.") for n in range(4)]
    notes = source(9, "notes.md", "## Pears\n\nPears rot.\n\n## Kiwis\n\nKiwis ripen 5 days.", origin=FILE)
    asked = word_weights("How many days do kiwis ripen?")
    assert best_passages(asked, [notes, *pages], set())[0].best.text == "Kiwis ripen 5 days."
    assert "Pears rot." not in [each.best.text for each in best_passages(asked, [notes], set())]
    copy = source(8, "Kiwis", "Kiwis ripen 5 days.")
    assert len(best_passages(asked, [notes, copy], set())) == 1
    about_pages = best_passages(word_weights("On which shelf do they ripen?"), [notes, *pages], set())
    assert [each.best.source.id for each in about_pages] == [0, 1, 2]


def test_passages_are_short_and_three_at_most() -> None:
    filler = " ".join(f"Word {number} says nothing." for number in range(80))
    many = tuple(source(n, f"Page {n}", f"{filler} Kiwis ripen {n} days. {filler}") for n in range(6))
    found = best_passages(word_weights("How long do kiwis ripen?"), many, set())
    assert len(found) == MAX_PASSAGES
    for each in found:
        assert sum(len(unit.text) for unit in each.units) <= MAX_PASSAGE_CHARS
        assert each.best.text.startswith("Kiwis ripen")
        assert each.best in each.units


def test_words_of_the_question_before_decide_among_equals() -> None:
    found = best_passages(word_weights("And the light?", earlier="water ferns"), PLANTS, set())
    assert (found[0].best.source.title, found[0].best.context) == ("Ferns", "Light")


def test_lines_with_a_label_alone_are_shown_only_where_they_answer_or_nothing_else_does() -> None:
    page = source(1, "Cacti", "Last updated: 2026-05-04\n\n## Water\n\nOnce a month.\n\nWarning: never in winter.")
    (watered,) = best_passages(word_weights("When are cacti watered?"), [page], set())
    assert [unit.text for unit in watered.units] == ["Once a month.", "Warning: never in winter."]
    (dated,) = best_passages(word_weights("When was the page on cacti updated?"), [page], set())
    assert dated.best.text == "Last updated: 2026-05-04"
    desk = source(2, "Support desk", "Phone: +49 30 1234\n\nHours: 9 to 5")
    (reached,) = best_passages(word_weights("How do I reach the support desk?"), [desk], set())
    assert [unit.text for unit in reached.units] == ["Phone: +49 30 1234", "Hours: 9 to 5"]

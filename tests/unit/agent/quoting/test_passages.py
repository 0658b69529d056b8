"""Sources taken apart: sentences, items, steps, rows and code, each with the words above it."""

from hypothesis import given
from hypothesis import strategies as st

from agent.files import ORIGIN as FILE
from agent.quoting.passages import MAX_PASSAGE_CHARS, MAX_PASSAGES, QuotableUnit, best_passages, units_of, word_weights
from verification.types import Source


def units(text: str) -> tuple[QuotableUnit, ...]:
    return units_of(Source(id=1, title="T", text=text))


def shape(text: str) -> list[tuple[str, str, str]]:
    return [(unit.kind, unit.text, unit.context) for unit in units(text)]


def test_paragraphs_become_sentences_under_their_heading() -> None:
    assert shape("## On *call*\n\nOne is\nhere. Two e.g. there!\n\nThree") == [
        ("sentence", "One is here.", "On *call*"),
        ("sentence", "Two e.g. there!", "On *call*"),
        ("sentence", "Three", "On *call*"),
    ]
    assert [unit.block for unit in units("One is. Two are.\n\nThree.")] == [1, 1, 2]


def test_lists_keep_markers_depth_and_the_lines_of_an_item() -> None:
    found = units("3. Stop\n   it\n\n   And wait.\n4. Go\n    - slow\n\n- loose")
    assert [(u.kind, u.marker, u.depth, u.text) for u in found] == [
        ("step", "3.", 0, "Stop it And wait."),
        ("step", "4.", 0, "Go"),
        ("item", "-", 1, "slow"),
        ("item", "-", 0, "loose"),
    ]


def test_tables_and_quotations_inside_an_item_are_read() -> None:
    found = units("1. Choose:\n\n   | Plan | Price |\n   |---|---|\n   | A | 3 |\n\n2. Pay.\n\n   > At most 500.\n")
    assert [(unit.kind, unit.marker, unit.text, unit.block) for unit in found] == [
        ("step", "1.", "Choose:", 1),
        ("row", "", "Plan: A; Price: 3", 1),
        ("step", "2.", "Pay. At most 500.", 1),
    ]


def test_text_after_code_in_an_item_stays_after_it() -> None:
    found = units("1. Stop it:\n\n   ```\n   stop\n   ```\n\n   Wait a minute.\n\n2. Start it.")
    assert [(unit.kind, unit.marker, unit.text) for unit in found] == [
        ("step", "1.", "Stop it:"),
        ("code", "", "stop"),
        ("sentence", "", "Wait a minute."),
        ("step", "2.", "Start it."),
    ]


def test_rows_name_their_columns() -> None:
    assert shape("| Code | | What |\n|---|---|---|\n| 1 | x | |\n| 2 | | `y` |") == [
        ("row", "Code: 1; x", ""),
        ("row", "Code: 2; What: `y`", ""),
    ]


def test_code_is_not_split() -> None:
    assert shape("Run:\n\n```sh\na  b\n\nc\n```\n\n    indented\n") == [
        ("sentence", "Run:", ""),
        ("code", "a  b\n\nc", ""),
        ("code", "indented", ""),
    ]


def test_short_lines_above_long_ones_are_headings_of_pages() -> None:
    page = (
        "Office guide\nLast updated: 2026-05-04\nOpening hours\n"
        "The office is open from 07:00 to 21:00 on working days. On Saturdays it is open from 09:00 to\n14:00.\n"
        "Owner: office manager"
    )
    assert shape(page) == [
        ("field", "Last updated: 2026-05-04", "Office guide"),
        ("sentence", "The office is open from 07:00 to 21:00 on working days.", "Opening hours"),
        ("sentence", "On Saturdays it is open from 09:00 to 14:00.", "Opening hours"),
        ("field", "Owner: office manager", "Opening hours"),
    ]


def test_japanese_and_chinese_are_split_into_sentences_without_spaces() -> None:
    assert [u.text for u in units("有給休暇は\n二十日です。申請します。")] == ["有給休暇は二十日です。", "申請します。"]


@given(st.text(alphabet="ab.! \n-1#|`>", max_size=120))
def test_no_unit_is_empty_and_none_invents_a_letter(text: str) -> None:
    for unit in units(text):
        assert unit.text.strip()
    for letter in "ab":
        assert sum(unit.text.count(letter) for unit in units(text)) <= text.count(letter) * (1 + text.count("|"))


def test_no_sentence_ends_inside_code() -> None:
    source = Source(id=1, title="", text="Flags are named `<team>. <feature>` here. They are set with `flagctl`. Done.")
    assert [unit.text for unit in units_of(source)] == [
        "Flags are named `<team>. <feature>` here.",
        "They are set with `flagctl`.",
        "Done.",
    ]


def source(number: int, title: str, text: str, *, updated: str = "", origin: str = "document") -> Source:
    return Source(id=number, title=title, text=text, updated_at=updated, origin=origin)


PLANTS = (
    source(1, "Ferns", "## Water\n\nFerns are watered on Mondays.\n\n## Light\n\nFerns stand in the shade."),
    source(2, "Cacti", "## Water\n\nCacti are watered once a month.\n\n## Light\n\nCacti stand in the sun."),
)


def test_the_heading_and_the_title_distinguish_passages() -> None:
    best = best_passages(word_weights("How much light do cacti need?"), PLANTS, set())[0]
    assert (best.best.source.title, best.best.context, best.best.text) == ("Cacti", "Light", "Cacti stand in the sun.")


def test_the_search_decides_what_is_shown_and_the_closest_sentence_what_comes_first() -> None:
    pages = [
        source(n, f"Page {n}", f"Kiwis {words}.")
        for n, words in enumerate(["are small", "ripen", "are green", "ripen long"])
    ]
    found = best_passages(word_weights("How long do kiwis ripen?"), pages, set())
    assert [each.best.source.id for each in found] == [1, 0, 2]


def test_an_attached_file_is_compared_with_the_search_results() -> None:
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


def test_words_of_the_previous_question_break_ties() -> None:
    found = best_passages(word_weights("And the light?", earlier="water ferns"), PLANTS, set())
    assert (found[0].best.source.title, found[0].best.context) == ("Ferns", "Light")


def test_lines_with_only_a_label_are_shown_if_they_answer_or_nothing_else_does() -> None:
    page = source(1, "Cacti", "Last updated: 2026-05-04\n\n## Water\n\nOnce a month.\n\nWarning: never in winter.")
    (watered,) = best_passages(word_weights("When are cacti watered?"), [page], set())
    assert [unit.text for unit in watered.units] == ["Once a month.", "Warning: never in winter."]
    (dated,) = best_passages(word_weights("When was the page on cacti updated?"), [page], set())
    assert dated.best.text == "Last updated: 2026-05-04"
    desk = source(2, "Support desk", "Phone: +49 30 1234\n\nHours: 9 to 5")
    (reached,) = best_passages(word_weights("How do I reach the support desk?"), [desk], set())
    assert [unit.text for unit in reached.units] == ["Phone: +49 30 1234", "Hours: 9 to 5"]

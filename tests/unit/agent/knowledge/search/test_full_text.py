"""Hits of the full-text search, and the terms that it looks for."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.search.full_text import (
    MAX_IMPACT,
    MAX_TERMS,
    REACH,
    STRETCHES,
    Stretch,
    expand_hits,
    impacts,
    query_terms,
    subject_tokens,
    tokens,
    words_of,
)
from agent.knowledge.types import FoundPassage

PLANS = """# Plans

Three plans are sold.

## Starter

### Limits

Ten users and 100 requests a minute.

## Enterprise

### Limits

All users and 9,000 requests a minute.
"""
Find = Callable[..., tuple[tuple[Stretch, ...], tuple[FoundPassage, ...]]]


@pytest.fixture
def find(index: KnowledgeIndex, tmp_path: Path) -> Find:
    def search(query: str, *texts: str, tokens: int = 6_000) -> tuple[tuple[Stretch, ...], tuple[FoundPassage, ...]]:
        folder = tmp_path / "docs"
        folder.mkdir()
        for number, text in enumerate(texts):
            (folder / f"{number}.md").write_text(text, encoding="utf-8")
        index.index([folder], docs_url="https://docs.example")
        return expand_hits(index.search(query, limit=8), index.part, tokens=tokens)

    return search


def test_a_short_page_is_returned_whole_with_its_headings(find: Find) -> None:
    (page,), left_out = find("enterprise requests", PLANS)
    assert (page.title, left_out) == ("Plans", ())
    assert page.text == PLANS.strip()
    starts = [(page.text[offset:].split("\n")[0], link, title) for offset, link, title in page.sections]
    assert starts == [
        ("# Plans", "https://docs.example/0.md#plans", "Plans"),
        ("### Limits", "https://docs.example/0.md#limits", "Plans › Starter › Limits"),
        ("### Limits", "https://docs.example/0.md#limits-1", "Plans › Enterprise › Limits"),
    ]


def test_a_section_of_a_long_page_has_its_whole_path(find: Find) -> None:
    filler = "\n\n".join(f"## Part {n}\n\n{'Nothing of note here. ' * 40}" for n in range(6))
    long = f"{PLANS}\n{filler}\n\n### Limits\n\nAn odd limit of 55 kiwis.\n"
    (stretch, *_), _ = find("kiwis", long, tokens=1_500)
    assert stretch.title == "Plans › Part 5"
    assert stretch.text.startswith("## Part 5\n\nNothing")
    assert stretch.text.endswith("### Limits\n\nAn odd limit of 55 kiwis.")
    assert len(stretch.text) <= 1_200


def test_a_heading_with_markup_and_the_head_of_a_table_are_written_once(find: Find) -> None:
    rows = "\n".join(f"| Plan {n} | {'A long row about it. ' * 8}|" for n in range(10))
    table = f"| Plan | Notes |\n|---|---|\n{rows}"
    text = f"# Plans\n\n## A\n\n{table}\n\n## 1. Fill [the *form*](https://x.example/f) out \\(soon\\)\n\nBy Friday."
    (page,), _ = find("plan form", text)
    assert len(page.passages) == 3
    assert page.text == text.removeprefix("# Plans\n\n")


def test_small_siblings_are_merged_and_large_ones_are_not(find: Find) -> None:
    small = "\n\n".join(f"## Fruit {n}\n\nOne about fruit {n}." for n in range(4))
    large = "\n\n".join(f"## Tree {n}\n\n{f'Tree {n} grows. ' * 84}" for n in range(5))
    (stretch, *_), _ = find("fruit 2", f"# Garden\n\n{small}\n\n{large}", tokens=1_500)
    assert stretch.title == "Garden"
    assert [f"Fruit {n}" in stretch.text for n in range(4)] == [True] * 4
    assert "Tree" not in stretch.text


def test_a_subsection_is_not_merged_without_its_sections_beginning(find: Find) -> None:
    claim = "Upload the receipt. " * 20
    meals = "Breakfast costs 9 pounds at most. " * 27
    text = (
        "# Travel\n\n## Trains\n\n" + "Second class is paid. " * 150
        + f"\n\n## Meals\n\n{meals}\n\n### Customers\n\nUp to 45 pounds a head.\n\n## Claiming\n\n{claim}\n"
    )  # fmt: skip
    (claiming,) = [each for each in find("upload the receipt", text)[0] if "Upload" in each.text]
    assert "Customers" not in claiming.text or "Breakfast" in claiming.text


def test_omissions_for_lack_of_room_are_reported(find: Find) -> None:
    texts = [f"# Page {n}\n\n{f'Kiwis ripen in {n} days. ' * 40}" for n in range(5)]
    stretches, left_out = find("kiwis ripen", *texts, tokens=600)
    assert len(stretches) == 2
    assert {each.hit.document for each in stretches} | {each.document for each in left_out} == {
        f"{n}.md" for n in range(5)
    }


PATHS = st.lists(st.sampled_from(["T", "T › A", "T › A › X", "T › B", "T › B › X", ""]), min_size=1, max_size=30)


@settings(max_examples=80, deadline=None)
@given(PATHS, st.lists(st.integers(0, 29), max_size=6), st.integers(1, 1_000), st.integers(1, 900))
def test_no_passage_is_lost_or_returned_twice(paths: list[str], hits: list[int], tokens: int, size: int) -> None:
    page = [
        FoundPassage(
            document="d",
            title="T",
            path=tuple(path.split(" › ")) if path else (),
            text=f"{n} " + "x" * size,
            number=n,
            of=len(paths),
        )
        for n, path in enumerate(paths)
    ]

    def part(_: str, first: int, last: int) -> list[FoundPassage]:
        assert last - first == 2 * REACH
        return page[max(0, first) : last + 1]

    found = [page[hit % len(page)] for hit in hits]
    stretches, left_out = expand_hits(found, part, tokens=tokens)
    brought = [passage.number for stretch in stretches for passage in stretch.passages]
    assert len(brought) == len(set(brought))
    assert {passage.number for passage in found} == {n for n in brought if page[n] in found} | {
        p.number for p in left_out
    }
    assert sum(len(stretch.text) for stretch in stretches) <= 4 * tokens
    for stretch in stretches:
        size = sum(len(passage.text) for passage in stretch.passages)
        assert len(stretch.passages) == 1 or size * STRETCHES <= 4 * tokens
        assert all(passage.text in stretch.text for passage in stretch.passages)
        numbers = [passage.number for passage in stretch.passages]
        assert numbers == [*range(numbers[0], numbers[-1] + 1)]


def test_a_section_does_not_grow_around_what_another_hit_took() -> None:
    paths = [("T", "A"), ("T", "A"), ("T", "B"), ("T", "B"), ("T", "B")]
    sizes = [20, 20, 20, 900, 20]
    page = [
        FoundPassage(document="d", title="T", path=path, text=str(number) * size, number=number, of=5)
        for number, (path, size) in enumerate(zip(paths, sizes, strict=True))
    ]
    stretches, _ = expand_hits([page[3], page[1]], lambda _, first, last: page[max(0, first) : last + 1], tokens=1_000)
    assert [[each.number for each in stretch.passages] for stretch in stretches] == [[3], [0, 1, 2]]


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("What is the meal limit?", ["meal", "limit"]),
        ("How do I use the vault?", ["use", "vault"]),
        ("Wie benutze ich den Tresor?", ["benutze", "Tresor"]),
        ("What is it?", ["What", "is", "it"]),
        ("error FH-2002", ["error", "FH 2002", "FH", "2002"]),
        ("the --force flag", ["force", "flag"]),
        ('say "hi" OR NOT', ["say", "hi"]),
        ("有給休暇", ["有給", "給休", "休暇"]),
        ("本", ["本"]),
        ("API的限制", ["的限", "限制", "API"]),
        ("?!", []),
    ],
)
def test_questions_become_terms(query: str, terms: list[str]) -> None:
    assert query_terms(query) == terms


@given(st.text(max_size=200))
def test_terms_are_words_only(query: str) -> None:
    assert all(term.replace(" ", "").isalnum() or impacts("", "", term) for term in query_terms(query))


def test_a_pasted_log_is_cut() -> None:
    assert len(query_terms(" ".join(f"word{n}" for n in range(500)))) == MAX_TERMS


def test_only_scripts_without_spaces_are_split_into_pairs() -> None:
    assert set(impacts("", "", "plain 日本語 text 本")) == {"plain", "日本", "本語", "text", "本"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Use `--force` (v2.3), now!", ["Use", "force", "v2.3", "now"]),
        ("FH-2002: status/409", ["FH-2002", "status/409"]),
        ("?! ... --", []),
    ],
)
def test_identifiers_are_not_split(text: str, found: list[str]) -> None:
    assert tokens(text) == found


def test_words_without_a_subject_are_dropped_unless_nothing_is_left() -> None:
    assert subject_tokens("How long is the freeze, and what is the freeze?") == ["freeze"]
    assert subject_tokens("What is it?") == []


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("who's in charge of payroll", ["charge", "payroll"]),
        ("what’s the limit we're allowed", ["limit", "allowed"]),
        ("Où est l'hôtel d'équipe", ["hôtel", "équipe"]),
        ("O'Brien's badge", ["Brien", "badge"]),
        ("FH-2002's status", ["FH 2002", "FH", "2002", "status"]),
    ],
)
def test_letters_joined_with_an_apostrophe_are_not_words(query: str, terms: list[str]) -> None:
    assert [term for term in query_terms(query) if term.lower() not in {"in", "est", "où", "of"}] == terms


def test_words_become_stems_without_case_and_accents() -> None:
    assert list(impacts("", "", "Cafés open, re-opening v2.3_s")) == [
        *("cafe", "open", "re", "v2", "3", "s"),
        *("re open", "v2 3", "3 s"),
    ]


def test_a_word_counts_more_in_a_heading_and_in_a_short_text() -> None:
    text = "Lunch is served at noon." + 50 * " There is a canteen on every floor of the house."
    said = impacts("Handbook", "Handbook › Lunch", text)
    assert said["lunch"] > said["noon"]
    assert impacts("", "", "Lunch is served at noon.")["noon"] > said["noon"]
    assert impacts("", "", f"{text} noon noon")["noon"] > said["noon"]


def test_chinese_japanese_and_thai_are_split_into_pairs() -> None:
    assert set(impacts("", "", "有給休暇 วันลา")) >= {"有給", "給休", "休暇", "วั", "ลา"}
    assert words_of("休暇") == ["休暇"]


def test_identifiers_are_searched_whole_and_in_parts() -> None:
    assert words_of("FH-2002") == ["fh 2002", "fh", "2002"]
    assert words_of("state-of-the-art") == ["state of", "of the", "the art", "state", "art"]
    assert set(impacts("", "", "see (FH-2002), not FH/2003.")) == {
        "see", "fh", "2002", "fh 2002", "not", "2003", "fh 2003"
    }  # fmt: skip


def test_punctuation_after_an_identifier_is_not_part_of_it() -> None:
    assert not [word for word in impacts("", "", 'one, two; "three" (four) five|six. Seven') if " " in word]


@given(st.text(max_size=200), st.text(max_size=80))
def test_any_text_gives_words_and_no_word_is_empty(text: str, title: str) -> None:
    said = impacts(title, title, text)
    assert all(1 <= impact <= MAX_IMPACT for impact in said.values())
    assert all(part and not part.isspace() for word in said for part in word.split(" "))


@given(st.text(st.characters(codec="ascii"), max_size=60))
def test_a_text_is_found_by_its_own_words(text: str) -> None:
    assert set(words_of(text)) <= set(impacts("", "", text))


def test_link_targets_are_not_words() -> None:
    text = (
        'See [the travel policy](../hr/expenses_(old).md "Title here") and ![map](img/plan.png), https://wiki.acme.com'
    )
    words = impacts("Title", "", text)
    assert {"travel", "polici", "map", "wiki"} <= words.keys()
    assert not {"expens", "old", "md", "img", "plan", "png"} & words.keys()

"""Blocks of postings: what is written is found, what is removed is gone, and the best come first."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.search.full_text import BLOCK, MAX_IMPACT, Changes, best, change, revise

Passages = dict[int, Mapping[str, int]]

_IMPACTS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(1, MAX_IMPACT), min_size=1)


class Blocks:
    """Storage in memory, as the indexes use theirs."""

    def __init__(self) -> None:
        self.data: dict[tuple[int, str], bytes] = {}

    def write(self, changes: Changes) -> None:
        for block, words in changes.items():
            for word, changed in words.items():
                data = revise(self.data.pop((block, word), b""), changed)
                if data:
                    self.data[block, word] = data

    def of(self, *words: str) -> Iterator[tuple[str, int, bytes]]:
        return ((word, block, data) for (block, word), data in sorted(self.data.items()) if word in words)


def stored(passages: Passages) -> Blocks:
    blocks, changes = Blocks(), Changes(lambda: defaultdict(list))
    for place, impacts in sorted(passages.items()):
        change(changes, place, impacts)
    blocks.write(changes)
    return blocks


def plainly(passages: Passages, query: str, most: int) -> list[tuple[int, float]]:
    """The same ranking without blocks and without skipping."""
    held = {word: [place for place, impacts in passages.items() if word in impacts] for word in query}
    ranked = [
        (
            place,
            sum(
                math.log(1 + (len(passages) - len(held[word]) + 0.5) / (len(held[word]) + 0.5)) * impacts[word]
                for word in query
                if word in impacts
            )
            / MAX_IMPACT,
        )
        for place, impacts in passages.items()
        if any(word in impacts for word in query)
    ]
    return sorted(ranked, key=lambda each: (-round(each[1], 9), each[0]))[:most]


@given(st.dictionaries(st.integers(1, 3 * BLOCK), _IMPACTS, max_size=60), st.integers(1, 12))
def test_the_ranking_equals_that_of_the_plain_formula(passages: Passages, most: int) -> None:
    found = best(stored(passages).of(*"abcde"), passages=len(passages), most=most)
    expected = plainly(passages, "abcde", most)
    assert [score for _, score in found] == pytest.approx([score for _, score in expected])
    scores = dict(plainly(passages, "abcde", len(passages)))
    assert all(score == pytest.approx(scores[place]) for place, score in found)


def test_passages_with_equal_scores_keep_their_order() -> None:
    found = best(stored({place: {"a": 9} for place in (5, 2, 9_000)}).of("a"), passages=3, most=2)
    assert [place for place, _ in found] == [2, 5]


@given(st.dictionaries(st.integers(1, 3 * BLOCK), _IMPACTS, min_size=1, max_size=30), st.data())
def test_a_passage_that_is_removed_leaves_nothing(passages: Passages, data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.sampled_from(sorted(passages))))
    blocks, changes = stored(passages), Changes(lambda: defaultdict(list))
    for place in gone:
        change(changes, place, dict.fromkeys(passages[place], 0))
    for place in sorted(passages):
        if place in gone:
            change(changes, place + 4 * BLOCK, passages[place])
    blocks.write(changes)
    kept = {place + 4 * BLOCK if place in gone else place: impacts for place, impacts in passages.items()}
    assert blocks.data == stored(kept).data


def test_removing_a_word_the_passage_never_had_removes_no_other() -> None:
    blocks, changes = stored({3: {"a": 7}, 9: {"a": 8, "b": 5}}), Changes(lambda: defaultdict(list))
    change(changes, 5, {"a": 0, "z": 0})  # read again by a newer stemmer
    change(changes, 9, {"b": 0, "c": 0})
    blocks.write(changes)
    assert blocks.data == stored({3: {"a": 7}, 9: {"a": 8}}).data

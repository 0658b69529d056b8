"""The message that each part belongs in, and the messages that are one too many."""

import time

from hypothesis import given
from hypothesis import strategies as st

from bot.delivery.answer_key import duplicate_posts, is_empty_stream
from bot.delivery.delivery import assign_messages
from bot.slack.history import Posted

TURNS = ("", "one", "two")


def in_order(found: list[Posted]) -> list[Posted]:
    return sorted(found, key=lambda posted: (posted.part, float(posted.ts)))


posted = st.builds(
    Posted, ts=st.integers(1, 99).map(str), turn_id=st.sampled_from(TURNS), part=st.integers(1, 3),
    placeholder=st.booleans(),
)  # fmt: skip
notices = st.builds(Posted, ts=st.integers(1, 99).map(str), about=st.sampled_from(["paused", "asked"]))
threads = st.lists(posted | notices, unique_by=lambda one: one.ts).map(in_order)


@given(threads, st.sampled_from(TURNS))
def test_one_answer_one_note_and_one_notice_of_each_kind_stay(found: list[Posted], turn_id: str) -> None:
    surplus = duplicate_posts(found, turn_id)
    kept = [one for one in found if one not in surplus and not one.placeholder]
    assert all(not one.placeholder for one in surplus)
    assert len({one.turn_id for one in kept} - {""}) <= 1
    identities = [(one.about, one.part, bool(one.turn_id)) for one in kept]
    assert len(identities) == len(set(identities))
    assert duplicate_posts(kept, turn_id) == []
    for gone in surplus:
        likes = [one for one in kept if one.about == gone.about and bool(one.turn_id) == bool(gone.turn_id)]
        assert likes, "an answer, a note or a notice of this kind stays"
        same = [one for one in likes if (one.part, one.turn_id) == (gone.part, gone.turn_id)]
        assert all(float(one.ts) < float(gone.ts) for one in same), "of two equal ones people saw the first"


def test_the_answer_to_the_question_as_it_reads_now_stays() -> None:
    older, newer = Posted(ts="1", turn_id="one"), Posted(ts="2", turn_id="two")
    assert duplicate_posts([older, newer], "two") == [older]
    assert duplicate_posts([older, newer], "three") == [newer], "the answer to the latest version is still to come"


@given(threads, st.integers(1, 3), st.sampled_from(TURNS))
def test_each_part_of_an_answer_reuses_its_own_message_first(found: list[Posted], parts: int, turn_id: str) -> None:
    taken = assign_messages(found, parts, turn_id)
    filled = [seat for seat in taken if seat]
    assert len(taken) == parts
    assert len(filled) == len({seat.ts for seat in filled})
    for part, seat in enumerate(taken, 1):
        if turn_id and any(one.turn_id == turn_id and one.part == part for one in found):
            assert seat is not None
            assert (seat.turn_id, seat.part) == (turn_id, part)


def test_a_stream_that_has_just_begun_is_not_abandoned() -> None:
    now = f"{time.time():.6f}"
    assert not is_empty_stream(Posted(ts=now, stream=True, blank=True))
    assert is_empty_stream(Posted(ts="1.0", stream=True, blank=True))
    assert not is_empty_stream(Posted(ts="1.0", stream=True))

"""Answers posted, changed and withdrawn, found again by their keys."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey, duplicate_posts, is_empty_stream
from bot.delivery.delivery import assign_messages
from bot.slack.history import Posted
from bot.slack.web_api import DeliveryFailed
from tests.support.local_slack import CHANNEL, Slack, answer_texts, local_slack
from tests.support.posted_answers import LONG, answer, answers, texts


async def test_the_answer_is_in_the_thread_with_its_metadata(slack: Slack) -> None:
    place, ts = slack.ask()
    answer_key = AnswerKey(question_ts=ts, turn_id="turn-1")
    (posted,) = await slack.delivery.post_answer(place, answer("On Tuesdays."), answer_key)
    (message,) = answers(slack, place)
    assert (message["ts"], message["thread_ts"], message["text"]) == (posted, ts, "On Tuesdays.")
    payload = {"question_ts": ts, "turn_id": "turn-1", "verified": True}
    assert message["metadata"] == {"event_type": "orion_answer", "event_payload": payload}
    assert message["blocks"][1]["elements"][0]["text"].endswith("|[1] Release process> · 2 weeks ago")


async def test_a_second_delivery_of_the_same_turn_posts_nothing(slack: Slack) -> None:
    place, ts = slack.ask()
    answer_key = AnswerKey(question_ts=ts, turn_id="turn-1")
    first = await slack.delivery.post_answer(place, answer(*LONG), answer_key)
    before = answers(slack, place)
    assert await slack.delivery.post_answer(place, answer(*LONG), answer_key) == first
    assert answers(slack, place) == before
    assert slack.count("chat.update") == 0


async def test_an_answer_cut_off_by_a_crash_is_completed() -> None:
    async with local_slack(patience_s=0.1) as slack:
        place, ts = slack.ask()
        answer_key = AnswerKey(question_ts=ts, turn_id="turn-1")
        checks: list[None] = []

        def dies_at_the_second_post() -> None:
            checks.append(None)
            if len(checks) == 2:
                message = "killed"
                raise RuntimeError(message)

        dying = AnswerKey(question_ts=ts, turn_id="turn-1", lease_check=dies_at_the_second_post)
        with pytest.raises(RuntimeError, match="killed"):
            await slack.delivery.post_answer(place, answer(*LONG), dying)
        assert len(answers(slack, place)) == 1
        await slack.delivery.post_answer(place, answer(*LONG), answer_key)
        sections = answer_texts(answers(slack, place))
        assert sections == list(LONG)


async def test_an_edited_questions_answer_is_updated_in_place(slack: Slack) -> None:
    place, ts = slack.ask()
    first = await slack.delivery.post_answer(place, answer(*LONG), AnswerKey(question_ts=ts, turn_id="turn-1"))
    again = await slack.delivery.post_answer(place, answer("Short."), AnswerKey(question_ts=ts, turn_id="turn-2"))
    assert again == first[:1]
    (message,) = answers(slack, place)
    assert (message["ts"], message["text"]) == (first[0], "Short.")
    assert message["metadata"]["event_payload"]["turn_id"] == "turn-2"
    await slack.delivery.post_answer(place, answer(*LONG), AnswerKey(question_ts=ts, turn_id="turn-3"))
    grown = answers(slack, place)
    assert grown[0]["ts"] == first[0]
    assert len(grown) > 1


async def test_the_notification_of_an_updated_answer_is_short_and_cuts_no_token(slack: Slack) -> None:
    place, ts = slack.ask()
    await slack.delivery.post_answer(place, answer("Old."), AnswerKey(question_ts=ts, turn_id="turn-1"))
    long = ("x" * 2_000, "y" * 1_890 + " <https://docs.example/release.md|[1]>", "z" * 100)
    await slack.delivery.post_answer(place, answer(*long), AnswerKey(question_ts=ts, turn_id="turn-2"))
    (message,) = answers(slack, place)
    assert message["text"] == f"{long[0]}\n{'y' * 1_890} …"
    assert answer_texts([message]) == [long[0], "y" * 1_890 + " [1]", long[2]]


async def test_a_deleted_answer_is_posted_again(slack: Slack) -> None:
    place, ts = slack.ask()
    await slack.delivery.post_answer(place, answer("Old."), AnswerKey(question_ts=ts, turn_id="turn-1"))
    slack.server.faults.fail("chat.update", "message_not_found")
    await slack.delivery.post_answer(place, answer("New."), AnswerKey(question_ts=ts, turn_id="turn-2"))
    assert texts(answers(slack, place)) == ["New."]
    slack.server.faults.fail("chat.update", "channel_not_found")
    with pytest.raises(DeliveryFailed, match="channel_not_found"):
        await slack.delivery.post_answer(place, answer("New."), AnswerKey(question_ts=ts, turn_id="turn-3"))


async def test_no_effect_without_the_lease(slack: Slack) -> None:
    place, ts = slack.ask()

    def lost() -> None:
        message = "lost"
        raise RuntimeError(message)

    answer_key = AnswerKey(question_ts=ts, turn_id="turn-1", lease_check=lost)
    with pytest.raises(RuntimeError, match="lost"):
        await slack.delivery.post_answer(place, answer("So."), answer_key)
    await slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="turn-1"))
    with pytest.raises(RuntimeError, match="lost"):
        await slack.delivery.delete_answer(place, ts, lost)
    assert texts(answers(slack, place)) == ["So."]


@pytest.mark.parametrize("refusals", [1, 2])
@pytest.mark.parametrize("error", ["invalid_blocks", "msg_blocks_too_long"])
async def test_block_types_that_a_server_does_not_know_are_left_out(error: str, refusals: int, slack: Slack) -> None:
    place, ts = slack.ask()
    slack.server.faults.fail("chat.postMessage", error, times=refusals)
    await slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="turn-1"))
    (message,) = answers(slack, place)
    assert message["text"] == "So."
    assert {b["type"] for b in message.get("blocks", [])} == ({"section", "context"} if refusals == 1 else set())


async def test_a_deleted_thread_or_channel_is_a_typed_failure(slack: Slack) -> None:
    for place in (
        ThreadKey(team="T0LOCAL", channel="C0NOWHERE", thread_ts="1.1"),
        ThreadKey(team="T0LOCAL", channel=CHANNEL, thread_ts="1600000000.000001"),
    ):
        with pytest.raises(DeliveryFailed) as failed:
            await slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts="1.1", turn_id="turn-1"))
        assert failed.value.permanent


@pytest.mark.parametrize("error", ["message_not_found", "cant_delete_message"])
async def test_an_answer_deleted_in_the_meantime_is_not_a_failure(error: str, slack: Slack) -> None:
    place, ts = slack.ask()
    await slack.delivery.post_answer(place, answer("So."), AnswerKey(question_ts=ts, turn_id="turn-1"))
    slack.server.faults.fail("chat.delete", error)
    if error == "message_not_found":
        assert await slack.delivery.delete_answer(place, ts) == 1
    else:
        with pytest.raises(DeliveryFailed, match=error):
            await slack.delivery.delete_answer(place, ts)


async def test_a_placeholder_is_deleted_by_its_ts_if_the_conversation_cannot_be_read() -> None:
    async with local_slack(patience_s=0.02) as slack:
        place, ts = slack.ask()
        answer_key = AnswerKey(question_ts=ts, turn_id="turn-1", may_exist=False)
        await slack.delivery.show_placeholder(place, "_working_", answer_key)
        slack.server.faults.fail("conversations.replies", "missing_scope", times=9)
        await slack.delivery.delete_answer(place, ts, only_placeholders=True)
        assert answers(slack, place) == []


TURNS = ("", "one", "two")


posted = st.builds(
    Posted, ts=st.integers(1, 99).map(str), turn_id=st.sampled_from(TURNS), part=st.integers(1, 3),
    placeholder=st.booleans(),
)  # fmt: skip
notices = st.builds(Posted, ts=st.integers(1, 99).map(str), about=st.sampled_from(["paused", "asked"]))
threads = st.lists(posted | notices, unique_by=lambda one: one.ts).map(
    lambda found: sorted(found, key=lambda posted: (posted.part, float(posted.ts)))
)


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


def test_the_answer_to_the_current_version_of_the_question_stays() -> None:
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

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.local.model.errors import ApiError
from bot.local.model.limits import LENIENT, RateLimiter, Strictness, block_faults, check_blocks, text_length

PLAIN = {"type": "plain_text", "text": "x"}


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(**change: Any) -> dict[str, Any]:
    return {"type": "button", "text": PLAIN, "action_id": "a", **change}


def elements(kind: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "elements": list(items)}


def cell(text: str) -> dict[str, str]:
    return {"type": "raw_text", "text": text}


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        (section("x" * 3_001), "must be less than 3001 characters [json-pointer:/blocks/0/text/text]"),
        (section(""), "must be more than 0 characters [json-pointer:/blocks/0/text/text]"),
        ({"type": "section"}, "missing required field: text or fields [json-pointer:/blocks/0]"),
        ({"type": "section", "text": "x"}, "must provide an object [json-pointer:/blocks/0/text]"),
        (
            {"type": "section", "text": {"type": "odd", "text": "x"}},
            "must be one of ['mrkdwn', 'plain_text'] [json-pointer:/blocks/0/text/type]",
        ),
        (
            {"type": "section", "text": {"type": "mrkdwn", "text": 5}},
            "must be a string [json-pointer:/blocks/0/text/text]",
        ),
        ({"type": "section", "fields": [PLAIN] * 11}, "no more than 10 items allowed [json-pointer:/blocks/0/fields]"),
        (
            {"type": "section", "text": PLAIN, "accessory": {"action_id": "a"}},
            "missing required field: type [json-pointer:/blocks/0/accessory/type]",
        ),
        (
            {"type": "header", "text": {"type": "plain_text", "text": "x" * 151}},
            "must be less than 151 characters [json-pointer:/blocks/0/text/text]",
        ),
        (
            {"type": "header", "text": {"type": "mrkdwn", "text": "x"}},
            "must be one of ['plain_text'] [json-pointer:/blocks/0/text/type]",
        ),
        ({"type": "markdown"}, "missing required field: text [json-pointer:/blocks/0/text]"),
        (elements("context", *[PLAIN] * 11), "no more than 10 items allowed [json-pointer:/blocks/0/elements]"),
        (elements("actions", *[button()] * 26), "no more than 25 items allowed [json-pointer:/blocks/0/elements]"),
        (elements("actions"), "missing required field: elements [json-pointer:/blocks/0/elements]"),
        (
            elements("context_actions", *[button()] * 6),
            "no more than 5 items allowed [json-pointer:/blocks/0/elements]",
        ),
        (
            elements("actions", button(text={"type": "plain_text", "text": "x" * 76})),
            "must be less than 76 characters [json-pointer:/blocks/0/elements/0/text/text]",
        ),
        (
            elements("actions", button(value="x" * 2_001)),
            "must be less than 2001 characters [json-pointer:/blocks/0/elements/0/value]",
        ),
        (
            elements("actions", button(url="x" * 3_001)),
            "must be less than 3001 characters [json-pointer:/blocks/0/elements/0/url]",
        ),
        (
            elements("actions", button(action_id="x" * 256)),
            "must be less than 256 characters [json-pointer:/blocks/0/elements/0/action_id]",
        ),
        (
            elements("context_actions", {"type": "feedback_buttons", "positive_button": {"text": PLAIN}}),
            "must provide an object [json-pointer:/blocks/0/elements/0/negative_button/text]",
        ),
        (
            {"type": "divider", "block_id": "x" * 256},
            "must be less than 256 characters [json-pointer:/blocks/0/block_id]",
        ),
        ({"type": "odd"}, "unsupported type: odd [json-pointer:/blocks/0/type]"),
        ({"type": "table"}, "missing required field: rows [json-pointer:/blocks/0/rows]"),
        (
            {"type": "table", "rows": [[cell("x")]] * 101},
            "no more than 100 items allowed [json-pointer:/blocks/0/rows]",
        ),
        (
            {"type": "table", "rows": [[cell("x")] * 21]},
            "no more than 20 items allowed [json-pointer:/blocks/0/rows/0]",
        ),
        (
            {"type": "table", "rows": [[cell("x" * 10_001)]]},
            "table cells must be less than 10001 characters [json-pointer:/blocks]",
        ),
        ({"type": "image", "image_url": "x"}, "missing required field: alt_text [json-pointer:/blocks/0/alt_text]"),
        ({"type": "image", "alt_text": "x"}, "missing required field: image_url [json-pointer:/blocks/0]"),
        ({"type": "input", "label": PLAIN}, "missing required field: element [json-pointer:/blocks/0/element]"),
    ],
)
def test_each_block_limit_has_slacks_words(block: dict[str, Any], fault: str) -> None:
    assert block_faults([block], limit=50) == [fault]


def test_fifty_blocks_and_one_table_to_a_message() -> None:
    assert block_faults([{"type": "divider"}] * 50, limit=50) == []
    assert block_faults([{"type": "divider"}] * 51, limit=50) == [
        "no more than 50 items allowed [json-pointer:/blocks]"
    ]
    table = {"type": "table", "rows": [[cell("x")]]}
    assert block_faults([table, table], limit=50) == ["only one table allowed [json-pointer:/blocks]"]


def test_invalid_blocks_carries_pointers_and_long_blocks_their_own_name() -> None:
    with pytest.raises(ApiError) as caught:
        check_blocks([section("x" * 3_001)])
    assert caught.value.error == "invalid_blocks"
    assert caught.value.extra["response_metadata"]["messages"] == [
        "[ERROR] must be less than 3001 characters [json-pointer:/blocks/0/text/text]"
    ]
    half = {"type": "markdown", "text": "x" * 6_001}
    for blocks in ([half, half], [section("x" * 3_000)] * 5):
        with pytest.raises(ApiError) as caught:
            check_blocks(blocks)
        assert caught.value.error == "msg_blocks_too_long"
    check_blocks([section("x" * 3_000)] * 4)


@given(st.lists(st.text(max_size=20), max_size=10))
def test_text_length_adds_up_every_text(texts: list[str]) -> None:
    blocks = [section(text) for text in texts]
    assert text_length(blocks) == sum(map(len, texts))
    assert text_length({"elements": blocks, "text": "abc"}) == sum(map(len, texts)) + 3


def test_rates_fill_up_again_with_time() -> None:
    now = [0.0]
    limiter = RateLimiter(Strictness(post_burst=1, calls_a_minute={"chat.stopStream": 2}), lambda: now[0])
    limiter.charge("chat.postMessage", "C1")
    with pytest.raises(ApiError) as caught:
        limiter.charge("chat.postMessage", "C1")
    assert caught.value.retry_after == 1
    now[0] += 1.0
    limiter.charge("chat.postMessage", "C1")
    limiter.charge("chat.stopStream", "")
    limiter.charge("chat.stopStream", "")
    with pytest.raises(ApiError) as caught:
        limiter.charge("chat.stopStream", "")
    assert caught.value.retry_after == 30
    limiter.charge("users.info", "")
    for _ in range(20):
        RateLimiter(LENIENT).charge("chat.postMessage", "C1")

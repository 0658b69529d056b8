from typing import Any

import pytest

from bot.local.model.errors import ApiError
from bot.local.model.limits import LENIENT, RateLimiter, Strictness, check_blocks

PLAIN = {"type": "plain_text", "text": "x"}


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def button(**change: Any) -> dict[str, Any]:
    return {"type": "button", "text": PLAIN, "action_id": "a", **change}


def elements(kind: str, *items: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "elements": list(items)}


def cell(text: str) -> dict[str, str]:
    return {"type": "raw_text", "text": text}


def table(*rows: list[dict[str, str]]) -> dict[str, Any]:
    return {"type": "table", "rows": list(rows)}


@pytest.mark.parametrize(
    ("block", "at"),
    [
        (section("x" * 3_001), "/0/text/text"),
        (section(""), "/0/text/text"),
        ({"type": "section"}, "/0"),
        ({"type": "section", "text": "x"}, "/0/text"),
        ({"type": "section", "text": {"type": "odd", "text": "x"}}, "/0/text/type"),
        ({"type": "section", "text": {"type": "mrkdwn", "text": 5}}, "/0/text/text"),
        ({"type": "section", "fields": [PLAIN] * 11}, "/0/fields"),
        ({"type": "section", "text": PLAIN, "accessory": {"action_id": "a"}}, "/0/accessory"),
        ({"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}, "/0/text/text"),
        ({"type": "header", "text": {"type": "mrkdwn", "text": "x"}}, "/0/text/type"),
        ({"type": "markdown"}, "/0"),
        (elements("context", *[PLAIN] * 11), "/0/elements"),
        (elements("actions", *[button()] * 26), "/0/elements"),
        (elements("actions"), "/0/elements"),
        (elements("actions", button(text={"type": "plain_text", "text": "x" * 76})), "/0/elements/0/text/text"),
        (elements("actions", button(value="x" * 2_001)), "/0/elements/0/value"),
        (elements("actions", button(url="x" * 3_001)), "/0/elements/0/url"),
        (elements("actions", button(action_id="x" * 256)), "/0/elements/0/action_id"),
        ({"type": "divider", "block_id": "x" * 256}, "/0/block_id"),
        ({"type": "odd"}, "/0/type"),
        ({"type": "table"}, "/0"),
        (table(*[[cell("x")]] * 101), "/0/rows"),
        (table([cell("x")] * 21), "/0/rows/0"),
        (table([cell("x" * 10_001)]), ""),
        ({"type": "input", "label": PLAIN}, "/0"),
    ],
)
def test_each_block_limit_is_refused_with_the_place_of_its_fault(block: dict[str, Any], at: str) -> None:
    with pytest.raises(ApiError) as caught:
        check_blocks([block])
    assert caught.value.error == "invalid_blocks"
    (message,) = caught.value.extra["response_metadata"]["messages"]
    assert message.startswith("[ERROR] ")
    assert message.endswith(f"[json-pointer:/blocks{at}]")


def test_a_message_may_have_fifty_blocks_one_table_and_a_limited_text() -> None:
    half, one_table = {"type": "markdown", "text": "x" * 6_001}, table([cell("x")])
    check_blocks([{"type": "divider"}] * 50)
    check_blocks([section("x" * 3_000)] * 4)
    for blocks, error in (
        ([{"type": "divider"}] * 51, "invalid_blocks"),
        ([one_table, one_table], "invalid_blocks"),
        ([half, half], "msg_blocks_too_long"),
        ([section("x" * 3_000)] * 5, "msg_blocks_too_long"),
    ):
        with pytest.raises(ApiError) as caught:
            check_blocks(blocks)
        assert caught.value.error == error


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

"""A whole Orion whose answers can be seen while they grow: Slack, Redis and the model are real servers."""

import asyncio
import re
from html import escape
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt

from agent.thread.conversation import ThreadKey
from bot.delivery.stream import join_emphasis
from bot.slack.client import SlackWorkspace, open_client
from bot.slack.history import STREAM_UNKNOWN, ThreadReader
from bot.slack.web_api import SlackCalls
from tests.support.openai_server import says
from tests.support.orion_running import CHANNEL, DIRECT, MENTION, text_of
from tests.support.scripted_orion import LIMIT
from tests.support.stream_stage import APPEND, FIRST, START, STOP, THIRD, WRONG, body, draft, pieces, stage
from tests.support.waiting import wait_until
from verification.check import check
from verification.types import Draft, Source

SECOND = "Bursts of up to 50 requests a second are accepted [1]."


def metadata(message: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = message["metadata"]
    return found


async def test_verified_blocks_are_seen_while_the_model_writes(tmp_path: Path, redis_url: str) -> None:
    """The whole answer ends with what ordinary answers carry."""
    gate = asyncio.Event()
    async with stage(tmp_path, redis_url, draft(FIRST, SECOND, gate=gate, rest=(THIRD,)), gate=gate) as at:
        ts = at.ask()
        growing = await at.wait_for_text(ts, "600 requests")
        assert growing["streaming_state"] == "in_progress"
        assert "3,000" not in text_of(growing)
        assert "[\\[1\\]](http" in growing["text"]
        gate.set()
        message = await at.wait_for_answer(ts)
        assert message["ts"] == growing["ts"]
        assert (at.calls(START), at.calls(STOP), at.calls("chat.postMessage")) == (1, 1, 0)
        text = message["text"]
        assert text.index("600") < text.index("50 requests") < text.index("**3,000 requests**")
        payload = metadata(message)["event_payload"]
        assert (payload["question_ts"], payload["verified"], len(payload["turn_id"])) == (ts, True, 32)
        kinds = [block["type"] for block in message["blocks"]]
        assert kinds == ["markdown", "context", "actions"]
        assert "limits-and-errors" in text_of(message)


async def test_the_rewrite_continues_after_the_shown_part(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    drafts = (draft(FIRST, WRONG, THIRD, gate=gate), draft(SECOND, THIRD))
    async with stage(tmp_path, redis_url, *drafts, gate=gate) as at:
        ts = at.ask()
        message = await at.wait_for_answer(ts)  # the gate is never opened: the first draft was stopped
        assert "900 requests" not in text_of(message)
        assert [message["text"].count(words) for words in ("600 requests", "50 requests", "3,000")] == [1, 1, 1]
        assert (at.calls(START), at.calls(STOP), at.calls("chat.update")) == (1, 1, 0)
        again = [request for request in at.server.requests if request.get("stream")][-1]["messages"]
        assert "already shown to the person" in again[1]["content"]
        assert again[-2]["content"] == f"<answer>\n{WRONG}\n</answer>"
        assert "Write again only what comes" in again[-1]["content"]


async def test_an_answer_that_never_passes_keeps_its_shown_part_as_partial(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, redis_url, draft(FIRST, WRONG), draft(WRONG), draft(WRONG)) as at:
        message = await at.wait_for_answer(at.ask())
        assert "600 requests" in message["text"]
        assert "900 requests" not in text_of(message)
        assert "Partly verified" in text_of(message)
        assert at.calls(STOP) == 1


async def test_a_complete_answer_does_not_wait_for_a_rate_limited_piece(tmp_path: Path, redis_url: str) -> None:
    """Slack may ask for half a minute between two pieces; the end has a limit of its own, and takes the rest along."""
    gate = asyncio.Event()
    async with stage(tmp_path, redis_url, draft(FIRST, "Bur", gate=gate, rest=(THIRD,)), gate=gate) as at:
        at.setting.workspace.faults.rate_limit(APPEND, retry_after=3_600)
        ts = at.ask()
        await at.setting.workspace.wait_for(lambda: at.calls(APPEND) == 1)
        gate.set()
        message = await at.wait_for_answer(ts)
        assert [body(message).count(words) for words in ("600 requests", "3,000")] == [1, 1]
        assert (at.calls(APPEND), at.calls(STOP), at.calls("chat.update")) == (1, 1, 0)


TROUBLES = [
    *((method, trouble) for method in (START, APPEND, STOP) for trouble in ("lose_response", "reset", "fail")),
    (APPEND, "rate_limit"),
    (STOP, "rate_limit"),
    (START, "hang"),
]


@pytest.mark.parametrize("rows", [TROUBLES[::2], TROUBLES[1::2]])  # more would have to wait for Slack's limits
async def test_any_failure_of_a_stream_leaves_one_answer(
    rows: list[tuple[str, str]], tmp_path: Path, redis_url: str
) -> None:
    async with stage(tmp_path, redis_url, *[draft(FIRST, SECOND, THIRD)] * len(rows)) as at:
        for method, trouble in rows:
            getattr(at.setting.workspace.faults, trouble)(method)
            message = await at.wait_for_answer(at.ask())
            said = body(message)
            assert [said.count(words) for words in ("600 requests", "50 requests", "3,000")] == [1, 1, 1], (
                method,
                trouble,
            )
            assert metadata(message)["event_payload"]["turn_id"]


async def test_an_answer_too_long_for_one_message_is_updated_as_several(tmp_path: Path, redis_url: str) -> None:
    long = tuple(f"Each API key may make 600 requests a minute [1]. {'x' * 600}" for _ in range(19))
    async with stage(tmp_path, redis_url, draft(*long)) as at:
        ts = at.ask()
        await at.setting.answer_to(ts)
        await wait_until(lambda: at.setting.orion.worker.in_flight == 0, "the turn is over")
        parts = at.own(ts)
        assert len(parts) > 1
        assert sum(body(part).count("600 requests") for part in parts) == len(long)
        assert at.calls(START) == 1


async def test_a_direct_message_streams_only_with_the_setting(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, redis_url, draft(FIRST, THIRD)) as at:
        await at.setting.answer_to(at.setting.ask(LIMIT, channel=DIRECT), channel=DIRECT)
        assert at.calls(START) == 1
    async with stage(tmp_path, redis_url, draft(FIRST, THIRD), streams=False) as at:
        await at.wait_for_answer(at.ask())
        assert at.calls(START) == 0


async def test_a_model_that_fails_meanwhile_leads_to_the_same_message(tmp_path: Path, redis_url: str) -> None:
    broken = says("<answer>", *pieces(f"{FIRST}\n\nBur"), broken=True)
    async with stage(tmp_path, redis_url, broken, draft(THIRD)) as at:
        message = await at.wait_for_answer(at.ask())
        assert body(message).count("3,000") == 1
        assert at.calls(START) == 1


async def test_stop_leaves_what_was_verified_under_its_mark(tmp_path: Path, redis_url: str) -> None:
    gate = asyncio.Event()
    async with stage(tmp_path, redis_url, draft(FIRST, "Bur", gate=gate), gate=gate) as at:
        ts = at.ask()
        await at.wait_for_text(ts, "600 requests")
        at.setting.ask("stop", thread=ts)
        message = await at.wait_for_answer(ts)
        assert "600 requests" in text_of(message)
        assert "Stopped." in text_of(message)
        assert at.calls("chat.postMessage") == 0


async def test_an_edit_or_a_deletion_finds_a_streamed_answer(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, redis_url, draft(FIRST, SECOND), draft(THIRD)) as at:
        ts = at.ask()
        first = await at.wait_for_answer(ts)
        at.setting.workspace.edit(CHANNEL, ts, f"{MENTION} {LIMIT} On the partner plan?")
        await at.wait_for_text(ts, "3,000")
        message = await at.wait_for_answer(ts)
        assert (message["ts"], "600 requests" in body(message)) == (first["ts"], False)
        at.setting.workspace.delete(CHANNEL, ts)
        await wait_until(lambda: not at.own(ts), "the answer is gone")


async def test_a_thread_that_is_read_again_contains_the_streamed_answer(tmp_path: Path, redis_url: str) -> None:
    async with stage(tmp_path, redis_url, draft(FIRST, SECOND)) as at:
        ts = at.ask()
        message = await at.wait_for_answer(ts)
        place = ThreadKey(team="T0LOCAL", channel=CHANNEL, thread_ts=ts)
        here = at.setting.workspace
        async with open_client(here.bot_token, api_url=here.api_url) as client:
            calls = SlackCalls(client)
            reader = ThreadReader(SlackWorkspace(calls))
            (said,) = [m.text for m in (await reader.read_conversation(place)).messages if m.role == "assistant"]
            assert "600 requests" in said
            (posted,) = await reader.find_posts(place, ts, STREAM_UNKNOWN)
            assert (posted.ts, posted.stream) == (message["ts"], False)


@pytest.mark.parametrize(
    "words",
    [
        "これは**「重要」**です", "**Hinweis:**Text", "a **b** c", "und**(kurz)**weiter", "これは*「重要」*です",
        "**`make`:**Text", "นี่**「สำคัญ」**มาก", "これは~~「旧」~~です", "これは**[「規定」](https://x.test)**です",
    ],
)  # fmt: skip
def test_emphasis_next_to_letters_is_recognised_as_in_commonmark(words: str) -> None:
    html = MarkdownIt("commonmark").enable("strikethrough").render(join_emphasis(words))
    assert re.search("<(?:strong|em|s)>", html)
    assert not re.search("[*~]", html)


def test_bold_marks_in_code_are_kept() -> None:
    assert join_emphasis("`a**!b**c` **ok**") == "`a**!b**c` **ok**"


@pytest.mark.parametrize(
    "words",
    ["2**10 and 3**4", "__init__ if __name__ == '__main__'", "src/**/*.py, *.md", "(a+b)**2 and (c)**2", "tax*, fee*"],
)
def test_signs_that_are_no_emphasis_stay_in_a_stream(words: str) -> None:
    (chunk,) = check(Draft(text=f"Use {words} **now**", own_words=True, dialect="markdown")).chunks
    assert MarkdownIt("commonmark").renderInline(join_emphasis(chunk)) == (
        f"Use {escape(words, quote=False)} <strong>now</strong>"
    )


def test_an_address_with_stars_leads_to_the_same_page_in_a_stream() -> None:
    words = "Allow https://*.acme.test/a*b and https://acme.test/* here."
    page = Source(id=1, title="Firewall", text=words)
    (chunk,) = check(Draft(text=f"{words} [1]", sources=(page,), dialect="markdown")).chunks
    assert chunk == f"{words} [1]"


def test_code_that_begins_next_to_the_ticks_is_whole_in_a_stream() -> None:
    (chunk,) = check(Draft(text="```npm ci\nnpm test```", own_words=True, dialect="markdown")).chunks
    assert chunk == "```\nnpm ci\nnpm test\n```"

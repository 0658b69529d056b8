"""Answers to post, and what Slack shows of them."""

from collections.abc import Iterable
from typing import Any

from agent.thread.conversation import ThreadKey
from tests.support.local_slack import Slack
from verification.types import Answer, Source

SOURCE = Source(id=1, title="Release process", url="https://docs.example/release.md", updated_at="2026-11-01")


def answer(*chunks: str, **fields: Any) -> Answer:
    return Answer(text="\n".join(chunks), chunks=chunks, sources=(SOURCE,), verified=True, attempts=1, **fields)


def answers(slack: Slack, place: ThreadKey) -> list[dict[str, Any]]:
    thread = None if place.thread_ts == place.channel else place.thread_ts
    return [message for message in slack.server.messages(place.channel, thread) if message.get("bot_id") == "B0ORION"]


def texts(messages: Iterable[dict[str, Any]]) -> list[str]:
    return [message["text"] for message in messages]


LONG = tuple(f"part {number} " + "x" * 2_800 for number in range(9))

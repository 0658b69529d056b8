"""What stands in the workspace, in the threads' memory and in the logs after a chaos run, held against what was asked.

It reads only what everybody can see from outside: Slack's messages and statuses, the saved states, and the log lines.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any

from redis.asyncio import Redis

from agent.conversation import ThreadKey
from agent.thread_store import ThreadStore
from bot.local.roster import TEAM_ID
from bot.local.server import LocalWorkspace
from bot.thread_reader import ANSWER_EVENT, WORKING_EVENT, sort_key
from tests.chaos.crew import Crew, Member
from tests.chaos.scene import Asked, Scene


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one run; each is a count of questions, messages, turns or threads."""

    asked: int
    lost: int
    told: int
    twice: int
    out_of_order: int
    left_behind: int
    misremembered: int
    at_once: int
    second_posts_deleted: int
    notes: tuple[str, ...]
    """Where each broken promise was broken: threads, times, what stands there."""


def first_parts(workspace: LocalWorkspace, asked: Asked) -> list[dict[str, Any]]:
    """The first message of each answer to this question, in the order of Slack's timestamps."""
    messages = workspace.messages(asked.channel, asked.thread)
    return [m for m in messages if _is(m, ANSWER_EVENT, asked.ts) and _payload(m).get("part", 1) == 1]


def answered(workspace: LocalWorkspace, asked: Asked) -> bool:
    return bool(first_parts(workspace, asked))


def _payload(message: Mapping[str, Any]) -> Mapping[str, Any]:
    payload: Mapping[str, Any] = (message.get("metadata") or {}).get("event_payload") or {}
    return payload


def _is(message: Mapping[str, Any], event: str, question_ts: str) -> bool:
    kind = (message.get("metadata") or {}).get("event_type")
    return kind == event and _payload(message).get("question_ts") == question_ts


async def read_ledger(scene: Scene) -> Ledger:
    """The books of the whole scene."""
    found = {asked: first_parts(scene.workspace, asked) for asked in scene.asked}
    lines = [(member, line) for member in scene.crew.members for line in read_log(member)]
    behind = left_behind(scene.workspace, scene.asked)
    reversed_ = [note for thread, spans in _by_thread(found).items() for note in _reversals(thread, spans)]
    memories = await _misremembered(scene)
    overlaps = at_once(scene.crew)
    return Ledger(
        asked=len(found),
        lost=sum(not posts for posts in found.values()),
        told=sum(bool(posts) and not any(_payload(post).get("turn_id") for post in posts) for posts in found.values()),
        twice=sum(len(posts) > 1 for posts in found.values()),
        out_of_order=len(reversed_),
        left_behind=len(behind),
        misremembered=len(memories),
        at_once=len(overlaps),
        second_posts_deleted=sum(line["event"] == "second_answer_deleted" for _, line in lines),
        notes=(*behind, *reversed_, *memories, *overlaps),
    )


def _by_thread(found: Mapping[Asked, Sequence[Mapping[str, Any]]]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Per thread: when each question was asked and when its first answer was posted."""
    threads: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for asked, posts in found.items():
        if posts:
            threads[asked.channel, asked.thread or ""].append((asked.ts, str(posts[0]["ts"])))
    return threads


def _reversals(thread: tuple[str, str], spans: Iterable[tuple[str, str]]) -> list[str]:
    in_order = sorted(spans, key=lambda span: sort_key(span[0]))
    return [
        f"out of order {thread[0]} {thread[1]}: {later[0]} was answered at {later[1]}, {earlier[0]} at {earlier[1]}"
        for earlier, later in pairwise(in_order)
        if sort_key(later[1]) < sort_key(earlier[1])
    ]


def left_behind(workspace: LocalWorkspace, asked: Sequence[Asked]) -> list[str]:
    """Statuses still on show and placeholders that no answer took over."""
    statuses = [f"status {channel} {thread}" for channel, thread in workspace.workspace.threads.statuses]
    places = {(one.channel, one.thread) for one in asked}
    messages = (m for channel, thread in places for m in workspace.messages(channel, thread))
    working = [m for m in messages if (m.get("metadata") or {}).get("event_type") == WORKING_EVENT]
    return statuses + [f"placeholder {m['ts']}" for m in working]


async def _misremembered(scene: Scene) -> list[str]:
    """Threads whose saved history has a question twice or out of order: a save by one who had lost the thread."""
    wrong: list[str] = []
    async with Redis.from_url(scene.redis_url, decode_responses=True) as redis:
        store = ThreadStore(redis, prefix=scene.prefix)
        for channel, thread in {(one.channel, one.thread) for one in scene.asked}:
            state = await store.load(ThreadKey(team=TEAM_ID, channel=channel, thread_ts=thread or channel))
            stamps = [m.ts for m in state.history if m.role == "user"]
            if stamps != sorted(set(stamps), key=sort_key):
                wrong.append(f"memory {channel} {thread}: {' '.join(stamps)}")
    return wrong


def read_log(member: Member) -> list[dict[str, Any]]:
    """Every whole line of a process's log, with ``t``, its time in seconds since 1970."""
    lines: list[dict[str, Any]] = []
    for text in member.log.read_text(errors="replace").splitlines():
        try:
            line = json.loads(text)
        except ValueError:
            continue  # cut off by a kill
        if isinstance(line, dict) and "event" in line and "at" in line:
            lines.append({**line, "t": datetime.fromisoformat(line["at"]).timestamp()})
    return lines


@dataclass(slots=True, kw_only=True)
class Span:
    """One turn of a thread in one process, from its start to the last thing it is known to have done (seconds)."""

    thread: str
    began: float
    ended: float


def spans_of(member: Member) -> list[Span]:
    """The turns that a process ran. A freeze ends them as a death does: it outlasts the lease."""
    moments = [(line["t"], str(line["event"]), line) for line in read_log(member)]
    moments += [(since, "frozen", {}) for since in member.frozen]
    moments += [(member.died_at or float("inf"), "died", {})]
    running: dict[str, Span] = {}
    spans: list[Span] = []
    for when, what, line in sorted(moments, key=lambda moment: moment[0]):
        thread = str(line.get("thread", ""))
        if what == "turn_started":
            running[thread] = Span(thread=thread, began=when, ended=when)
            spans.append(running[thread])
        elif what in {"turn_ended", "turn_lost"}:
            # This line is written after the mailbox took the ending: the thread may be somebody else's by then.
            running.pop(thread, None)
        elif what in {"frozen", "died"}:
            for span in running.values():
                span.ended = when
            running.clear()
        elif thread in running:
            running[thread].ended = when
    return spans


def at_once(hands: Crew) -> list[str]:
    """Turns that began while another turn of the same thread was still running."""
    threads: dict[str, list[Span]] = defaultdict(list)
    for member in hands.members:
        for span in spans_of(member):
            threads[span.thread].append(span)
    overlaps: list[str] = []
    for thread, spans in threads.items():
        busy_until = 0.0
        for span in sorted(spans, key=lambda one: one.began):
            if span.began < busy_until:
                overlaps.append(f"at once {thread}: from {span.began:.3f} to {busy_until:.3f}")
            busy_until = max(busy_until, span.ended)
    return overlaps

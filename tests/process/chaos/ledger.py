"""Compares workspace, thread states and logs after a chaos run with the questions that were asked.

It reads only what is visible from outside: Slack's messages and statuses, the saved states, and the log lines.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import chain, pairwise
from typing import Any

from agent.thread.conversation import ThreadKey
from agent.thread.store import ThreadStore
from bot.local.server import LocalWorkspace
from bot.redis.server import open_redis
from bot.slack.history import ANSWER_EVENT, WORKING_EVENT, sort_key
from tests.process.chaos.crew import Crew, Member
from tests.process.chaos.scene import Asked, Scene

SAID = frozenset({"answer_delivered", "turn_outcome", "state_save_failed"})
"""After these a turn only saves and ends. A process that dies then may have ended its turn, and lost the thread."""
OPEN = frozenset({"pending", "in_progress"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """The books of one run; each is a count of questions, messages, turns or threads."""

    asked: int
    lost: int
    told: int
    twice: int
    out_of_order: int
    overtaken: int
    left_behind: int
    misremembered: int
    at_once: int
    second_posts_deleted: int
    notes: tuple[str, ...]
    """The places of each broken promise: threads, times and messages."""


def first_parts(workspace: LocalWorkspace, asked: Asked) -> list[dict[str, Any]]:
    """The first message of each answer to this question, in the order of Slack's timestamps."""
    messages = workspace.messages(asked.channel, asked.thread)
    return [m for m in messages if _is(m, ANSWER_EVENT, asked.ts) and _payload(m).get("part", 1) == 1]


def is_answered(workspace: LocalWorkspace, asked: Asked) -> bool:
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
    threads = _by_thread(found)
    stored = _times_stored(lines)
    reversals = [pair for spans in threads.values() for pair in _reversals(spans)]
    reversed_ = [
        f"out of order: {later} was answered before {earlier}"
        for earlier, later in reversals
        if not stored.get(earlier, 0.0) > stored.get(later, float("inf"))  # else Slack delivered it late
    ]
    memories = await _wrong_memories(scene, threads)
    overlaps = at_once(scene.crew)
    return Ledger(
        asked=len(found), lost=sum(not posts for posts in found.values()),
        told=sum(bool(posts) and not any(_payload(post).get("turn_id") for post in posts) for posts in found.values()),
        twice=sum(len(posts) > 1 for posts in found.values()), out_of_order=len(reversed_),
        overtaken=len(reversals) - len(reversed_), left_behind=len(behind), misremembered=len(memories),
        at_once=len(overlaps),
        second_posts_deleted=sum(line["event"] == "second_answer_deleted" for _, line in lines),
        notes=(*behind, *reversed_, *memories, *overlaps),
    )  # fmt: skip


def _by_thread(found: Mapping[Asked, Sequence[Mapping[str, Any]]]) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """Per thread: when each question was asked and when its first answer was posted."""
    threads: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for asked, posts in found.items():
        if posts:
            threads[asked.channel, asked.thread or ""].append((asked.ts, str(posts[0]["ts"])))
    return threads


def _reversals(spans: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Neighbours of which the later question was answered first."""
    in_order = sorted(spans, key=lambda span: sort_key(span[0]))
    return [
        (earlier[0], later[0]) for earlier, later in pairwise(in_order) if sort_key(later[1]) < sort_key(earlier[1])
    ]


def _times_stored(lines: Iterable[tuple[Member, Mapping[str, Any]]]) -> dict[str, float]:
    """The time when each question was stored, since 1970 in seconds. A message's id begins with its ts."""
    times: dict[str, float] = {}
    for _, line in lines:
        if line["event"] == "turn_started":
            times.setdefault(str(line["message_id"]).partition("/")[0], line["t"] - line["waited_s"])
    return times


def left_behind(workspace: LocalWorkspace, asked: Sequence[Asked]) -> list[str]:
    """Statuses and Stop buttons still on show, and placeholders that no answer took over."""
    threads = workspace.workspace.threads
    statuses = [f"status {channel} {thread}" for channel, thread in threads.statuses]
    statuses += [f"Stop button {place}" for place, one in threads.sessions.items() if one.status == "processing"]
    places = {(one.channel, one.thread) for one in asked}
    messages = (m for channel, thread in places for m in workspace.messages(channel, thread))
    working = [m for m in messages if (m.get("metadata") or {}).get("event_type") == WORKING_EVENT]
    return statuses + [f"placeholder {m['ts']}" for m in working] + _torn_messages(workspace, asked)


def _torn_messages(workspace: LocalWorkspace, asked: Sequence[Asked]) -> list[str]:
    """Streams that were not ended, steps left open, and answers with a missing or repeated part."""
    places = {(one.channel, one.thread) for one in asked if one.thread}
    own = [m for channel, thread in places for m in workspace.messages(channel, thread) if m.get("bot_id")]
    streams = [f"stream {m['ts']}" for m in own if "streaming_state" in m or not m.get("metadata")]
    streams += [f"open step {m['ts']}" for m in own if any(b.get("status") in OPEN for b in m.get("blocks", []))]
    answers = [m for m in own if _is(m, ANSWER_EVENT, str(_payload(m).get("question_ts"))) and _payload(m)["turn_id"]]
    return streams + [f"torn answer {m['ts']}" for m in answers if _words_of(m).count("600 requests") != 1]


def _words_of(message: Mapping[str, Any]) -> str:
    """All words of a message's blocks: of rich text too."""

    def words(part: Any) -> Iterator[str]:
        if isinstance(part, str):
            yield part
        for inner in part.get("elements", []) if isinstance(part, Mapping) else []:
            yield from words(inner)
        if isinstance(part, Mapping):
            yield from words(part.get("text"))

    return "".join(chain.from_iterable(words(block) for block in message.get("blocks", [])))


async def _wrong_memories(scene: Scene, threads: Mapping[tuple[str, str], Sequence[tuple[str, str]]]) -> list[str]:
    """Threads whose saved history has a question twice, or in another order than they were answered in.

    A worker that had lost the thread could have saved that. A question without an
    answer, still in work or read from Slack, has no place in that order.
    """
    wrong: list[str] = []
    team = scene.workspace.workspace.team
    async with open_redis(scene.settings) as redis:
        store = ThreadStore(redis, prefix=scene.prefix)
        for (channel, thread), spans in threads.items():
            state = await store.load(ThreadKey(team=team, channel=channel, thread_ts=thread or channel))
            stamps = [m.ts for m in state.history if m.role == "user"]
            answered_at = {ts: sort_key(answer) for ts, answer in spans}
            answered = [ts for ts in stamps if ts in answered_at]
            if len(stamps) > len(set(stamps)) or answered != sorted(answered, key=lambda ts: answered_at[ts]):
                wrong.append(f"memory of {channel} {thread}: {' '.join(stamps)}")
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
    running: dict[str, tuple[Span, str]] = {}
    spans: list[Span] = []
    for when, what, line in sorted(moments, key=lambda moment: moment[0]):
        thread = str(line.get("thread", ""))
        if what == "turn_started":
            running[thread] = (Span(thread=thread, began=when, ended=when), what)
            spans.append(running[thread][0])
        elif what in {"turn_ended", "turn_lost"}:
            # This line is written after the mailbox took the ending: another worker may have the thread by then.
            running.pop(thread, None)
        elif what in {"frozen", "died"}:
            for span, last in running.values():
                if last not in SAID:
                    span.ended = when
            running.clear()
        elif thread in running:
            running[thread] = (running[thread][0], what)
            running[thread][0].ended = when
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

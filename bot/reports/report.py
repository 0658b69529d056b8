"""One week of Orion as the readers of one place may see it, from turn records, counters, saved answers and the index.

The text of a question is shown in the place where it was asked, and elsewhere only if its channel is public. Questions
in direct messages are only counted.
"""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import structlog

from agent.json_data import string
from agent.knowledge.index.index import KnowledgeIndex, SeenBy
from agent.knowledge.sources.answers import SavedAnswer
from agent.knowledge.types import PATH
from agent.thread.conversation import Viewers, may_see
from bot.answers import AnswerBook
from bot.slack.directory import SlackDirectory
from bot.slack.web_api import DeliveryFailed
from bot.stores.turn_records import UNANSWERED, TurnRecords, sources_of
from bot.turn.job import visible_sources
from observability.stats import Stats, Tally
from observability.stats_table import Prices, cost
from verification.types import Source

WEEK: Final = timedelta(days=7)
STALE_AFTER: Final = timedelta(days=365)
Record = Mapping[str, Any]
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedQuestion:
    """One question. ``link`` leads to its thread; ``reasons`` and ``said`` are people's complaints."""

    turn_id: str
    question: str
    link: str = ""
    reasons: tuple[str, ...] = ()
    said: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report. Its week is from ``first`` to ``last``, both included, as days in UTC. Costs are in US dollars.

    ``topics`` are questions without an answer, newest first, by the title of the closest document (empty: there is
    none), the largest topic first. ``stale`` are old documents that answers cited, with the number of citations, the
    most cited first. ``…_elsewhere`` count what is not shown: ``direct`` chats, and ``private`` channels.
    """

    first: date
    last: date
    week: Tally
    before: Tally
    cost: float | None
    cost_before: float | None
    topics: Mapping[str, Sequence[ReportedQuestion]] = field(default_factory=dict)
    unanswered_elsewhere: Counter[str] = field(default_factory=Counter)
    disliked: Sequence[ReportedQuestion] = ()
    disliked_elsewhere: Counter[str] = field(default_factory=Counter)
    overdue: Sequence[SavedAnswer] = ()
    stale: Sequence[tuple[Source, int]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """The channels that these viewers may see. Without ``people`` Slack cannot be asked: all are open, or none."""

    viewers: Viewers
    people: SlackDirectory | None = None
    all_open: bool = False

    async def is_open(self, channel: str) -> bool:
        """Return whether all members of the workspace may read it. To viewers of other organisations none is open."""
        if self.people is None:
            return self.all_open
        team, here = self.viewers.team, self.viewers.channel
        try:
            shared = bool(here) and await self.people.is_shared(team, here)
            return not shared and bool(await self.people.channel_name(team, channel))
        except DeliveryFailed:
            return False

    async def link(self, channel: str, ts: str) -> str:
        """Return the link to a message; empty if Slack does not return it."""
        if self.people is None:
            return ""
        try:
            reply = await self.people.calls.read("chat.getPermalink", channel=channel, message_ts=ts)
            return string(reply, "permalink")
        except DeliveryFailed:
            return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gathering:
    """Everything that a report is made from. ``answers`` is the folder of saved answers."""

    records: TurnRecords
    stats: Stats
    index: KnowledgeIndex
    places: Places
    prices: Prices
    answers: Path | None = None
    documents: tuple[str, ...] = ()  # prefixes, where the channel has only some of the documents

    async def report(self, until: datetime) -> Report:
        """Return the report of the last seven days (UTC). Raises ``RedisError`` and ``KnowledgeAwayError``."""
        viewers = self.places.viewers
        end = datetime.combine(until.astimezone(UTC).date(), datetime.min.time(), UTC)
        records = [
            record
            async for record in self.records.scan()
            if (end - WEEK).timestamp() <= record["at"] < end.timestamp() and _is_of(record, viewers.team)
        ]
        records.sort(key=lambda record: -float(record["at"]))
        saved = await asyncio.to_thread(AnswerBook(folder=self.answers).answers) if self.answers else {}
        answered = {answer.turn_id for answer in saved.values()}
        open_questions = [r for r in records if r["outcome"] in UNANSWERED and r["turn_id"] not in answered]
        disliked = [r for r in records if "bad" in await self.records.judgements(r)]
        unanswered, unanswered_elsewhere = await self._visible(open_questions)
        shown, disliked_elsewhere = await self._visible(disliked)
        last_day = end - timedelta(days=1)
        last = last_day.date()
        overdue = [one for one in saved.values() if one.is_overdue(last) and may_see(one.audience, viewers)]
        week = await self.stats.read(WEEK.days, now=last_day)
        before = await self.stats.read(WEEK.days, now=last_day - WEEK)
        return Report(
            first=end.date() - WEEK,
            last=last,
            week=week,
            before=before,
            cost=cost(week, self.prices),
            cost_before=cost(before, self.prices),
            topics=await self._topics(unanswered),
            unanswered_elsewhere=unanswered_elsewhere,
            disliked=[await self._with_complaints(asked) for asked in shown],
            disliked_elsewhere=disliked_elsewhere,
            overdue=sorted(overdue, key=lambda answer: answer.review or last),
            stale=await self._stale(records, viewers, last),
        )

    async def _visible(self, records: Sequence[Record]) -> tuple[list[ReportedQuestion], Counter[str]]:
        shown: list[ReportedQuestion] = []
        hidden: Counter[str] = Counter()
        for record in records:
            _, channel, ts = string(record, "thread").split(":", 2)
            if channel.startswith("D"):
                hidden["direct"] += 1
            elif channel == self.places.viewers.channel or await self.places.is_open(channel):
                question, link = " ".join(record["question"].split()), await self.places.link(channel, ts)
                shown.append(ReportedQuestion(turn_id=record["turn_id"], question=question, link=link))
            else:
                hidden["private"] += 1
        return shown, hidden

    async def _topics(self, asked: Sequence[ReportedQuestion]) -> dict[str, list[ReportedQuestion]]:
        topics: dict[str, list[ReportedQuestion]] = {}
        seen = SeenBy(self.index, self.places.viewers, self.documents)
        for each in asked:
            vector = await seen.embed_question(each.question)
            near = await asyncio.to_thread(seen.search, each.question, limit=1, vector=vector)
            topics.setdefault(near[0].title if near else "", []).append(each)
        return dict(sorted(topics.items(), key=lambda topic: -len(topic[1])))

    async def _with_complaints(self, asked: ReportedQuestion) -> ReportedQuestion:
        complaints = await self.records.complaints({"turn_id": asked.turn_id})
        reasons = dict.fromkeys(reason for complaint in complaints for reason in complaint["reasons"])
        said = "; ".join(filter(None, (" ".join(complaint["said"].split()) for complaint in complaints)))
        return replace(asked, reasons=tuple(reasons), said=said)

    async def _stale(self, records: Iterable[Record], viewers: Viewers, today: date) -> list[tuple[Source, int]]:
        oldest = (today - STALE_AFTER).isoformat()
        cited: Counter[tuple[str, str, str]] = Counter()
        sources: dict[tuple[str, str, str], Source] = {}
        for source in (source for r in records if r.get("verified") is True for source in sources_of(r)):
            document = (source.title.partition(PATH)[0], source.url.partition("#")[0], source.updated_at[:10])
            if source.origin == "document" and "" < source.updated_at < oldest:
                cited[document] += 1
                sources[document] = source
        visible = await visible_sources(self.index, list(sources.values()), viewers)
        return [
            (replace(sources[document], title=document[0], url=document[1]), count)
            for document, count in cited.most_common()
            if sources[document] in visible
        ]


def _is_of(record: Record, team: str) -> bool:
    thread = string(record, "thread")
    return thread.count(":") > 1 and (not team or thread.startswith(f"{team}:"))

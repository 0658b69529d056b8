"""The weekly report: what its readers see, and that a week's report is posted once."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.answers import SavedAnswer
from agent.thread.conversation import Viewers
from bot.answers import AnswerBook
from bot.channel_settings import ChannelFile
from bot.delivery.dialogs import SAVE_ACTION
from bot.install.workspaces import OneWorkspace, TeamBot, Workspaces
from bot.local.model.roster import TEAM_ID, Channel
from bot.reports.blocks import report_text
from bot.reports.report import Gathering, Places
from bot.reports.weekly import WeeklyReports, latest_due
from bot.slack.directory import SlackDirectory
from bot.slack.web_api import DeliveryFailed
from bot.stores.turn_records import RECORD_TTL_S, TurnRecords
from observability.stats import Stats, TurnFigures, increments
from tests.support.local_slack import CHANNEL, Slack, local_slack
from tests.support.orion_running import settings_in
from tests.support.services import UnusedHandler, observers_over
from tests.support.waiting import wait_until

DUE = latest_due(datetime.now(UTC), "UTC")
PRIVATE = "G0BOARD"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A workspace, and a Redis with what one week left."""

    slack: Slack
    redis: Redis
    index: KnowledgeIndex
    folder: Path

    def reports(self, name: str = CHANNEL) -> WeeklyReports:
        """The task of one worker."""
        slack = self.slack
        bot = TeamBot(
            delivery=slack.delivery,
            people=SlackDirectory(slack.workspace, self.redis),
            handler=UnusedHandler(),
        )
        (self.folder / "prices.toml").write_text("[m]\ninput = 1.0\noutput = 2.0\n")
        return WeeklyReports(
            settings=settings_in(self.folder, "", report=name, answers=self.folder / "answers"),
            redis=self.redis,
            prefix="orion",
            workspaces=OneWorkspace(bot),
            observers=observers_over(self.redis),
            index=self.index,
            channels=ChannelFile(self.folder / "channels.toml"),
            now=lambda: DUE + timedelta(hours=1),
        )

    async def post(self, name: str = CHANNEL) -> bool:
        """One look of a new worker."""
        reports = self.reports(name)
        return await reports.post_if_due(await reports.workspaces.of(""))

    async def let_claim_expire(self) -> None:
        """The state some minutes after a worker died."""
        await self.redis.delete(f"orion:report:{TEAM_ID}:{DUE:%G-W%V}")

    async def record(self, turn_id: str, question: str, channel: str, outcome: str = "refused", **fields: Any) -> None:
        """The record of a turn two days before the report."""
        ts = self.slack.server.post("U0YOU", channel, question)
        record = {"turn_id": turn_id, "thread": f"{TEAM_ID}:{channel}:{ts}", "question": question, "outcome": outcome}
        records = TurnRecords(self.redis)
        await records.save({**record, "verified": False, **fields})
        age = datetime.now(UTC) - (DUE - timedelta(days=2))
        await self.redis.expire(records.key(turn_id), int(RECORD_TTL_S - age.total_seconds()))

    def reports_in(self, channel: str = CHANNEL) -> list[dict[str, Any]]:
        """The reports in a channel."""
        return [message for message in self.slack.server.messages(channel) if message["text"].startswith("Report from")]


@pytest.fixture
async def setting(redis_client: Redis, index: KnowledgeIndex, tmp_path: Path) -> AsyncIterator[Setting]:
    docs = tmp_path / "docs"
    (docs / "pay").mkdir(parents=True)
    (docs / "leave.md").write_text("---\nupdated: 2020-01-01\n---\n\n# Leave\n\nParental leave takes 14 weeks.\n")
    (docs / "pay" / "salary.md").write_text("# Salary\n\nSalaries are paid on day 25.\n")
    (docs / "pay" / "orion-audience.toml").write_text('audience = ["C0HELP"]\n')
    index.index([docs])
    async with local_slack() as slack:
        channels = slack.server.workspace.roster.channels
        channels[PRIVATE] = Channel(id=PRIVATE, name="board", kind="group", members=set(channels[CHANNEL].members))
        yield Setting(slack=slack, redis=redis_client, index=index, folder=tmp_path)


async def fill(setting: Setting) -> None:
    """One week: unanswered, disliked and saved answers, in public, private and direct places."""
    source = {"id": 1, "title": "Leave › Parents", "url": "", "updated_at": "2020-01-01", "origin": "document"}
    await setting.record("t1", "How long is parental leave for <adoption>?", CHANNEL)
    await setting.record("t2", "Does parental leave count for twins?", "C0HELP", "failed")
    await setting.record("t3", "When are salaries paid on a holiday?", "C0HELP")
    await setting.record("t4", "Is the board sold?", PRIVATE)
    await setting.record("t5", "Am I fired?", "D0ORION")
    await setting.record("t6", "How long is leave?", CHANNEL, "answered", verified=True, sources=[source])
    await setting.record("t7", "Who saved this?", CHANNEL)
    records, stats, book = (
        TurnRecords(setting.redis),
        Stats(setting.redis),
        AnswerBook(folder=setting.folder / "answers"),
    )
    await records.save_feedback("t6", "U1", good=False)
    await records.save_complaint("t6", "U1", reasons=["outdated"], said="It is 16 weeks.")
    saved = SavedAnswer(
        question="Who?", answer="Ann.", audience="public", owner="U1", name="Ann", confirmed=date(2026, 1, 1),
        review=date(2026, 2, 1), turn_id="t7",
    )  # fmt: skip
    book.write(saved)
    book.write(replace(saved, question="A secret?", audience="C0HELP"))
    figures = TurnFigures(
        outcome="answered", errors=(0,), tokens={"m": (1_000_000, 0, 0)}, usage={"prompt_tokens": 1_000_000}
    )
    stats.count(increments(figures), now=DUE - timedelta(days=2))
    stats.count(increments(TurnFigures(outcome="failed", reason="verification")), now=DUE - timedelta(days=9))
    await stats.write()


async def test_a_report_shows_the_week_and_no_text_of_private_places(setting: Setting) -> None:
    await fill(setting)
    assert await setting.post()
    (message,) = setting.reports_in()
    shown = json.dumps(message["blocks"], ensure_ascii=False)
    for part in (
        "100.0 %", "1,000,000 ($1.00)", "Leave (2)", "&lt;adoption&gt;", "for twins?", "It is out of date",
        "It is 16 weeks.", "Who?", "2026-02-01", "6 years ago", "not shown: 1",
    ):  # fmt: skip
        assert part in shown, part
    for part in ("board", "fired", "Who saved this?", "A secret?", "Salary"):
        assert part not in shown, part
    buttons = [block["accessory"] for block in message["blocks"] if "accessory" in block]
    assert {button["action_id"] for button in buttons} == {SAVE_ACTION}
    assert {button["value"] for button in buttons} <= {"t1", "t2", "t3"}
    assert f"/archives/{CHANNEL}/p" in shown


async def test_a_private_channel_sees_its_own_questions_in_its_report(setting: Setting) -> None:
    await fill(setting)
    assert await setting.post(PRIVATE)
    assert "Is the board sold?" in json.dumps(setting.reports_in(PRIVATE)[0]["blocks"])


async def test_a_channel_shared_with_another_organisation_sees_only_its_own_questions(setting: Setting) -> None:
    await fill(setting)
    setting.slack.server.workspace.roster.channels["C0HELP"].is_ext_shared = True
    assert await setting.post("C0HELP")
    shown = json.dumps(setting.reports_in("C0HELP")[0]["blocks"])
    assert "twins" in shown
    assert "adoption" not in shown


async def test_terminal_shows_the_report_without_markup(setting: Setting) -> None:
    await fill(setting)
    observers, viewers = observers_over(setting.redis), Viewers(team=TEAM_ID, channel=CHANNEL)
    gathering = Gathering(
        records=observers.records, stats=observers.stats, index=setting.index, prices={},
        places=Places(viewers=viewers, all_open=True),
    )  # fmt: skip
    report = await gathering.report(DUE)
    shown = report_text(report, DUE.date())
    assert "\nLeave (2)\n" in shown
    assert "• How long is parental leave for <adoption>?\n" in shown
    assert "*" not in shown


async def test_a_report_is_posted_once_under_ten_kills(setting: Setting) -> None:
    await fill(setting)
    faults = setting.slack.server.faults

    async def kill_during(method: str) -> None:
        calls = setting.slack.count(method)
        async with asyncio.TaskGroup() as group:
            worker = group.create_task(setting.post())
            await wait_until(lambda: setting.slack.count(method) > calls, f"a worker calls {method}")
            worker.cancel()
        await setting.let_claim_expire()

    for method in ("conversations.info", "chat.getPermalink", "conversations.history", "chat.postMessage") * 2:
        faults.hang(method)
        await kill_during(method)
    assert setting.reports_in() == []
    faults.hold("chat.postMessage")
    await kill_during("chat.postMessage")
    faults.release()
    await wait_until(setting.reports_in, "Slack carries out what a killed worker sent")
    assert await setting.post()
    await setting.let_claim_expire()  # as if it had been killed before it noted that
    async with asyncio.TaskGroup() as workers:
        for _ in range(4):
            workers.create_task(setting.post())
    assert len(setting.reports_in()) == 1
    assert not await setting.post()


async def test_an_archived_channel_is_logged_once_with_the_remedy(setting: Setting) -> None:
    setting.slack.server.workspace.roster.channels["C0HELP"].is_archived = True
    with capture_logs() as logs:
        assert not await setting.post("C0HELP")
        await setting.let_claim_expire()
        assert not await setting.post("C0HELP")
    (line,) = [line for line in logs if line["event"] == "report_not_posted"]
    assert (line["reason"], line["remedy"]) == (
        "C0HELP is archived",
        "Unarchive it, or put another channel into ORION_REPORT.",
    )


@pytest.mark.parametrize(
    ("now", "zone", "due"),
    [
        ("2026-11-23T08:59:00+00:00", "UTC", "2026-11-16T09:00:00+00:00"),
        ("2026-11-23T09:00:00+00:00", "UTC", "2026-11-23T09:00:00+00:00"),
        ("2026-11-23T08:00:00+00:00", "Europe/Berlin", "2026-11-23T08:00:00+00:00"),
        ("2026-11-23T00:00:00+00:00", "Asia/Tokyo", "2026-11-23T00:00:00+00:00"),
        ("2026-10-26T08:30:00+00:00", "Europe/Berlin", "2026-10-26T08:00:00+00:00"),
        ("2026-11-25T00:00:00+00:00", "No/Where", "2026-11-23T09:00:00+00:00"),
    ],
)
def test_a_report_is_due_on_monday_at_nine_in_the_time_zone(now: str, zone: str, due: str) -> None:
    assert latest_due(datetime.fromisoformat(now), zone) == datetime.fromisoformat(due)


async def test_one_workspace_out_of_reach_does_not_delay_the_others(setting: Setting) -> None:
    reports = setting.reports()

    class TwoWorkspaces(Workspaces):
        async def of(self, team: str) -> TeamBot:
            if team == "T0GONE":
                raise DeliveryFailed("token_revoked", permanent=True)
            return await reports.workspaces.of(team)

        async def teams(self) -> Sequence[str]:
            return ["T0GONE", TEAM_ID]

    async with asyncio.TaskGroup() as group:
        running = group.create_task(replace(reports, workspaces=TwoWorkspaces()).run())
        await wait_until(setting.reports_in, "the other workspace has its report")
        running.cancel()

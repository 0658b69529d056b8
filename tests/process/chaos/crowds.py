"""Many questions at once, and an Orion that is told to end while it works on many.

A crowd asks in one of the two workspaces of one Orion, under Slack's documented limits. Meanwhile one
person asks in a direct message there, and another in the other workspace.
"""

import asyncio
import os
import random
import signal
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from cryptography.fernet import Fernet
from pydantic import SecretStr

from bot.install.installations import Installation, Installations, Seal
from bot.local.model.limits import Strictness
from bot.local.model.roster import BOT_ID, BOT_USER, VISITOR, Channel
from bot.redis.server import open_redis
from tests.process.chaos.crew import Member, crew
from tests.process.chaos.ledger import Ledger, first_parts, is_answered, left_behind, read_ledger
from tests.process.chaos.member import Role
from tests.process.chaos.redis_process import redis_process
from tests.process.chaos.report import sum_ledgers
from tests.process.chaos.scene import CHANNELS, QUESTION, Asked, Scene, paced_scripts, patiently, scene
from tests.support.openai_server import ScriptedOpenAI
from tests.support.orion_running import DIRECT, settings_in, text_pages
from tests.support.redis_fleet import free_port
from tests.support.two_teams import CLIENT_ID, CLIENT_SECRET, SECRET, TwoTeams, two_teams

SLOW = "Take your time."
BUSY, QUIET = "T0ONE", "T0TWO"
SETTLES_S = 90.0
"""How long after the last answer a status or a Stop button may stand that Slack's limits kept from going."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """So many mentions over ``channels`` within ``seconds`` (0: at once), by one `serve` or a front and ``workers``.

    Others ask every ``others_s`` meanwhile, for ``others_for_s``.
    """

    mentions: int
    channels: int = 3
    seconds: float = 0.0
    workers: int = 0
    patience_s: float = 180.0
    others_s: float = 4.0
    others_for_s: float = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The result of a crowd. Waits in seconds from question to answer, by Slack's timestamps."""

    ledger: Ledger
    last_s: float
    calls: int
    refused: Counter[str]
    direct: Sequence[float]
    elsewhere: Sequence[float]
    cpu_s: float

    def summary(self) -> str:
        """In one line."""
        refused = self.refused.total()
        return (
            f"the last answer {self.last_s:.1f} s later; {refused} of {self.calls} calls refused "
            f"({refused / max(1, self.calls):.1%}); waits: direct message {_spread(self.direct)}, "
            f"other workspace {_spread(self.elsewhere)}; {self.cpu_s:.1f} s of CPU"
        )

    def wrong(self) -> tuple[str, ...]:
        """The promises about limits that were broken."""
        promises = {
            f"calls refused: {dict(self.refused)}": self.refused.total() < 0.05 * self.calls,
            f"direct message waited {_spread(self.direct)}": max(self.direct, default=0) < DIRECT_S,
            f"other workspace waited {_spread(self.elsewhere)}": max(self.elsewhere, default=0) < ELSEWHERE_S,
        }
        return tuple(what for what, held in promises.items() if not held)


DIRECT_S = 2.0
ELSEWHERE_S = 1.0


def _spread(waits: Sequence[float]) -> str:
    return f"{median(waits):.1f} s (at most {max(waits):.1f})" if waits else "none"


async def crowd(folder: Path, dice: random.Random, what: Crowd) -> Found:
    """Ask, wait until all is answered and nothing is left on show, and read the books of both workspaces."""
    async with (
        redis_process() as redis,
        ScriptedOpenAI(**paced_scripts(dice, 0.1, 0.3)) as model,
        two_workspaces(folder, redis.url, model, dice) as (busy, quiet, slack),
    ):
        channels = _channels(busy, what.channels)
        started = await _open(busy, slack, what.workers)
        for at in (busy, quiet):  # lookups of people and channels are not measured here
            at.ask(DIRECT)
            at.ask(CHANNELS[0])
        await patiently(lambda: _all_answered(busy) and _all_answered(quiet), 30)
        async with asyncio.TaskGroup() as group:
            others = group.create_task(_others(busy, quiet, what))
            for _ in range(what.mentions):
                busy.ask(dice.choice(channels))
                await asyncio.sleep(what.seconds / what.mentions)
            began = asyncio.get_running_loop().time()
            await patiently(lambda: _all_answered(busy), what.patience_s)
            last_s = asyncio.get_running_loop().time() - began
        direct, elsewhere = others.result()
        await patiently(lambda: not left_behind(busy.workspace, busy.asked), SETTLES_S)
        calls = [call for at in (busy, quiet) for call in at.workspace.calls]
        return Found(
            ledger=sum_ledgers([await read_ledger(busy), await read_ledger(quiet)]), last_s=last_s, calls=len(calls),
            refused=Counter(call.method for call in calls if call.status == 429), direct=direct, elsewhere=elsewhere,
            cpu_s=sum(cpu_s(member.process.pid) for member in started),
        )  # fmt: skip


def _channels(at: Scene, number: int) -> Sequence[str]:
    """So many channels of the workspace, made where there are too few."""
    known = at.workspace.workspace.roster.channels
    for made in range(number - len(CHANNELS)):
        known[f"C0CROWD{made}"] = Channel(id=f"C0CROWD{made}", name=f"crowd-{made}", members={VISITOR, BOT_USER})
    return [channel for channel in known if channel.startswith("C")][:number]


async def _others(busy: Scene, quiet: Scene, what: Crowd) -> tuple[list[float], list[float]]:
    """Ask by direct message and in the other workspace, again and again."""
    until = asyncio.get_running_loop().time() + max(what.seconds, what.others_for_s)
    asked: list[tuple[Scene, Asked]] = []
    while asyncio.get_running_loop().time() < until:
        await asyncio.sleep(what.others_s)
        asked += [(busy, busy.ask(DIRECT)), (quiet, quiet.ask(CHANNELS[0]))]
    await patiently(lambda: all(is_answered(at.workspace, one) for at, one in asked), what.patience_s)
    posts = [(at, one, first_parts(at.workspace, one)) for at, one in asked]
    waits = [(at, float(found[0]["ts"]) - float(one.ts) if found else float("inf")) for at, one, found in posts]
    return [s for at, s in waits if at is busy], [s for at, s in waits if at is quiet]


def _all_answered(at: Scene) -> bool:
    return all(is_answered(at.workspace, asked) for asked in at.asked)


def cpu_s(pid: int | None) -> float:
    """The processor time of a process, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def two_workspaces(
    folder: Path, redis_url: str, model: ScriptedOpenAI, dice: random.Random
) -> AsyncIterator[tuple[Scene, Scene, TwoTeams]]:
    """The busy one and the other, both installed into one Orion."""
    key = Fernet.generate_key().decode()
    async with two_teams(Strictness()) as slack:
        settings = settings_in(folder / "home", redis_url).model_copy(
            update={
                "slack_api_url": slack.api_url,
                "slack_client_id": CLIENT_ID,
                "slack_client_secret": SecretStr(CLIENT_SECRET),
                "slack_signing_secret": SecretStr(SECRET),
                "encryption_keys": SecretStr(key),
                "allow_teams": frozenset({"*"}),
                "docs": (text_pages(),),
                **model.settings,
            }
        )
        async with open_redis(settings) as redis:
            for team in (BUSY, QUIET):
                token = slack.grants.issue(team)["access_token"]
                installed = Installation(team=team, bot_token=token, bot_user=BOT_USER, bot_id=BOT_ID)
                await Installations(redis, Seal([key])).save(installed)
        with crew(folder / "logs") as hands:
            busy, quiet = (
                Scene(workspace=slack.workspaces[team], settings=settings, crew=hands, dice=dice)
                for team in (BUSY, QUIET)
            )
            yield busy, quiet, slack


async def _open(at: Scene, slack: TwoTeams, workers: int) -> list[Member]:
    """A front and its workers, or one process that does both. No process is killed here, so leases may be long."""
    port = free_port()
    slack.events_at(f"http://127.0.0.1:{port}/slack/events")
    role = Role(name="serve", port=port, concurrency=0 if workers else 50, lease_s=10)
    started = [at.crew.start(role, at.settings)]
    started += [at.crew.start(Role(name=f"worker{number}", lease_s=10), at.settings) for number in range(workers)]
    for member in started:
        await member.ready()
    return started


async def drain(
    folder: Path, dice: random.Random, *, turns: int, slow: int, grace_s: float = 5.0
) -> tuple[Ledger, int | None, int]:
    """SIGTERM with all turns in flight, of which ``slow`` outlast the grace; then another Orion starts.

    Return the exit code, and how many questions were left to the other one.
    """
    ended = asyncio.Event()
    pace = paced_scripts(
        dice, grace_s / 5, grace_s / 3, lambda request: SLOW in request.rpartition(QUESTION)[2] and not ended.is_set()
    )
    async with redis_process() as redis, ScriptedOpenAI(**pace) as model, scene(folder, redis.url, model, dice) as at:
        role = Role(name="serve", socket=True, drain_s=grace_s, lease_s=10)
        first = at.crew.start(role, at.settings)
        await patiently(lambda: at.workspace.connections == 1, 60)
        for number in range(turns):
            at.ask(dice.choice(CHANNELS), text=f"{QUESTION} {SLOW}" if number < slow else QUESTION)
        await patiently(lambda: model.phases().count("write") >= turns, 60)
        first.signal(signal.SIGTERM)
        code = await first.wait_for_exit()
        ended.set()
        given_back = sum(not is_answered(at.workspace, asked) for asked in at.asked)
        second = at.crew.start(role, at.settings)
        await patiently(lambda: _all_answered(at), 60)
        second.signal(signal.SIGTERM)
        await second.wait_for_exit()
        return await read_ledger(at), code, given_back

"""Two Orions of two workspaces share one Redis: each answers its own questions from its own documents."""

from contextlib import AsyncExitStack
from pathlib import Path

from redis.asyncio import Redis

from bot.cli.local import settings_for
from bot.install.identity import identify, list_orions
from bot.local.model.roster import VISITOR
from bot.local.server import LocalWorkspace
from tests.support.orion_running import CHANNEL, MENTION, answers, running, settings_in, text_of
from tests.support.waiting import wait_until

QUESTIONS = 5  # 50 of each were asked on 2026-11-27
LIMITS = {"T0ONE": "600 requests", "T0TWO": "77 requests"}


async def test_two_orions_on_one_redis_do_not_get_each_others_questions(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with AsyncExitStack() as stack:
        workspaces = {}
        for team, limit in LIMITS.items():
            docs = tmp_path / team
            docs.mkdir()
            (docs / "limits.md").write_text(f"# Limits\n\nEach API key may send {limit} per minute.\n")
            workspace = workspaces[team] = await stack.enter_async_context(LocalWorkspace(docs=(docs,), team=team))
            settings = settings_for(settings_in(tmp_path / f"home-{team}", redis_url), workspace)
            identity = await identify(settings)
            assert identity is not None
            await stack.enter_async_context(running(settings, docs=docs, inhabited=workspace, identity=identity))
        asked = {
            team: [
                workspace.post(VISITOR, CHANNEL, f"{MENTION} How many requests per minute may an API key send? ({n})")
                for n in range(QUESTIONS)
            ]
            for team, workspace in workspaces.items()
        }
        for team, workspace in workspaces.items():
            for ts in asked[team]:
                await wait_until(lambda ts=ts, workspace=workspace: answers(workspace, ts, ts), f"{ts} is answered", 90)  # type: ignore[misc]
                (answer,) = answers(workspace, ts, ts)
                assert LIMITS[team] in text_of(answer)
        assert [one.team for one in await list_orions(redis_client)] == list(LIMITS)


async def test_a_claim_of_another_teams_question_is_refused(
    tmp_path: Path, redis_url: str, redis_client: Redis
) -> None:
    async with running(settings_in(tmp_path, redis_url), prefix="orion") as setting:
        mailbox = setting.orion.mailbox
        await mailbox.enqueue("T0OTHER:C1:1.000001", '{"text": "x"}', event_ids=["evt:1"])
        ready = mailbox.key("T0OTHER:C1:1.000001", "ready", "T0OTHER")

        async def is_refused() -> bool:
            return (
                await redis_client.zcard(ready) == 1
                and await redis_client.exists("orion:{0}:head:T0OTHER:C1:1.000001") == 1
            )

        await wait_until(is_refused, "the claim was given back")
        assert [one.body for one in await mailbox.list_messages("T0OTHER:C1:1.000001")] == ['{"text": "x"}']

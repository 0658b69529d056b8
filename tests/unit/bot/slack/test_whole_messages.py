"""All words of a message and its thread are in the model's prompt, with names for ids."""

from pathlib import Path

from bot.local.model.messages import LocalMessage
from bot.local.model.roster import VISITOR
from tests.support.openai_server import RESPOND, ScriptedOpenAI, says
from tests.support.orion_running import CHANNEL, MENTION, running, settings_in

TABLE = {"type": "table", "rows": [[{"type": "raw_text", "text": "Plan Zeta"}, {"type": "raw_text", "text": "12 €"}]]}
ALERT = [{"type": "section", "text": {"type": "mrkdwn", "text": "Disk of *db-7* is full"}}]


async def test_tables_alerts_and_names_reach_the_model(redis_url: str, tmp_path: Path) -> None:
    async with (
        ScriptedOpenAI(decisions=[RESPOND], drafts=[says("I can't tell.")]) as server,
        running(settings_in(tmp_path, redis_url, openai_base_url=server.url, model="m")) as setting,
    ):
        workspace = setting.workspace.workspace
        root = setting.workspace.post_as_other_app(CHANNEL, "New alert")
        workspace.log.visible(CHANNEL, root).blocks = ALERT
        text = f"{MENTION} does <@U0ONCALL> know the plan in <#C0GENERAL>?"
        asked = LocalMessage(channel=CHANNEL, ts=workspace.log.next_ts(), user=VISITOR, text=text, thread_ts=root)
        asked.attachments, asked.client_msg_id = [{"blocks": [TABLE], "fallback": "[no preview available]"}], "1"
        workspace.add_message(asked)
        await server.wait_for_requests(1)
        prompt = str(server.requests[0]["messages"])
        for words in ("Plan Zeta", "12 €", "db-7", "does @On-call engineer know the plan in #general?"):
            assert words in prompt
        assert "no preview" not in prompt
        assert "<@U0" not in prompt

"""Each form of a message in a running Orion: its words are in the prompt of the model."""

import itertools
import json
from pathlib import Path

from pydantic import SecretStr

from bot.local.model.messages import LocalMessage
from bot.local.model.roster import BOT_USER, VISITOR, Channel
from tests.support.message_forms import FORMS, ORION
from tests.support.openai_server import ScriptedOpenAI, calls
from tests.support.orion_running import Setting, running, settings_in


async def test_the_words_of_every_form_reach_the_model(tmp_path: Path, redis_url: str) -> None:
    async with ScriptedOpenAI(decisions=itertools.repeat(calls(("complete", {"summary": "Noted."})))) as server:
        model = {"openai_base_url": server.url, "openai_api_key": SecretStr("k"), "model": "m", "embed_model": "off"}
        async with running(settings_in(tmp_path, redis_url, **model)) as at:
            forms = [(message, words) for message, words in FORMS if any(map(str.isalpha, words))]
            said = [say(at, f"D0{n}", message) for n, (message, _) in enumerate(forms)]
            for n, ts in enumerate(said):
                await at.answer_to(ts, channel=f"D0{n}")
    prompts = "\n".join(part["content"] for request in server.requests for part in request["messages"])
    for message, words in forms:
        assert all(line.strip() in prompts for line in words.replace("<!subteam^S1>", "").splitlines()), message


def say(at: Setting, chat: str, message: dict[str, object]) -> str:
    """Send the message to Orion as a direct message: Slack takes one post a second in each; return its ``ts``."""
    here = at.workspace.workspace
    here.roster.channels[chat] = Channel(id=chat, name="", kind="im", members={VISITOR, BOT_USER})
    fields = {"text": "", "thread_ts": "", **json.loads(json.dumps(message).replace(ORION, BOT_USER))}
    sent = LocalMessage(channel=chat, ts=here.log.next_ts(), user=VISITOR, **fields)
    here.add_message(sent)
    return sent.ts

"""Each form of a message in a running Orion: its words are in the prompt of the model."""

import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent.texts.catalogue import texts
from bot.local.model.messages import LocalMessage
from bot.local.model.roster import BOT_USER, VISITOR, Channel
from tests.support.local_slack import CHANNEL
from tests.support.message_forms import FORMS, ORION
from tests.support.openai_server import ScriptedOpenAI, calls
from tests.support.orion_running import MENTION, Setting, running, settings_in, text_of


async def test_the_words_of_every_form_reach_the_model(tmp_path: Path, redis_url: str) -> None:
    async with (
        ScriptedOpenAI(decisions=itertools.repeat(calls(("complete", {"summary": "Noted."})))) as server,
        running(settings_in(tmp_path, redis_url, **server.settings, embed_model="off")) as at,
    ):
        forms = [(message, words) for message, words in FORMS if any(map(str.isalpha, words))]
        said = [say(at, f"D0{n}", message) for n, (message, _) in enumerate(forms)]
        for n, ts in enumerate(said):
            await at.answer_to(ts, channel=f"D0{n}")
    prompts = "\n".join(part["content"] for request in server.requests for part in request["messages"])
    for message, words in forms:
        assert all(line.strip() in prompts for line in words.replace("<!subteam^S1>", "").splitlines()), message


@pytest.mark.parametrize("channel", [CHANNEL, "D0ORION"])
async def test_a_message_that_a_question_links_to_is_read(channel: str, tmp_path: Path, redis_url: str) -> None:
    async with (
        ScriptedOpenAI(decisions=[calls(("complete", {"summary": "Noted."}))]) as server,
        running(settings_in(tmp_path, redis_url, **server.settings, embed_model="off")) as at,
    ):
        link = "https://acme.slack.com/archives/C9/p1699999999000500"
        ts, here = at.ask(f"{MENTION} is this right? <{link}>", channel=channel), at.workspace.workspace
        await here.feed.wait_for(lambda: all(event.acknowledged for event in here.deliveries.log))
        message = here.log.visible(channel, ts)
        before = here.log.payload_of(message)
        message.attachments = [
            {"is_msg_unfurl": True, "from_url": link, "author_name": "Ben", "text": "The walrus snores."}
        ]
        here.publish_change(message, before)
        await at.answer_to(ts, channel=channel)
    assert "Ben: The walrus snores." in server.requests[-1]["messages"][-1]["content"]


CANVAS = {"mode": "quip", "filetype": "quip", "mimetype": "application/vnd.slack-docs", "pretty_type": "Canvas"}
LIST = {"mode": "list", "filetype": "list", "mimetype": "application/vnd.slack-list"}
CLIP = {"subtype": "slack_audio", "mimetype": "audio/mp4", "filetype": "m4a", "size": 30_000_000}
NOTES = b"<h1>Huddle notes</h1><p><strong>10:00</strong> The walrus ships on Monday.</p>"
ITEMS = b"Name,Assignee\r\nWalrus tank,ann@example.org\r\n"
HEARD = b"WEBVTT\n\n1\n00:00:00.000 --> 00:00:02.500\n<v Dana>Paint the walrus blue.\n"


async def test_the_words_of_slacks_own_files_reach_the_model(tmp_path: Path, redis_url: str) -> None:
    async with (
        ScriptedOpenAI(decisions=itertools.repeat(calls(("complete", {"summary": "Noted."})))) as server,
        running(settings_in(tmp_path, redis_url, **server.settings, embed_model="off")) as at,
    ):
        here = at.workspace

        def add(name: str, data: bytes, told: Mapping[str, object], field: str = "") -> str:
            """Add a file of Slack's own kind, whose words are in ``field``."""
            file_id = here.add_file(VISITOR, name, data, "application/octet-stream")
            payload = here.workspace.files[file_id].payload
            payload.update({**told, **({field: payload["url_private"]} if field else {})})
            return file_id

        begin = {"status": "complete", "preview": {"content": "The walrus snores.", "has_more": True}}
        first = [
            add("Huddle notes", NOTES, CANVAS),
            add("Tasks", ITEMS, LIST, "list_csv_download_url"),
            add("clip.m4a", HEARD, CLIP, "vtt"),
            add("voice.m4a", b"", CLIP | {"transcription": begin}),
        ]
        unread = [add("mute.m4a", b"", CLIP | {"transcription": {"status": "processing"}}), add("Empty", b"", LIST)]
        said = [here.post(VISITOR, CHANNEL, f"{MENTION} what is it?", files=files) for files in (first, unread)]
        answer, sorry = [text_of(await at.answer_to(ts, channel=CHANNEL)) for ts in said]
    prompt = "\n".join(part["content"] for request in server.requests for part in request["messages"])
    for words in ("The walrus ships on Monday.", "Walrus tank", "Paint the walrus blue.", "The walrus snores."):
        assert words in prompt
    assert texts("en")["file_cut"].format(name="voice.m4a") in answer
    assert texts("en")["file_clip"].format(name="mute.m4a") in sorry
    assert texts("en")["file_form"].format(name="Empty") in sorry


def say(at: Setting, chat: str, message: dict[str, object]) -> str:
    """Send the message to Orion as a direct message: Slack takes one post a second in each; return its ``ts``."""
    here = at.workspace.workspace
    here.roster.channels[chat] = Channel(id=chat, name="", kind="im", members={VISITOR, BOT_USER})
    fields = {"text": "", "thread_ts": "", **json.loads(json.dumps(message).replace(ORION, BOT_USER))}
    sent = LocalMessage(channel=chat, ts=here.log.next_ts(), user=VISITOR, **fields)
    here.add_message(sent)
    return sent.ts

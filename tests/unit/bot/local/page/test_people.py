import aiohttp
import pytest

from bot.local.model.errors import ApiError
from bot.local.page.people import PersonActions
from bot.local.server import LocalWorkspace
from tests.support.local_echo import HELP, MENTION, YOU, idle


def test_an_edit_event_has_both_versions_and_is_not_a_new_mention() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    ts = people.post(YOU, HELP, f"{MENTION} hello")
    people.edit(HELP, ts, f"{MENTION} goodbye")
    event = workspace.deliveries.log[-1].event
    assert (event["subtype"], event["hidden"], event["channel"]) == ("message_changed", True, HELP)
    assert event["message"]["edited"]["user"] == YOU
    assert event["message"]["client_msg_id"] == event["previous_message"]["client_msg_id"]
    assert "user" not in event
    assert "thread_ts" not in event
    assert len(workspace.deliveries.log) == 3
    with pytest.raises(ApiError):
        people.edit(HELP, "1.000001", "x")


def test_a_deleted_question_with_replies_leaves_a_tombstone() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    ts = people.post(YOU, HELP, "question")
    people.post("U0RELEASE", HELP, "reply", ts)
    people.delete(HELP, ts)
    event = workspace.deliveries.log[-1].event
    assert (event["subtype"], event["message"]["subtype"]) == ("message_changed", "tombstone")
    lonely = people.post(YOU, HELP, "alone")
    people.delete(HELP, lonely)
    assert workspace.deliveries.log[-1].event["deleted_ts"] == lonely


def test_a_shared_file_is_in_the_message_event_but_not_in_the_mention() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    file_id = people.add_file(YOU, "notes.txt", b"remember")
    people.post(YOU, HELP, f"{MENTION} read this", files=[file_id])
    mention, message = (one.event for one in workspace.deliveries.log)
    assert "files" not in mention
    assert message["subtype"] == "file_share"
    assert message["files"][0]["id"] == file_id


async def test_private_files_need_the_bots_token() -> None:
    async with LocalWorkspace() as workspace, aiohttp.ClientSession() as session:
        file_id = workspace.add_file(YOU, "notes.txt", b"remember")
        url = workspace.workspace.files[file_id].payload["url_private_download"]
        headers = {"Authorization": f"Bearer {workspace.bot_token}"}
        async with session.get(url, headers=headers) as answer:
            assert (answer.content_type, await answer.read()) == ("text/plain", b"remember")
        async with session.get(url) as answer:
            assert answer.content_type == "text/html"
        async with session.get(url.replace(file_id, "F404"), headers=headers) as answer:
            assert answer.status == 404


def test_events_from_channels_without_the_app_are_not_sent() -> None:
    workspace = idle()
    workspace.roster.channels[HELP].members.discard("U0ORION")
    PersonActions(workspace).post(YOU, HELP, f"{MENTION} hello")
    assert workspace.deliveries.log == []

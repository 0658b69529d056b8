import aiohttp
import pytest

from bot.local.model.errors import ApiError
from bot.local.page.people import PersonActions
from bot.local.server import LocalWorkspace
from tests.support.local_echo import HELP, MENTION, YOU, call, echoing, idle, running


def test_an_edit_tells_both_versions_and_no_new_mention() -> None:
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


def test_deleted_question_with_replies_leaves_a_tombstone() -> None:
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


def test_shared_file_comes_with_the_message_but_not_with_the_mention() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    file_id = people.add_file(YOU, "notes.txt", b"remember")
    people.post(YOU, HELP, f"{MENTION} read this", files=[file_id])
    mention, message = (one.event for one in workspace.deliveries.log)
    assert "files" not in mention
    assert message["subtype"] == "file_share"
    assert message["files"][0]["id"] == file_id


async def test_private_files_need_the_bots_token() -> None:
    async with running(LocalWorkspace()) as workspace, aiohttp.ClientSession() as session:
        file_id = workspace.add_file(YOU, "notes.txt", b"remember")
        url = workspace.workspace.files[file_id].payload["url_private_download"]
        headers = {"Authorization": f"Bearer {workspace.bot_token}"}
        async with session.get(url, headers=headers) as answer:
            assert (answer.content_type, await answer.read()) == ("text/plain", b"remember")
        async with session.get(url) as answer:
            assert answer.content_type == "text/html"
        async with session.get(url.replace(file_id, "F404"), headers=headers) as answer:
            assert answer.status == 404


async def test_click_opens_a_modal_that_is_submitted() -> None:
    async with running(LocalWorkspace()) as workspace, echoing(workspace) as echo:
        ts = workspace.post(YOU, HELP, f"{MENTION} hello")
        (answer,) = await workspace.wait_for(lambda: workspace.messages(HELP, ts)[1:])
        await workspace.click(HELP, answer["ts"], "open")
        (opened,) = await workspace.wait_for(lambda: list(workspace.workspace.views.open.values()))
        body = echo.bodies[0]
        assert body["container"] == {
            "type": "message",
            "message_ts": answer["ts"],
            "channel_id": HELP,
            "is_ephemeral": False,
            "thread_ts": ts,
        }
        assert body["actions"][0]["action_id"] == "open"
        assert body["message"]["metadata"]["event_payload"]["turn_id"] == "turn-1"
        values = {"name": {"value": {"type": "plain_text_input", "value": ""}}}
        assert await workspace.submit(opened.view["id"], values) == {"name": "Please give a name."}
        values["name"]["value"]["value"] = "Ada"
        assert await workspace.submit(opened.view["id"], values) == {}
        assert echo.names == ["Ada"]
        assert not workspace.workspace.views.open
        with pytest.raises(ApiError):
            await workspace.submit("V404")


async def test_the_home_is_opened_published_and_clicked() -> None:
    async with running(LocalWorkspace()) as workspace, echoing(workspace) as echo:
        workspace.open_home()
        home = await workspace.wait_for(lambda: workspace.workspace.views.homes.get(YOU))
        assert echo.events[0]["tab"] == "home"
        blocks = [
            {
                "type": "actions",
                "elements": [{"type": "button", "action_id": "open", "text": {"type": "plain_text", "text": "Go"}}],
            }
        ]
        call(workspace.workspace, "views.publish", user_id=YOU, view={"type": "home", "blocks": blocks})
        await workspace.click_view(home["id"], "open")
        await workspace.wait_for(lambda: workspace.workspace.views.open)
        assert echo.bodies[0]["container"] == {"type": "view", "view_id": home["id"]}
        (view_id,) = workspace.workspace.views.open
        workspace.workspace.views.close(view_id)
        assert not workspace.workspace.views.open


def test_person_reacts_and_takes_it_back() -> None:
    workspace = idle()
    people = PersonActions(workspace)
    ts = people.post(YOU, HELP, "hello")
    message = workspace.log.get(HELP, ts)
    assert message is not None
    people.react(YOU, HELP, ts, "+1")
    assert message.reactions == {"+1": [YOU]}
    people.react(YOU, HELP, ts, "+1")
    assert message.reactions == {}
    with pytest.raises(ApiError):
        people.post(YOU, "C404", "x")


def test_joining_is_a_message_with_a_subtype() -> None:
    workspace = idle()
    workspace.roster.channels[HELP].members.discard("U0RELEASE")
    PersonActions(workspace).join("U0RELEASE", HELP)
    message, joined = (one.event for one in workspace.deliveries.log[-2:])
    assert (message["subtype"], joined["type"]) == ("channel_join", "member_joined_channel")
    assert "U0RELEASE" in workspace.roster.channels[HELP].members


def test_an_externally_shared_channel_says_so() -> None:
    workspace = idle()
    workspace.roster.channels[HELP].is_ext_shared = True
    assert call(workspace, "conversations.info", channel=HELP)["channel"]["is_ext_shared"] is True


async def test_waiting_for_what_never_comes_times_out() -> None:
    with pytest.raises(TimeoutError):
        await LocalWorkspace().wait_for(lambda: False, 0.01)


def test_events_from_places_the_app_is_not_in_stay_unsent() -> None:
    workspace = idle()
    workspace.roster.channels[HELP].members.discard("U0ORION")
    PersonActions(workspace).post(YOU, HELP, f"{MENTION} hello")
    assert workspace.deliveries.log == []

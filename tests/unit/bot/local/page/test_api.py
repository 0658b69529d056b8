from typing import Any

import aiohttp

from bot.local.model.limits import LENIENT
from bot.local.model.roster import Json
from bot.local.server import LocalWorkspace
from tests.support.local_echo import HELP, MENTION, YOU, call, echoing, modal

RECORD = {"turn_id": "turn-1", "outcome": "answered"}


async def record_of(turn_id: str) -> Json | None:
    return RECORD if turn_id == "turn-1" else None


def workspace_with_page() -> LocalWorkspace:
    return LocalWorkspace(turn_record=record_of, examples=["How?"], strictness=LENIENT)


async def act(
    session: aiohttp.ClientSession, workspace: LocalWorkspace, name: str, body: Any, **headers: str
) -> tuple[int, Any]:
    async with session.post(f"{workspace.url}/ui/{name}", json=body, headers=headers) as answer:
        text = await answer.text()
        return answer.status, (await answer.json() if answer.content_type == "application/json" else text)


async def test_the_page_and_its_parts_are_served_from_here_only() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        for path in ("/", "/archives/C0HELP/p1"):
            async with session.get(workspace.url + path) as answer:
                page = await answer.text()
                assert answer.status == 200
                assert "http" not in page.replace("http-equiv", "")
                assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        statuses = []
        for name in ("app.js", "theme.css", "icon.svg", "index.html", "none.js", "..%2Fserver.py"):
            async with session.get(f"{workspace.url}/static/{name}") as answer:
                statuses.append(answer.status)
        assert statuses == [200, 200, 200, 404, 404, 404]


async def test_another_site_cannot_act_through_the_page() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        message = {"channel": HELP, "text": "hello"}
        evil: list[dict[str, str]] = [
            {"Origin": "http://evil.example"},
            {"Host": "evil.example"},
            {"Sec-Fetch-Site": "cross-site"},
            {"Origin": "null"},
        ]
        for headers in evil:
            assert (await act(session, workspace, "post", message, **headers))[0] == 403
        async with session.post(
            f"{workspace.url}/ui/post", data="{}", headers={"Content-Type": "text/plain"}
        ) as answer:
            assert answer.status == 415
        async with session.get(f"{workspace.url}/ui/live", headers={"Origin": "http://evil.example"}) as answer:
            assert answer.status == 403
        for path in ("/", "/docs/a.md", "/static/app.js"):
            async with session.get(workspace.url + path, headers={"Host": "evil.example"}) as answer:
                assert answer.status == 403
        async with session.post(f"{workspace.api_url}auth.test", headers={"Host": "slack.local"}) as answer:
            assert answer.status == 200
        assert workspace.messages(HELP) == []
        assert (await act(session, workspace, "post", message, Origin=workspace.url))[0] == 200


async def test_boot_returns_the_whole_state_of_the_workspace() -> None:
    async with workspace_with_page() as workspace, echoing(workspace), aiohttp.ClientSession() as session:
        async with session.get(f"{workspace.url}/ui/boot") as answer:
            boot = await answer.json()
        assert [one["name"] for one in boot["channels"]] == ["general", "help", "engineering", "Orion"]
        assert (boot["me"], boot["bot"], boot["examples"], boot["connected"]) == (YOU, "U0ORION", ["How?"], True)


async def test_a_person_posts_edits_reacts_and_deletes_only_what_is_theirs() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        status, posted = await act(session, workspace, "post", {"channel": HELP, "text": " @Orion <hello> "})
        assert status == 200
        where = {"channel": HELP, "ts": posted["ts"]}
        assert workspace.messages(HELP)[0]["text"] == f"{MENTION} &lt;hello&gt;"
        await act(session, workspace, "edit", {**where, "text": "@Orion bye"})
        assert workspace.messages(HELP)[0]["text"] == f"{MENTION} bye"
        await act(session, workspace, "react", {**where, "name": "+1"})
        assert workspace.messages(HELP)[0]["reactions"][0]["users"] == [YOU]
        theirs = {"channel": HELP, "ts": workspace.post("U0RELEASE", HELP, "mine")}
        for name, body, error in (
            ("edit", {**theirs, "text": "x"}, "cant_update_message"),
            ("delete", theirs, "cant_update_message"),
            ("edit", {**where, "text": " "}, "no_text"),
            ("post", {"channel": HELP, "text": ""}, "no_text"),
            ("post", {"channel": "C404", "text": "x"}, "channel_not_found"),
            ("post", {"channel": HELP}, "bad_request"),
            ("post", [], "bad_request"),
        ):
            assert await act(session, workspace, name, body) == (400, {"ok": False, "error": error})
        await act(session, workspace, "delete", where)
        assert [one["text"] for one in workspace.messages(HELP)] == ["mine"]


async def test_messages_come_with_html_and_ephemerals_for_their_reader() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        root = workspace.post(YOU, HELP, "*hi*")
        workspace.post("U0RELEASE", HELP, "reply", root)
        for user in (YOU, "U0RELEASE"):
            call(workspace.workspace, "chat.postEphemeral", channel=HELP, user=user, text=f"for {user}", thread_ts=root)
            call(workspace.workspace, "chat.postEphemeral", channel=HELP, user=user, text=f"to {user}")
        async with session.get(f"{workspace.url}/ui/messages?channel={HELP}") as answer:
            timeline = (await answer.json())["messages"]
        assert [one["text"] for one in timeline] == ["*hi*", f"to {YOU}"]
        assert timeline[0]["html"] == '<div class="line"><strong>hi</strong></div>'
        assert timeline[0]["reply_count"] == 1
        async with session.get(f"{workspace.url}/ui/messages?channel={HELP}&thread_ts={root}") as answer:
            thread = (await answer.json())["messages"]
        assert [one["text"] for one in thread] == ["*hi*", "reply", f"for {YOU}"]


async def test_a_click_without_a_connected_app_is_explained() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        view = workspace.workspace.views.show(YOU, modal())
        assert await act(session, workspace, "submit", {"view_id": view["id"]}) == (
            504,
            {"ok": False, "error": "connection_failed"},
        )


async def updates(socket: aiohttp.ClientWebSocketResponse, count: int) -> list[Json]:
    return [await socket.receive_json(timeout=20) for _ in range(count)]


async def test_a_page_that_reconnects_gets_what_it_missed() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        feed = workspace.workspace.feed
        live = f"{workspace.url}/ui/live?run={feed.run}&since="
        async with session.ws_connect(f"{live}0") as socket:
            root = workspace.post(YOU, HELP, "one")
            (seen,) = await updates(socket, 1)
            assert (seen["type"], seen["message"]["text"], seen["seq"]) == ("message", "one", 1)
        workspace.post(YOU, HELP, "two", root)
        gone = workspace.post(YOU, HELP, "three")
        workspace.delete(HELP, gone)
        async with session.ws_connect(f"{live}1") as socket:
            two, three, deleted = await updates(socket, 3)
            assert (two["message"]["text"], two["parent"]["reply_count"]) == ("two", 1)
            assert three == {"type": "none", "seq": 3}
            assert (deleted["type"], deleted["ts"]) == ("message_deleted", gone)
            workspace.post(YOU, HELP, "four")
            assert (await updates(socket, 1))[0]["message"]["text"] == "four"


async def test_the_page_learns_when_the_app_connects_and_disconnects() -> None:
    async with workspace_with_page() as workspace, aiohttp.ClientSession() as session:
        address = f"{workspace.url}/ui/live?run={workspace.workspace.feed.run}&since=0"
        async with session.ws_connect(address) as socket:
            async with echoing(workspace):
                assert (await updates(socket, 1))[0]["connected"] is True
            assert (await updates(socket, 1))[0]["connected"] is False


async def test_stopping_closes_the_pages() -> None:
    async with aiohttp.ClientSession() as session:
        workspace = workspace_with_page()
        async with workspace:
            socket = await session.ws_connect(f"{workspace.url}/ui/live?run={workspace.workspace.feed.run}&since=0")
            await workspace.wait_for(lambda: workspace.workspace.feed._watchers)
        assert (await socket.receive()).type in (aiohttp.WSMsgType.CLOSE, aiohttp.WSMsgType.CLOSED)

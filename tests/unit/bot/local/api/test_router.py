import aiohttp
import pytest
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient

from bot.local.model.limits import LENIENT
from bot.local.server import LocalWorkspace
from tests.support.local_echo import HELP, client_of


async def refusal(client: AsyncWebClient, method: str, **arguments: object) -> SlackApiError:
    with pytest.raises(SlackApiError) as caught:
        await client.api_call(method, json=dict(arguments))
    return caught.value


async def test_tokens_are_requested_by_slacks_names() -> None:
    async with LocalWorkspace() as workspace, aiohttp.ClientSession() as session:
        async with session.post(f"{workspace.api_url}auth.test") as answer:
            assert (answer.status, await answer.json()) == (200, {"ok": False, "error": "not_authed"})
        wrong = client_of(workspace, "xoxb-wrong")
        assert (await refusal(wrong, "auth.test")).response["error"] == "invalid_auth"
        bot = client_of(workspace)
        assert (await refusal(bot, "apps.connections.open")).response["error"] == "not_allowed_token_type"
        app = client_of(workspace, workspace.app_token)
        assert (await refusal(app, "chat.postMessage")).response["error"] == "not_allowed_token_type"
        assert (await refusal(bot, "no.such")).response["error"] == "unknown_method"
        assert (await bot.auth_test())["bot_id"] == "B0ORION"


async def test_the_token_may_be_an_argument_and_scopes_are_returned() -> None:
    async with LocalWorkspace() as workspace, aiohttp.ClientSession() as session:
        url = f"{workspace.api_url}auth.test"
        for request in (
            session.post(url, data={"token": workspace.bot_token}),
            session.get(f"{url}?token={workspace.bot_token}"),
        ):
            async with request as answer:
                assert (await answer.json())["ok"] is True
                assert "chat:write" in answer.headers["X-OAuth-Scopes"].split(",")
        assert all("token" not in one.arguments for one in workspace.calls)


async def test_a_missing_scope_is_reported() -> None:
    async with LocalWorkspace(scopes=("chat:write",)) as workspace:
        error = await refusal(client_of(workspace), "users.info", user="U0YOU")
        assert error.response["error"] == "missing_scope"
        assert (error.response["needed"], error.response["provided"]) == ("users:read", "chat:write")


async def test_bodies_other_than_json_objects_are_refused() -> None:
    async with LocalWorkspace() as workspace, aiohttp.ClientSession() as session:
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {workspace.bot_token}"}
        answers = []
        for body in ("{", "[]", ""):
            async with session.post(f"{workspace.api_url}auth.test", data=body, headers=headers) as answer:
                answers.append((await answer.json()).get("error"))
        assert answers == ["invalid_json", "json_not_object", None]


async def test_forms_query_strings_and_json_are_read_alike() -> None:
    async with LocalWorkspace(strictness=LENIENT) as workspace, aiohttp.ClientSession() as session:
        url, headers = f"{workspace.api_url}chat.postMessage", {"Authorization": f"Bearer {workspace.bot_token}"}
        arguments = {"channel": HELP, "text": "hello", "blocks": '[{"type": "divider"}]'}
        for request in (
            session.post(url, data=arguments, headers=headers),
            session.post(url, params=arguments, headers=headers),
            session.post(url, json=arguments, headers=headers),
        ):
            async with request as answer:
                assert (await answer.json())["message"]["blocks"][0]["type"] == "divider"
        assert [one["text"] for one in workspace.messages(HELP)] == ["hello"] * 3

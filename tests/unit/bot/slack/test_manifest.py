"""The app manifest: the fewest scopes, and which of them an admin may refuse."""

import pytest

from bot.slack.manifest import BOT_SCOPES, SEARCH_SCOPE, manifest

BOT_EVENTS = manifest()["settings"]["event_subscriptions"]["bot_events"]

NEEDED = {
    "app_mention": {"app_mentions:read"},
    "message.channels": {"channels:history"},
    "message.groups": {"groups:history"},
    "message.im": {"im:history"},
    "message.mpim": {"mpim:history"},
    "app_home_opened": set(),
    "member_joined_channel": {"channels:read", "groups:read"},
    "agent_session_stopped": {"assistant:write"},
}


def test_http_mode_names_its_url_for_events_and_clicks() -> None:
    settings = manifest(url="https://orion.example/")["settings"]
    assert settings["socket_mode_enabled"] is False
    assert settings["event_subscriptions"]["request_url"] == "https://orion.example/slack/events"
    assert settings["interactivity"]["request_url"] == "https://orion.example/slack/events"


def test_new_apps_are_agents_whose_messages_tab_can_be_written_in() -> None:
    features = manifest()["features"]
    assert "assistant_view" not in features
    assert 1 <= len(features["agent_view"]["suggested_prompts"]) <= 4
    assert features["app_home"]["messages_tab_enabled"] is True
    assert features["app_home"]["messages_tab_read_only_enabled"] is False
    assert features["shortcuts"][0]["callback_id"] == "orion_ask"
    assert "commands" in BOT_SCOPES, "a shortcut needs it"


@pytest.mark.parametrize("event", BOT_EVENTS)
def test_each_event_has_its_scope(event: str) -> None:
    assert NEEDED[event] <= set(BOT_SCOPES)


def test_the_scopes_allow_a_sharing_lookup_for_every_kind_of_channel() -> None:
    """``conversations.info`` needs the scope of the kind; a direct message is never asked about."""
    kinds = {event.rpartition(".")[2] for event in BOT_EVENTS if event.startswith("message.")} - {"im"}
    assert {f"{kind}:read" for kind in kinds} <= set(BOT_SCOPES)


def test_an_admin_may_refuse_optional_scopes_but_none_that_an_answer_needs() -> None:
    for search in (False, True):
        scopes = manifest(slack_search=search)["oauth_config"]["scopes"]
        assert set(scopes["bot_optional"]) < set(scopes["bot"])
        assert {"app_mentions:read", "chat:write", "im:history", "users:read"} <= set(scopes["bot"]) - set(
            scopes["bot_optional"]
        )
        assert {"files:read", "groups:history", "groups:read", "assistant:write"} <= set(scopes["bot_optional"])
        assert (SEARCH_SCOPE in scopes["bot_optional"]) is search


def test_the_manifest_requests_no_unused_scopes() -> None:
    assert "user" not in manifest()["oauth_config"]["scopes"]
    assert not {"chat:write.public", "chat:write.customize"} & set(BOT_SCOPES)

"""The app manifest, with the fewest scopes that the requirements need.

New apps can only be agents with ``agent_view``; Slack does not offer them ``assistant_view`` any more.
"""

from __future__ import annotations

from typing import Any, Final

from agent.texts.catalogue import SUGGESTED_PROMPTS

EVENTS_PATH: Final = "/slack/events"
REDIRECT_PATH: Final = "/slack/oauth_redirect"
DESCRIPTION: Final = "Answers from your team's documents, and sends nothing it has not verified."
BOT_SCOPES: Final = (
    "app_mentions:read",
    "assistant:write",
    "channels:history",
    "channels:read",
    "chat:write",
    "commands",
    "files:read",
    "groups:history",
    "groups:read",
    "im:history",
    "im:write",
    "mpim:history",
    "mpim:read",
    "usergroups:read",
    "users:read",
)
SEARCH_SCOPE: Final = "search:read.public"
"""Asked for only by who wants it: it opens every public channel to a question."""
BOT_EVENTS: Final = (
    "agent_session_stopped",
    "app_home_opened",
    "app_mention",
    "member_joined_channel",
    "message.channels",
    "message.groups",
    "message.im",
    "message.mpim",
)
ASK_SHORTCUT: Final = {
    "name": "Ask Orion about this",
    "type": "message",
    "callback_id": "orion_ask",
    "description": "Answers a message from your team's documents, in its thread.",
}
INSTALL_EVENTS: Final = ("app_uninstalled", "tokens_revoked")
"""What a workspace that installed Orion over HTTP tells when it takes its tokens back."""


def manifest(*, name: str = "Orion", url: str = "", slack_search: bool = False) -> dict[str, Any]:
    """The manifest for Socket Mode, or for HTTP where ``url`` (``https://host``) is given.

    ``slack_search`` also asks for Slack's real-time search over public channels.
    """
    base, scopes = url.rstrip("/"), sorted((*BOT_SCOPES, *([SEARCH_SCOPE] if slack_search else [])))
    request_url = {"request_url": f"{base}{EVENTS_PATH}"} if url else {}
    redirect_urls = {"redirect_urls": [f"{base}{REDIRECT_PATH}"]} if url else {}
    events = sorted([*BOT_EVENTS, *(INSTALL_EVENTS if url else ())])
    return {
        "display_information": {"name": name, "description": DESCRIPTION, "background_color": "#1d2b53"},
        "features": {
            "agent_view": {
                "agent_description": DESCRIPTION,
                "suggested_prompts": [dict(prompt) for prompt in SUGGESTED_PROMPTS],
            },
            "app_home": {
                "home_tab_enabled": True,
                "messages_tab_enabled": True,
                "messages_tab_read_only_enabled": False,
            },
            "bot_user": {"display_name": name, "always_online": True},
            "shortcuts": [dict(ASK_SHORTCUT)],
        },
        "oauth_config": {**redirect_urls, "scopes": {"bot": scopes}},
        "settings": {
            "event_subscriptions": {**request_url, "bot_events": events},
            "interactivity": {"is_enabled": True, **request_url},
            "org_deploy_enabled": False,
            "socket_mode_enabled": not url,
            "token_rotation_enabled": False,
        },
    }

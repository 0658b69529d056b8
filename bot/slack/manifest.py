"""The app manifest of ``manifest.toml``, for Socket Mode or for HTTP."""

import tomllib
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

from agent.texts.catalogue import SUGGESTED_PROMPTS

EVENTS_PATH: Final = "/slack/events"
REDIRECT_PATH: Final = "/slack/oauth_redirect"
SEARCH_SCOPE: Final = "search:read.public"  # requested only on demand: it opens every public channel
_MANIFEST: Final = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BOT_SCOPES: Final[tuple[str, ...]] = tuple(_MANIFEST["oauth_config"]["scopes"]["bot"])
OPTIONAL_SCOPES: Final = frozenset(_MANIFEST["oauth_config"]["scopes"]["bot_optional"])
REQUIRED_SCOPES: Final = frozenset(BOT_SCOPES) - OPTIONAL_SCOPES
UPDATE_APP: Final = "Update the app from `orion manifest` and reinstall it."
ASK_SHORTCUT: Final = "orion_ask"  # the shortcuts' ids are in the TOML file
PRIVATE_SHORTCUT: Final = "orion_ask_privately"
SAVE_SHORTCUT: Final = "orion_save"
INSTALL_EVENTS: Final = ("app_uninstalled", "tokens_revoked")  # a workspace revokes its tokens


def manifest(*, url: str = "", slack_search: bool = False) -> dict[str, Any]:
    """The manifest for Socket Mode, or for HTTP at ``url``; ``slack_search`` also asks to search public channels."""
    made = deepcopy(_MANIFEST)  # so that the next caller gets the file's original content
    made["features"]["agent_view"]["suggested_prompts"] = [dict(prompt) for prompt in SUGGESTED_PROMPTS]
    if slack_search:
        scopes = made["oauth_config"]["scopes"]
        for kind in ("bot", "bot_optional"):
            scopes[kind] = sorted((*scopes[kind], SEARCH_SCOPE))
    if url:
        base, settings = url.rstrip("/"), made["settings"]
        subscriptions = settings["event_subscriptions"]
        subscriptions["bot_events"] = sorted((*subscriptions["bot_events"], *INSTALL_EVENTS))
        for asked in (subscriptions, settings["interactivity"]):
            asked["request_url"] = f"{base}{EVENTS_PATH}"
        settings["socket_mode_enabled"] = False
        made["oauth_config"]["redirect_urls"] = [f"{base}{REDIRECT_PATH}"]
    return made

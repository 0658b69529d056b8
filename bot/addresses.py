"""The addresses in the settings, looked at before anything is opened.

Promises: one that no client could use is refused with its variable's name and an example. Must never contact anybody,
and never show an address's user and password.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from bot.settings import Settings, SettingsError, refusal

_EXAMPLES = {
    "OPENAI_BASE_URL": "http://127.0.0.1:11434/v1",
    "SLACK_API_URL": "https://slack.com/api/",
    "LANGFUSE_HOST": "https://cloud.langfuse.com",
    "ORION_DOCS_URL": "https://wiki.example.com/",
    "ORION_GIT_URL": "https://git.example.com/{repository}/commit/{commit}",
    "ORION_GIT_DOCS_URL": "https://git.example.com/{repository}/blob/{ref}/{path}",
    "ORION_SLACK_EXPORTS_URL": "https://acme.slack.com",
}


def check_addresses(settings: Settings) -> Settings:
    """The same settings. Raises ``SettingsError`` naming each variable that is no web address."""
    if wrong := wrong_addresses(settings):
        raise SettingsError(refusal(wrong))
    return settings


def wrong_addresses(settings: Settings) -> dict[str, str]:
    """What is wrong with each variable that should be a web address and is none."""
    configured = {
        "OPENAI_BASE_URL": settings.openai_base_url,
        "SLACK_API_URL": settings.slack_api_url,
        "LANGFUSE_HOST": settings.langfuse_host if settings.langfuse_public_key else "",
        "ORION_DOCS_URL": settings.docs_url,  # and the rest: of anything else Slack would make no link
        "ORION_GIT_URL": settings.git_url,
        "ORION_GIT_DOCS_URL": settings.git_docs_url,
        "ORION_SLACK_EXPORTS_URL": settings.slack_exports_url,
    }
    wrong = [name for name, value in configured.items() if value and not is_web_address(value)]
    return {name: f"is no web address; one looks like {_EXAMPLES[name]}" for name in wrong}


def is_web_address(text: str) -> bool:
    """Whether it is ``http://…`` or ``https://…`` with a host, and a port that exists where one is named."""
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises where it is no number up to 65535
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(c.isspace() for c in text)

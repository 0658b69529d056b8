"""Addresses of the model server, from the settings and the openai SDK's own variables."""

from collections.abc import Mapping
from typing import Final

from agent.model.address import ServerAddress
from bot.settings import Settings

DEFAULT_EMBED_MODEL: Final = "text-embedding-3-small"
_OFF: Final = frozenset({"off", "no", "false", "0"})


def model_address(settings: Settings) -> ServerAddress:
    """Return the model server: an Azure resource if one is named, else ``OPENAI_BASE_URL`` or OpenAI itself."""
    key, headers = settings.openai_api_key.get_secret_value(), _headers(settings)
    if not settings.azure_openai_endpoint:
        return ServerAddress(base_url=settings.openai_base_url, api_key=key, headers=headers)
    return ServerAddress(
        base_url=settings.azure_openai_endpoint,
        api_key=settings.azure_openai_api_key.get_secret_value() or key,
        azure_api_version=settings.openai_api_version,
        azure_token=settings.azure_openai_ad_token.get_secret_value(),
        headers=headers,
    )


def embedding_address(settings: Settings) -> tuple[ServerAddress, str] | None:
    """Return the server that embeds and its model (empty: one from its list), or None without search by meaning."""
    model = settings.embed_model.strip()
    if model.lower() in _OFF or not (settings.uses_server or settings.embed_base_url):
        return None
    if settings.embed_base_url:  # another server learns nothing of the model server's account
        headers = dict.fromkeys(_headers(settings))
        key = settings.embed_api_key.get_secret_value()
        return ServerAddress(base_url=settings.embed_base_url, api_key=key, headers=headers), model
    address = model_address(settings)
    if address.azure_api_version and not model:  # Azure lists models, not deployments
        return None
    return address, model or ("" if address.base_url else DEFAULT_EMBED_MODEL)


def _headers(settings: Settings) -> Mapping[str, str | None]:
    lines = (line.partition(":") for line in settings.openai_custom_headers.get_secret_value().splitlines())
    named = {"OpenAI-Organization": settings.openai_org_id, "OpenAI-Project": settings.openai_project_id}
    custom = {name.strip(): value.strip() for name, colon, value in lines if colon}
    return {**{name: value or None for name, value in named.items()}, **custom}

"""Address and credentials of a server that speaks OpenAI's API."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAddress:
    """One server under one key. An empty ``base_url`` is OpenAI itself.

    With an ``azure_api_version`` it is an Azure resource, and each model is the name of a deployment. ``azure_token``
    replaces the key there. A header that is None is not sent, even if the environment names it for the SDK.
    """

    base_url: str = ""
    api_key: str = field(default="", repr=False)
    azure_api_version: str = ""
    azure_token: str = field(default="", repr=False)
    headers: Mapping[str, str | None] = field(default_factory=dict, repr=False)

"""All settings, read from the environment and a ``.env`` file. Only this module reads the environment.

An invalid value is refused with the variable's name and the expected form. Secrets are never shown.
"""

import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from dotenv import dotenv_values
from dotenv.parser import parse_stream
from pydantic import AliasChoices, BeforeValidator, Field, SecretStr, ValidationError, ValidationInfo, field_validator
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, DotEnvSettingsSource, EnvSettingsSource, SettingsConfigDict

from agent.budget import MAX_ATTEMPTS
from agent.model.protocol import ServerAddress
from bot import setting_values as values
from bot.errors import WrongUse

DEFAULT_EMBED_MODEL: Final = "text-embedding-3-small"
_ENCODING: Final = "utf-8-sig"  # some editors begin the file with a byte order mark
_OFF: Final = frozenset({"off", "no", "false", "0"})
_QUOTED: Final = re.compile(r"""\s*(["'])([^"']*)\1\s*""")


def _env(name: str, default: Any, **limits: Any) -> Any:
    return Field(default, validation_alias=AliasChoices(name), **limits)


class Settings(BaseSettings):
    """The admin's choices. Field names are the variables' names in lower case, without ``ORION_``."""

    model_config = SettingsConfigDict(env_file=".env", env_file_encoding=_ENCODING, extra="ignore", frozen=True)

    slack_bot_token: SecretStr = _env("SLACK_BOT_TOKEN", SecretStr(""))
    slack_app_token: SecretStr = _env("SLACK_APP_TOKEN", SecretStr(""))
    slack_signing_secret: SecretStr = _env("SLACK_SIGNING_SECRET", SecretStr(""))
    slack_api_url: values.SlackUrl = _env("SLACK_API_URL", "https://slack.com/api/")
    slack_client_id: str = _env("SLACK_CLIENT_ID", "")
    slack_client_secret: SecretStr = _env("SLACK_CLIENT_SECRET", SecretStr(""))
    encryption_keys: SecretStr = _env("ORION_ENCRYPTION_KEYS", SecretStr(""))
    allow_teams: values.Names = _env("ORION_ALLOW_TEAMS", frozenset())  # empty: no workspace may install it; *: all may
    openai_api_key: SecretStr = _env("OPENAI_API_KEY", SecretStr(""))
    openai_base_url: values.ServerUrl = _env("OPENAI_BASE_URL", "")
    openai_org_id: str = _env("OPENAI_ORG_ID", "")
    openai_project_id: str = _env("OPENAI_PROJECT_ID", "")
    openai_custom_headers: SecretStr = _env("OPENAI_CUSTOM_HEADERS", SecretStr(""))
    azure_openai_endpoint: values.AzureUrl = _env("AZURE_OPENAI_ENDPOINT", "")
    azure_openai_api_key: SecretStr = _env("AZURE_OPENAI_API_KEY", SecretStr(""))
    azure_openai_ad_token: SecretStr = _env("AZURE_OPENAI_AD_TOKEN", SecretStr(""))
    openai_api_version: str = _env("OPENAI_API_VERSION", "2024-10-21")  # Azure's newest version without "preview"
    model: str = _env("ORION_MODEL", "")
    write_model: str = _env("ORION_WRITE_MODEL", "")
    judge: values.Switch = _env("ORION_JUDGE", default=True)
    judge_model: str = _env("ORION_JUDGE_MODEL", "")
    effort: values.Effort = _env("ORION_EFFORT", "")
    write_effort: values.Effort = _env("ORION_WRITE_EFFORT", "")
    # A cold server on a processor needs more than 60 s to its first byte.
    model_timeout_s: float = _env("ORION_MODEL_TIMEOUT_S", 90.0, ge=1)
    turn_timeout_s: float = _env("ORION_TURN_TIMEOUT_S", 180.0, ge=5)
    redis_url: SecretStr = _env("REDIS_URL", SecretStr(""))
    langfuse_public_key: str = _env("LANGFUSE_PUBLIC_KEY", "")
    langfuse_secret_key: SecretStr = _env("LANGFUSE_SECRET_KEY", SecretStr(""))
    langfuse_base_url: values.LangfuseUrl = _env("LANGFUSE_BASE_URL", "")
    langfuse_host: values.LangfuseUrl = _env("LANGFUSE_HOST", "https://cloud.langfuse.com")
    langfuse_environment: values.Environment = _env("LANGFUSE_TRACING_ENVIRONMENT", "")
    langfuse_release: str = _env("LANGFUSE_RELEASE", "")
    langfuse_sample_rate: float = _env("LANGFUSE_SAMPLE_RATE", 1.0, ge=0, le=1)
    langfuse_annotation_queue: str = _env("LANGFUSE_ANNOTATION_QUEUE", "")
    langfuse_enabled: values.Switch = _env("LANGFUSE_TRACING_ENABLED", default=True)
    langfuse_debug: values.Switch = _env("LANGFUSE_DEBUG", default=False)
    langfuse_timeout_s: int = _env("LANGFUSE_TIMEOUT", 5, ge=1)
    langfuse_flush_at: int = _env("LANGFUSE_FLUSH_AT", 50, ge=1, le=2048)
    langfuse_flush_interval_s: float = _env("LANGFUSE_FLUSH_INTERVAL", 1.0, gt=0)
    docs: values.Folders = _env("ORION_DOCS", ())
    docs_url: values.PagesUrl = _env("ORION_DOCS_URL", "")
    knowledge_url: SecretStr = _env("ORION_KNOWLEDGE_URL", SecretStr(""))
    embed_model: str = _env("ORION_EMBED_MODEL", "")
    embed_base_url: values.ServerUrl = _env("ORION_EMBED_BASE_URL", "")
    embed_api_key: SecretStr = _env("ORION_EMBED_API_KEY", SecretStr(""))
    git: values.Folders = _env("ORION_GIT", ())
    git_url: values.CommitsUrl = _env("ORION_GIT_URL", "")
    files: values.Folders = _env("ORION_FILES", ())
    searxng_url: values.SearxngUrl = _env("ORION_SEARXNG_URL", "")
    mcp_config: values.File = _env("ORION_MCP_CONFIG", None)
    mcp_tokens: SecretStr = _env("ORION_MCP_TOKENS", SecretStr(""))
    git_docs: values.Names = _env("ORION_GIT_DOCS", frozenset())
    git_docs_url: values.FilesUrl = _env("ORION_GIT_DOCS_URL", "")
    slack_exports: values.Folders = _env("ORION_SLACK_EXPORTS", ())
    slack_exports_url: values.WorkspaceUrl = _env("ORION_SLACK_EXPORTS_URL", "")
    answers: values.File = _env("ORION_ANSWERS", None)
    answer_editors: values.Names = _env("ORION_ANSWER_EDITORS", frozenset())
    channels: Annotated[Path, BeforeValidator(values.to_path)] = _env("ORION_CHANNELS", Path("channels.toml"))
    listen: values.Names = _env("ORION_LISTEN", frozenset())
    report: values.ChannelPlace = _env("ORION_REPORT", "")
    feeds: values.Entries = _env("ORION_FEEDS", ())
    web_docs: values.Names = _env("ORION_WEB_DOCS", frozenset())
    web_docs_hosts: values.Names = _env("ORION_WEB_DOCS_HOSTS", frozenset())
    web_docs_audience: values.Names = _env("ORION_WEB_DOCS_AUDIENCE", frozenset())
    web_docs_pages: int = _env("ORION_WEB_DOCS_PAGES", 1_000, ge=1, le=100_000)
    sync_minutes: float = _env("ORION_SYNC_MINUTES", 60.0, ge=0)
    home: Path = _env("ORION_HOME", Path(".orion"))
    port: int = _env("ORION_PORT", 3000, ge=0, le=65535)
    # 0: half of a process if many workspaces are served
    turns_per_workspace: int = _env("ORION_TURNS_PER_WORKSPACE", 0, ge=0)
    max_attempts: int = _env("ORION_MAX_ATTEMPTS", MAX_ATTEMPTS, ge=1, le=MAX_ATTEMPTS)
    source_tokens: int = _env("ORION_SOURCE_TOKENS", 6_000, ge=500, le=100_000)
    general: Literal["label", "refuse"] = _env("ORION_GENERAL", "label")
    link_hosts: values.Hosts = _env("ORION_LINK_HOSTS", frozenset())
    streams: values.Switch = _env("ORION_STREAMS", default=False)  # link previews cannot be switched off in a stream
    trace_content: values.Switch = _env("ORION_TRACE_CONTENT", default=True)
    allow_users: values.Names = _env("ORION_ALLOW_USERS", frozenset())
    deny_users: values.Names = _env("ORION_DENY_USERS", frozenset())
    allow_channels: values.Names = _env("ORION_ALLOW_CHANNELS", frozenset())
    deny_channels: values.Names = _env("ORION_DENY_CHANNELS", frozenset())
    allow_bots: values.Names = _env("ORION_ALLOW_BOTS", frozenset())
    allow_guests: values.Switch = _env("ORION_ALLOW_GUESTS", default=False)
    allow_external: values.Switch = _env("ORION_ALLOW_EXTERNAL", default=False)
    admins: values.Names = _env("ORION_ADMINS", frozenset())
    handoff: values.ChannelPlace = _env("ORION_HANDOFF", "")
    daily_tokens_user: values.Amount = _env("ORION_DAILY_TOKENS_USER", 0, ge=0)
    daily_tokens_channel: values.Amount = _env("ORION_DAILY_TOKENS_CHANNEL", 0, ge=0)
    daily_tokens_workspace: values.Amount = _env("ORION_DAILY_TOKENS_WORKSPACE", 0, ge=0)
    catch_up_s: float = _env("ORION_CATCH_UP_S", 3600.0, ge=0)
    debug: values.Switch = _env("ORION_DEBUG", default=False)

    @field_validator("*", mode="before")
    @classmethod
    def _unset(cls, value: Any, info: ValidationInfo) -> Any:
        """Treat an empty variable, as in templates, as unset. Only an empty ORION_TRACE_CONTENT means off.

        Quotes around a whole value are removed, as in .env: `docker --env-file` keeps them. A feed needs its own.
        """
        name = str(info.field_name)
        if isinstance(value, str) and name != "feeds" and (quoted := _QUOTED.fullmatch(value)):
            value = quoted[2]
        empty = isinstance(value, str) and not value.strip() and name != "trace_content"
        return cls.model_fields[name].get_default() if empty else value

    @property
    def model_name(self) -> str:
        """Model that decides. A server with a key but no model name gets OpenAI's small default."""
        return self.model or ("gpt-5-mini" if self.uses_server else "")

    @property
    def uses_server(self) -> bool:
        """Return True if a model server is configured. Without one Orion quotes."""
        return bool(self.openai_api_key.get_secret_value() or self.openai_base_url or self.azure_openai_endpoint)

    @property
    def sends_traces(self) -> bool:
        """True if turns are traced in Langfuse."""
        return bool(self.langfuse_enabled and self.langfuse_public_key and self.langfuse_secret_key.get_secret_value())

    @property
    def langfuse_url(self) -> str:
        """The Langfuse server. Its SDK prefers LANGFUSE_BASE_URL to the older LANGFUSE_HOST as well."""
        return (self.langfuse_base_url or self.langfuse_host).rstrip("/")

    @property
    def many_workspaces(self) -> bool:
        """Return True if workspaces install Orion themselves. With a bot token there is one workspace."""
        own_token = self.slack_bot_token.get_secret_value()
        return not own_token and bool(self.slack_client_id and self.slack_client_secret.get_secret_value())

    @property
    def fernet_keys(self) -> tuple[str, ...]:
        """Keys for the tokens of workspaces: the first one encrypts, all decrypt."""
        return tuple(self.encryption_keys.get_secret_value().replace(",", " ").split())

    @property
    def index_path(self) -> Path:
        """Path of the document index."""
        return self.home / "knowledge.sqlite3"

    @property
    def secrets(self) -> tuple[str, ...]:
        """List every configured secret, for redaction."""
        fields = (getattr(self, name) for name in type(self).model_fields)
        whole = tuple(f.get_secret_value() for f in fields if isinstance(f, SecretStr) and f.get_secret_value())
        passwords = filter(None, (urlsplit(url).password for url in (self.openai_base_url, self.embed_base_url)))
        return (*whole, *self.fernet_keys, *passwords)


def load_settings(**overrides: Any) -> Settings:
    """Load the settings. ``overrides`` are fields that a command's options set. Raises ``WrongUse``."""
    settings, faults = read_settings()
    if faults:
        raise WrongUse(settings_complaint(faults))
    return settings.model_copy(update={name: value for name, value in overrides.items() if value is not None})


def settings_complaint(faults: Mapping[str, str]) -> str:
    """Return a message about invalid settings: each variable and its fault."""
    return "These settings cannot be used:\n" + "\n".join(f"  {name} {fault}" for name, fault in faults.items())


def read_settings() -> tuple[Settings, dict[str, str]]:
    """Read the settings, and the fault of each invalid variable. An invalid variable gets its default."""
    logging.getLogger("dotenv").setLevel(logging.ERROR)  # ``unreadable_lines`` reports each line already
    try:
        return Settings(), {}
    except (UnicodeDecodeError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error.reason
        unreadable = f"is not a readable UTF-8 text ({reason}); it needs lines like ORION_DOCS=/srv/handbook"
        file, faults = None, {".env": unreadable}
    except ValidationError as error:
        file, faults = ".env", _describe_errors(error)
    fields = Settings.model_fields.values()
    sound = {name: field.get_default() for field in fields if (name := _alias(field)) in faults}
    options: dict[str, Any] = {"_env_file": file, **sound}
    try:
        return Settings(**options), faults
    except ValidationError as error:  # the first error was about the file, so the environment was not checked yet
        raise WrongUse(settings_complaint(faults | _describe_errors(error))) from None


def unreadable_lines() -> list[int]:
    """Return the numbers of ``.env`` lines that are not ``NAME=value``. They are ignored."""
    try:
        text = Path(".env").read_text(encoding=_ENCODING)
    except (OSError, UnicodeDecodeError):
        return []
    return [binding.original.line for binding in parse_stream(StringIO(text)) if binding.error]


def find_unknown_names() -> dict[str, str]:
    """Find variables that are named like a setting but are unknown, each with the nearest setting (or "none")."""
    known = [_alias(field) for field in Settings.model_fields.values()]
    given = {name.upper() for name in EnvSettingsSource(Settings).env_vars}
    with suppress(OSError, UnicodeDecodeError):  # ``read_settings`` reports such a file
        given |= {name.upper() for name in DotEnvSettingsSource(Settings).env_vars}
    unknown = sorted(name for name in given if name.startswith("ORION_") and name not in known)
    nearest = {"ORION_SEMANTIC": "ORION_EMBED_MODEL"}  # its old name
    return {name: nearest.get(name) or next(iter(get_close_matches(name, known, n=1)), "none") for name in unknown}


def _alias(field: FieldInfo) -> str:
    return str(getattr(field.validation_alias, "choices", [""])[0])


_FAULTS: Final[Mapping[str, str]] = {
    "int_parsing": "must be a whole number",
    "float_parsing": "must be a number",
    "bool_parsing": "must be on or off",
    "literal_error": "must be {expected}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "value_error": "{error}",
}


def _describe_errors(error: ValidationError) -> dict[str, str]:
    """Describe the fault of each variable, with the value unless the variable may contain a secret."""
    faults = {}
    for item in error.errors():
        name = str(item["loc"][0])
        said = _FAULTS[item["type"]].format(**item.get("ctx", {})) if item["type"] in _FAULTS else item["msg"]
        secret = any(word in name for word in ("TOKEN", "SECRET", "KEY", "URL", "HOST", "ENDPOINT"))
        faults[name] = said if secret else f"{said}, not {item['input']!r}"
    return faults


# Variables passed to a feed's program: enough to run and to reach the network, but no secrets.
_SHARED_WITH_FEEDS: Final = (
    *("PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)


def feed_environment() -> dict[str, str]:
    """Return the environment for the programs in ORION_FEEDS, in which `orion` itself can be found."""
    shared = {name: os.environ[name] for name in _SHARED_WITH_FEEDS if name in os.environ}
    folder = str(Path(sys.executable).parent)
    return shared | {"PATH": os.pathsep.join([folder, shared.get("PATH", os.defpath)])}


def environment_for_mcp() -> dict[str, str]:
    """Return the variables for ``${NAME}`` in the file of MCP servers: the environment's and .env's."""
    with suppress(OSError, UnicodeDecodeError):
        in_file = dotenv_values(".env", encoding=_ENCODING)
        return {name: value for name, value in in_file.items() if value is not None} | dict(os.environ)
    return dict(os.environ)


def require_folders(folders: Iterable[Path]) -> None:
    """Raise ``WrongUse`` for a folder of documents that does not exist."""
    for folder in folders:
        if not folder.is_dir():
            raise WrongUse(why=f"{folder} is not a folder. Name an existing folder of documents.")


def model_address(settings: Settings) -> ServerAddress:
    """Return the model server: an Azure resource if one is named, else ``OPENAI_BASE_URL`` or OpenAI itself."""
    key, headers = settings.openai_api_key.get_secret_value(), _headers(settings)
    if not settings.azure_openai_endpoint:
        return ServerAddress(base_url=settings.openai_base_url, api_key=key, headers=headers)
    azure_key, token = settings.azure_openai_api_key, settings.azure_openai_ad_token.get_secret_value()
    return ServerAddress(
        base_url=settings.azure_openai_endpoint, api_key=azure_key.get_secret_value() or key, azure_token=token,
        azure_api_version=settings.openai_api_version, headers=headers,
    )  # fmt: skip


def embedding_address(settings: Settings) -> tuple[ServerAddress, str] | None:
    """Return the server that embeds and its model (empty: one from its list), or None without search by meaning."""
    model = settings.embed_model.strip()
    if model.lower() in _OFF or not (settings.uses_server or settings.embed_base_url):
        return None
    if settings.embed_base_url:  # another server must not see the model server's account
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

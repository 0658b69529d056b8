"""Writes docs/configuration.md from docs/settings.toml, bot/settings.py and the commands: `make docs`."""

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from typer.main import get_command

from bot.cli.main import app
from bot.settings import Settings
from tests.support.paths import ROOT

PAGE = ROOT / "docs" / "configuration.md"
HEAD = """# Configuration

<!-- Written by `make docs`: edit docs/settings.toml and the help texts of the commands instead. -->

## Settings

Settings are environment variables; Orion also reads a `.env` file in the folder where it starts. Lists take commas or
spaces, switches take `on` and `off`, and an empty variable counts as not set. A wrong value stops the start with the
variable's name and what it should be; `orion doctor` shows all of them at once.

Outgoing calls honour the proxy variables of the host (never for loopback) and trust its certificates; `SSL_CERT_FILE`
names others.
"""
COMMANDS_HEAD = """
## Commands

`orion COMMAND --help` shows the same. Exit code 2 means wrong use, with a sentence that says how to correct it; 1 means
that something failed or is down. Other codes are listed with their commands. `--version` and `--help` work everywhere.
"""
_BOUNDS = (("ge", "at least"), ("le", "at most"))


def settings() -> dict[str, FieldInfo]:
    """Every setting by the name of its variable."""
    return {str(getattr(field.validation_alias, "choices", [""])[0]): field for field in Settings.model_fields.values()}


def meanings() -> dict[str, dict[str, str]]:
    """The descriptions of the settings, by group."""
    return tomllib.loads((ROOT / "docs" / "settings.toml").read_text(encoding="utf-8"))


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *_tables(), COMMANDS_HEAD, *_commands(vars(get_command(app))["commands"])]).rstrip() + "\n"


def _tables() -> Iterator[str]:
    known = settings()
    for group, texts in meanings().items():
        rows = [f"| `{name}` | {text} | {_default(known[name])} |" for name, text in texts.items() if name in known]
        yield "\n".join([f"### {group}\n", "| variable | meaning | default |", "|---|---|---|", *rows, ""])


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default()
    if isinstance(value, SecretStr):
        value = value.get_secret_value()
    if isinstance(value, bool):
        value = "on" if value else "off"
    bounds = [(word, getattr(limit, name, 0)) for limit in field.metadata for name, word in _BOUNDS]
    limits = ", ".join(f"{word} {bound:,}" for word, bound in bounds if bound)
    shown = "" if value in ("", (), frozenset(), None) else f"`{value:g}`" if isinstance(value, float) else f"`{value}`"
    return f"{shown} ({limits})".strip() if limits else shown


def _commands(commands: Mapping[str, Any], before: str = "orion") -> Iterator[str]:
    for name, command in commands.items():
        inner = vars(command).get("commands")
        if inner:
            yield from _commands(inner, f"{before} {name}")
            continue
        arguments = [p for p in command.params if p.param_type_name == "argument"]
        usage = " ".join([before, name, *(p.metavar or p.name.upper() for p in arguments)])
        options = [_option(p) for p in command.params if p.param_type_name == "option" and p.help]
        yield "\n".join(
            [f"### `{usage}`\n", " ".join((command.help or "").split()), "", *options, *[""] * bool(options)]
        )


def _option(option: Any) -> str:
    name = " ".join(filter(None, [option.opts[0], option.metavar]))
    default = f" (default `{option.default}`)" if isinstance(option.default, str | int) and option.default else ""
    return f"- `{name}`: {option.help}{default if option.default is not True else ''}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""The words that stop, mute and unmute Orion, in every language it speaks. Each counts only as a whole message."""

from __future__ import annotations

from typing import Final, Literal, get_args

from agent.texts.catalogue import LANGUAGES, say

Command = Literal["stop", "mute", "unmute"]

_COMMANDS: Final[dict[str, Command]] = {
    word: command
    for command in get_args(Command)
    for language in LANGUAGES
    for word in say(f"command_{command}", language).split("|")
}


def command_in(text: str) -> Command | None:
    """The command that a message consists of; None where it says anything else."""
    return _COMMANDS.get(text.strip().rstrip(".!。！").casefold())

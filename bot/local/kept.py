"""Keeps the conversations of a workspace in a file, so that they survive a restart."""

import base64
import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Final

from bot.local.model.messages import Message
from bot.local.model.roster import Json
from bot.local.workspace import StoredFile, Workspace

# Streams belong to this run only.
_FIELDS: Final = {field.name for field in fields(Message)} - {"streaming", "stream_ends"}


def save(workspace: Workspace, file: Path) -> None:
    """Write all messages and files atomically. The page says if that is impossible."""
    try:
        _write(workspace, file)
    except OSError as error:
        workspace.tell(f"These conversations cannot be kept in {file.parent}: {error.strerror}.")


def _write(workspace: Workspace, file: Path) -> None:
    messages = [asdict(one) for channel in workspace.roster.channels for one in workspace.log.everything_in(channel)]
    files = {
        key: {"payload": one.payload, "content": base64.b64encode(one.content).decode()}
        for key, one in workspace.files.items()
    }
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Renamed when complete: a crash in the middle leaves the previous file.
    part = file.with_suffix(".part")
    kept: Json = {"messages": messages, "files": files}
    if workspace.installed:  # the app knows this token and will use it again
        kept["bot_token"] = workspace.bot_token
    part.touch(mode=0o600)
    part.write_text(json.dumps(kept), encoding="utf-8")
    part.replace(file)


def load(workspace: Workspace, file: Path) -> None:
    """Load what ``save`` wrote. A missing or unreadable file changes nothing."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        messages = [Message(**{name: one[name] for name in one.keys() & _FIELDS}) for one in kept["messages"]]
        files = {
            key: StoredFile(payload=one["payload"], content=base64.b64decode(one["content"]))
            for key, one in kept["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return
    for member in workspace.roster.members.values():
        if not member.is_bot:
            workspace.roster.direct_chat(member.id)  # chats are created on first use
    for message in messages:
        if message.channel in workspace.roster.channels:
            workspace.log.add(message)
    workspace.files.update(files)
    if token := kept.get("bot_token"):
        workspace.bot_token, workspace.installed = str(token), True

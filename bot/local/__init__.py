"""The local workspace: a Slack-compatible server and the page it serves."""

from __future__ import annotations

from bot.local.documents import DocsFolder
from bot.local.model.limits import LENIENT, Strictness
from bot.local.server import LocalWorkspace

__all__ = ["LENIENT", "DocsFolder", "LocalWorkspace", "Strictness"]

"""A rule that crashed, for the log: which rule and where, never the text of the error, which may quote."""

from __future__ import annotations

from pathlib import PurePath
from traceback import extract_tb

import structlog

from verification.types import RuleName

log = structlog.get_logger()


def log_crash(rule: RuleName, error: Exception) -> None:
    """A rule crashed behind its wall: the draft fails (F5), and the log knows where to look; never the error's text."""
    frames = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)[-4:]]
    log.error("rule_crashed", rule=rule, error_type=type(error).__name__, frames=frames)

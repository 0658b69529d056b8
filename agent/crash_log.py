"""A rule that crashed behind its wall, for the log: which one and where, never what (an error's text may quote).

Must never raise: whoever verifies goes on with a failed check.
"""

from __future__ import annotations

from pathlib import PurePath
from traceback import extract_tb

import structlog

from verification.answer import RuleName

log = structlog.get_logger()


def log_crash(rule: RuleName, error: Exception) -> None:
    """A rule crashed behind its wall: the draft fails (F5), and the log knows where to look; never the error's text."""
    frames = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)[-4:]]
    log.error("rule_crashed", rule=rule, error_type=type(error).__name__, frames=frames)

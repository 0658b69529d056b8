"""The rules as a turn applies them: one that crashed is logged, never with the text of the error, which may quote."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath
from traceback import extract_tb
from typing import Final

import structlog

from verification.check import check
from verification.types import RuleName

log = structlog.get_logger()


def log_crash(rule: RuleName, error: Exception) -> None:
    """A rule crashed behind its wall: the draft fails (F5), and the log knows where to look."""
    frames = [f"{PurePath(frame.filename).name}:{frame.lineno}" for frame in extract_tb(error.__traceback__)[-4:]]
    log.error("rule_crashed", rule=rule, error_type=type(error).__name__, frames=frames)


checked: Final = partial(check, on_crash=log_crash)

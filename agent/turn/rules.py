"""The rules as a turn applies them: one that crashed is logged."""

from __future__ import annotations

from functools import partial
from typing import Final

import structlog

from verification.check import check
from verification.types import RuleName

log = structlog.get_logger()


def log_crash(rule: RuleName, error: Exception) -> None:
    """A rule crashed behind its wall: the draft fails (F5), and the log knows where to look."""
    log.error("rule_crashed", rule=rule, exc_info=error)


checked: Final = partial(check, on_crash=log_crash)

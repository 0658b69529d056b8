"""Applies the rules in a turn: a crashing rule fails the draft and is logged."""

from functools import partial
from typing import Final

import structlog

from verification.check import check

log = structlog.get_logger()

check_draft: Final = partial(check, on_crash=lambda rule, error: log.error("rule_crashed", rule=rule, exc_info=error))

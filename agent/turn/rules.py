"""The rules as a turn applies them: one that crashed fails the draft, and the log knows where to look."""

from __future__ import annotations

from functools import partial
from typing import Final

import structlog

from verification.check import check

log = structlog.get_logger()

check_draft: Final = partial(check, on_crash=lambda rule, error: log.error("rule_crashed", rule=rule, exc_info=error))

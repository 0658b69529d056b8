"""Replaces secrets in what leaves the process.

Texts that look like tokens, and fields whose names say that they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

REDACTED = "[redacted]"
# Deeper than any event nests; an object that holds itself must end somewhere.
MAX_DEPTH = 6
# A shorter "secret" is a test's, and may be part of any word.
LEAST_KNOWN = 6

_SECRET = re.compile(
    r"""xox[a-z](?:\.xox[a-z])?-[\w.-]{6,}          # Slack bot, user and refresh tokens
      | xapp-[\w-]{6,}                              # Slack app tokens
      | \b[ps]k-lf-[\w-]{6,}                        # Langfuse
      | \bsk-[\w-]{8,}                              # OpenAI and those who copy its form
      | \bgh[oprsu]_\w{16,} | \bgithub_pat_\w{16,}
      | \bA[KS]IA[0-9A-Z]{16}\b
      | \bAIza[\w-]{30,}
      | \beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?      # JSON web tokens
      | -----BEGIN[ A-Z]*PRIVATE[ ]KEY-----[\s\S]*?(?:-----END[ A-Z]*-----|\Z)
      | (?<=://)[^\s:/@]*:[^\s/@]+(?=@)             # user and password in a URL
      | (?i:\b(?:bearer|basic)\s+)[\w.~+/=-]{8,}
      | (?i:\b(?:password|passwd|secret|api[_-]?key|access[_-]?token)\b["']?\s*[=:]\s*["']?)[^\s"',;&]{4,}
    """,
    re.VERBOSE,
)
# One of these stands in every secret. To look for them costs a fiftieth of the pattern, and prompts are long.
_SIGNS = (
    *("xox", "xapp-", "k-lf-", "sk-", "gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_", "akia", "asia", "aiza"),
    *("eyj", "-----begin", "bearer", "basic", "passw", "secret", "api_key", "api-key", "apikey", "token"),
)
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:token|secret|password|passwd|api_?key|authorization|cookie|credentials?)$", re.IGNORECASE
)


def known_secrets(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """What finds these very secrets, whatever they look like; very short ones would blot out words."""
    long = sorted({secret for secret in secrets if len(secret) >= LEAST_KNOWN}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, long))) if long else None


def redact(value: Any, *, known: re.Pattern[str] | None = None, depth: int = 0) -> Any:
    """``value`` with every string in it redacted; too deep a nesting is cut off."""
    if isinstance(value, str):
        return _redacted(value, known)
    if depth > MAX_DEPTH:
        return "[nested]"
    if isinstance(value, Mapping):
        return {str(k): redact_field(str(k), v, known=known, depth=depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, known=known, depth=depth + 1) for item in value]
    return value


@lru_cache(maxsize=128)
def _redacted(text: str, known: re.Pattern[str] | None) -> str:
    """The text without secrets. Remembered: each call of a turn has the same instructions and sources before it."""
    text = known.sub(REDACTED, text) if known else text
    folded = text.lower()
    suspected = any(sign in folded for sign in _SIGNS) or ("://" in text and "@" in text)
    return _SECRET.sub(REDACTED, text) if suspected else text


def redact_field(name: str, value: Any, *, known: re.Pattern[str] | None = None, depth: int = 0) -> Any:
    """``value`` of the field ``name``."""
    if value and not isinstance(value, bool) and _SECRET_NAME.search(name):
        return REDACTED
    return redact(value, known=known, depth=depth)

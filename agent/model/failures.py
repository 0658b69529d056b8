"""Classifies failed calls by the server's status, code and words. Pure.

Servers share neither codes nor wording, so the form of a message counts: a size over a limit, content against a policy.
"""

import re
from collections.abc import Mapping
from typing import Final

from agent.model.protocol import ModelError, ModelErrorKind

MAX_CODE: Final = 60  # characters of a server's code that go into a log
_MAX_WORDS: Final = 4_000  # characters of a refusal that are searched

ABOUT_TOOLS: Final = re.compile(r"tool|function", re.IGNORECASE)

# `max_tokens` names an option, "completion tokens" the reply: neither says that the prompt is too long.
_NOT_A_PROMPT: Final = re.compile(
    r"\w*_\w*|\b(?:completion|output|new|generated) tokens?|'(?:tools|functions)[^']*'.*", re.IGNORECASE | re.DOTALL
)
_SIZE: Final = re.compile(r"\btokens?\b|\blength\b|\bcontext (?:window|size|limit)", re.IGNORECASE)
_OVER: Final = re.compile(
    r"\bexceed|\btoo (?:long|large|many|big)|\b(?:longer|larger|greater|more|less) than|\bmax(?:imum)?\b|\bat most"
    r"|\breduce|\brange of|\boverflow|\blimit|<=|≤",
    re.IGNORECASE,
)
_TOO_LARGE: Final = re.compile(
    r"\b(?:request|prompt|input|message|context)s?\b.{0,20}(?:too (?:long|large|big)|exceed|longer than|overflow)"
    r"|超长|超[过出].{0,12}(?:长度|限制|上限)|(?:长度|上下文).{0,8}超",
    re.IGNORECASE,
)
_TOO_LONG_CODE: Final = re.compile(r"context_(?:length|window|size)|too_long|too_large|exceed_context", re.IGNORECASE)
_TOO_LONG_STATUSES: Final = frozenset({0, 400, 413, 422, 424, 500})

_REFUSED: Final = re.compile(
    r"invalid_prompt|content.{0,12}(?:filter|polic|risk|manage|inspect|violat|moderat|blocked)|data.?inspection"
    r"|responsible.?ai|moderat|safety|flagged|inappropriate|sensitive (?:content|word|information)"
    r"|usage polic|prohibited.content|不安全|敏感|违规",
    re.IGNORECASE,
)
_REFUSING_STATUSES: Final = frozenset({0, 400, 403, 422, 451})

_BY_STATUS: Final[Mapping[int, ModelErrorKind]] = {
    **dict.fromkeys((400, 404, 405, 410, 415, 422), "ConfigurationError"),
    **dict.fromkeys((401, 403), "AuthenticationError"),
    402: "QuotaError",
    **dict.fromkeys((408, 504), "TimeoutError"),
    413: "TokenLimitError",
    451: "RefusalError",
    429: "RateLimitError",
}
# If the status says little, a named code says more. Status 0 is an error inside a reply with status 200.
_NAMING_STATUSES: Final = frozenset({0, 400, 403, 422})
_BY_NAME: Final[Mapping[ModelErrorKind, re.Pattern[str]]] = {
    "AuthenticationError": re.compile(r"api.?key|auth|permission|forbidden|access.?denied", re.IGNORECASE),
    "RateLimitError": re.compile(r"rate.?limit|too.?many.?requests|throttl|overload|busy|exhausted", re.IGNORECASE),
    "TimeoutError": re.compile(r"time.?out|deadline", re.IGNORECASE),
    "ConfigurationError": re.compile(
        r"not.?found|(?:invalid|bad).?(?:request|argument|param)|unsupported", re.IGNORECASE
    ),
}
_QUOTA: Final = re.compile(r"insufficient.{0,3}(?:quota|balance|credit|fund)|billing|payment", re.IGNORECASE)


class ServerRefusalError(ModelError):
    """An error that the server itself named. ``status`` is 0 inside a reply of status 200.

    ``words`` say what it refuses, but may quote the prompt, so they are never logged.
    """

    def __init__(
        self, status: int, code: object, words: str, *, retry_after_s: float | None = None, is_final: bool = False
    ) -> None:
        name, words = str(code or "no code")[:MAX_CODE], words[:_MAX_WORDS]
        kind = _failure_kind(status or (int(name) if name.isdecimal() else 0), name, words)
        where = f"status {status}" if status else "the server reported an error in its reply"
        super().__init__(kind, f"{where} ({name})", retry_after_s=retry_after_s)
        self.status, self.words, self.is_final = status, f"{name} {words}", is_final


def _failure_kind(status: int, code: str, words: str) -> ModelErrorKind:
    if _QUOTA.search(code):
        return "QuotaError"
    if _is_too_long(status, code, words):
        return "TokenLimitError"
    if status in _REFUSING_STATUSES and _REFUSED.search(f"{code} {words}"):
        return "RefusalError"
    by_name = _BY_NAME.items() if status in _NAMING_STATUSES else ()
    named = (kind for kind, pattern in by_name if pattern.search(code))
    return next(named, _BY_STATUS.get(status, "LLMError"))


def _is_too_long(status: int, code: str, words: str) -> bool:
    if status == 429:  # noqa: PLR2004 - a limit on tokens per minute names tokens and a limit as well
        return "request too large" in words.lower()
    if status not in _TOO_LONG_STATUSES:
        return False
    text = _NOT_A_PROMPT.sub(" ", words)
    named = _TOO_LONG_CODE.search(code) or _TOO_LARGE.search(text)
    return bool(named or (_SIZE.search(text) and _OVER.search(text)))

"""Classifies failed calls by the server's status, code and words. Pure.

Servers share neither codes nor wording, so the form of a message counts: a size over a limit, content against a policy.
"""

import re
from collections.abc import Mapping
from typing import Final

from agent.json_data import mapping, string
from agent.model.protocol import ModelError, ModelErrorKind

MAX_CODE: Final = 80  # characters of a server's code that go into a log
_MAX_WORDS: Final = 4_000  # characters of a refusal that are searched
# A validator repeats the request, whose words say nothing.
_QUOTED: Final = re.compile(r"""['"]input['"]:.*""", re.DOTALL)

ABOUT_TOOLS: Final = re.compile(r"(?i)tool|function")

_ABOUT_FIELD: Final = re.compile(r"'(?:tools|functions)\b")  # which has limits of its own
# `max_tokens` names an option, "completion tokens" the reply, a key nothing: none says that the prompt is too long.
_NOT_A_PROMPT: Final = re.compile(
    r"""(?i)['"]\w+['"]:|\w*_\w*|\b(?:completion|output|new|generated) tokens?"""
    r"|\bcontext (?:deadline|cancel)|\bcontent-length",  # of Go and of HTTP
)
_SIZE: Final = re.compile(r"(?i)\btokens?\b|length\b|\bcharacters\b|\bcontext (?:window|size|limit)")
_OVER: Final = re.compile(
    r"(?i)\bexceed|\btoo (?:long|large|many|big)|\b(?:longer|larger|greater|more|less) than|\bmax|\bat most"
    r"|\breduce|\brange of|\boverflow|\blimit|<=|≤"
)
_TOO_LARGE: Final = re.compile(
    r"(?i)\b(?:request|prompt|input|message|context|text|string)s?\b.{0,20}"
    r"(?:too (?:long|large|big)|exceed|longer than|overflow)"
    r"|context ?(?:window|length|size) ?exceed|exceed.{0,12}\bcontext"
    r"|[超过過][长長]|超[过過出].{0,12}(?:长度|限制|上限)|(?:长度|上下文).{0,8}超|長すぎ|너무 [길긴깁]"
    # in any language: a number of tokens, or a context with a number
    r"|\d{3}\W{0,3}(?:tokens?\b|jetons?\b|токен|トークン|토큰|令牌)"
    r"|(?:token数|トークン|토큰|токен|令牌|上下文|コンテキスト|컨텍스트|контекст|\b[ck]onte[sx]t)\D{0,30}\d{3}"
)
_TOO_LONG_STATUSES: Final = frozenset({0, 400, 413, 422, 424, 500})

_REFUSED: Final = re.compile(
    r"(?i)invalid_prompt|content.{0,12}(?:filter|polic|risk|manage|inspect|violat|moderat|blocked)|data.?inspection"
    r"|responsible.?ai|moderat|guardrail|safety|flagged|inappropriate|sensitive (?:content|word|information)"
    r"|usage polic|prohibited.content|不安全|敏感|违规"
)

# Any other status from 300 to 499 is a matter of settings, and one from 500 on a failure of the server.
_BY_STATUS: Final[Mapping[int, ModelErrorKind]] = {
    **dict.fromkeys((401, 403), "AuthenticationError"),
    402: "QuotaError",
    **dict.fromkeys((408, 504, 524), "TimeoutError"),
    **dict.fromkeys((409, 423, 424, 425, 499), "LLMError"),
    413: "TokenLimitError",
    451: "RefusalError",
    429: "RateLimitError",
}
# If the status says little, the words say more. Status 0 is an error inside a reply with status 200.
_NAMING_STATUSES: Final = frozenset({0, 400, 403, 422})
_BY_NAME: Final[Mapping[ModelErrorKind, re.Pattern[str]]] = {
    "AuthenticationError": re.compile(r"(?i)api.?key|auth|permission|forbidden|access.?denied"),
    "RateLimitError": re.compile(r"(?i)rate.?limit|too.?many.?requests|throttl|overload|busy|exhausted"),
    "TimeoutError": re.compile(r"(?i)time.?out|deadline"),
    "ConfigurationError": re.compile(r"(?i)not.?found|(?:invalid|bad).?(?:request|argument|param)|unsupported"),
}
_API_KEY: Final = re.compile(r"(?i)\bapi.?key")
_QUOTA: Final = re.compile(r"(?i)insufficient.{0,3}(?:quota|balance|credit|fund)|billing|payment|budget|arrear")


class ServerRefusalError(ModelError):
    """An error that the server itself named. ``status`` is 0 inside a reply of status 200.

    ``words`` and the ``message`` in them say what it refuses, but may quote the prompt, so they are never logged.
    """

    def __init__(
        self, status: int, fault: object, *, retry_after_s: float | None = None, is_final: bool = False
    ) -> None:
        words = _QUOTED.sub("", str(fault)[:_MAX_WORDS])
        details = fault[0] if isinstance(fault, list) and fault else fault
        details = mapping(details, "error") or mapping(details)
        # Servers that repeat the status as their code have the name next to it.
        names = [str(details[key]) for key in ("code", "status", "type") if details.get(key)]
        name = " ".join(dict.fromkeys(names))[:MAX_CODE] or "no code"
        numbers = (int(each) for each in names if re.fullmatch(r"\d{3}", each))
        kind = _failure_kind(status or next(numbers, 0), name, words)
        where = f"status {status}" if status else "the server reported an error in its reply"
        super().__init__(kind, f"{where} ({name})", retry_after_s=retry_after_s)
        self.status, self.words, self.is_final = status, f"{name} {words}", is_final
        self.message = " ".join((string(details, "message") or string(fault)).split())


def _failure_kind(status: int, name: str, words: str) -> ModelErrorKind:
    if _QUOTA.search(name):
        return "QuotaError"
    if _is_too_long(status, name, words):
        return "TokenLimitError"
    if status in _NAMING_STATUSES:
        if _REFUSED.search(f"{name} {words}"):
            return "RefusalError"
        if _API_KEY.search(words):
            return "AuthenticationError"
        for kind, pattern in _BY_NAME.items():
            if pattern.search(name):
                return kind
    return _BY_STATUS.get(status, "ConfigurationError" if 300 <= status < 500 else "LLMError")  # noqa: PLR2004


def _is_too_long(status: int, name: str, words: str) -> bool:
    if status == 429:  # noqa: PLR2004 - a limit on tokens per minute names tokens and a limit as well
        return "request too large" in words.lower()
    if status not in _TOO_LONG_STATUSES or _ABOUT_FIELD.search(words):
        return False
    text = _NOT_A_PROMPT.sub(" ", words)
    is_named = _TOO_LARGE.search(f"{name.replace('_', ' ')}: {text}")
    return bool(is_named or (_SIZE.search(text) and _OVER.search(text)))

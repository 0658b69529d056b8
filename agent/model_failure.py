"""The kinds of ``ModelError`` and what to do about each: hints for whoever runs or uses a model (D1)."""

from __future__ import annotations

from typing import Final

from agent.budget import Usage
from agent.model import ModelError, ModelErrorKind

_CONFIGURATION = "Check the configuration: OPENAI_BASE_URL, ORION_MODEL and ORION_WRITE_MODEL."
_CREDENTIALS = "Verify the credentials: OPENAI_API_KEY."
_LENGTH = "Shorten the prompt or raise max_tokens."
_AGAIN = "Try again after a moment; the server did not reply in time."

HINTS: dict[ModelErrorKind, tuple[str, ...]] = {
    "ConfigurationError": (_CONFIGURATION,),
    "AuthenticationError": (_CREDENTIALS, _CONFIGURATION),
    "TokenLimitError": (_LENGTH,),
    "TimeoutError": (_AGAIN, _LENGTH),
    "RateLimitError": ("Try again after a moment; the server limits requests.", _CREDENTIALS),
    "QuotaError": ("The quota of this key is used up: check its plan and billing.", _CREDENTIALS),
    "RefusalError": ("Rephrase the prompt; the model refused it.",),
    "MalformedControlError": ("Use a model that is able to call functions or to write JSON.", _CONFIGURATION),
    "LLMError": (_CONFIGURATION, _AGAIN),
}


PASSING: Final[frozenset[str]] = frozenset({"RateLimitError", "TimeoutError", "LLMError", "KnowledgeAwayError"})
"""The same call may succeed later, the one to the documents too. Everything else stays as it is until somebody changes
something."""


def failure(
    *, kind: ModelErrorKind, detail: str, usage: Usage | None = None, retry_after_s: float | None = None
) -> ModelError:
    """The error with its hints. ``detail`` goes to logs: it must hold nothing of a prompt or a reply."""
    return ModelError(kind, detail, hints=HINTS[kind], usage=usage, retry_after_s=retry_after_s)

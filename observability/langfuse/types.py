"""What a trace is told of a turn: plain values, free of any SDK."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """What a trace shows of a violation: the text in question and what is wrong with it."""

    rule: str
    severity: str
    words: str
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One judged draft. ``text`` is the draft after repair; ``repairs`` maps a kind of repair to how often."""

    number: int
    draft: str
    text: str
    passed: bool
    issues: Sequence[Issue] = ()
    repairs: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """What one model call was asked, and the tokens it took.

    ``messages``, ``tools`` and ``parameters`` are as OpenAI spells them. ``cached_tokens`` are part of the prompt's,
    ``reasoning_tokens`` of the completion's.
    """

    model: str = ""
    messages: Sequence[Mapping[str, str]] = ()
    tools: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    @property
    def usage(self) -> dict[str, int]:
        """Tokens by the kinds that Langfuse has prices for; together they are the total."""
        kinds = {
            "input": self.prompt_tokens - self.cached_tokens,
            "input_cached_tokens": self.cached_tokens,
            "output": self.completion_tokens - self.reasoning_tokens,
            "output_reasoning_tokens": self.reasoning_tokens,
        }
        told = {kind: count for kind, count in kinds.items() if count or kind in {"input", "output"}}
        return {**told, "total": self.prompt_tokens + self.completion_tokens}

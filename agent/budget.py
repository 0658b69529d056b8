"""Limits and costs of a turn, and the requests to a model. Plain values: the loop checks the limits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final

MAX_ATTEMPTS: Final = 3
"""Drafts of an answer. The first rewrite helps most; the second helps a half to a sixth as much (Self-Refine)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one turn. ``deadline_s`` is the turn's wall time in seconds; ``tokens`` counts both directions."""

    deadline_s: float = 120.0
    model_calls: int = 24  # room for a judge that is asked block by block while an answer is streamed
    tool_calls: int = 16
    tokens: int = 200_000
    attempts: int = MAX_ATTEMPTS


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Usage so far."""

    model_calls: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0  # prompt tokens that came from the server's cache
    reasoning_tokens: int = 0  # completion tokens outside the text
    estimated: bool = False  # the server gave no figures

    @property
    def tokens(self) -> int:
        """Tokens of both directions."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        counts = {each.name: getattr(self, each.name) + getattr(other, each.name) for each in fields(self)}
        return Usage(**counts | {"estimated": self.estimated or other.estimated})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model as it was sent, for traces: chat messages, tools and parameters as OpenAI spells them."""

    model: str = ""
    messages: tuple[Mapping[str, str], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)

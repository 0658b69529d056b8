"""What a turn may spend, as data. Checked in one place: the loop."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of one turn. ``deadline_s``: seconds of wall time for all of it; ``tokens`` counts both directions."""

    deadline_s: float = 120.0
    model_calls: int = 12
    tool_calls: int = 16
    tokens: int = 120_000
    attempts: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What was spent. ``estimated`` is set where the server gave no figures."""

    model_calls: int = 0
    tool_calls: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False

    @property
    def tokens(self) -> int:
        """Both directions together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """The sum of two spendings."""
        return Usage(
            model_calls=self.model_calls + other.model_calls,
            tool_calls=self.tool_calls + other.tool_calls,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            estimated=self.estimated or other.estimated,
        )

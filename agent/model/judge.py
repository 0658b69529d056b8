"""The judge's seam: the claims that the rules leave open, in one batched call to a model (F6).

Promises: a reply is read or it is not; what makes no sense is left out, and who merges the judgements counts what is
missing as not confirmed. Must never guess what a judge meant, and never raise on what one wrote.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agent.budget import Usage
from verification.judgement import Judgement
from verification.types import Claim, Source

_MOST_TRIES = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeContext:
    """All that a judgement may depend on. ``claims`` are sentences of ``answer``, ``sources`` those they cite."""

    question: str
    answer: str
    claims: tuple[Claim, ...]
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What the judge said, as far as it made sense, and what it cost. ``prompt`` is what it was shown, for traces."""

    judgements: tuple[Judgement, ...] = ()
    usage: Usage = field(default_factory=Usage)
    prompt: str = ""


class Judge(Protocol):
    """Whoever decides what word overlap cannot."""

    @property
    def name(self) -> str:
        """What logs and traces call it."""
        ...

    async def judge(self, context: JudgeContext) -> Opinion:
        """One call for all claims of the context. Raises ``ModelError``."""
        ...


def read_judgements(text: str) -> tuple[Judgement, ...]:
    """The judgements in a reply; of several objects the last with verdicts counts (reasoning comes first)."""
    verdicts: list[Any] = []
    for found in _objects(text):
        named = found.get("verdicts")
        verdicts = named if isinstance(named, list) else verdicts
    read = (_judgement(each) for each in verdicts)
    return tuple(each for each in read if each is not None)


def _objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text; the tries are bounded, so that a reply full of braces costs little."""
    decoder = json.JSONDecoder()
    position = text.find("{")
    for _ in range(_MOST_TRIES):
        if position < 0:
            return
        try:
            found, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = position + 1
        else:
            yield found
        position = text.find("{", end)


def _judgement(raw: object) -> Judgement | None:
    """One verdict; None where its number or its opinion is not of the form that was asked for."""
    if not isinstance(raw, dict):
        return None
    number, supported = raw.get("claim"), raw.get("supported")
    if isinstance(number, bool) or not isinstance(number, int) or not isinstance(supported, bool):
        return None
    evidence, reason = raw.get("evidence"), raw.get("reason")
    return Judgement(
        claim=number,
        supported=supported,
        evidence=evidence if isinstance(evidence, str) else "",
        reason=reason if isinstance(reason, str) else "",
    )

"""The judge: one call to a model that decides the claims which the rules leave open."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, Protocol, get_args

from agent.budget import ModelCall, Usage
from agent.model.chat_reply import json_objects
from verification.judgement import NO_LINE, Judgement, Line
from verification.types import Claim, Source

ReplyKind = Literal["answered", "partly", "not_in_sources"]
"""What an answer as a whole does: it gives what was asked, or a part of it, or only says that no source holds it."""
_LINE: Final = re.compile(r"\s*\[?(\d{1,9})\.(\d{1,9})\]?\s*")
_DECODER: Final = json.JSONDecoder(parse_float=str)  # as numbers the lines 2.1 and 2.10 would be one


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeContext:
    """All that a judgement may depend on. ``claims`` are sentences of ``answer``, ``sources`` all that was found.

    ``said`` is what the person said before the question, ``today`` the day it was asked on, if known.
    """

    question: str
    answer: str
    claims: tuple[Claim, ...]
    sources: tuple[Source, ...]
    said: str = ""
    today: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """What the judge said, as far as it made sense, and what it cost.

    ``judgements`` are by the number of the claim, from 1. ``reply`` is None where the judge did not say. ``call`` is
    what the judge was asked, for traces.
    """

    judgements: Mapping[int, Judgement] = field(default_factory=dict)
    reply: ReplyKind | None = None
    usage: Usage = field(default_factory=Usage)
    call: ModelCall = field(default_factory=ModelCall)


class Judge(Protocol):
    """Whoever decides what rules cannot."""

    @property
    def name(self) -> str:
        """What logs and traces call it."""

    async def judge(self, context: JudgeContext) -> Opinion:
        """One call for all claims of the context. Raises ``ModelError``."""


def read_opinion(text: str) -> Opinion:
    """What a reply says; never raises. Of several objects the last with verdicts counts: reasoning comes first.

    What is not of the form that was asked for is left out, and so is a claim with two verdicts.
    """
    said: dict[str, Any] = {}
    for found in json_objects(text, _DECODER):
        said = found if isinstance(found.get("verdicts"), list) else said
    read: dict[int, list[Judgement]] = {}
    for verdict in said.get("verdicts", []):
        number, judgement = _judgement(verdict)
        read.setdefault(number, []).extend([judgement] if judgement else [])
    single = {number: told[0] for number, told in read.items() if len(told) == 1}
    reply = said.get("reply")
    return Opinion(judgements=single, reply=reply if reply in get_args(ReplyKind) else None)


def _judgement(raw: object) -> tuple[int, Judgement | None]:
    """The number of a claim and its verdict; None where one of the two is not of the form that was asked for."""
    if not isinstance(raw, dict):
        return 0, None
    number, supported, lines, instead = (raw.get(name) for name in ("claim", "supported", "lines", "instead"))
    if isinstance(number, bool) or not isinstance(number, int) or not isinstance(supported, bool):
        return 0, None
    return number, Judgement(
        supported=supported,
        lines=tuple(map(_line, lines)) if isinstance(lines, list) else (),
        absent=raw.get("absent") is True,
        instead=instead if isinstance(instead, str) else "",
    )


def _line(raw: object) -> Line:
    match = _LINE.fullmatch(raw) if isinstance(raw, str) else None
    return (int(match[1]), int(match[2])) if match else NO_LINE

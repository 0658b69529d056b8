"""The judge: one call to a model that decides the claims that the rules leave open."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, Protocol, get_args

from agent.budget import ModelCall, Usage
from agent.json_data import mapping, string
from agent.model.chat_reply import json_objects
from verification.judgement import NO_LINE, Judgement, Line
from verification.types import Claim, Source

ReplyKind = Literal["answered", "partly", "not_in_sources"]
"""Kind of an answer as a whole: it answers the question fully or partly, or only says that the sources do not."""
_LINE: Final = re.compile(r"\s*\[?(\d{1,9})\.(\d{1,9})\]?\s*")
_LISTED: Final = re.compile(r"[^\s,;]+")
# A half-supported claim is not supported: the model rewrites it.
_BOOLEANS: Final = {"true": True, "yes": True} | dict.fromkeys(("false", "no", "partly", "partially", "partial"), False)
_DECODER: Final = json.JSONDecoder(parse_float=str)  # as numbers, the lines 2.1 and 2.10 would be the same


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeContext:
    """Everything that a judgement may depend on.

    ``claims`` are sentences of ``answer``, ``sources`` those of the turn.
    """

    question: str
    answer: str
    claims: tuple[Claim, ...]
    sources: tuple[Source, ...]
    said: str = ""  # the person's text before the question
    today: date | None = None  # the day of the question, if known


@dataclass(frozen=True, slots=True, kw_only=True)
class Opinion:
    """The judge's usable verdicts, their usage, and the request for traces."""

    judgements: Mapping[int, Judgement] = field(default_factory=dict)  # by claim number, from 1
    reply: ReplyKind | None = None  # None if the judge did not say
    usage: Usage = field(default_factory=Usage)
    call: ModelCall = field(default_factory=ModelCall)


class Judge(Protocol):
    """Decides claims that rules cannot."""

    @property
    def name(self) -> str:
        """Name for logs and traces."""

    async def judge(self, context: JudgeContext) -> Opinion:
        """Judge all claims of the context in one call. Raises ``ModelError``."""


def read_opinion(*texts: str) -> Opinion:
    """Return the usable verdicts from the first text that has any, with or without an object around them.

    Never raises.
    """
    found: dict[str, Any] = {}
    for text in texts:
        objects = list(json_objects(text, _DECODER))
        complete = [each for each in objects if isinstance(each.get("verdicts"), list)]
        bare = [each for each in objects if "claim" in each]
        found = complete[-1] if complete else {"verdicts": bare} if bare else found
        if found:
            break
    read = [each for verdict in found.get("verdicts", []) if (each := _read_verdict(mapping(verdict)))]
    times = Counter(number for number, _ in read)  # a claim with two verdicts counts as having none
    reply = found.get("reply")
    judgements = {number: judgement for number, judgement in read if times[number] == 1}
    return Opinion(judgements=judgements, reply=reply if reply in get_args(ReplyKind) else None)


def _read_verdict(verdict: Mapping[str, Any]) -> tuple[int, Judgement] | None:
    """Return a claim's number and judgement, or None if either is unusable."""
    number, lines = verdict.get("claim"), verdict.get("lines")
    answer, absent = (_BOOLEANS.get(str(verdict.get(name)).strip().lower()) for name in ("supported", "absent"))
    if isinstance(number, bool) or not str(number).strip().isdecimal() or answer is None:
        return None
    return int(str(number)), Judgement(
        supported=answer,
        lines=tuple(map(_line, lines if isinstance(lines, list) else _LISTED.findall(str(lines or "")))),
        absent=absent is True,
        instead=string(verdict, "instead"),
    )


def _line(raw: object) -> Line:
    match = _LINE.fullmatch(raw) if isinstance(raw, str) else None
    return (int(match[1]), int(match[2])) if match else NO_LINE

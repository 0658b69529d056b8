"""What a model's server takes: what it refused once is left out, or said otherwise, from then on. Pure.

A refusal is told by its text, as servers have no common code for it: an option named there is to blame; of one that
names none, the options that not every server knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from agent.model.chat_reply import encodable

LOWEST_EFFORT: Final = "none"
TOO_LONG: Final = re.compile(
    r"context.{0,12}(?:length|window|size)|maximum context|too (?:many tokens|long)", re.IGNORECASE
)
ABOUT_TOOLS: Final = re.compile(r"tool|function", re.IGNORECASE)

# What may be said instead, in this order. An option without another value is left out.
_INSTEAD: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_effort": (LOWEST_EFFORT, "minimal", "low"),  # gpt-5.6 takes tools with "none" alone
    "tool_choice": ("auto",),  # some servers that reason refuse "required"
}
# Options that can be done without; servers that refuse one of the first three may not name it.
_UNNAMED: Final = ("reasoning_effort", "stream_options", "response_format")
_OPTIONS: Final = (*_UNNAMED, "temperature", "max_tokens", "tool_choice")  # gpt-5 refuses a temperature
_ABOUT_EFFORT: Final = re.compile(r"reasoning|thinking|effort", re.IGNORECASE)
_ABOUT_A_VALUE: Final = re.compile(r"\bvalues?\b|should be|must be|one of", re.IGNORECASE)
_ANY: Final = ""
_WITH_TOOLS: Final = "reasoning_effort with tools"

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What one model turned out to take. ``refused``: an option and the value that was, ``""`` for whatever value.

    ``calls_tools``: it did so once; ``json_only``: it cannot. ``reasons``: it thinks before it writes, unasked.
    """

    refused: frozenset[tuple[str, str]] = frozenset()
    calls_tools: bool = False
    json_only: bool = False
    reasons: bool = False

    def __or__(self, other: Learned) -> Learned:
        """Both lessons: calls to one model learn side by side."""
        return Learned(**{each.name: getattr(self, each.name) | getattr(other, each.name) for each in fields(self)})

    def fitted(self, body: Body) -> Body:
        """The request as this model takes it, every text in it encodable."""
        kept = {key: value for key, value in body.items() if key not in _OPTIONS}
        kept["messages"] = [{**message, "content": encodable(message["content"])} for message in body["messages"]]
        for option in _OPTIONS:
            if option in body and (value := self._value(option, body)) is not None:
                kept[option] = value
        if "max_tokens" in body and "max_tokens" not in kept:
            kept["max_completion_tokens"] = body["max_tokens"]  # the newer name, which OpenAI's reasoning models want
        return kept

    def after(self, refusal: str, body: Body) -> Learned | None:
        """What is known once ``body`` was refused with this text; None where it is about nothing that can be helped."""
        option = self._blamed(refusal, body)
        if not option:
            return None
        value = self._value(option, body)
        combined = option == "reasoning_effort" and "tools" in body and ABOUT_TOOLS.search(refusal)
        named = option in refusal and _ABOUT_A_VALUE.search(refusal)
        this_value = isinstance(value, str) and (combined or named or option == "tool_choice")
        lesson = (_WITH_TOOLS if combined else option, value if this_value else _ANY)
        return replace(self, refused=self.refused | {lesson})

    def _blamed(self, refusal: str, body: Body) -> str:
        if TOO_LONG.search(refusal):
            return ""
        sent = [option for option in _OPTIONS if option in body and self._value(option, body) is not None]
        named = [option for option in sent if option in refusal]
        if not named and "reasoning_effort" in sent and _ABOUT_EFFORT.search(refusal):
            return "reasoning_effort"
        about_tools = "tools" in body and bool(ABOUT_TOOLS.search(refusal))
        unnamed = [] if about_tools else [option for option in _UNNAMED if option in sent]
        choice = ["tool_choice"] if "tool_choice" in sent and self._value("tool_choice", body) != "auto" else []
        return next(iter(named or unnamed or choice), "")

    def _value(self, option: str, body: Body) -> Any:
        """What is to be sent for an option that the request wants; None: nothing."""
        wanted = body[option]
        if (option, _ANY) in self.refused:
            return None
        names = (option, _WITH_TOOLS) if option == "reasoning_effort" and "tools" in body else (option,)
        if not isinstance(wanted, str):
            return wanted
        values = (wanted, *_INSTEAD.get(option, ()))
        return next((value for value in values if not any((name, value) in self.refused for name in names)), None)

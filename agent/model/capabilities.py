"""Options of a model's server: one that it refused is left out, or sent with another value, from then on. Pure.

A refusal is read by its text, as servers share no codes: an option named there is to blame; if none is named, the
options that not every server knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Final

from agent.model.chat_reply import join_surrogates
from agent.model.failures import ABOUT_TOOLS, ServerRefusalError

LOWEST_EFFORT: Final = "none"

# Values to try instead, in this order. An option without another value is left out.
_ALTERNATIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_effort": (LOWEST_EFFORT, "minimal", "low"),  # gpt-5.6 takes tools with "none" alone
    "tool_choice": ("auto",),  # some reasoning servers refuse "required"
}
# Optional; servers that refuse one of the first three may not name it.
_UNNAMED: Final = ("reasoning_effort", "stream_options", "response_format")
_OPTIONS: Final = (*_UNNAMED, "temperature", "max_tokens", "tool_choice")  # gpt-5 refuses a temperature
_ABOUT_EFFORT: Final = re.compile(r"reasoning|thinking|effort", re.IGNORECASE)
_ABOUT_VALUE: Final = re.compile(r"\bvalues?\b|should be|must be|one of", re.IGNORECASE)
# "System role not supported", "Only user and assistant roles are supported", "roles must alternate user/assistant"
_ABOUT_ROLES: Final = re.compile(
    r"system.{0,10}\brole|\brole.{0,6}system|\broles?\b.{0,40}(?:alternat|support|allow)|support.{0,10}\bsystem"
    r"|system (?:message|prompt)s?.{0,30}\b(?:not|un)",
    re.IGNORECASE,
)
_REFUSING_STATUSES: Final = frozenset({0, 400, 422, 424, 500})  # llama.cpp reports what a template refuses as 500
_ANY: Final = ""
_WITH_TOOLS: Final = "reasoning_effort with tools"
SYSTEM_ROLE: Final = "system role"

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Facts about one model. ``refused``: pairs of an option and the refused value, ``""`` for any value.

    ``calls_tools``: it did so once; ``json_only``: it cannot. ``reasons``: it thinks before it writes, unasked.
    ``leaves_open``: it ended a reply without closing the answer's tag.
    """

    refused: frozenset[tuple[str, str]] = frozenset()
    calls_tools: bool = False
    json_only: bool = False
    reasons: bool = False
    leaves_open: bool = False

    def __or__(self, other: Learned) -> Learned:
        """Join both lessons: calls to one model learn at the same time."""
        return Learned(**{each.name: getattr(self, each.name) | getattr(other, each.name) for each in fields(self)})

    def request(self, body: Body) -> Body:
        """Return the request as this model takes it, every text in it encodable."""
        request = {key: value for key, value in body.items() if key not in _OPTIONS}
        messages = [{**message, "content": join_surrogates(message["content"])} for message in body["messages"]]
        request["messages"] = _without_system(messages) if (SYSTEM_ROLE, _ANY) in self.refused else messages
        for option in _OPTIONS:
            if option in body and (value := self._value(option, body)) is not None:
                request[option] = value
        if "max_tokens" in body and "max_tokens" not in request:
            request["max_completion_tokens"] = body["max_tokens"]  # its newer name, for OpenAI's reasoning models
        return request

    def after(self, refusal: ServerRefusalError, body: Body) -> Learned | None:
        """Return what is known after this refusal of ``body``, or None if another request would not help."""
        if refusal.kind not in {"ConfigurationError", "LLMError"} or refusal.status not in _REFUSING_STATUSES:
            return None
        words = refusal.words
        if _ABOUT_ROLES.search(words) and (SYSTEM_ROLE, _ANY) not in self.refused:
            return replace(self, refused=self.refused | {(SYSTEM_ROLE, _ANY)})
        option = self._blamed(words, body) if refusal.kind == "ConfigurationError" else ""
        if not option:
            return None
        value = self._value(option, body)
        combined = option == "reasoning_effort" and "tools" in body and ABOUT_TOOLS.search(words)
        named = option in words and _ABOUT_VALUE.search(words)
        this_value = isinstance(value, str) and (combined or named or option == "tool_choice")
        lesson = (_WITH_TOOLS if combined else option, value if this_value else _ANY)
        return replace(self, refused=self.refused | {lesson})

    def is_named(self, words: str, body: Body) -> bool:
        """Return True if a refusal names its reason: one that does not may be a server's bad moment."""
        about = _ABOUT_EFFORT.search(words) or ABOUT_TOOLS.search(words) or _ABOUT_ROLES.search(words)
        return bool(about) or any(option in words for option in _OPTIONS if option in body)

    def _blamed(self, words: str, body: Body) -> str:
        sent = [option for option in _OPTIONS if option in body and self._value(option, body) is not None]
        named = [option for option in sent if option in words]
        if not named and "reasoning_effort" in sent and _ABOUT_EFFORT.search(words):
            return "reasoning_effort"
        about_tools = "tools" in body and bool(ABOUT_TOOLS.search(words))
        unnamed = [] if about_tools else [option for option in _UNNAMED if option in sent]
        choice = ["tool_choice"] if "tool_choice" in sent and self._value("tool_choice", body) != "auto" else []
        return next(iter(named or unnamed or choice), "")

    def _value(self, option: str, body: Body) -> Any:
        """Return the value to send for an option that the request has; None to leave it out."""
        wanted = body[option]
        if (option, _ANY) in self.refused:
            return None
        names = (option, _WITH_TOOLS) if option == "reasoning_effort" and "tools" in body else (option,)
        if not isinstance(wanted, str):
            return wanted
        values = (wanted, *_ALTERNATIVES.get(option, ()))
        return next((value for value in values if not any((name, value) in self.refused for name in names)), None)


def _without_system(messages: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the messages with the system's text before the first user's, and never two of one role in a row."""
    merged: list[dict[str, str]] = []
    for message in messages:
        role = "user" if message["role"] == "system" else message["role"]
        if merged and merged[-1]["role"] == role:
            merged[-1]["content"] += f"\n\n{message['content']}"
        else:
            merged.append({**message, "role": role})
    return list(merged)

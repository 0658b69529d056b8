"""Options of a model's server: one that it refused is left out, or sent with another value, from then on. Pure.

A refusal is read by its text, as servers share no codes: an option named there is to blame; if none is named, the
options that not every server knows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, Final

from agent.model.chat_reply import join_surrogates
from agent.model.failures import ABOUT_TOOLS, ServerRefusalError

LOWEST_EFFORT: Final = "none"

# Values to try instead, in this order. An option without another value is left out.
_ALTERNATIVES: Final[Mapping[str, tuple[str, ...]]] = {
    "reasoning_effort": (LOWEST_EFFORT, "minimal", "low"),  # gpt-5.6 takes tools with "none" alone
    "tool_choice": ("auto",),  # some reasoning servers refuse "required"
}
# Optional. A server that refuses one of the first three may not name it.
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
_SYSTEM_ROLE: Final = ("system role", _ANY)

Body = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """Facts about one model. ``refused``: pairs of an option and the refused value, ``""`` for any value.

    ``calls_tools``: it has called a tool; ``json_only``: it cannot. ``reasons``: it reasons before it writes, without
    being told to. ``leaves_open``: it ended a reply without closing the answer's tag.
    """

    refused: frozenset[tuple[str, str]] = frozenset()
    calls_tools: bool = False
    json_only: bool = False
    reasons: bool = False
    leaves_open: bool = False

    def __or__(self, other: Learned) -> Learned:
        """Merge the facts of both: concurrent calls to one model learn separately."""
        return Learned(**{each.name: getattr(self, each.name) | getattr(other, each.name) for each in fields(self)})

    def request(self, body: Body) -> Body:
        """Return the request as this model takes it, every text in it encodable."""
        request = body | {option: self._value(option, body) for option in _OPTIONS if option in body}
        messages = [{**message, "content": join_surrogates(message["content"])} for message in body["messages"]]
        request["messages"] = _without_system(messages) if _SYSTEM_ROLE in self.refused else messages
        if "max_tokens" in body and request["max_tokens"] is None:
            request["max_completion_tokens"] = body["max_tokens"]  # its newer name, for OpenAI's reasoning models
        return {name: value for name, value in request.items() if value is not None}

    def lesson(self, refusal: ServerRefusalError, body: Body) -> tuple[Learned | None, bool]:
        """Return the facts that this refusal of ``body`` shows (None: do not retry), and whether it names one.

        A refusal that names nothing may be a passing failure.
        """
        words = refusal.words
        if refusal.kind not in {"ConfigurationError", "LLMError"} or refusal.status not in _REFUSING_STATUSES:
            return None, False
        if _ABOUT_ROLES.search(words) and _SYSTEM_ROLE not in self.refused:
            return Learned(refused=frozenset({_SYSTEM_ROLE})), True
        about_tools = "tools" in body and bool(ABOUT_TOOLS.search(words))
        sent = [option for option in _OPTIONS if option in body and self._value(option, body) is not None]
        named = [option for option in sent if option in words]
        if not named and _ABOUT_EFFORT.search(words):
            named = [option for option in sent if option == "reasoning_effort"]
        unnamed = [option for option in sent if option in _UNNAMED and not about_tools]
        choice = [option for option in sent if option == "tool_choice" and self._value(option, body) != "auto"]
        if refusal.kind != "ConfigurationError" or not (named or unnamed or choice):
            return None, False
        option = (named or unnamed or choice)[0]
        value = self._value(option, body)
        combined = option == "reasoning_effort" and about_tools
        is_value = option == "tool_choice" or combined or (option in words and _ABOUT_VALUE.search(words))
        lesson = (_WITH_TOOLS if combined else option, value if is_value and isinstance(value, str) else _ANY)
        return Learned(refused=frozenset({lesson})), bool(named) or about_tools

    def _value(self, option: str, body: Body) -> Any:
        """Return the value to send for an option that the request has; None to leave it out."""
        wanted = body[option]
        if (option, _ANY) in self.refused:
            return None
        if not isinstance(wanted, str):
            return wanted
        names = (option, _WITH_TOOLS) if option == "reasoning_effort" and "tools" in body else (option,)
        values = (wanted, *_ALTERNATIVES.get(option, ()))
        return next((value for value in values if not any((name, value) in self.refused for name in names)), None)


def _without_system(messages: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
    """Return the messages with the system's text before the first user's, and never two of one role in a row."""
    turns = groupby(messages, key=lambda message: message["role"].replace("system", "user"))
    return [{"role": role, "content": "\n\n".join(each["content"] for each in group)} for role, group in turns]

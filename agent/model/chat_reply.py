"""Reads what a chat-completions server replies, whole or as server-sent events, without I/O.

Servers differ in what they leave out, so every field is looked for and none is believed: any bytes give a reply or a
``ModelError``. The SDK's own reader builds a validated object for every token, about ten times the cost of what is
needed here, and hides the end mark by which a whole stream is told from a broken one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from agent.actions import ToolCall
from agent.budget import Usage
from agent.model.protocol import ModelError, Piece

CHARACTERS_PER_TOKEN = 4  # of English text on average
MAX_EVENT = 1 << 20  # an event without an end must not take all memory
MOST_TRIES = 64  # so that a text full of braces costs little
_DECODER = json.JSONDecoder()


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply. ``cut_off`` is set when the server stopped at a token limit; ``usage`` is None without figures.

    ``calls`` are function calls as they came: the arguments beside each are JSON text, not yet looked at.
    """

    content: str
    calls: tuple[tuple[ToolCall, str], ...]
    usage: Usage | None
    cut_off: bool


class StreamedReply:
    """``feed`` the bytes of a streamed reply, ``close`` at the end. ``usage`` stays None without figures.

    ``reasoned``: its reasoning came apart from the content. A server that does not stream and sends one JSON object is
    read all the same, at the end.
    """

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.characters = 0
        self.reasoned = False
        self._events = EventStream()
        self._unstreamed: bytearray | None = None
        self._begun = False
        self._finish = ""
        self._ended = False

    def feed(self, chunk: bytes) -> list[Piece]:
        """The text that ``chunk`` completes, in one piece for each run on a channel. Raises ``ModelError``."""
        if not self._begun and chunk.strip():
            self._begun = True
            self._unstreamed = bytearray() if chunk.lstrip().startswith(b"{") else None
        if self._unstreamed is not None:
            self._unstreamed += chunk
            return []
        return self._pieces(self._events.feed(chunk))

    def close(self) -> list[Piece]:
        """The rest. Raises ``ModelError`` when the stream broke off, or the server stopped at a limit."""
        pieces = self._whole() if self._unstreamed else self._pieces(self._events.close())
        if self._finish == "length":
            raise ModelError(kind="TokenLimitError", detail="the reply was cut off at the token limit")
        if not (self._finish or self._ended):
            raise ModelError(kind="LLMError", detail="the stream ended before the reply was complete")
        return pieces

    def _whole(self) -> list[Piece]:
        reply = read_reply(bytes(self._unstreamed or b""))
        self.usage, self._finish = reply.usage, "length" if reply.cut_off else "stop"
        self.characters = len(reply.content)
        return [("content", reply.content)]

    def _pieces(self, events: Iterable[bytes]) -> list[Piece]:
        runs: list[Piece] = []
        for event in events:
            for channel, text in self._event(event):
                # What came in one read goes on as one piece: everybody behind works once a piece.
                before = runs.pop()[1] if runs and runs[-1][0] == channel else ""
                runs.append((channel, before + text))
        return runs

    def _event(self, event: bytes) -> Iterable[Piece]:
        if event.strip() == b"[DONE]":
            self._ended = True
            return
        payload = _object(event)
        self.usage = _usage(payload) or self.usage
        choice = _first_choice(payload)
        delta = _mapping(choice.get("delta"))
        _refuse(choice, delta)
        self._finish = _text(choice.get("finish_reason")) or self._finish
        reasoning = _text(delta.get("reasoning_content")) or _text(delta.get("reasoning"))  # two names for it
        content = _text(delta.get("content"))
        self.characters += len(reasoning) + len(content)
        if reasoning:
            self.reasoned = True
            yield "reasoning", reasoning
        if content:
            yield "content", content


def read_reply(body: bytes) -> Reply:
    """The reply in a response's body. Raises ``ModelError``."""
    payload = _object(body)
    choice = _first_choice(payload)
    if not choice:
        raise _garbage(sent="a reply without choices")
    message = _mapping(choice.get("message"))
    _refuse(choice, message)
    calls = message.get("tool_calls")
    return Reply(
        content=_text(message.get("content")),
        calls=tuple(_call(c, n) for n, c in enumerate(calls, 1)) if isinstance(calls, list) else (),
        usage=_usage(payload),
        cut_off=choice.get("finish_reason") == "length",
    )


def estimated(characters_in: int, characters_out: int) -> Usage:
    """What a call probably cost, for servers that do not say."""
    return Usage(
        model_calls=1,
        prompt_tokens=-(-characters_in // CHARACTERS_PER_TOKEN),
        completion_tokens=-(-characters_out // CHARACTERS_PER_TOKEN),
        estimated=True,
    )


def _call(wire: object, position: int) -> tuple[ToolCall, str]:
    call = _mapping(wire)
    function = _mapping(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some servers send an object where the protocol has a string
        arguments = orjson.dumps(arguments).decode()
    call_id = _text(call.get("id")) or f"call_{position}"
    return ToolCall(call_id=call_id, tool=_text(function.get("name"))), _text(arguments)


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        payload = _json(data)
    except (ValueError, RecursionError) as error:
        raise _garbage(sent="a reply that is not JSON") from error
    if not isinstance(payload, dict):
        raise _garbage(sent="a reply that is not an object")
    if fault := payload.get("error"):
        code = _mapping(fault).get("code") or _mapping(fault).get("type") or "no code"
        raise ModelError(kind="LLMError", detail=f"the server reported an error in its reply ({str(code)[:60]})")
    return payload


def _json(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)  # reads half a surrogate pair, which some servers send and the fast one refuses


def json_objects(text: str, decoder: json.JSONDecoder = _DECODER) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, in order, whatever stands round them; what lies inside one is not looked at."""
    start = text.find("{")
    for _ in range(MOST_TRIES):
        if start < 0:
            return
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


def _usage(payload: Mapping[str, Any]) -> Usage | None:
    usage = _mapping(payload.get("usage"))
    prompt, completion = (_mapping(usage.get(f"{kind}_tokens_details")) for kind in ("prompt", "completion"))
    told = {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": prompt.get("cached_tokens"),
        "reasoning_tokens": completion.get("reasoning_tokens"),
    }
    counts: dict[str, Any] = {name: count for name, count in told.items() if isinstance(count, int)}
    return Usage(model_calls=1, **counts) if {"prompt_tokens", "completion_tokens"} <= counts.keys() else None


def _first_choice(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    choices = payload.get("choices")
    return _mapping(choices[0]) if isinstance(choices, list) and choices else {}


def _refuse(choice: Mapping[str, Any], message: Mapping[str, Any]) -> None:
    if choice.get("finish_reason") == "content_filter" or message.get("refusal"):
        raise ModelError(kind="RefusalError", detail="the server refused to reply")


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str:
    """A string that can be encoded, or the texts of a list of content parts; anything else is nothing."""
    if isinstance(value, list):
        return "".join(_text(_mapping(part).get("text")) for part in value)
    return encodable(value) if isinstance(value, str) else ""


def encodable(text: str) -> str:
    """``text`` with question marks for half surrogate pairs, which no protocol can carry."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _garbage(*, sent: str) -> ModelError:
    return ModelError(kind="LLMError", detail=f"the server sent {sent}")


class EventStream:
    """``feed`` what arrives. Raises ``ModelError`` when one event grows beyond ``MAX_EVENT``."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that ``chunk`` completes. A server's ``error:`` line counts as data."""
        events: list[bytes] = []
        self._rest += chunk
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._line(bytes(line), events)
        if len(self._rest) + self._size > MAX_EVENT:
            raise _garbage(sent="an event is too long")
        return events

    def close(self) -> list[bytes]:
        """An event whose closing empty line never came."""
        events: list[bytes] = []
        self._line(bytes(self._rest), events)
        self._line(b"", events)
        self._rest = bytearray()
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        line = line.removesuffix(b"\r")
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data, self._size = [], 0
            return
        field, _, value = line.partition(b":")
        if field in {b"data", b"error"}:  # comments, ids and names of events carry no text
            self._data.append(value.removeprefix(b" "))  # of server-sent events: one space belongs to the colon
            self._size += len(value)

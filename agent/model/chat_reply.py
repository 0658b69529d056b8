"""Reads what a chat-completions server replies, whole or as server-sent events, without I/O.

Servers differ in what they leave out, so every field is optional and none is trusted: any bytes give a reply or a
``ModelError``. The SDK's own reader validates an object for every token, at ten times the cost, and cannot tell a
whole stream from a broken one.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from agent.actions import ToolCall
from agent.budget import Usage
from agent.model.failures import MAX_CODE, finish_failure, is_whole_finish, named_error, server_refusal
from agent.model.protocol import ModelError, Piece
from agent.model.tag_stream import TagStream

CHARACTERS_PER_TOKEN = 4  # of English text on average
MAX_EVENT = 1 << 20  # bytes: an event without an end must not take all memory
MAX_JSON_STARTS = 64  # so that a text full of braces costs little
_DECODER = json.JSONDecoder()
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_HIGH_SURROGATES: Final = ("\ud800", "\udbff")
# What function names consist of: some servers append parts of a chat template ("respond<|channel|>analysis").
_NAME: Final = re.compile(r"\s*(?:functions?\.)?([\w.:/-]+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A whole reply. ``cut_off``: the server stopped at a token limit. ``usage`` is None without figures.

    ``calls`` are function calls as they came: the arguments of each are JSON text, not yet parsed.
    """

    content: str
    calls: tuple[tuple[ToolCall, str], ...]
    usage: Usage | None
    cut_off: bool
    reasoning: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text that may hold JSON that was asked for, the likeliest first."""
        return (self.content, *(arguments for _, arguments in self.calls), self.reasoning)


class StreamedReply:
    """``feed`` the bytes of a streamed reply until ``ended``, then ``close``. ``usage`` stays None without figures.

    ``reasoned``: its reasoning came apart from the content. ``left_open``: the server named the end of the reply, but
    the answer's tag was never closed. A whole JSON object in place of a stream is read at the end.
    """

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.characters = 0
        self.reasoned = False
        self.ended = False
        self._events = EventStream()
        self._unstreamed: bytearray | None = None
        self._begun = False
        self._finish = ""
        self._called = False
        self._index: object = None
        self._content: list[str] = []
        self._held = ("", "")  # a channel and half a surrogate pair that ended its last text

    def feed(self, chunk: bytes) -> list[Piece]:
        """Return the text that ``chunk`` completes, one piece for each run on a channel. Raises ``ModelError``."""
        if not self._begun:
            head = chunk.lstrip(_BYTE_ORDER_MARK + b" \t\r\n")
            self._begun = bool(head)
            self._unstreamed = bytearray() if head.startswith(b"{") else None
        if self._unstreamed is not None:
            self._unstreamed += chunk
            return []
        return self._pieces(self._events.feed(chunk))

    def close(self) -> list[Piece]:
        """Return the rest. Raises ``ModelError`` for a reply that is not whole."""
        pieces = self._read_unstreamed() if self._unstreamed else self._pieces(self._events.close())
        failure = finish_failure(self._finish)
        named = is_whole_finish(self._finish) and not self._called
        if failure is None and not (named or self.is_closed):
            failure = ModelError(kind="LLMError", detail="the stream ended before the reply was complete")
        if not "".join(self._content).strip() and (failure is None or self._called):
            what = "only function calls" if self._called else "only reasoning" if self.reasoned else "nothing"
            failure = ModelError(kind="EmptyReplyError", detail=f"the reply held {what}")
        if failure:
            raise failure
        return pieces

    @property
    def is_closed(self) -> bool:
        """True if an answer's tag was opened and closed: all of it is there, however the stream ends."""
        tags = self._tags()
        return tags.answered and not tags.in_answer

    @property
    def left_open(self) -> bool:
        """True if an answer's tag was opened and not closed."""
        return self._tags().in_answer

    def _tags(self) -> TagStream:
        tags = TagStream()
        tags.feed("".join(self._content))
        return tags

    def _read_unstreamed(self) -> list[Piece]:
        reply = read_reply(bytes(self._unstreamed or b""))
        self.usage, self._finish = reply.usage, "length" if reply.cut_off else "stop"
        self.characters, self._content = len(reply.content), [reply.content]
        self._called, self.reasoned = bool(reply.calls), bool(reply.reasoning)
        return [("content", reply.content)]

    def _pieces(self, events: Iterable[tuple[str, bytes]]) -> list[Piece]:
        runs: list[Piece] = []
        for name, data in events:
            for channel, text in self._event(name, data):
                # Text of one read continues as one piece: each piece costs its consumers the same.
                before = runs.pop()[1] if runs and runs[-1][0] == channel else ""
                runs.append((channel, before + text))
        return [(channel, text) for channel, raw in runs if (text := self._encodable(channel, raw))]

    def _encodable(self, channel: str, raw: str) -> str:
        """Return the text with surrogate pairs joined, also across two events; the last half waits for the next."""
        if raw.isascii() and not self._held[1]:
            text = raw
        else:
            held, self._held = self._held, ("", "")
            raw = held[1] + raw if held[0] == channel else raw
            if _HIGH_SURROGATES[0] <= raw[-1:] <= _HIGH_SURROGATES[1]:
                raw, self._held = raw[:-1], (channel, raw[-1])
            text = join_surrogates(raw)
        self.characters += len(text)
        if channel == "content":
            self._content.append(text)
        return text

    def _event(self, name: str, data: bytes) -> Iterable[Piece]:
        if self.ended or not (data := data.strip()):  # an empty event keeps the connection alive
            return
        if data == b"[DONE]":
            self.ended = True
            return
        payload = _object(data)
        if name == "error":
            raise server_refusal(0, payload.get("code"), str(payload))
        self.usage = _usage(payload) or self.usage
        choices = _choices(payload)
        if choices and self._index is None:  # a second choice, which was not asked for, would be another answer
            self._index = choices[0].get("index")
        choice = next((each for each in choices if each.get("index") in {None, self._index}), {})
        delta = _mapping(choice.get("delta"))
        _raise_refusal(choice, delta)
        self._finish = _string(choice.get("finish_reason")) or self._finish
        self._called = self._called or bool(delta.get("tool_calls"))
        if reasoning := _reasoning(delta):
            self.reasoned = True
            yield "reasoning", reasoning
        if content := _string(delta.get("content")):
            yield "content", content


def read_reply(body: bytes) -> Reply:
    """Return the reply in a response's body. Raises ``ModelError``."""
    payload = _object(body.removeprefix(_BYTE_ORDER_MARK))
    choice = next(iter(_choices(payload)), None)
    if not choice:
        raise _nonsense(sent="a reply without choices")
    message, finish = _mapping(choice.get("message")), _string(choice.get("finish_reason"))
    _raise_refusal(choice, message)
    cut_off = finish_failure(finish) is not None
    if finish and not (cut_off or is_whole_finish(finish)):
        raise ModelError(kind="LLMError", detail=f"the server stopped the reply ({finish[:MAX_CODE]})")
    calls = message.get("tool_calls")
    return Reply(
        content=join_surrogates(_string(message.get("content"))),
        reasoning=join_surrogates(_reasoning(message)),
        calls=tuple(_call(c, n) for n, c in enumerate(calls, 1)) if isinstance(calls, list) else (),
        usage=_usage(payload),
        cut_off=cut_off,
    )


def estimate_usage(characters_in: int, characters_out: int) -> Usage:
    """Return what a call probably cost, for servers that do not say."""
    return Usage(
        model_calls=1,
        prompt_tokens=-(-characters_in // CHARACTERS_PER_TOKEN),
        completion_tokens=-(-characters_out // CHARACTERS_PER_TOKEN),
        estimated=True,
    )


def json_objects(text: str, decoder: json.JSONDecoder = _DECODER) -> Iterator[dict[str, Any]]:
    """Return the outermost JSON objects in a text, in order. A trailing comma in one does not matter."""
    start = text.find("{")
    for _ in range(MAX_JSON_STARTS):
        if start < 0:
            return
        rest = text[start:]
        for candidate in (rest, _TRAILING_COMMA.sub(r"\1", rest)):
            try:
                value, end = decoder.raw_decode(candidate)
            except (ValueError, RecursionError):
                continue
            yield value
            text = candidate
            break
        else:
            text, end = rest, 1
        start = text.find("{", end)


def join_surrogates(text: str) -> str:
    """Return ``text`` with halves of a surrogate pair joined; a lone half, which UTF-8 cannot carry, becomes ``?``."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")


def _call(wire: object, position: int) -> tuple[ToolCall, str]:
    call = _mapping(wire)
    function = _mapping(call.get("function"))
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some servers send an object where the protocol has a string
        arguments = orjson.dumps(arguments).decode()
    call_id = _string(call.get("id")) or f"call_{position}"
    name = _NAME.match(_string(function.get("name")))
    return ToolCall(call_id=call_id, tool=name[1] if name else ""), join_surrogates(_string(arguments))


def _object(data: bytes) -> Mapping[str, Any]:
    try:
        payload = _json(data)
    except (ValueError, RecursionError) as error:
        raise _nonsense(sent="a reply that is not JSON") from error
    if not isinstance(payload, dict):
        raise _nonsense(sent="a reply that is not an object")
    if failure := named_error(payload):
        raise failure
    return payload


def _json(data: bytes) -> object:
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError:
        return json.loads(data)  # reads half a surrogate pair, which some servers send and orjson refuses


def _usage(payload: Mapping[str, Any]) -> Usage | None:
    usage = _mapping(payload.get("usage"))
    prompt, completion = (_mapping(usage.get(f"{kind}_tokens_details")) for kind in ("prompt", "completion"))
    figures = {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": prompt.get("cached_tokens"),
        "reasoning_tokens": completion.get("reasoning_tokens"),
    }
    counts: dict[str, Any] = {name: int(str(count)) for name, count in figures.items() if str(count).isdecimal()}
    return Usage(model_calls=1, **counts) if {"prompt_tokens", "completion_tokens"} <= counts.keys() else None


def _choices(payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    choices = payload.get("choices")
    return list(map(_mapping, choices)) if isinstance(choices, list) else []


def _raise_refusal(choice: Mapping[str, Any], message: Mapping[str, Any]) -> None:
    failure = finish_failure(_string(choice.get("finish_reason")))
    if message.get("refusal") or (failure and failure.kind == "RefusalError"):
        raise failure or ModelError(kind="RefusalError", detail="the server refused to reply")


def _reasoning(message: Mapping[str, Any]) -> str:
    return _string(message.get("reasoning_content")) or _string(message.get("reasoning"))  # two names for it


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _string(value: object) -> str:
    """Return a string, or the texts of a list of content parts; anything else is empty."""
    if isinstance(value, list):
        return "".join(_string(_mapping(part).get("text")) for part in value)
    return value if isinstance(value, str) else ""


def _nonsense(*, sent: str) -> ModelError:
    return ModelError(kind="LLMError", detail=f"the server sent {sent}")


class EventStream:
    """Splits server-sent events. Raises ``ModelError`` when one event grows beyond ``MAX_EVENT``."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._name = ""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[tuple[str, bytes]]:
        """Return name and data of the events that ``chunk`` completes. A server's ``error:`` line is an error event."""
        events: list[tuple[str, bytes]] = []
        self._rest += chunk
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._line(bytes(line), events)
        if len(self._rest) + self._size > MAX_EVENT:
            raise _nonsense(sent="an event that is too long")
        return events

    def close(self) -> list[tuple[str, bytes]]:
        """Return an event whose closing empty line never came."""
        events: list[tuple[str, bytes]] = []
        self._line(bytes(self._rest), events)
        self._line(b"", events)
        self._rest = bytearray()
        return events

    def _line(self, line: bytes, events: list[tuple[str, bytes]]) -> None:
        line = line.removesuffix(b"\r").removeprefix(_BYTE_ORDER_MARK)
        if not line:
            if self._data:
                events.append((self._name, b"\n".join(self._data)))
            self._name, self._data, self._size = "", [], 0
            return
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")  # of server-sent events: one space belongs to the colon
        if field == b"event":
            self._name = value.decode("utf-8", "replace").strip()
        elif field in {b"data", b"error"}:  # comments and ids carry no text
            self._name = "error" if field == b"error" else self._name
            self._data.append(value)
            self._size += len(value)

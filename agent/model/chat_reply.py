"""Reads the reply of a chat-completions server, whole or in chunks, without I/O. Servers may leave out any field."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal

from agent.actions import ToolCall
from agent.budget import Usage
from agent.model.failures import MAX_CODE, WHOLE_FINISH, finish_failure, named_error
from agent.model.protocol import ModelError, Piece
from agent.model.tag_stream import TagStream
from agent.payload import mapping, objects

CHARACTERS_PER_TOKEN = 4  # of English text on average
MAX_JSON_STARTS = 64  # bounds the cost of a text full of braces
_DECODER = json.JSONDecoder()
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
_COUNT: Final = re.compile(r"\d{1,15}")
_HIGH_SURROGATES: Final = ("\ud800", "\udbff")
# Characters of function names: some servers append parts of a chat template ("respond<|channel|>analysis").
_NAME: Final = re.compile(r"\s*(?:functions?\.)?([\w.:/-]+)")


class Reply:
    """The reply so far: ``read`` each JSON object of it, then check that it is complete.

    ``calls`` are function calls, each with its arguments as JSON text. ``usage`` is None without figures.
    ``finish`` is the server's reason for the end of the text, if it gave one.
    """

    def __init__(self) -> None:
        self.usage: Usage | None = None
        self.calls: list[tuple[ToolCall, str]] = []
        self._texts: dict[str, list[str]] = {"reasoning": [], "content": []}
        self._halves: dict[str, str] = {}
        self.finish = ""
        self._index: object = None

    def read(self, payload: object) -> list[Piece]:
        """Add a chunk or a whole reply, and return its text. Raises ``ModelError`` for an error or a refusal."""
        if not isinstance(payload, dict):
            raise ModelError(kind="LLMError", detail="the server sent a reply that is not an object")
        if error := named_error(payload):
            raise error
        if figures := mapping(payload, "usage"):
            self.usage = _read_usage(figures) or self.usage
        choices = objects(payload, "choices")
        if choices and self._index is None:  # a second choice, which was not requested, would be another answer
            self._index = choices[0].get("index")
        choice = next((each for each in choices if str(each.get("index")) in {"None", str(self._index)}), {})
        return self._read_choice(choice, mapping(choice, "delta" if "delta" in choice else "message"))

    def _read_choice(self, choice: Mapping[str, Any], message: Mapping[str, Any]) -> list[Piece]:
        ended = "stop" if "message" in choice else ""  # a whole reply need not name its end
        self.finish = _string(choice.get("finish_reason")) or self.finish or ended
        failure = finish_failure(self.finish)
        if message.get("refusal") or (failure and failure.kind == "RefusalError"):
            raise failure or ModelError(kind="RefusalError", detail="the server refused to reply")
        for call in objects(message, "tool_calls"):
            self.calls.append(_read_call(call, len(self.calls) + 1))
        reasoning = _string(message.get("reasoning_content") or message.get("reasoning"))  # two names for it
        content = _string(message.get("content") or choice.get("text"))
        return [*self._add_text("reasoning", reasoning), *self._add_text("content", content)]

    def _add_text(self, channel: Literal["reasoning", "content"], text: str) -> Iterator[Piece]:
        """Add to the text of a channel. Half a surrogate pair at its end waits for the other half."""
        if text:
            text = self._halves.pop(channel, "") + text
            if _HIGH_SURROGATES[0] <= text[-1] <= _HIGH_SURROGATES[1]:
                text, self._halves[channel] = text[:-1], text[-1]
        if text:
            self._texts[channel].append(join_surrogates(text))
            yield channel, self._texts[channel][-1]

    @property
    def content(self) -> str:
        """The text so far."""
        return "".join(self._texts["content"])

    @property
    def reasoning(self) -> str:
        """The reasoning so far that came separately from the content."""
        return "".join(self._texts["reasoning"])

    @property
    def texts(self) -> tuple[str, ...]:
        """Every text that may contain the requested JSON, the likeliest first."""
        return (self.content, *(arguments for _, arguments in self.calls), self.reasoning)

    @property
    def cut_off(self) -> bool:
        """True if the server stopped at a token limit."""
        return finish_failure(self.finish) is not None

    @property
    def is_whole(self) -> bool:
        """True if the model ended its text itself, or closed the answer: then the text is complete."""
        tags = self.tags
        return bool(WHOLE_FINISH.fullmatch(self.finish) and not self.calls) or (tags.answered and not tags.in_answer)

    @property
    def tags(self) -> TagStream:
        """The tags of the text so far."""
        tags = TagStream()
        tags.feed(self.content)
        return tags

    def check_message(self) -> None:
        """Raise ``ModelError`` if an unstreamed reply is empty, or ended for an unknown reason."""
        if not self.finish:
            raise ModelError(kind="LLMError", detail="the server sent a reply without choices")
        if not (self.cut_off or WHOLE_FINISH.fullmatch(self.finish)):
            raise ModelError(kind="LLMError", detail=f"the server stopped the reply ({self.finish[:MAX_CODE]})")

    def check_answer(self) -> None:
        """Raise ``ModelError`` if a stream ended before the answer was complete."""
        failure = finish_failure(self.finish)
        if failure is None and not self.is_whole:
            failure = ModelError(kind="LLMError", detail="the stream ended before the reply was complete")
        if not self.content.strip() and (failure is None or self.calls):
            what = "only function calls" if self.calls else "only reasoning" if self.reasoning else "nothing"
            failure = ModelError(kind="EmptyReplyError", detail=f"the reply held {what}")
        if failure:
            raise failure


def estimate_usage(characters_in: int, characters_out: int) -> Usage:
    """Return the estimated cost of a call, for servers that do not report it."""
    prompt, completion = (-(-characters // CHARACTERS_PER_TOKEN) for characters in (characters_in, characters_out))
    return Usage(model_calls=1, prompt_tokens=prompt, completion_tokens=completion, estimated=True)


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


def _read_call(wire: Mapping[str, Any], position: int) -> tuple[ToolCall, str]:
    function = mapping(wire, "function")
    arguments = function.get("arguments")
    if isinstance(arguments, dict):  # some servers send an object where the protocol has a string
        arguments = json.dumps(arguments)
    name = _NAME.match(_string(function.get("name")))
    call = ToolCall(call_id=_string(wire.get("id")) or f"call_{position}", tool=name[1] if name else "")
    return call, join_surrogates(_string(arguments))


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    figures = {
        "prompt_tokens": usage.get("prompt_tokens"),
        "completion_tokens": usage.get("completion_tokens"),
        "cached_tokens": mapping(usage, "prompt_tokens_details").get("cached_tokens"),
        "reasoning_tokens": mapping(usage, "completion_tokens_details").get("reasoning_tokens"),
    }
    counts: dict[str, Any] = {name: int(str(count)) for name, count in figures.items() if _COUNT.fullmatch(str(count))}
    return Usage(model_calls=1, **counts) if {"prompt_tokens", "completion_tokens"} <= counts.keys() else None


def _string(value: object) -> str:
    """Return a string, or the texts of content parts; anything else is empty."""
    if isinstance(value, str):
        return value
    parts = value if isinstance(value, list) else [value]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "".join(text for text in texts if isinstance(text, str))

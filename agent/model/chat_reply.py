"""Reads the reply of a chat-completions server and classifies its text: thinking, answer, or untagged. No I/O.

A reply comes whole or in chunks, and servers may leave out any field. The result does not depend on where a stream is
cut, and at most ``MAX_TAG`` characters are held back. Inside thinking only its own closing tag counts, so a model that
reasons about ``<answer>`` leaks nothing. A tag in the middle of an answer is text, which verification fails: an answer
about such tags must not lose words, nor may thinking show.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

from agent.actions import ToolCall
from agent.budget import Usage
from agent.json_data import mapping, objects, string
from agent.model.failures import MAX_CODE, ServerRefusalError
from agent.model.protocol import ModelError, Piece

Kind = Literal["thinking", "answer", "untagged"]

MAX_TAG = 128  # the longest tag, attributes included; anything longer is text

# Possessive quantifiers (`*+`, `++`) never backtrack, so no text can slow a match down.
_ATTRIBUTE = r"""\s++[A-Za-z_:][\w:.-]*+(?:\s*+=\s*+(?:"[^"<>]*+"|'[^'<>]*+'|[^\s"'<>=]++))"""
_WORDS = r"thinking|think|thoughts?|reasoning|answer"
_OTHER_TAGS = ("[THINK]", "[/THINK]", "◁think▷", "◁/think▷")  # of Magistral and Kimi
_TAG = re.compile(rf"(?i:<\s*+/?\s*+(?:{_WORDS})(?:{_ATTRIBUTE})*+\s*+>)|{'|'.join(map(re.escape, _OTHER_TAGS))}")
_END_MARK = re.compile(r"(?:</?s>|<eos>|<end_of_turn>|<[|｜][\w▁]+[|｜]>|\[/?INST\])$")
_SLASH_AND_WORD = re.compile(r"[<\[◁]\s*+(/?)\s*+([A-Za-z])")
_FIRST_WORD = re.compile(r"\S")
_GOES_ON = re.compile(r"[ \t]+[a-zà-ÿ\[(]|[.,;:)]")  # a sentence, after the tag that it names


def _may_become_tag(text: str) -> bool:
    """Return True for an open ``<``, or the beginning of a tag in other brackets."""
    return ">" not in text if text[0] == "<" else any(tag[:-1].startswith(text) for tag in _OTHER_TAGS)


class TypedText(NamedTuple):
    """A run of text of one kind. ``section`` increases with every tag that changes the state."""

    kind: Kind
    text: str
    section: int = 0


@dataclass(slots=True)
class TagStream:
    """The state machine: call ``feed`` with each chunk and ``close`` at the end."""

    answered: bool = False  # an ``<answer>`` was opened
    in_answer: bool = False  # it is still open
    length: int = 0  # characters that may be part of the draft
    _in_thinking: bool = False
    _has_words: bool = False  # the open answer
    _section: int = 0
    _held: str = ""
    _last: str = ""  # the character before the held text
    _answers: list[TypedText] = field(default_factory=list)
    _received: list[str] = field(default_factory=list)

    def feed(self, chunk: str) -> list[TypedText]:
        """Return the text that can be classified now that ``chunk`` has arrived."""
        self._received.append(chunk)
        text = self._held + chunk
        typed: list[TypedText] = []
        start = 0
        for tag in _TAG.finditer(text):
            slash, is_answer = _read_tag(tag)
            before = text[tag.start() - 1] if tag.start() else self._last
            is_named = before == "`" and not (slash or is_answer)  # an answer about "`<think>`"
            if is_named or tag.end() - tag.start() > MAX_TAG:
                continue
            self._emit(typed, text[start : tag.start()])
            is_dropped = self._turn(slash + ("answer" if is_answer else "thinking"))
            start = tag.end() if is_dropped else tag.start()
        # A tag contains no second bracket that opens, so only the last one of each kind matters.
        lasts = (text.rfind(opening, max(start, len(text) - MAX_TAG + 1)) for opening in "<[◁")
        hold = min((last for last in lasts if last >= 0 and _may_become_tag(text[last:])), default=len(text))
        self._emit(typed, text[start:hold])
        self._last, self._held = text[hold - 1] if hold else self._last, text[hold:]
        return typed

    def close(self) -> list[TypedText]:
        """Return the text that was held back: it did not become a tag."""
        typed: list[TypedText] = []
        self._emit(typed, self._held)
        self._held = ""
        return typed

    @property
    def draft(self) -> str:
        """The text to verify, stripped: the answers as paragraphs, else the text after the thinking that opens it."""
        if not self.answered:
            return _strip_end_marks(_after_thinking("".join(self._received)))
        answers = groupby(self._answers, key=attrgetter("section"))
        texts = (_strip_end_marks("".join(each.text for each in run)) for _, run in answers)
        return "\n\n".join(filter(None, texts))

    def _emit(self, typed: list[TypedText], text: str) -> None:
        if not text:
            return
        kind: Kind = "thinking" if self._in_thinking else "answer" if self.in_answer else "untagged"
        typed.append(TypedText(kind, text, self._section))
        if kind == "answer":
            self._answers.append(typed[-1])
            self._has_words = self._has_words or not text.isspace()
        self.length += len(text) * (kind != "thinking")

    def _turn(self, tag: str) -> bool:
        """Change the state for a tag, and return whether it is dropped.

        A tag that makes no sense here has no effect. The end of thinking that began without a tag inside an answer
        stays in the text: verification then fails the thinking.
        """
        match tag:
            case "answer" if not (self.in_answer or self._in_thinking):
                self.answered = self.in_answer = True
                self._has_words = False
            case "/answer" if self.in_answer:
                self.in_answer = self._in_thinking = False
            case "thinking" if not (self._in_thinking or (self.in_answer and self._has_words)):
                self._in_thinking = True
            # Even without an opening tag: some chat templates open the thinking for the model.
            case "/thinking" if self._in_thinking or not self.in_answer:
                self._in_thinking = False
            case _:
                return self._in_thinking or "answer" in tag
        self._section += 1
        return True


def _read_tag(tag: re.Match[str]) -> tuple[str, bool]:
    """Return the slash of a closing tag (else an empty text), and whether the tag is one for answers."""
    slash, word = _SLASH_AND_WORD.match(tag[0]).groups()  # type: ignore[union-attr]  # every tag has both
    return slash, word in "aA"


def _after_thinking(text: str) -> str:
    """Return a reply without answer tags after its last thinking; empty if it begins with thinking that has no end.

    Some chat templates open the thinking, so that the reply has only its end. A tag that a sentence names is text.
    """
    begin, opened, first_word = 0, False, _FIRST_WORD.search(text)
    for tag in _TAG.finditer(text):
        slash, is_answer = _read_tag(tag)
        if is_answer or text[tag.start() - 1 : tag.start()] == "`":
            continue
        if not slash:
            opened = opened or (first_word is not None and first_word.start() == tag.start())
        elif opened or not _GOES_ON.match(text, tag.end()):
            begin, opened, first_word = tag.end(), False, _FIRST_WORD.search(text, tag.end())
    return "" if opened else _TAG.sub(lambda tag: "" if _read_tag(tag)[1] else tag[0], text[begin:])


def _strip_end_marks(text: str) -> str:
    """Return a text without blanks around it, nor the marks that a chat template left at its end."""
    text = text.strip()
    while mark := _END_MARK.search(text, max(0, len(text) - MAX_TAG)):
        text = text[: mark.start()].rstrip()
    return text


def tags_of(text: str) -> TagStream:
    """Return the tags of a text, with its draft."""
    tags = TagStream()
    tags.feed(text)
    tags.close()
    return tags


_CUT_FINISH: Final = re.compile(r"(?i)length|max.?(?:output.?)?tokens|token.?limit|truncat")
_REFUSED_FINISH: Final = re.compile(
    r"(?i)filter|safety|refus|recitation|prohibited|block|sensitive|moderat|inspection|guardrail|toxic"
)
# The model ended its reply by itself.
WHOLE_FINISH: Final = re.compile(
    r"(?i)(?:finish_?reason[._])?(?:stop(?:_sequence)?|eos(?:_token)?|end(?:_turn)?|completed?|finish(?:ed)?|done|(?:tool|function)_calls?)"
)

CHARACTERS_PER_TOKEN = 4  # in English on average
MAX_JSON_STARTS = 64  # limits the cost of a text full of braces
_DECODER = json.JSONDecoder()
_TRAILING_COMMA: Final = re.compile(r",(\s*[}\]])")
_TEXT_PARTS: Final = ("text", "output_text")  # other parts of a content are thinking
_COUNT: Final = re.compile(r"\d{1,15}")
_HIGH_SURROGATES: Final = ("\ud800", "\udbff")
# Characters of function names: some servers append parts of a chat template ("respond<|channel|>analysis").
_NAME: Final = re.compile(r"\s*(?:functions?\.)?([\w.:/-]+)")


@dataclass(slots=True)
class Reply:
    """The reply so far. Pass each of its JSON objects to ``read``, then check that it is complete."""

    usage: Usage | None = None  # None if the server gave no figures
    calls: list[tuple[ToolCall, str]] = field(default_factory=list)  # function calls and their arguments as JSON text
    finish: str = ""  # the server's reason for ending the text, if it gave one
    _texts: dict[str, list[str]] = field(default_factory=lambda: {"reasoning": [], "content": []})
    _halves: dict[str, str] = field(default_factory=dict)
    _index: object = None

    def read(self, payload: object) -> list[Piece]:
        """Add a chunk or a whole reply, and return its text. Raises ``ModelError`` for an error or a refusal."""
        if not isinstance(payload, dict):
            raise ModelError(kind="LLMError", detail="the server sent a reply that is not an object")
        choice = self._first_choice(payload)
        if error := named_error(payload) or ("error" in choice and named_error({"error": choice["error"]})):
            raise error
        if figures := mapping(payload, "usage"):
            self.usage = _read_usage(figures) or self.usage
        message = mapping(choice, "delta" if "delta" in choice else "message")
        ended = "stop" if "message" in choice else ""  # a whole reply need not name its end
        self.finish = _string(choice.get("finish_reason")) or self.finish or ended
        failure = finish_failure(self.finish)
        if message.get("refusal") or (failure and failure.kind == "RefusalError"):
            raise failure or ModelError(kind="RefusalError", detail="the server refused to reply")
        self._add_calls(message)
        reasoning = _string(message.get("reasoning_content") or message.get("reasoning"))  # two names for it
        content = _string(message.get("content") or choice.get("text"))
        if "delta" not in choice and message:  # a whole message at the end of a stream repeats its text
            content = content.removeprefix(self.content)
        return [*self._add_text("reasoning", reasoning), *self._add_text("content", content)]

    def _first_choice(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        choices = objects(payload, "choices")
        if choices and self._index is None:  # we did not request a second choice: it would be another answer
            self._index = choices[0].get("index")
        return next((each for each in choices if str(each.get("index")) in {"None", str(self._index)}), {})

    def _add_calls(self, message: Mapping[str, Any]) -> None:
        earlier = mapping(message, "function_call")  # before there were tools, a reply had one call
        for call in objects(message, "tool_calls") or ([earlier] if earlier else []):
            function = mapping(call, "function") or call
            arguments, name = function.get("arguments"), _NAME.match(_string(function.get("name")))
            # Some servers send an object where the protocol has a string.
            text = json.dumps(arguments) if isinstance(arguments, dict) else _string(arguments)
            call_id = _string(call.get("id")) or f"call_{len(self.calls) + 1}"
            self.calls.append((ToolCall(call_id=call_id, tool=name[1] if name else ""), join_surrogates(text)))

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
        """All texts that may contain the requested JSON, the most likely first."""
        return (self.content, *(arguments for _, arguments in self.calls), self.reasoning)

    @property
    def cut_off(self) -> bool:
        """True if the server stopped at a token limit."""
        return finish_failure(self.finish) is not None

    @property
    def is_closed(self) -> bool:
        """True if the model closed its answer: then the text is complete."""
        return self.tags.answered and not self.tags.in_answer

    @property
    def is_whole(self) -> bool:
        """True if the model ended its text itself, or closed its answer."""
        has_calls = self.calls or "call" in self.finish.lower()  # then the text may go on after them
        return bool(WHOLE_FINISH.fullmatch(self.finish) and not has_calls) or self.is_closed

    @property
    def tags(self) -> TagStream:
        """The tags of the text so far."""
        return tags_of(self.content)

    def check_message(self) -> None:
        """Raise ``ModelError`` if an unstreamed reply is empty, or ended for an unknown reason."""
        if not self.finish:
            raise ModelError(kind="LLMError", detail="the server sent a reply without choices")
        if not (self.cut_off or WHOLE_FINISH.fullmatch(self.finish)):
            raise ModelError(kind="LLMError", detail=f"the server stopped the reply ({self.finish[:MAX_CODE]})")

    def check_answer(self) -> None:
        """Raise ``ModelError`` if a stream ended before the answer was complete."""
        failure = None
        if not self.is_whole:
            detail = "the stream ended before the reply was complete"
            failure = finish_failure(self.finish) or ModelError(kind="LLMError", detail=detail)
        if not self.tags.draft and (failure is None or self.calls):
            has_thoughts = self.reasoning or self.content.strip()
            what = "only function calls" if self.calls else "only reasoning" if has_thoughts else "nothing"
            failure = ModelError(kind="EmptyReplyError", detail=f"the reply held {what}")
        if failure:
            raise failure


def finish_failure(finish: str) -> ModelError | None:
    """Return the failure that a finish reason names, or None if it names the end of a reply or is unknown."""
    if _CUT_FINISH.search(finish):
        return ModelError(kind="TokenLimitError", detail="the reply was cut off at the token limit")
    if _REFUSED_FINISH.search(finish):
        return ModelError(kind="RefusalError", detail=f"the server stopped the reply ({finish[:MAX_CODE]})")
    return None


def named_error(payload: object) -> ServerRefusalError | None:
    """Return the error in a reply, in any of the forms servers use, or None."""
    reply = mapping(payload)
    fault = reply.get("error")
    is_error = fault or reply.get("object") == "error"
    if not (is_error or reply.keys() & {"choices", "usage"} or str(reply.get("code")) in {"0", "200"}):
        is_error = isinstance(reply.get("message"), str) or reply.get("detail") or reply.get("errors")
    return ServerRefusalError(0, mapping(fault) or reply) if is_error else None


def json_objects(text: str, decoder: json.JSONDecoder = _DECODER) -> Iterator[dict[str, Any]]:
    """Return the outermost JSON objects in a text, in order. A trailing comma inside one does not matter."""
    start = text.find("{")
    for _ in range(MAX_JSON_STARTS):
        if start < 0:
            return
        rest = text[start:]
        for candidate in (rest, _TRAILING_COMMA.sub(r"\1", rest)):
            try:
                value, end = decoder.raw_decode(candidate)
                if "\\u" in candidate:  # a tool could not store half a surrogate pair
                    value = json.loads(join_surrogates(json.dumps(value, ensure_ascii=False)))
            except (ValueError, RecursionError):
                continue
            yield value
            text = candidate
            break
        else:
            text, end = rest, 1
        start = text.find("{", end)


def join_surrogates(text: str) -> str:
    """Return ``text`` with halves of a surrogate pair joined; a lone half, which UTF-8 cannot encode, becomes ``?``."""
    if text.isascii():
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\ufffd", "?")


def _read_usage(usage: Mapping[str, Any]) -> Usage | None:
    figures = {name: usage.get(name) for name in ("prompt_tokens", "completion_tokens")}
    figures["cached_tokens"] = mapping(usage, "prompt_tokens_details").get("cached_tokens")
    figures["reasoning_tokens"] = mapping(usage, "completion_tokens_details").get("reasoning_tokens")
    counts: dict[str, Any] = {name: int(str(count)) for name, count in figures.items() if _COUNT.fullmatch(str(count))}
    # No request has an empty prompt: a server that says 0 does not count.
    return Usage(model_calls=1, **counts) if counts.get("prompt_tokens") and "completion_tokens" in counts else None


def _string(value: object) -> str:
    """Return a string, or the texts of content parts; anything else is empty."""
    if not value or isinstance(value, str):  # fast: nearly every field of a chunk
        return str(value or "")
    parts = value if isinstance(value, list) else [value]
    written = ({"text": part} if isinstance(part, str) else mapping(part) for part in parts)
    return "".join(string(part, "text") for part in written if part.get("type", "text") in _TEXT_PARTS)

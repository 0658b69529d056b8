"""The model behind a server that speaks OpenAI's chat completions: the requests of each phase, and their replies.

A decision is an action: each is a function for the model to call. Prose, code fences and thinking around a JSON object
are ignored. A missing or wrongly typed field is a ``ControlError`` whose text tells the model what to correct.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Final, get_args

from agent.actions import CONTROL_NAMES, Action, Step, ToolCall, ToolCalls
from agent.budget import Usage
from agent.json_data import mapping, objects, string
from agent.model.chat_reply import Reply, json_objects, tags_of
from agent.model.chat_server import LOWEST_EFFORT, Body, ChatServer, Timeouts
from agent.model.failures import ABOUT_TOOLS, ServerRefusalError
from agent.model.prompts import ChatMessage, decide_messages, judge_messages, write_messages
from agent.model.protocol import (
    DecideContext,
    Decision,
    Generated,
    JudgeContext,
    ModelError,
    ModelErrorKind,
    Opinion,
    ReplyKind,
    WriteContext,
    WriteStream,
)
from agent.thread.state import MAX_STEPS
from agent.tools.tool import ToolSpec
from verification.judgement import NO_LINE, Judgement

MAX_REPLY_CHARS: Final = 65_536  # bounds the search for JSON in hostile text
_PLAN_FIELDS: Final = ("description", "tool", "acceptance")

_TEXT: Final = {"type": "string"}
_PLAN: Final = {
    "type": "array",
    "description": "The steps, if there is no plan yet and more than one is needed.",
    "items": {"type": "object", "properties": dict.fromkeys(_PLAN_FIELDS, _TEXT), "required": ["description"]},
}
# Each function's purpose, required fields and optional fields.
_CONTROL: Final[Mapping[str, tuple[str, Mapping[str, Any], Mapping[str, Any]]]] = {
    "respond": ("The sources state what was asked, or a search found nothing more: the reply is written next.", {}, {}),
    "ask_user": ("Ask the person for one missing fact.", {"question": _TEXT, "key": _TEXT}, {}),
    "finish_step": (
        "A step of the plan is done, or a plan is begun.",
        {"step": {"type": "integer"}, "result": _TEXT},
        {"plan": _PLAN},
    ),
    "complete": ("End with a short friendly reply that states nothing.", {"summary": _TEXT}, {}),
    "no_reply": ("Post nothing: the message is meant for other people.", {}, {}),
}
_NUMBER: Final = re.compile(r"[1-9]\d{0,8}")
_ADDRESSEES: Final = {"respond": "The message is meant for you.", "no_reply": _CONTROL["no_reply"][0]}
_ACTIONS: Final = {name: action for action, name in CONTROL_NAMES.items()}


class ControlError(ValueError):
    """The output is not a valid decision. The text is written for the model."""

    # Raised as ControlError(fault="…"): ruff (EM101) forbids a literal as the first positional argument.
    def __init__(self, fault: str) -> None:
        super().__init__(fault)


def functions(tools: Iterable[ToolSpec], *, addressed: bool = True) -> list[dict[str, Any]]:
    """Return the ``tools`` field of a chat request, the same in every step: it comes first in a prompt cache.

    Every control function accepts a plan, but only one offers it. A message that was not ``addressed`` to Orion gets a
    reply or none.
    """
    described = [
        (name, text, {"type": "object", "properties": {**fields, **more}, "required": [*fields]})
        for name, (text, fields, more) in _CONTROL.items()
        if name != "no_reply"
    ]
    described += [(tool.name, tool.description, dict(tool.parameters) or {"type": "object"}) for tool in tools]
    if not addressed:
        described = [(name, text, {"type": "object", "properties": {}}) for name, text in _ADDRESSEES.items()]
    return [
        {"type": "function", "function": {"name": name, "description": text, "parameters": parameters}}
        for name, text, parameters in described
    ]


def read_arguments(text: str) -> Mapping[str, Any]:
    """Return the arguments of a native call, which are a JSON object or empty. Raises ``ControlError``."""
    text = text.strip()
    if text.startswith('"'):  # encoded twice
        with suppress(ValueError):
            text = json.loads(text)
    arguments = {} if text in {"", "null", "[]"} else next(json_objects(text), None)
    if arguments is None:
        raise ControlError(fault="The arguments of a call are not a JSON object.")
    return arguments


def read_calls(calls: Sequence[ToolCall]) -> Action:
    """Return one action from the calls of a reply: all real tools together, else the first control call."""
    if not calls:
        raise ControlError(fault="No function was called.")
    real = tuple(call for call in calls if call.tool not in _CONTROL)
    plan = _first_plan(call.input for call in calls if call.tool in _CONTROL)
    if real:
        return ToolCalls(calls=real, plan=plan)
    fields: dict[str, Any] = {name: _read_field(calls[0], name) for name in _CONTROL[calls[0].tool][1]}
    return _ACTIONS[calls[0].tool](**fields, plan=plan)


def read_json(text: str) -> Action:
    """Return one action from the text of a server without tool calling. Raises ``ControlError``."""
    found = list(json_objects((tags_of(text).draft if "<" in text else text)[:MAX_REPLY_CHARS]))
    chosen = [each for each in found if "action" in each]
    if not chosen:
        fault = "There is no JSON object with an 'action' in the reply." if found else "The reply has no JSON object."
        raise ControlError(fault)
    # Only tool calls are combined; text after a control action is ignored.
    together = chosen if chosen[0]["action"] == "tool_call" else chosen[:1]
    action = read_calls([_json_call(each, position) for position, each in enumerate(together, 1)])
    if isinstance(action, ToolCalls):  # the plan is next to the tool's input and not part of the call
        with suppress(ControlError):  # an unreadable plan does not stop a readable call
            return replace(action, plan=_first_plan(together))
    return action


def _json_call(found: Mapping[str, Any], position: int) -> ToolCall:
    action, tool, arguments = found["action"], found.get("tool"), found.get("input", {})
    if isinstance(action, str) and action in _CONTROL:
        return ToolCall(tool=action, input=found, call_id="")
    if action != "tool_call":
        named = 'A tool is named in \'tool\', next to "action": "tool_call".'
        raise ControlError(fault=f"'action' must be one of {', '.join(_CONTROL)}, tool_call. {named}")
    if not isinstance(tool, str) or not tool or not isinstance(arguments, dict):
        raise ControlError(fault="A tool_call needs 'tool' (a name) and 'input' (an object).")
    return ToolCall(tool=tool, input=arguments, call_id=f"call_{position}")


def _read_field(call: ToolCall, field: str) -> int | str:
    value = call.input.get(field)
    if field == "step":
        if not _NUMBER.fullmatch(str(value)):
            raise ControlError(fault="'finish_step' needs 'step', a number of the plan counted from 1.")
        return int(str(value))
    if not isinstance(value, str) or not value.strip():
        raise ControlError(fault=f"{call.tool!r} needs {field!r}, a string that is not empty.")
    return value.strip()


def _first_plan(given: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    """Return the first plan that has steps. Raises ``ControlError`` if a plan before it is malformed."""
    for plan in (each.get("plan") for each in given):
        steps: list[dict[str, Any]] = [{name: step.get(name) or "" for name in _PLAN_FIELDS} for step in objects(plan)]
        readable = [Step(**s) for s in steps if s["description"] and all(isinstance(text, str) for text in s.values())]
        if plan is not None and not (isinstance(plan, list) and len(readable) == len(plan) <= MAX_STEPS):
            fields = "objects with 'description', and 'tool', 'acceptance' if any"
            raise ControlError(fault=f"'plan' must be a list of at most {MAX_STEPS} {fields}.")
        if readable:
            return tuple(readable)
    return ()


_LINE: Final = re.compile(r"(\d{1,9})\.(\d{1,9})")
_CLAIM: Final = re.compile(r"(?i)(?:claim )?(\d{1,9})(?:\.0)?")
# A half-supported claim is not supported: the model rewrites it.
_BOOLEANS: Final = dict.fromkeys(("true", "yes", "1", "supported"), True) | dict.fromkeys(
    ("false", "no", "0", "not supported", "unsupported", "partly", "partially", "partial"), False
)
_LINE_DECODER: Final = json.JSONDecoder(parse_float=str)  # as numbers, the lines 2.1 and 2.10 would be the same


def read_opinion(*texts: str) -> Opinion:
    """Return the usable verdicts from the first text that has any, with or without an object around them."""
    found: dict[str, Any] = {}
    for text in texts:
        objects = list(json_objects(text, _LINE_DECODER))
        complete = [each for each in objects if isinstance(each.get("verdicts"), list)]
        bare = [each for each in objects if "claim" in each]
        found = complete[-1] if complete else {"verdicts": bare} if bare else found
        if found:
            break
    read = [each for verdict in found.get("verdicts", []) if (each := _read_verdict(mapping(verdict)))]
    # A claim with two verdicts counts as having none, and all do if they were counted from 0.
    times, reply = Counter(number for number, _ in read), found.get("reply")
    judgements = {number: judgement for number, judgement in read if times[number] == 1 and not times[0]}
    return Opinion(judgements=judgements, reply=reply if reply in get_args(ReplyKind) else None)


def _read_verdict(verdict: Mapping[str, Any]) -> tuple[int, Judgement] | None:
    """Return a claim's number and judgement, or None if either is unusable."""
    number, lines = _CLAIM.fullmatch(str(verdict.get("claim")).strip()), verdict.get("lines") or []
    named = [_LINE.findall(str(raw)) or [NO_LINE] for raw in (lines if isinstance(lines, list) else [lines])]
    flags = (_BOOLEANS.get(str(verdict.get(name)).lower().strip(" .")) for name in ("supported", "absent", "empty"))
    answer, absent, empty = flags
    if number is None or answer is None:
        return None
    return int(number[1]), Judgement(
        supported=answer,
        lines=tuple((int(source), int(line)) for source, line in chain(*named)),
        absent=absent is True or empty is True,
        empty=empty is True,
        instead=string(verdict, "instead"),
    )


WRITE_TEMPERATURE, JUDGE_TEMPERATURE = 0.3, 0.0
WRITE_EFFORT: Final = "low"  # by default, models before gpt-5.1 reason at medium
JUDGE_EFFORT: Final = "low"
JSON_OBJECT: Final = {"type": "json_object"}
JUDGE_TIMEOUTS: Final = Timeouts(reply=30.0, retries=1)  # a slow judge must not use up the time of the turn


@dataclass(kw_only=True, eq=False)
class OpenAIModel(ChatServer):
    """``model`` decides, generates and judges."""

    model: str
    write_model: str = ""  # empty: the same model
    effort: str = ""  # reasoning effort for decisions; empty: the lowest that the model accepts
    write_effort: str = ""  # empty: low
    quotes_only: ClassVar = False

    @property
    def name(self) -> str:
        """The models' names."""
        return self.model if self.write_model in {"", self.model} else f"{self.model}+{self.write_model}"

    async def decide(self, context: DecideContext) -> Decision:
        """Return one action, by function calling if the server has it, else by a JSON object."""
        before, known = Usage(), self.learned[self.model]
        if not known.json_only:
            body = self._decide_body(decide_messages(context, as_json=False))
            body |= {"tools": functions(context.tools, addressed=context.question.addressed), "tool_choice": "required"}
            try:
                reply, before = await self.reply(body)
            except ServerRefusalError as refusal:
                if known.calls_tools or not _refuses_tools(refusal):
                    raise
                before = Usage(model_calls=1)  # a refused call counts as well
            else:
                if reply.calls or known.calls_tools:
                    known.calls_tools = True
                    return self._decision(body, reply, before)
                with suppress(ControlError):  # the bare JSON object
                    action = _read_action(reply)
                    known.json_only = True
                    return Decision(action=action, usage=before, call=self.call(body))
        body = self._decide_body(decide_messages(context, as_json=True))
        body["response_format"] = JSON_OBJECT
        reply, usage = await self.reply(body)
        known.json_only = True
        return self._decision(body, reply, before + usage)

    def write(self, context: WriteContext) -> WriteStream:
        """Start writing, as a stream: no tools, no response format."""
        model = self.write_model or self.model
        body: Body = {"model": model, "messages": write_messages(context, reasons=self.learned[model].reasons)}
        body |= {"temperature": WRITE_TEMPERATURE, "reasoning_effort": self.write_effort or WRITE_EFFORT}
        return self.stream(body)

    async def judge(self, context: JudgeContext) -> Opinion:
        """Return one verdict per claim; after an unreadable reply ask once more. Raises ``ModelError``."""
        body: Body = {"model": self.model, "messages": judge_messages(context), "response_format": JSON_OBJECT}
        body |= {"temperature": JUDGE_TEMPERATURE, "reasoning_effort": JUDGE_EFFORT}
        reply, usage = await self.reply(body)
        opinion = read_opinion(*reply.texts)
        if not (opinion.judgements if context.claims else opinion.reply):
            with suppress(ModelError):  # the first reply counts: claims that it left open stay open
                reply, more = await self.reply(body)
                opinion, usage = read_opinion(*reply.texts), usage + more
        return replace(opinion, usage=usage, call=self.call(body))

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        """Return plain text for one prompt. Raises ``ModelError``, even for a text cut off at ``max_tokens``."""
        body = self._decide_body([{"role": "user", "content": prompt}])
        body |= {"max_tokens": max_tokens, "temperature": temperature}
        reply, usage = await self.reply(body)
        if reply.cut_off:
            raise ModelError(kind="TokenLimitError", detail="the text was cut off at max_tokens")
        if not reply.content.strip():
            raise ModelError(kind="EmptyReplyError", detail="the server sent an empty text")
        return Generated(text=reply.content, usage=usage, call=self.call(body))

    def _decide_body(self, messages: list[ChatMessage]) -> Body:
        return {"model": self.model, "messages": messages, "reasoning_effort": self.effort or LOWEST_EFFORT}

    def _decision(self, body: Body, reply: Reply, usage: Usage) -> Decision:
        """Read a decision. Raises ``ModelError`` for a malformed decision, or for the token limit if it was cut off."""
        try:
            if reply.calls and "tools" in body:
                action = read_calls([replace(call, input=read_arguments(text)) for call, text in reply.calls])
            else:
                action = _read_action(reply)
        except ControlError as fault:
            kind: ModelErrorKind = "TokenLimitError" if reply.cut_off else "MalformedControlError"
            detail = str(fault) if reply.calls or "tools" not in body else "No function was called."
            raise ModelError(kind=kind, detail=detail, usage=usage, call=self.call(body)) from fault
        return Decision(action=action, usage=usage, call=self.call(body))


def _refuses_tools(refusal: ServerRefusalError) -> bool:
    """Return True if a server without tool calling refuses like this, even if it does not say why."""
    statuses = {0, 400, 404, 422, 500, 501} if ABOUT_TOOLS.search(refusal.words) else {400, 422}
    return refusal.kind in {"ConfigurationError", "LLMError"} and refusal.status in statuses


def _read_action(reply: Reply) -> Action:
    """Return the action in the content, or in the reasoning if the content is empty."""
    return read_json(reply.content if reply.content.strip() else reply.reasoning)

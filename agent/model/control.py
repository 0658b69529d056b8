"""The control channel on the wire: actions as function schemas, and a model's output as one action. Pure.

Prose, code fences and thinking around a JSON object do not matter. A missing or wrongly typed field is a
``ControlError`` whose text tells the model what to correct.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Final

import orjson

from agent.actions import CONTROL_NAMES, Action, Step, ToolCall, ToolCalls
from agent.model.chat_reply import json_objects
from agent.model.tag_stream import draft_of
from agent.payload import objects
from agent.thread.state import MAX_STEPS
from agent.tools.tool import ToolSpec

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
_ACTIONS: Final = {name: action for action, name in CONTROL_NAMES.items()}


class ControlError(ValueError):
    """The output is not a valid decision. The text is written for the model."""

    # Raised as ControlError(fault="…"): ruff (EM101) forbids a literal as the first positional argument.
    def __init__(self, fault: str) -> None:
        super().__init__(fault)


def functions(tools: Iterable[ToolSpec], *, addressed: bool = True) -> list[dict[str, Any]]:
    """Return the ``tools`` field of a chat request: the control functions, then the real tools.

    It is the same in every step of a turn, because it comes first in a prompt cache. A plan is read from any control
    function and offered in one. ``no_reply`` is offered only for a message that did not address Orion.
    """
    described = [
        (name, text, {"type": "object", "properties": {**fields, **more}, "required": [*fields]})
        for name, (text, fields, more) in _CONTROL.items()
        if name != "no_reply" or not addressed
    ]
    described += [(tool.name, tool.description, dict(tool.parameters) or {"type": "object"}) for tool in tools]
    return [
        {"type": "function", "function": {"name": name, "description": text, "parameters": parameters}}
        for name, text, parameters in described
    ]


def read_arguments(text: str) -> Mapping[str, Any]:
    """Return the arguments of a native call: a JSON object, or nothing at all. Raises ``ControlError``."""
    arguments = None
    with suppress(orjson.JSONDecodeError):
        arguments = orjson.loads(text.strip() or "{}")
    if not isinstance(arguments, dict):
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
    found = list(json_objects((draft_of(text) if "<" in text else text)[:MAX_REPLY_CHARS]))
    chosen = [each for each in found if "action" in each]
    if not chosen:
        fault = "There is no JSON object with an 'action' in the reply." if found else "The reply has no JSON object."
        raise ControlError(fault)
    # Only tool calls count together; text after a control action is ignored.
    together = chosen if chosen[0]["action"] == "tool_call" else chosen[:1]
    action = read_calls([_json_call(each, position) for position, each in enumerate(together, 1)])
    if isinstance(action, ToolCalls):  # the plan is next to a tool's input, and the call has only the input
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
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:  # JSON's true is a number to Python
            raise ControlError(fault="'finish_step' needs 'step', a number of the plan counted from 1.")
        return value
    if not isinstance(value, str) or not value.strip():
        raise ControlError(fault=f"{call.tool!r} needs {field!r}, a string that is not empty.")
    return value.strip()


def _first_plan(given: Iterable[Mapping[str, Any]]) -> tuple[Step, ...]:
    return next(filter(None, map(_read_plan, given)), ())


def _read_plan(given: Mapping[str, Any]) -> tuple[Step, ...]:
    plan = given.get("plan")
    if plan is None:
        return ()
    steps = [{name: step.get(name) or "" for name in _PLAN_FIELDS} for step in objects(plan)]
    readable = [step for step in steps if step["description"] and all(isinstance(text, str) for text in step.values())]
    if not isinstance(plan, list) or not len(readable) == len(plan) <= MAX_STEPS:
        fields = "objects with 'description', and 'tool', 'acceptance' if any"
        raise ControlError(fault=f"'plan' must be a list of at most {MAX_STEPS} {fields}.")
    return tuple(Step(description=s["description"], tool=s["tool"], acceptance=s["acceptance"]) for s in readable)

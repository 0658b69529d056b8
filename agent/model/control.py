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
    """The output is not a valid decision. ``fault`` is written for the model."""

    def __init__(self, fault: str) -> None:
        super().__init__(fault)


def functions(tools: Iterable[ToolSpec], *, addressed: bool = True) -> list[dict[str, Any]]:
    """Return the ``tools`` field of a chat request: the control functions, then the real tools.

    It is the same in every step of a turn, because it comes first in a prompt cache. A plan is read from any control
    function and offered in one. ``no_reply`` is offered only for a message that did not address Orion.
    """
    control = [
        _function(name, text, {"type": "object", "properties": {**fields, **more}, "required": [*fields]})
        for name, (text, fields, more) in _CONTROL.items()
        if name != "no_reply" or not addressed
    ]
    return control + [_function(t.name, t.description, dict(t.parameters) or {"type": "object"}) for t in tools]


def read_arguments(text: str) -> Mapping[str, Any]:
    """Return the arguments of a native call: a JSON object, or nothing at all. Raises ``ControlError``."""
    arguments = None
    with suppress(orjson.JSONDecodeError):
        arguments = orjson.loads(text) if text.strip() else {}
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
    first = calls[0]
    fields: dict[str, Any] = {name: _read_field(first, name) for name in _CONTROL[first.tool][1]}
    return _ACTIONS[first.tool](**fields, plan=plan)


def read_json(text: str) -> Action:
    """Return one action from the text of a server without tool calling. Raises ``ControlError``."""
    found = list(json_objects((draft_of(text) if "<" in text else text)[:MAX_REPLY_CHARS]))
    objects = [o for o in found if "action" in o]
    if not objects:
        fault = "There is no JSON object with an 'action' in the reply." if found else "The reply has no JSON object."
        raise ControlError(fault)
    # Only tool calls count together; text after a control action is ignored.
    together = objects if objects[0]["action"] == "tool_call" else objects[:1]
    action = read_calls([_json_call(o, position) for position, o in enumerate(together, 1)])
    if isinstance(action, ToolCalls):  # the plan is next to a tool's input, and the call has only the input
        with suppress(ControlError):  # an unreadable plan does not stop a readable call
            return replace(action, plan=_first_plan(together))
    return action


def _json_call(found: Mapping[str, Any], position: int) -> ToolCall:
    action, tool, arguments = found["action"], found.get("tool"), found.get("input", {})
    if isinstance(action, str) and action in _CONTROL:
        return ToolCall(tool=action, input=found, call_id="")
    if action != "tool_call":
        allowed = ", ".join([*_CONTROL, "tool_call"])
        named = 'A tool is named in \'tool\', next to "action": "tool_call".'
        raise ControlError(fault=f"'action' must be one of {allowed}. {named}")
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
    if not isinstance(plan, list) or len(plan) > MAX_STEPS or not all(map(_is_step, plan)):
        fields = "objects with 'description', and 'tool', 'acceptance' if any"
        raise ControlError(fault=f"'plan' must be a list of at most {MAX_STEPS} {fields}.")
    return tuple(
        Step(description=step["description"], tool=step.get("tool") or "", acceptance=step.get("acceptance") or "")
        for step in plan
    )


def _is_step(step: object) -> bool:
    if not isinstance(step, dict) or not step.get("description"):
        return False
    return all(isinstance(step.get(key) or "", str) for key in _PLAN_FIELDS)


def _function(name: str, description: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}

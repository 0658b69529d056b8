"""Builds every prompt, in one place: pure functions from a context to chat messages (B2, I2).

Promises: whatever came from people, documents or tools stands between two marker lines that carry a fence word. The
word is made of all that data itself, so nothing in the data can hold it and close the fence; the same turn gives the
same prompt. The write prompt carries nothing that is not listed in B2.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.resources import files
from typing import TypedDict

from agent.model.judge import JudgeContext
from agent.model.protocol import DecideContext, WriteContext
from agent.thread.conversation import Message
from agent.thread.plan import Plan
from agent.tools.tool import ToolResult, ToolSpec
from verification.judgement import source_lines
from verification.types import Source

# What the model writes when the sources do not hold the answer; prompts/write.md says the same word.
NOT_FOUND = "NOT_IN_SOURCES"
MESSAGES_SEEN = 5
RESULTS_SEEN = 5
PREVIEW = 200
# A thread may hold anything that was ever pasted into it: what is talk to a model is cut, what is evidence is a source.
DECIDE_MESSAGES = 40
DECIDE_MESSAGE = 1_000
WRITE_MESSAGE = 4_000
# How much of each source and result a decision sees: enough to tell whether more is needed.
DECIDE_SOURCE = 1_000
DECIDE_RESULT = 2_000
# From here on a decision is told that it should come to an end.
FEW_CALLS = 3


class ChatMessage(TypedDict):
    """One message as chat servers take it."""

    role: str
    content: str


class Part(TypedDict):
    """A block of outside text under the label it is fenced with."""

    label: str
    text: str


@cache
def prompt_text(name: str) -> str:
    """The text of ``prompts/<name>.md``."""
    return files("agent.model").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


@cache
def prompts_version() -> str:
    """Twelve hex digits that change with any word of the prompt files: what traces call their version."""
    texts = sorted(files("agent.model").joinpath("prompts").iterdir(), key=lambda each: each.name)
    return hashlib.sha256(b"\0".join(each.read_bytes() for each in texts)).hexdigest()[:12]


def private_texts() -> tuple[str, ...]:
    """Texts no answer may repeat."""
    return tuple(prompt_text(name) for name in ("control", "control_json", "write", "feedback", "feedback_rest"))


def control_messages(context: DecideContext, *, as_json: bool) -> list[ChatMessage]:
    """The messages of one decision. ``as_json`` adds the JSON forms for a server without tool calling."""
    system = prompt_text("control")
    if as_json:
        system += "\n\n" + prompt_text("control_json") + "\n" + _tool_lines(context.tools)
    parts = [
        *_conversation(context.mission, _talk(context.history[-DECIDE_MESSAGES:], DECIDE_MESSAGE), context.answers),
        *(_part(_result_label(r), _clip(_told(r), DECIDE_RESULT)) for r in context.results),
        *(_part(_source_label(s), _clip(s.text, DECIDE_SOURCE)) for s in context.sources),
        *_plan_parts(context.plan),
        _part("last message", context.question.text),
    ]
    lines = [fenced(parts), *_left(context)]
    if context.complaint:
        lines.append(f"Your last decision could not be read: {context.complaint} Decide again, in the right form.")
    lines.append("Decide the next step.")
    return _chat(system, "\n\n".join(lines))


def write_messages(context: WriteContext) -> list[ChatMessage]:
    """The messages of phase two: lean, with the numbered sources in full."""
    parts = [
        *_conversation(context.mission, _talk(context.history[-MESSAGES_SEEN:], WRITE_MESSAGE), context.answers),
        *(_part(_result_label(r), _clip(_told(r), PREVIEW)) for r in context.results[-RESULTS_SEEN:]),
        *(_part(_source_label(s), s.text) for s in context.sources),
    ]
    if context.kept:
        parts.append(_part("already shown to the person; go on after it and do not write it again", context.kept))
    parts.append(_part("last message", context.question.text))
    messages = _chat(prompt_text("write"), fenced(parts) + "\n\n" + _task(context))
    if context.feedback:
        messages.append({"role": "assistant", "content": f"<answer>\n{context.previous_draft}\n</answer>"})
        again = prompt_text("feedback_rest" if context.kept else "feedback")
        messages.append({"role": "user", "content": again + "\n\n" + context.feedback})
    return messages


def judge_messages(context: JudgeContext) -> list[ChatMessage]:
    """The messages of one judgement: the sources line by line, then what differs from one call of a turn to the next.

    Each line of outside text has a number or a bar before it, so that none can pass for one of ours.
    """
    claims = [
        f"claim {number}, cites {''.join(f'[{cited}]' for cited in claim.cited) or 'nothing'}:\n{_barred(claim.text)}"
        for number, claim in enumerate(context.claims, 1)
    ]
    parts = [
        *map(_numbered, context.sources),
        f"The question:\n{_barred(context.question)}",
        f"The answer:\n{_barred(context.answer)}",
        *claims,
        f"Judge claims 1 to {len(claims)}." if claims else 'Judge claims: there are none, tell "no_answer" only.',
    ]
    return _chat(prompt_text("judge"), "\n\n".join(parts))


def _numbered(source: Source) -> str:
    return "\n".join(f"[{source.id}.{number}] {line}" for number, line in enumerate(source_lines(source)))


def _barred(text: str) -> str:
    return "\n".join(f"| {line}" for line in text.splitlines())


def fenced(parts: Sequence[Part]) -> str:
    """Each part between its own marker lines."""
    word = _fence_word(parts)
    return "\n\n".join(f"[DATA {word}: {p['label']}]\n{p['text']}\n[END {word}]" for p in parts)


def _fence_word(parts: Sequence[Part]) -> str:
    """A word that stands nowhere in the parts. It is their hash, so who writes one of them cannot foresee it."""
    return hashlib.sha256(json.dumps(parts, ensure_ascii=True).encode()).hexdigest()[:16]


def _talk(history: Sequence[Message], longest: int) -> str:
    who = ("Orion" if m.role == "assistant" else m.user or "person" for m in history)
    return "\n".join(f"{name}: {_clip(m.text, longest)}" for name, m in zip(who, history, strict=True))


def _conversation(mission: str, talk: str, answers: dict[str, str]) -> list[Part]:
    told = "\n".join(f"{key}: {value}" for key, value in answers.items())
    named = (("mission", mission), ("conversation so far", talk), ("the person's answers to questions", told))
    return [_part(label, text) for label, text in named if text]


def _task(context: WriteContext) -> str:
    if context.sources:
        return "Reply to the last message from the numbered sources above."
    return (
        "There are no sources for this message, so cite nothing and do not write "
        f"{NOT_FOUND}: reply from general knowledge, briefly, and say what you are not sure of."
    )


def _plan_parts(plan: Plan | None) -> Iterable[Part]:
    """Its words come from a person or from a model that had just read documents: data like any other (I2)."""
    if plan and plan.steps:
        steps = "\n".join(f"{n}. [{step.status}] {step.description}" for n, step in enumerate(plan.steps, 1))
        yield _part("the plan", steps)


def _left(context: DecideContext) -> Iterable[str]:
    calls = context.budget.model_calls - context.used.model_calls
    tools = context.budget.tool_calls - context.used.tool_calls
    if calls <= FEW_CALLS or tools <= 1:
        yield f"Little is left: {max(calls, 0)} model calls, {max(tools, 0)} tool calls. Respond with what there is."


def _result_label(result: ToolResult) -> str:
    return f"{'✓' if result.ok else '✗'} result of {_one_line(result.tool)}"


def _told(result: ToolResult) -> str:
    """What a tool brought, or why it failed and what to try next."""
    return result.content or " ".join((result.error, *result.hints))


def _source_label(source: Source) -> str:
    dated = f", updated {_one_line(source.updated_at)}" if source.updated_at else ""
    return f"source [{source.id}] {_one_line(source.title)}{dated}"


def _tool_lines(tools: Iterable[ToolSpec]) -> str:
    named = ({"name": t.name, "description": t.description, "input": t.parameters} for t in tools)
    return "\n".join(json.dumps(tool, ensure_ascii=False) for tool in named)


def _part(label: str, text: str) -> Part:
    return {"label": label, "text": text}


def _one_line(text: str) -> str:
    """A title stands inside a marker line, so it must stay on it and may not close it."""
    return " ".join(text.replace("]", ")").replace("[", "(").split())[:PREVIEW]


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _chat(system: str, user: str) -> list[ChatMessage]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]

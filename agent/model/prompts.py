"""Builds every prompt: pure functions from a context to chat messages.

What stays the same stands first, so that a provider's prompt cache covers it: the instructions, one text for both
phases; the sources, each under its number; tool results; the conversation; then the task. Within a turn the front part
only grows. Outside text stands between marker lines with a fence word that is the turn's own and stands in none of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from functools import cache
from html import unescape
from importlib.resources import files
from itertools import chain, count
from typing import Final, TypedDict

from agent.model.judge import JudgeContext
from agent.model.protocol import DecideContext, TurnContext, WriteContext
from agent.thread.conversation import Message, Question
from agent.thread.markdown import as_markdown
from agent.thread.plan import Plan
from agent.tools.tool import ToolResult
from verification.judgement import source_lines
from verification.types import Source

NOT_FOUND: Final = "NOT_IN_SOURCES"  # the model's word where the sources hold no answer, as in prompts/system.md
MAX_MESSAGES: Final = 5
MAX_RESULTS: Final = 5
PREVIEW: Final = 200
LONGEST_LABEL: Final = 300
# A thread may hold anything that was ever pasted into it: what is talk to a model is cut, what is evidence is a source.
DECIDE_MESSAGES: Final = 40
DECIDE_MESSAGE: Final = 1_000
WRITE_MESSAGE: Final = 4_000
DECIDE_RESULT: Final = 2_000  # characters of a result that a decision sees, where it brought no sources
FEW_CALLS: Final = 3  # from here on a decision is told that it should come to an end
_PRIVATE: Final = ("system", "decide_json", "unaddressed", "think", "feedback", "feedback_rest", "feedback_again")
# Seconds since 1970 that a message of Slack can have; a terminal numbers its questions otherwise.
_EARLIEST: Final = 1_000_000_000
_DAYS_TOLD: Final = 60
_MONTHS_TOLD: Final = 24


class ChatMessage(TypedDict):
    """One message as chat servers take it."""

    role: str
    content: str


Part = tuple[str, str]  # a block of outside text: the label it is fenced with, and the text


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
    """Texts no answer may repeat. The worked example is none: its words are anybody's."""
    return tuple(map(prompt_text, _PRIVATE))


def control_messages(context: DecideContext, *, as_json: bool) -> list[ChatMessage]:
    """The messages of one decision. ``as_json`` adds the JSON forms and the tools for a server without tool calling."""
    today = today_of(context.question)
    parts = [
        *_source_parts(context.sources, today),  # whole here too: the next call begins with the same (decision 33)
        *_result_parts(context.results, context.left_out, DECIDE_RESULT),
        *_conversation(context, _talk(context.history[-DECIDE_MESSAGES:], DECIDE_MESSAGE)),
        *_plan_parts(context.plan),
        ("last message", context.question.text),
    ]
    lines = [fenced(parts, _seed(context.question)), _dated(today), *_left(context)]
    if not context.question.addressed:
        lines.append(prompt_text("unaddressed"))
    if context.complaint:
        lines.append(f"Your last decision could not be read: {context.complaint} Decide again, in the right form.")
    tools = ({"name": t.name, "description": t.description, "input": t.parameters} for t in context.tools)
    form = (json.dumps(tool, ensure_ascii=False) for tool in tools)
    lines.append("\n".join((prompt_text("decide_json"), *form)) if as_json else prompt_text("decide"))
    return _chat(_instructions(), "\n\n".join(lines))


def write_messages(context: WriteContext, *, reasons: bool = False) -> list[ChatMessage]:
    """The messages of phase two: lean, with the numbered sources in full."""
    today = today_of(context.question)
    parts = [
        *_source_parts(context.sources, today),
        *_result_parts(context.results[-MAX_RESULTS:], context.left_out, PREVIEW),
        *_conversation(context, _talk(context.history[-MAX_MESSAGES:], WRITE_MESSAGE)),
    ]
    if context.kept:
        parts.append(("already shown to the person; go on after it and do not write it again", context.kept))
    parts.append(("last message", context.question.text))
    task = prompt_text("write" if context.sources else "write_general")
    form = prompt_text("answer" if reasons else "think")  # one that reasons by itself is not told to think
    data = fenced(parts, _seed(context.question))
    messages = _chat(_instructions(), f"{data}\n\n{_dated(today)}\n\n{task} {form}")
    if context.feedback:
        # Appended, so that a provider's cache serves all that stands before it (decision 33).
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
        *([_dated(context.today)] if context.today else []),
        *([f"What the person said before:\n{_barred(context.said)}"] if context.said.strip() else []),
        f"The question:\n{_barred(context.question)}",
        f"The answer:\n{_barred(context.answer)}",
        *claims,
        f"Judge claims 1 to {len(claims)}." if claims else 'Judge claims: there are none, tell "reply" only.',
    ]
    return _chat(prompt_text("judge"), "\n\n".join(parts))


def _numbered(source: Source) -> str:
    return "\n".join(f"[{source.id}.{number}] {line}" for number, line in enumerate(source_lines(source)))


def _barred(text: str) -> str:
    # Stored texts hold `&gt;` where people, and so the judge, read >.
    return "\n".join(f"| {line}" for line in unescape(text).splitlines())


def fenced(parts: Sequence[Part], seed: str) -> str:
    """Each part between its own marker lines. The fence word follows from ``seed`` and stands in no part."""
    texts = list(chain.from_iterable(parts))
    words = (hashlib.sha256(f"{number}\n{seed}".encode(errors="replace")).hexdigest()[:12] for number in count())
    word = next(word for word in words if not any(word in text for text in texts))
    return "\n\n".join(f"[DATA {word}: {label}]\n{text}\n[END {word}]" for label, text in parts)


def today_of(question: Question) -> date:
    """The day a question was asked on, in UTC, by its time stamp; today where that is none."""
    seconds = question.ts.partition(".")[0]
    asked = int(seconds) if seconds.isdecimal() and len(seconds) <= len(str(_EARLIEST)) else 0
    return (datetime.fromtimestamp(asked, UTC) if asked >= _EARLIEST else datetime.now(UTC)).date()


@cache
def _instructions() -> str:
    return prompt_text("system") + "\n\n" + prompt_text("example")


def _seed(question: Question) -> str:
    """The same in all calls of a turn. Who writes a document cannot foresee it."""
    return f"{question.thread} {question.ts} {question.text}"


def _dated(today: date) -> str:
    return f"Today is {today:%A}, {today.day} {today:%B %Y} (UTC)."


def _source_parts(sources: Iterable[Source], today: date) -> Iterable[Part]:
    for source in sources:
        yield f"source [{source.id}] {_one_line(source.title)}{_updated(source.updated_at, today)}", source.text


def _updated(at: str, today: date) -> str:
    if not at:
        return ""
    try:
        days = (today - date.fromisoformat(at[:10])).days
    except ValueError:
        return f", updated {_one_line(at)}"
    return f", updated {at[:10]} ({_ago(days)})"


def _ago(days: int) -> str:
    if days <= 0:
        return "today"
    months = round(days / 30.44)
    if days < _DAYS_TOLD:
        return f"{days} day{'s' if days > 1 else ''} ago"
    return f"{months} months ago" if months < _MONTHS_TOLD else f"{round(days / 365.25)} years ago"


def _result_parts(results: Sequence[ToolResult], left_out: int, longest: int) -> Iterable[Part]:
    """What the tools were asked and told; what they told as sources stands in full already."""
    lines = [f"{'✓' if r.ok else '✗'} {_one_line(r.tool)}{_asked(r)}: {_clip(_told(r), longest)}" for r in results]
    if left_out:
        lines.append(f"{left_out} more passages were found than there is room for. Narrower words find them.")
    if lines:
        yield "tools used so far", "\n".join(lines)


def _asked(result: ToolResult) -> str:
    return f" {_clip(json.dumps(dict(result.input), ensure_ascii=False), PREVIEW)}" if result.input else ""


def _told(result: ToolResult) -> str:
    """What a tool brought, or why it failed and what to try next."""
    if not (result.ok and result.sources):
        return result.content or " ".join((result.error, *result.hints))
    notes = (line for line in result.content.splitlines() if not any(_repeats(line, each) for each in result.sources))
    return " ".join(("its sources stand above.", *notes, *result.hints))


def _repeats(line: str, source: Source) -> bool:
    return bool(source.title and line.startswith(source.title)) or line in source.text


def _talk(history: Sequence[Message], longest: int) -> str:
    lines = []
    for message in history:
        # A model copies what it sees: mrkdwn, and numbers of other turns.
        said = as_markdown(message.text) if message.role == "assistant" else message.text
        name = "Orion" if message.role == "assistant" else message.user or "person"
        lines.append(f"{name}: {_clip(said, longest)}")
    return "\n".join(lines)


def _conversation(context: TurnContext, talk: str) -> list[Part]:
    told = "\n".join(f"{key}: {value}" for key, value in context.answers.items())
    mission = context.mission if context.mission != context.question.text else ""
    named = (("mission", mission), ("conversation so far", talk), ("the person's answers to questions", told))
    return [part for part in named if part[1]]


def _plan_parts(plan: Plan | None) -> Iterable[Part]:
    if plan and plan.steps:  # its words are a person's or a model's: data like any other
        steps = "\n".join(f"{n}. [{step.status}] {step.description}" for n, step in enumerate(plan.steps, 1))
        yield "the plan", steps


def _left(context: DecideContext) -> Iterable[str]:
    calls = context.budget.model_calls - context.used.model_calls
    tools = context.budget.tool_calls - context.used.tool_calls
    if calls <= FEW_CALLS or tools <= 1:
        yield f"Little is left: {max(calls, 0)} model calls, {max(tools, 0)} tool calls. Respond with what there is."


def _one_line(text: str) -> str:  # a title must stay on its marker line, and may not close it
    return " ".join(text.replace("]", ")").replace("[", "(").split())[:LONGEST_LABEL]


def _clip(text: str, limit: int) -> str:
    return text if len(text) <= limit else text[:limit] + "…"


def _chat(system: str, user: str) -> list[ChatMessage]:
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]

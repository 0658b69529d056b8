"""Builds every prompt: pure functions from a context to chat messages.

Constant parts come first, so that a provider's prompt cache covers them: the instructions, which both phases share; the
sources, each under its number; tool results; the conversation; then the task. Within a turn the front part only grows.
Outside text is put between marker lines with the turn's fence word, which does not occur in the text.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import date
from functools import cache
from html import unescape
from importlib.resources import files
from itertools import chain, count
from typing import Any, Final

from agent.actions import CONTROL_NAMES, Action, ToolCalls
from agent.model.protocol import DecideContext, JudgeContext, TurnContext, WriteContext
from agent.texts.catalogue import age, truncate
from agent.thread.conversation import Question, ThreadMessage, as_markdown
from agent.tools.tool import ToolResult
from verification.judgement import claim_key
from verification.markup.lines import source_lines

NOT_FOUND: Final = "NOT_IN_SOURCES"  # the model's reply if the sources lack the answer, as in prompts/system.md
# Some models put it in a value, in code or after an apology, or write it in another case.
_SAYS_NOT_FOUND: Final = re.compile(
    r"[\W_]*(?:\w+\W+){0,3}(?:NOT[\W_]{1,3}IN[\W_]{1,3}SOURCES|not_in_sources)(?![^\W_])"
)
MAX_MESSAGES: Final = 5
MAX_RESULTS: Final = 5
MAX_PREVIEW_CHARS: Final = 200
MAX_LABEL_CHARS: Final = 300
# A thread can contain anything that people pasted into it. The conversation is truncated; evidence comes as a source.
MAX_DECIDE_MESSAGES: Final = 40
MAX_OVERHEARD_MESSAGES: Final = 12  # before a message that may be meant for other people
MAX_DECIDE_MESSAGE_CHARS: Final = 1_000
MAX_WRITE_MESSAGE_CHARS: Final = 4_000
MAX_DECIDE_RESULT_CHARS: Final = 2_000  # of a result that has no sources
FEW_CALLS: Final = 3  # with this many calls or fewer left, the model is told to finish
_PRIVATE: Final = ("system", "decide_json", "unaddressed", "think", "feedback", "feedback_rest", "feedback_again")
_INSTRUCTIONS: Final = ("system", "example")
_GENERATED: Final = "text that llm_generate wrote in this turn; not a source, its facts need one"


ChatMessage = dict[str, str]  # its role and content, as chat servers spell them
Part = tuple[str, str]  # a block of outside text: the label in its fence, and the text


@cache
def prompt_text(name: str) -> str:
    """Return the text of ``prompts/<name>.md``."""
    return files("agent.model").joinpath("prompts", f"{name}.md").read_text(encoding="utf-8").strip()


@cache
def prompts_version() -> str:
    """Return twelve hex digits that change with the prompt files: their version in traces."""
    texts = sorted(files("agent.model").joinpath("prompts").iterdir(), key=lambda each: each.name)
    return hashlib.sha256(b"\0".join(each.read_bytes() for each in texts)).hexdigest()[:12]


def says_not_found(text: str) -> bool:
    """Return True if the model says that the sources lack the answer."""
    return _SAYS_NOT_FOUND.match(text.strip(), 0, MAX_PREVIEW_CHARS) is not None


def private_texts() -> tuple[str, ...]:
    """Return texts that an answer may not repeat. It may repeat the worked example, which uses common words."""
    return tuple(map(prompt_text, _PRIVATE))


def decide_messages(context: DecideContext, *, as_json: bool) -> list[ChatMessage]:
    """Return the messages of one decision. ``as_json`` adds JSON forms and tools for a server without tool calling."""
    question, talk = context.question, _latest(context.history, MAX_DECIDE_MESSAGES)
    if not question.addressed:
        return _addressee_messages(context, as_json=as_json)
    if any(source.origin == "thread" for source in context.sources):  # it holds what people said to each other
        talk = (*(m for m in talk[:-MAX_MESSAGES] if m.role == "assistant" or m.addressed), *talk[-MAX_MESSAGES:])
    parts = [
        *_source_parts(context),  # in full here too: the next call has the same prefix (decision 33)
        *_result_parts(context.results, context.left_out, MAX_DECIDE_RESULT_CHARS),
        *_conversation_parts(context, talk, MAX_DECIDE_MESSAGE_CHARS),
    ]
    if (plan := context.plan) and len(plan.steps) > 1:  # a single step adds nothing to the mission
        goals = (f" (done when: {s.acceptance})" if s.acceptance and s.status == "open" else "" for s in plan.steps)
        steps = enumerate(zip(plan.steps, goals, strict=True), 1)
        parts.append(("the plan", "\n".join(f"{n}. [{s.status}] {s.description}{goal}" for n, (s, goal) in steps)))
    lines = _data_lines(parts, question)
    calls = context.budget.model_calls - context.used.model_calls
    uses = context.budget.tool_calls - context.used.tool_calls
    if calls <= FEW_CALLS or uses <= 1:
        left = f"{max(calls, 0)} model calls, {max(uses, 0)} tool calls"
        lines.append(f"Little is left: {left}. Respond with what there is.")
    lines += _objection_lines(context)
    tools = ({"name": t.name, "description": t.description, "input": t.parameters} for t in context.tools)
    form = (json.dumps(tool, ensure_ascii=False) for tool in tools)
    lines.append("\n".join((prompt_text("decide_json"), *form)) if as_json else prompt_text("decide"))
    return _chat_messages(*_INSTRUCTIONS, text="\n\n".join(lines))


def _addressee_messages(context: DecideContext, *, as_json: bool) -> list[ChatMessage]:
    """Return the short messages of the decision for whom a message between people is meant: no sources, no tools."""
    talk = conversation_text(
        _latest(context.history, MAX_OVERHEARD_MESSAGES), context.question.names, MAX_DECIDE_MESSAGE_CHARS
    )
    form = ' Reply with one JSON object and nothing else: {"action": "no_reply"} or {"action": "respond"}.'
    task = f"Task: decide for whom the last message is meant.{form if as_json else ''}"
    lines = [*_data_lines([("conversation so far", talk)], context.question), *_objection_lines(context), task]
    return _chat_messages("unaddressed", text="\n\n".join(lines))


def _objection_lines(context: DecideContext) -> list[str]:
    return [f"Your last decision was not carried out: {context.objection} Decide again."] if context.objection else []


def _latest(history: Sequence[ThreadMessage], count: int) -> Sequence[ThreadMessage]:
    """Return the last ``count`` messages, and the question if they would begin with its reply."""
    begin = max(0, len(history) - count)
    return history[begin - 1 :] if begin and history[begin].role == "assistant" else history[begin:]


def write_messages(context: WriteContext, *, reasons: bool = False) -> list[ChatMessage]:
    """Return the short messages for writing, with the numbered sources in full."""
    results = context.results[-MAX_RESULTS:]
    parts = [
        *_source_parts(context),
        *_result_parts(results, context.left_out, MAX_PREVIEW_CHARS),
        *((_GENERATED, result.generated) for result in results if result.generated),
        *_conversation_parts(context, _latest(context.history, MAX_MESSAGES), MAX_WRITE_MESSAGE_CHARS),
    ]
    if context.kept:
        parts.append(("already shown to the person; go on after it and do not write it again", context.kept))
    task = prompt_text("write" if context.sources else "write_general")
    form = prompt_text("answer" if reasons else "think")  # a model that reasons without being told is not told to think
    lines = [*_data_lines(parts, context.question), f"{task} {form}"]
    messages = _chat_messages(*_INSTRUCTIONS, text="\n\n".join(lines))
    if context.feedback:
        # Appended, so that a provider's cache serves everything before it (decision 33).
        messages.append({"role": "assistant", "content": f"<answer>\n{context.previous_draft}\n</answer>"})
        again = prompt_text("feedback_rest" if context.kept else "feedback")
        messages.append({"role": "user", "content": again + "\n\n" + context.feedback})
    return messages


def decision_message(action: Action) -> dict[str, Any]:
    """Return the action as the assistant message of a model that chose it, with tool calls as OpenAI spells them."""
    proposed = ("description", "tool", "acceptance")
    plan = [{name: value for name in proposed if (value := getattr(step, name))} for step in action.plan]
    if isinstance(action, ToolCalls):
        calls = [(call.call_id, call.tool, dict(call.input)) for call in action.calls]
    else:
        calls = [("call_1", CONTROL_NAMES[type(action)], {k: v for k, v in asdict(action).items() if k != "plan"})]
    if plan:
        calls[0][2]["plan"] = plan
    wire = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for call_id, name, arguments in calls
    ]
    return {"role": "assistant", "content": None, "tool_calls": wire}


def judge_messages(context: JudgeContext) -> list[ChatMessage]:
    """Return the messages of one judgement. A number or a bar shows where each line of outside text begins."""
    parts = [
        "\n".join(f"[{source.id}.{n}] {line}" for n, line in enumerate(source_lines(source)))
        for source in context.sources
    ]
    parts += [_date_line(context.today)] if context.today else []
    parts += [f"What was said before:\n{_bar_lines(context.said)}"] if context.said.strip() else []
    parts += [f"The question:\n{_bar_lines(context.question)}", f"The answer:\n{_bar_lines(context.answer)}"]
    for number, claim in enumerate(context.claims, 1):
        cited = "".join(f"[{each}]" for each in claim.cited) or "nothing"
        parts.append(f"claim {number}, cites {cited}:\n{_bar_lines(claim_key(claim)[0])}")
    last = len(context.claims)
    parts.append(f"Judge claims 1 to {last}." if last else 'Judge claims: there are none. Give "reply" only.')
    return _chat_messages("judge", text="\n\n".join(parts))


def _chat_messages(*prompts: str, text: str) -> list[ChatMessage]:
    system = "\n\n".join(map(prompt_text, prompts))
    return [{"role": "system", "content": system}, {"role": "user", "content": text}]


def _bar_lines(text: str) -> str:
    # Stored texts have `&gt;`, but people, and so the judge, read >.
    return "\n".join(f"| {line}" for line in unescape(text).splitlines())


def _data_lines(parts: Sequence[Part], question: Question) -> list[str]:
    # The author helps to understand "she" and "us", and whether a message is for other people, even without a name.
    author = question.names.get(question.user, "" if question.addressed else question.user)
    every = [*parts, ("last message", f"{author}: {question.text}" if author else question.text)]
    # Each part is between marker lines. Their fence word occurs in no part, and no author of a document can guess it.
    texts, seed = list(chain.from_iterable(every)), f"{question.thread} {question.ts} {question.text}"
    words = (hashlib.sha256(f"{number}\n{seed}".encode(errors="replace")).hexdigest()[:12] for number in count())
    word = next(word for word in words if not any(word in text for text in texts))
    fenced = "\n\n".join(f"[DATA {word}: {label}]\n{text}\n[END {word}]" for label, text in every)
    lines = [fenced, _date_line(question.date_asked(), str(question.zone))]
    if question.instruction:  # not a source: facts in it need a source like any other
        lines.append(f"The admin of this channel wishes of the form of answers: {_one_line(question.instruction)}")
    return lines


def _date_line(today: date, zone: str = "") -> str:
    return f"Today is {today:%A}, {today.day} {today:%B %Y}{f' ({zone})' if zone else ''}."


def _source_parts(context: TurnContext) -> Iterable[Part]:
    today = context.question.date_asked()
    for source in context.sources:
        at, words = _one_line(source.updated_at), age(source.updated_at[:10], today)
        updated = f", updated {at[:10]} ({words})" if words else f", updated {at}" if at else ""
        yield f"source [{source.id}] {_one_line(source.title)}{updated}", source.text


def _result_parts(results: Sequence[ToolResult], left_out: int, longest: int) -> Iterable[Part]:
    """Yield the tools' calls and results. Their sources are already in the prompt."""
    lines: list[str] = []
    for each in results:
        used = truncate(json.dumps(dict(each.input), ensure_ascii=False), MAX_PREVIEW_CHARS) if each.input else ""
        call = " ".join(filter(None, ("✓" if each.ok else "✗", _one_line(each.tool), used)))
        text = each.content or " ".join((each.error, *each.hints))  # why it failed, and what to try next
        if each.ok and each.sources:
            titles, texts = tuple(filter(None, (s.title for s in each.sources))), [s.text for s in each.sources]
            written = each.content.splitlines()
            notes = [line for line in written if not (line.startswith(titles) or any(line in text for text in texts))]
            found = "it found nothing that is not listed" if each.found_nothing_new else "its sources are"
            text = " ".join((f"{found} above.", *notes, *each.hints))
        lines.append(f"{call}: {truncate(text, longest)}")
    if left_out:
        lines.append(f"{left_out} more passages were found than there is room for. Narrower words find them.")
    if lines:
        yield "tools used so far", "\n".join(lines)


def _conversation_parts(context: TurnContext, history: Sequence[ThreadMessage], longest: int) -> Iterable[Part]:
    talk = conversation_text(history, context.question.names, longest)
    mission = context.mission if context.mission != context.question.text else ""
    answers = "\n".join(f"{key}: {value}" for key, value in context.answers.items())
    labels = ("mission", "conversation so far", "the person's answers to questions")
    yield from (part for part in zip(labels, (mission, talk, answers), strict=True) if part[1])


def conversation_text(
    messages: Iterable[ThreadMessage], names: Mapping[str, str], longest: int = MAX_WRITE_MESSAGE_CHARS
) -> str:
    """Return the messages, each after the name of its author."""
    lines = []
    for message in messages:
        # A model copies what it sees, such as mrkdwn and the numbers of other turns.
        said = as_markdown(message.text) if message.role == "assistant" else message.text
        name = "Orion" if message.role == "assistant" else names.get(message.user, message.user) or "person"
        lines.append(f"{name}: {truncate(said, longest)}")
    return "\n".join(lines)


def _one_line(text: str) -> str:  # a title must stay on its marker line and must not end it
    return " ".join(text.replace("]", ")").replace("[", "(").split())[:MAX_LABEL_CHARS]

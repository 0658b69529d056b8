"""The model of a server that speaks OpenAI's chat completions: requests of each phase, and their replies."""

from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar, Final

from agent.actions import Action
from agent.budget import Usage
from agent.model.chat_reply import Reply
from agent.model.chat_server import LOWEST_EFFORT, Body, ChatServer, Learned, Timeouts, was_cut
from agent.model.control import ControlError, functions, read_arguments, read_calls, read_json
from agent.model.failures import ABOUT_TOOLS, ServerRefusalError
from agent.model.judge import JudgeContext, Opinion, read_opinion
from agent.model.prompts import ChatMessage, control_messages, judge_messages, write_messages
from agent.model.protocol import (
    DecideContext,
    Decision,
    Generated,
    ModelError,
    ModelErrorKind,
    WriteContext,
    WriteStream,
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
    write_model: str = ""  # empty: the same one
    effort: str = ""  # reasoning effort of decisions; empty: the lowest that the model accepts
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
            body = self._decide_body(control_messages(context, as_json=False))
            body |= {"tools": functions(context.tools, addressed=context.question.addressed), "tool_choice": "required"}
            try:
                reply, before = await self.reply(body)
            except ServerRefusalError as refusal:
                if known.calls_tools or not _refuses_tools(refusal):
                    raise
                before = Usage(model_calls=1)  # a refused call counts as well
            else:
                if reply.calls or known.calls_tools:
                    self.learned[self.model] |= Learned(calls_tools=True)
                    return self._decision(body, reply, before)
                with suppress(ControlError):  # the bare JSON object
                    action = _read_action(reply)
                    self.learned[self.model] |= Learned(json_only=True)
                    return Decision(action=action, usage=before, call=self.call(body))
        body = self._decide_body(control_messages(context, as_json=True))
        body["response_format"] = JSON_OBJECT
        reply, usage = await self.reply(body)
        self.learned[self.model] |= Learned(json_only=True)
        return self._decision(body, reply, before + usage)

    def write(self, context: WriteContext) -> WriteStream:
        """Start phase two as a stream: no tools, no response format."""
        model = self.write_model or self.model
        body: Body = {"model": model, "messages": write_messages(context, reasons=self.learned[model].reasons)}
        body |= {"temperature": WRITE_TEMPERATURE, "reasoning_effort": self.write_effort or WRITE_EFFORT}
        return self.stream(body)

    async def judge(self, context: JudgeContext) -> Opinion:
        """Return one verdict per claim; an unreadable reply is requested once more. Raises ``ModelError``."""
        body: Body = {"model": self.model, "messages": judge_messages(context), "response_format": JSON_OBJECT}
        body |= {"temperature": JUDGE_TEMPERATURE, "reasoning_effort": JUDGE_EFFORT}
        reply, usage = await self.reply(body)
        opinion = read_opinion(*reply.texts)
        if not (opinion.judgements if context.claims else opinion.reply):
            with suppress(ModelError):  # the first reply counts: claims it left open stay open
                reply, more = await self.reply(body)
                opinion, usage = read_opinion(*reply.texts), usage + more
        return replace(opinion, usage=usage, call=self.call(body))

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        """Return plain text for one prompt. Raises ``ModelError``, also if the text was cut off at ``max_tokens``."""
        body = self._decide_body([{"role": "user", "content": prompt}])
        body |= {"max_tokens": max_tokens, "temperature": temperature}
        reply, usage = await self.reply(body)
        if reply.cut_off:
            raise ModelError(kind="TokenLimitError", detail="the text was cut off at max_tokens")
        if not reply.content.strip():
            raise ModelError(kind="EmptyReplyError", detail="the server sent an empty text")
        return Generated(text=reply.content, usage=usage, call=self.call(body))

    async def context_length(self, context: DecideContext, tokens: int) -> int:
        """Return how many tokens of a decision with more than ``tokens`` the model read. Raises ``ModelError``."""
        try:
            usage = (await self.decide(context)).usage
        except ModelError as error:
            if error.kind != "MalformedControlError":
                raise
            usage = error.usage
        return usage.prompt_tokens if was_cut(usage, tokens) else tokens

    def _decide_body(self, messages: list[ChatMessage]) -> Body:
        return {"model": self.model, "messages": messages, "reasoning_effort": self.effort or LOWEST_EFFORT}

    def _decision(self, body: Body, reply: Reply, usage: Usage) -> Decision:
        """Read a decision. Raises ``ModelError`` for the model's fault, or the token limit's if it was cut off."""
        try:
            if reply.calls and "tools" in body:
                action = read_calls([replace(call, input=read_arguments(text)) for call, text in reply.calls])
            else:
                action = _read_action(reply)
        except ControlError as fault:
            kind: ModelErrorKind = "TokenLimitError" if reply.cut_off else "MalformedControlError"
            detail = str(fault) if reply.calls or "tools" not in body else "No function was called."
            error = ModelError(kind=kind, detail=detail, usage=usage)
            error.call = self.call(body)
            raise error from fault
        return Decision(action=action, usage=usage, call=self.call(body))


def _refuses_tools(refusal: ServerRefusalError) -> bool:
    """Return True if a server without tool calling answers like this, even if its text names nothing."""
    statuses = {0, 400, 404, 422, 500, 501} if ABOUT_TOOLS.search(refusal.words) else {400, 422}
    return refusal.kind in {"ConfigurationError", "LLMError"} and refusal.status in statuses


def _read_action(reply: Reply) -> Action:
    """Return the action in the content, or in the reasoning if the content is empty."""
    return read_json(reply.content if reply.content.strip() else reply.reasoning)

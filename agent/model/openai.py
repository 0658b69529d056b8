"""The model behind any server that speaks OpenAI's chat completions: what each phase asks, and what its reply means."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from agent.actions import Action
from agent.budget import ModelCall, Usage
from agent.circuit_breaker import CircuitBreaker
from agent.model.capabilities import LOWEST_EFFORT, Body, Learned
from agent.model.chat_reply import Reply
from agent.model.chat_server import ChatServer, Timeouts, refuses_tools, was_cut
from agent.model.control import ControlError, functions, read_arguments, read_calls, read_json
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
WRITE_EFFORT: Final = "low"  # untold, models before gpt-5.1 reason at medium
JUDGE_EFFORT: Final = "low"
_FILLING: Final = "the cat and the dog sat on the mat "  # words that are one token each, whatever the model
JUDGE_TIMEOUTS: Final = Timeouts(reply=30.0, retries=1)  # one that is late must not use up the time of the turn


class OpenAIModel:
    """``model`` decides, generates and judges, ``write_model`` writes (empty: the same one).

    ``effort`` is the reasoning effort of decisions (empty: the lowest that the model takes), ``write_effort`` that of
    writing (empty: low). ``breaker`` and ``learned`` may be shared by all who call the same server.
    """

    quotes_only = False

    def __init__(  # noqa: PLR0913 - what a server is, each named at the call
        self,
        *,
        base_url: str | None,
        api_key: str,
        model: str,
        write_model: str = "",
        effort: str = "",
        write_effort: str = "",
        timeouts: Timeouts | None = None,
        breaker: CircuitBreaker | None = None,
        learned: dict[str, Learned] | None = None,
    ) -> None:
        self._model = model
        self._write_model = write_model or model
        self.name = model if model == self._write_model else f"{model}+{self._write_model}"
        self._effort = effort or LOWEST_EFFORT
        self._write_effort = write_effort or WRITE_EFFORT
        self._server = ChatServer(
            base_url=base_url,
            api_key=api_key,
            timeouts=timeouts or Timeouts(),
            breaker=breaker or CircuitBreaker("model"),
            learned={} if learned is None else learned,
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._server.aclose()

    async def decide(self, context: DecideContext) -> Decision:
        """One action, by function calling where the server has it, by a JSON object otherwise."""
        before = Usage()
        if not self._server.learned(self._model).json_only:
            body = self._deciding(control_messages(context, as_json=False))
            body |= {"tools": functions(context.tools, addressed=context.question.addressed), "tool_choice": "required"}
            with self._named_in_errors(body):
                action, before = await self._by_tools(body)
            if action:
                return Decision(action=action, usage=before, call=self._call(body))
        body = self._deciding(control_messages(context, as_json=True))
        body["response_format"] = {"type": "json_object"}
        with self._named_in_errors(body):
            reply, usage = await self._server.reply(body)
        self._server.learn(self._model, Learned(json_only=True))
        with self._named_in_errors(body), _malformed(reply, before + usage):
            return Decision(action=read_json(reply.content), usage=before + usage, call=self._call(body))

    def write(self, context: WriteContext) -> WriteStream:
        """Phase two as a stream: no tools, no response format."""
        body: Body = {
            "model": self._write_model,
            "messages": write_messages(context, reasons=self._server.learned(self._write_model).reasons),
            "temperature": WRITE_TEMPERATURE,
            "reasoning_effort": self._write_effort,
        }

        def spent(usage: Usage) -> None:
            stream.usage = usage

        stream = WriteStream(pieces=self._server.stream(body, spent), call=self._call(body))
        return stream

    async def judge(self, context: JudgeContext) -> Opinion:
        """One verdict a claim, as far as the reply can be read (``agent.model.judge.Judge``). Raises ``ModelError``."""
        body: Body = {
            "model": self._model,
            "messages": judge_messages(context),
            "response_format": {"type": "json_object"},
            "temperature": JUDGE_TEMPERATURE,
            "reasoning_effort": JUDGE_EFFORT,
        }
        with self._named_in_errors(body):
            reply, usage = await self._server.reply(body)
        return replace(read_opinion(reply.content), usage=usage, call=self._call(body))

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> Generated:
        """Plain text from one prompt. Raises ``ModelError``, also when the text was cut off at ``max_tokens``."""
        body = self._deciding([{"role": "user", "content": prompt}])
        body |= {"max_tokens": max_tokens, "temperature": temperature}
        reply, usage = await self._server.reply(body)
        if reply.cut_off:
            raise ModelError(kind="TokenLimitError", detail="the text was cut off at max_tokens")
        if not reply.content.strip():
            raise ModelError(kind="LLMError", detail="the server sent an empty text")
        return Generated(text=reply.content, usage=usage, call=self._call(body))

    async def context_taken(self, tokens: int) -> int:
        """How many tokens the model takes by the server's list, else how many it read of about ``tokens`` of a prompt.

        That is all unless it was clearly fewer. Raises ``ModelError``.
        """
        listed = await self._server.context_listed(self._model)
        if listed is not None:
            return listed
        body = self._deciding([{"role": "user", "content": _FILLING * (tokens // len(_FILLING.split()))}])
        _, usage = await self._server.reply({**body, "max_tokens": 1})
        return usage.prompt_tokens if was_cut(usage, tokens) else tokens

    def _deciding(self, messages: list[ChatMessage]) -> Body:
        return {"model": self._model, "messages": messages, "reasoning_effort": self._effort}

    async def _by_tools(self, body: Body) -> tuple[Action | None, Usage]:
        """An action, or None where this server turns out not to call tools."""
        proven = self._server.learned(self._model).calls_tools
        try:
            reply, usage = await self._server.reply(body)
        except ModelError as error:
            if proven or not refuses_tools(error.__cause__):
                raise
            return None, Usage(model_calls=1)  # a refused call counts as well
        if reply.calls:
            self._server.learn(self._model, Learned(calls_tools=True))
            with _malformed(reply, usage):
                calls = [replace(call, input=read_arguments(text)) for call, text in reply.calls]
                return read_calls(calls), usage
        return self._from_prose(reply, usage, proven=proven), usage

    def _from_prose(self, reply: Reply, usage: Usage, *, proven: bool) -> Action | None:
        """A server that ignores ``tools`` without a word may still have written the JSON object by itself."""
        try:
            action = read_json(reply.content)
        except ControlError as fault:
            if proven:
                raise ModelError(kind="MalformedControlError", detail="No function was called.", usage=usage) from fault
            return None
        if not proven:
            self._server.learn(self._model, Learned(json_only=True))
        return action

    @contextmanager
    def _named_in_errors(self, body: Body) -> Iterator[None]:
        """Add the request to a ``ModelError``, so that the trace of a failed call shows its prompt and its model."""
        try:
            yield
        except ModelError as error:
            error.call = self._call(body)
            raise

    def _call(self, body: Body) -> ModelCall:
        sent = self._server.learned(body["model"]).fitted(body)
        messages, tools = tuple(sent.pop("messages")), tuple(sent.pop("tools", ()))
        return ModelCall(model=sent.pop("model"), messages=messages, tools=tools, parameters=sent)


@contextmanager
def _malformed(reply: Reply, usage: Usage) -> Iterator[None]:
    """A decision that cannot be read is the model's fault, or the limit's when it was cut off."""
    try:
        yield
    except ControlError as fault:
        kind: ModelErrorKind = "TokenLimitError" if reply.cut_off else "MalformedControlError"
        raise ModelError(kind=kind, detail=str(fault), usage=usage) from fault

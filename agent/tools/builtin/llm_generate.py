"""The ``llm_generate`` tool: natural-language text from a prompt, by the configured model.

A failure is a result with its type and hints. The generated text is never a source.
"""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import structlog

from agent.budget import Usage
from agent.json_data import compact_json
from agent.model.chat_reply import tags_of
from agent.model.protocol import Generated, Model, ModelError
from agent.tools.tool import ToolFailed, ToolResult, error_of, parameter, spec_of
from observability.logging import Length

log = structlog.get_logger()

NAME: Final = "llm_generate"
LARGE_CONTEXT: Final = 2_000
MAX_TOKENS: Final = parameter(NAME, "max_tokens")["default"]
TEMPERATURE: Final = parameter(NAME, "temperature")["default"]
GENERATE_TIMEOUT_S: Final = 25.0  # less than a tool's time-out in a turn, so that the result names a hanging model

_BLANK: Final = ("Bad parameters: 'prompt' must not be blank.", "Correct the parameters and call again.")


@dataclass(frozen=True, slots=True)
class LlmGenerate:
    """The tool. One instance serves any number of turns at once."""

    model: Model
    timeout_s: float = GENERATE_TIMEOUT_S
    spec: ClassVar = spec_of(NAME)

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """Return JSON as ``content``: ``success`` with text and token counts, or ``error``, ``type`` and ``hints``."""
        prompt, context = str(arguments["prompt"]), arguments.get("context") or ""
        if not prompt.strip():
            raise ToolFailed(*_BLANK)
        data = context if isinstance(context, str) else json.dumps(context, ensure_ascii=False, indent=2, default=str)
        if len(data) > LARGE_CONTEXT:
            log.warning("llm_generate_large_context", tool=NAME, context_size=len(data), recommended=LARGE_CONTEXT)
        facts = {"prompt_length": Length(prompt), "has_context": bool(data), "context_size": Length(data)}
        log.info("llm_generate_started", tool=NAME, **facts)
        began = time.monotonic()
        generated = await self._generate(f"Context Data:\n{data}\n\nTask: {prompt}" if data else prompt, arguments)
        latency_ms = round((time.monotonic() - began) * 1000, 1)
        if isinstance(generated, ModelError):
            error, kind, hints = generated.detail, generated.kind, generated.hints
            log.error("llm_generate_failed", error_type=kind, error=error, latency_ms=latency_ms)
            body: dict[str, Any] = {"success": False, "error": error, "type": kind, "hints": list(hints)}
            usage = Usage(model_calls=1)  # a failed call counts against the turn's budget too
            return ToolResult(ok=False, content=compact_json(body), error=error, hints=hints, usage=usage)
        usage = generated.usage
        counts = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
        tokens = {"tokens_used": usage.tokens} | counts
        log.info("llm_generate_completed", **tokens, latency_ms=latency_ms)
        body = {"success": True, "generated_text": generated.text, **tokens, "estimated": usage.estimated}
        return ToolResult(content=compact_json(body), generated=generated.text, usage=usage, call=generated.call)

    async def _generate(self, prompt: str, arguments: Mapping[str, Any]) -> Generated | ModelError:
        """Return the model's text without its thinking, or the failure, including a time-out."""
        results: list[Generated] = []

        async def generate() -> None:
            tokens, temperature = arguments.get("max_tokens", MAX_TOKENS), arguments.get("temperature", TEMPERATURE)
            async with asyncio.timeout(self.timeout_s):
                results.append(await self.model.generate(prompt, max_tokens=tokens, temperature=temperature))

        error = await error_of(generate)
        if isinstance(error, ModelError):
            return error
        if isinstance(error, TimeoutError):
            return ModelError(kind="TimeoutError", detail=f"no text within {self.timeout_s:g} seconds")
        if error:
            return ModelError(kind="LLMError", detail=f"the model failed: {type(error).__name__}")
        text = tags_of(results[0].text).draft.strip()
        return replace(results[0], text=text) if text else ModelError(kind="LLMError", detail="the text is empty")

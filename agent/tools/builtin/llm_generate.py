"""The ``llm_generate`` tool: natural-language text from a prompt, by the configured model.

A failure is a result with its type and hints. What it returns is never a source.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import structlog

from agent.budget import Usage
from agent.model.protocol import Generated, Model, ModelError
from agent.packing import compact_json
from agent.tools.builtin.specs import parameter, spec_of
from agent.tools.tool import ToolFailed, ToolResult
from observability.logging import Length

log = structlog.get_logger()

NAME: Final = "llm_generate"
LARGE_CONTEXT: Final = 2_000
MAX_TOKENS: Final = parameter(NAME, "max_tokens")["default"]
TEMPERATURE: Final = parameter(NAME, "temperature")["default"]
LONGEST_S: Final = 25.0  # seconds: less than a turn gives any tool, so that a model that hangs is told as what it is


class LlmGenerate:
    """The tool. One instance serves any number of agents at once."""

    spec = spec_of(NAME)

    def __init__(self, model: Model, *, longest_s: float = LONGEST_S) -> None:
        self._model = model
        self._longest_s = longest_s

    async def run(self, arguments: Mapping[str, Any]) -> ToolResult:
        """``content`` is JSON: ``success`` with text and token counts, or with ``error``, ``type`` and ``hints``."""
        prompt, context = str(arguments["prompt"]), arguments.get("context") or ""
        if not prompt.strip():
            raise ToolFailed(*_BLANK)
        data = context if isinstance(context, str) else json.dumps(context, ensure_ascii=False, indent=2, default=str)
        if len(data) > LARGE_CONTEXT:
            log.warning("llm_generate_large_context", tool=NAME, context_size=len(data), recommended=LARGE_CONTEXT)
        facts = {"prompt_length": Length(prompt), "has_context": bool(data), "context_size": Length(data)}
        log.info("llm_generate_started", tool=NAME, **facts)
        began = time.monotonic()
        try:
            made = await self._written(f"Context Data:\n{data}\n\nTask:\n{prompt}" if data else prompt, arguments)
        except ModelError as error:
            told, kind, hints = error.detail, error.kind, error.hints
            log.warning("llm_generate_failed", error_type=kind, error=told, latency_ms=_since(began))
            body: dict[str, Any] = {"success": False, "error": told, "type": kind, "hints": list(hints)}
            # A failed call counts against the turn's budget too.
            return ToolResult(ok=False, content=compact_json(body), error=told, hints=hints, usage=Usage(model_calls=1))
        used = made.usage
        counts = (used.tokens, used.prompt_tokens, used.completion_tokens)
        tokens = dict(zip(("tokens_used", "prompt_tokens", "completion_tokens"), counts, strict=True))
        log.info("llm_generate_completed", **tokens, latency_ms=_since(began))
        body = {"success": True, "generated_text": made.text, **tokens, "estimated": used.estimated}
        usage = replace(used, model_calls=max(1, used.model_calls))
        return ToolResult(content=compact_json(body), usage=usage, call=made.call)

    async def _written(self, prompt: str, arguments: Mapping[str, Any]) -> Generated:
        """The model's text and what it cost. Raises ``ModelError``, also where it takes too long."""
        tokens, temperature = arguments.get("max_tokens", MAX_TOKENS), arguments.get("temperature", TEMPERATURE)
        try:
            async with asyncio.timeout(self._longest_s):
                return await self._model.generate(prompt, max_tokens=tokens, temperature=temperature)
        except TimeoutError:
            raise ModelError(kind="TimeoutError", detail=f"no text within {self._longest_s:g} seconds") from None


_BLANK: Final = ("Bad parameters: 'prompt' must not be blank.", "Mend the parameters and call again.")


def _since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 1)

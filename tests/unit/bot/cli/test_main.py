"""Every command as a person uses and misuses it: a sentence, an exit code, never a stack trace."""

import io
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest
from rich.console import Console
from typer import Exit
from typer.main import get_command

from bot.cli.main import app
from bot.cli.output import run
from bot.cli.signals import EndedAtOnce
from bot.evals import bench
from bot.redis.server import EmbeddedRedisError
from tests.support.orion_command import LIMITS, QUESTION, Terminal
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "No such command"),
        (["ask"], "Missing argument"),
        (["ask", "  "], "question is empty"),
        (["ask", "x", "--docs", "nowhere"], "nowhere is not a folder"),
        (["ask", "x", "--docs", "docs/limits.md"], "limits.md is not a folder"),
        (["verify", "nowhere"], "cannot read nowhere"),
        (["verify", "docs"], "cannot read docs"),
        (["verify", "docs/limits.md", "--dialect", "html"], "is not one of"),
        (["verify", "docs/limits.md", "--sources", "docs/limits.md"], "is not JSON"),
        (["verify", "--jsonl", "docs/limits.md", "out", "--question", "x?"], "leave FILE and those out"),
        (["verify", "docs/limits.md", "--jsonl", "docs/limits.md", "out"], "leave FILE and those out"),
        (["verify", "docs/limits.md", "--judge"], "--judge needs a model"),
        (["verify", "--jsonl", "docs", "out"], "cannot open docs"),
        (["verify", "--jsonl", "docs/limits.md", "docs"], "cannot open docs"),
        (["verify", "--jsonl", "docs/limits.md", "docs/limits.md"], "cannot be written at the same time"),
        (["index", "nowhere"], "nowhere is not a folder"),
        (["serve", "--mode", "pigeon"], "is not one of"),
        (["serve"], "SLACK_BOT_TOKEN and SLACK_APP_TOKEN"),
        (["serve", "--mode", "http"], "SLACK_BOT_TOKEN and SLACK_SIGNING_SECRET"),
        (["serve", "--port", "70000"], "65535"),
        (["worker"], "SLACK_BOT_TOKEN"),
        (["worker", "--concurrency", "0"], "concurrency"),
        (["local", "--docs", "nowhere"], "nowhere is not a folder"),
    ],
    ids=" ".join,
)
def test_wrong_use_is_explained_and_exits_with_2(arguments: list[str], said: str, terminal: Terminal) -> None:
    done = terminal.orion(*arguments)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert (terminal.docs / "limits.md").read_text() == LIMITS


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"ORION_PORT": "abc"}, "ORION_PORT"),
        ({"REDIS_URL": "hello"}, "REDIS_URL"),
        ({"REDIS_URL": "redis://host:port"}, "REDIS_URL"),
        ({"ORION_HOME": "docs/limits.md"}, "ORION_HOME"),
        ({"ORION_HOME": "/proc/nowhere"}, "ORION_HOME"),
        ({"ORION_DOCS": "nowhere"}, "nowhere is not a folder"),
    ],
    ids=str,
)
def test_a_wrong_setting_is_named(variables: dict[str, str], said: str, terminal: Terminal) -> None:
    terminal.set(**variables)
    done = terminal.orion("ask", QUESTION, "--thread", "t")
    assert done.code == 2
    assert said in done.err


@pytest.mark.parametrize("command", [["stats"], ["ask", QUESTION, "--thread", "t"]])
def test_a_redis_outage_is_reported_without_the_password(command: list[str], terminal: Terminal) -> None:
    terminal.set(REDIS_URL="redis://:hunter2@127.0.0.1:9")
    done = terminal.orion(*command)
    assert done.code == 1
    assert "Redis cannot be used (Redis cannot be reached: is it up, and is REDIS_URL right?)" in done.err
    assert "hunter2" not in done.err


def test_the_version_is_shown(terminal: Terminal) -> None:
    assert terminal.orion("--version").out == "orion 0.1.0\n"


def test_verify_prints_verdict_and_repairs(terminal: Terminal) -> None:
    terminal.write("good.md", "This is **bold**.")
    done = terminal.orion("verify", "good.md")
    assert (done.code, done.out) == (0, "This is *bold*.\n")
    assert "repaired" in done.err
    done = terminal.orion("verify", "good.md", "--no-repair")
    assert done.code == 1
    assert "no_markdown_bold" in done.err


def test_verify_neither_wraps_a_text_nor_commands_the_terminal(terminal: Terminal) -> None:
    line = "word :smile: " * 40
    terminal.write("long.txt", f"{line}\x1b[31mred [/bold]")
    out = terminal.orion("verify", "long.txt").out
    assert out.count("\n") == 1
    assert ":smile:" in out
    assert "\x1b" not in out


def test_verify_json_is_utf8_in_any_terminal(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("Grüße 日本", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "bot", "verify", str(tmp_path / "t.txt"), "--json"],
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert "Grüße 日本" in done.stdout.decode("utf-8")
    assert done.returncode == 0


def test_a_closed_output_prints_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("some words")
    with subprocess.Popen(
        [sys.executable, "-m", "bot", "verify", str(tmp_path / "t.txt"), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as running:
        assert running.stdout
        assert running.stderr
        running.stdout.close()
        assert running.stderr.read() == b""
        assert running.wait() == 1


def test_the_index_contains_exactly_the_named_sources_and_lists_them(terminal: Terminal) -> None:
    other = terminal.folder / "other"
    other.mkdir()
    (other / "o.md").write_text("# Other\n\nSomething else.")
    (other / "broken.pdf").write_bytes(b"no pdf")
    done = terminal.orion("index", "docs")
    assert done.code == 0
    assert "1 added, 0 changed, 0 removed, 0 unchanged" in done.out
    assert "has 1 document, exactly those of docs" in done.out
    done = terminal.orion("index", "other")
    assert "1 added, 0 changed, 1 removed" in done.out
    assert "Not read: broken.pdf" in done.err
    assert [d["id"] for d in terminal.orion("docs", "--json").json["documents"]] == ["o.md"]
    assert "Not read: broken.pdf: is a damaged PDF" in terminal.orion("docs").err


def test_the_index_reports_that_the_settings_name_other_folders(terminal: Terminal) -> None:
    (terminal.folder / "other").mkdir()
    terminal.set(ORION_DOCS="other")
    assert "ORION_DOCS names other" in terminal.orion("index", "docs").err
    assert "No documents yet" in terminal.orion("docs").out


def test_manifest_prints_json(terminal: Terminal) -> None:
    assert terminal.orion("manifest").json["settings"]["socket_mode_enabled"] is True


@pytest.mark.parametrize("url", ["hello", "ftp://orion.example", "http://orion.example", "https://"])
def test_no_manifest_is_printed_for_an_address_that_slack_cannot_reach(terminal: Terminal, url: str) -> None:
    done = terminal.orion("manifest", "--url", url)
    assert done.code == 2
    assert "https://orion.example.com" in done.err
    assert not done.out


def test_a_misspelt_setting_is_reported(terminal: Terminal) -> None:
    terminal.write(".env", "ORION_MODLE=gpt-5\n")
    terminal.set(ORION_DENY_USER="U1")
    done = terminal.orion("manifest")
    assert done.code == 0
    told = terminal.orion("docs").err
    assert "setting_unknown" in told
    assert "ORION_MODEL" in told
    assert "ORION_DENY_USERS" in told


def test_doctor_runs_all_its_checks_with_any_settings(terminal: Terminal) -> None:
    terminal.write(".env", "ORION_PORT=abc\nhello there\nLANGFUSE_HOST=langfuse:3000\nORION_MODLE=x\n")
    terminal.set(ORION_DOCS="docs", ORION_HOME=str(terminal.folder / "home"), LANGFUSE_PUBLIC_KEY="pk")
    done = terminal.orion("doctor")
    assert done.code == 1
    for said in (
        "ORION_PORT must be a whole number, not 'abc'",
        "LANGFUSE_HOST must be an address such as",
        ".env, line 2 is not understood",
        "ORION_MODLE is not a setting of Orion",
        "Did you mean ORION_MODEL?",
        "SLACK_BOT_TOKEN is not set",
        "Create an app from `orion manifest`",
        "1 document",
    ):
        assert said in done.out
    assert done.err == ""


def test_every_command_of_the_contract_has_a_help(terminal: Terminal) -> None:
    names = set(vars(get_command(app))["commands"])
    wanted = "serve worker local ask verify eval index docs stats dashboards doctor manifest dead-letters forget pause"
    assert names >= {*wanted.split(), "resume", "bench"}
    for name in names:
        assert terminal.orion(name, "--help").code == 0
    assert "expect: texts or null" in " ".join(terminal.orion("eval", "answers", "--help").out.split())


def commandline(path: Path) -> str:
    with suppress(OSError):  # it ended meanwhile
        return path.read_text(encoding="utf-8", errors="replace")
    return ""


def test_bench_times_a_mention_end_to_end_next_to_a_minimal_bot(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="ob-") as folder:  # a socket's path has little more than 100 bytes
        monkeypatch.setattr(tempfile, "tempdir", folder)
        told = terminal.orion("bench", "--quick", "--json").json
        running = [line for path in Path("/proc").glob("[0-9]*/cmdline") if folder in (line := commandline(path))]
    assert running == [], "what was measured left a process behind"
    beside = {row["name"]: row for row in told if row["smallest"]}
    assert len(beside) == 6
    assert all(row["ratio"] for row in beside.values())
    assert beside["Calls to Slack a mention"]["smallest"] == 1.0
    assert 0 < beside["Answer to a mention, instant model, median"]["value"] < 60_000
    shown = io.StringIO()
    rows = [bench.BenchRow(*(row[field] for field in bench.BenchRow._fields)) for row in told]
    Console(file=shown, width=200).print(bench.bench_table(rows))
    assert all(row.name in shown.getvalue() for row in rows)


@pytest.mark.parametrize(
    ("failure", "code", "said"),
    [
        (EmbeddedRedisError("No Redis to keep questions in."), 1, "No Redis to keep questions in."),
        (EndedAtOnce(), 130, "resumed at the next start"),
    ],
)
def test_an_error_that_ends_a_command_is_reported(
    failure: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def fails() -> None:
        raise failure

    with pytest.raises(Exit) as ended:
        run(fails())
    assert ended.value.exit_code == code
    assert said in capsys.readouterr().err


LARGE = ("redis", "openai", "slack_sdk", "langfuse", "aiohttp")


def said_and_loaded(*arguments: str, among: tuple[str, ...] = LARGE) -> list[str]:
    """The command's output line by line, and then the large packages that it loaded."""
    code = (
        "import sys\nfrom bot.cli.main import main\n"
        f"try:\n    main({list(arguments)!r})\nexcept SystemExit:\n    pass\n"
        f"print([m for m in {among!r} if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_verify_imports_neither_slack_nor_redis_nor_a_model(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("Hello!")
    among = (*LARGE, "asyncio", "structlog", "rich", "bot.evals.rows")
    assert said_and_loaded("verify", str(tmp_path / "t.txt"), among=among) == ["Hello!", "[]"]


def test_a_question_without_a_thread_imports_neither_slack_nor_redis(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORION_HOME", str(tmp_path / "home"))
    (tmp_path / "limits.md").write_text(LIMITS)
    said = said_and_loaded("ask", QUESTION, "--docs", str(tmp_path), among=("redis", "slack_sdk", "langfuse"))
    assert ("Each API key may make 600 requests a minute. [1]" in said, said[-1]) == (True, "[]")


def test_the_index_is_updated_without_slack_and_without_a_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ORION_HOME", str(tmp_path / "home"))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Alpha\n")
    said = said_and_loaded("index", str(tmp_path / "docs"))
    assert said[0] == "1 added, 0 changed, 0 removed, 0 unchanged."
    for loaded in (said[-1], said_and_loaded("docs")[-1]):
        assert loaded in {"[]", "['redis']"}


def test_a_missing_package_is_named_with_what_to_do() -> None:
    done = subprocess.run([sys.executable, "-S", "-m", "bot"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("Traceback")) == (1, 0)
    assert "The package typer is missing from" in done.stderr
    assert "`rm -rf .venv` and then `make run`" in done.stderr

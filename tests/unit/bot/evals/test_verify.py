"""The verifier as a command: any text, any row, any input gets an answer."""

import io
import json
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.chat_server import Timeouts
from agent.model.openai import OpenAIModel
from agent.model.protocol import ServerAddress
from bot.errors import WrongUse
from bot.evals.files import read_text, verdict_json
from bot.evals.rows import SourceRow, sources_of
from bot.evals.verify import LabelledText, count_errors, evaluate_verifier, verify_stream
from tests.support.openai_server import GARBAGE, Scripted, ScriptedOpenAI, says
from tests.support.paths import ROOT
from verification.check import check
from verification.types import Dialect, Draft, Verdict, Violation

SOURCE = {
    "id": 1,
    "title": "Limits",
    "url": "https://docs.example/limits",
    "text": "Each API key may make 600 requests.",
}
SOURCES = sources_of([SourceRow.model_validate(SOURCE)])
OPTIONS = Draft(text="")
VERDICT = {"passed", "text", "chunks", "repairs", "violations", "claims"}


def rows(tmp_path: Path, *lines: str) -> tuple[Path, Path]:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return source, out


def read_rows(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]


def test_a_verdict_has_the_fields_of_the_contract() -> None:
    shown = verdict_json(check(Draft(text="**1** [7]", sources=SOURCES)))
    assert set(shown) == VERDICT
    assert not shown["passed"]
    assert set(shown["violations"][0]) == {"rule", "severity", "start", "end", "words", "detail", "remedy"}
    json.dumps(shown)


@pytest.mark.parametrize(
    ("text", "supported", "settled_by"),
    [
        ("Each API key may make 600 requests [1].", "yes", "quotation"),
        ("*Each* API key may make `600` requests [1].", "yes", "quotation"),
        ("API key may make 600 requests [1].", "yes", "quotation"),
        ("Each key may make 600 requests [1].", "open", "nobody"),
        ("Any API key has room for 600 requests [1].", "open", "nobody"),
        ("Each API key may make 700 requests [1].", "no", "rule"),
    ],
)
def test_a_claim_record_says_who_settled_it_and_how(text: str, supported: str, settled_by: str) -> None:
    shown = verdict_json(check(Draft(text=text, sources=SOURCES)))
    (claim,) = shown["claims"]
    assert claim == {
        "text": text, "start": 0, "end": len(text), "cited": [1], "supported": supported, "settled_by": settled_by,
    }  # fmt: skip
    assert shown["passed"] is (supported != "no")
    assert not [each for each in shown["violations"] if supported == "open"]


def test_standard_input_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO("\N{ZERO WIDTH NO-BREAK SPACE}café".encode())))
    assert read_text("-") == "café"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\x7fELF\x02\x01\x01\x00\x00", "is not text: byte 7 is 0"),
        ("Hello".encode("utf-16"), "is not text: byte 3 is 0"),
        (b"caf\xe9 is closed", "is not text in UTF-8: byte 3"),
    ],
)
def test_bytes_other_than_text_get_no_verdict(content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.md").write_bytes(content)
    with pytest.raises(WrongUse, match=said):
        read_text(str(tmp_path / "t.md"))


async def test_the_stream_answers_every_row_under_its_id(tmp_path: Path) -> None:
    good = {"id": "a", "text": "Each API key may make 600 requests [1].", "question": "How many?", "sources": [SOURCE]}
    bad = {"id": 7, "text": "Each API key may make 900 requests [1].", "question": None, "sources": [SOURCE]}
    source, out = rows(tmp_path, json.dumps(good), "", json.dumps(bad))
    assert not await verify_stream(source, out, OPTIONS)
    first, second = read_rows(out)
    assert set(first) == VERDICT | {"id"}
    assert (first["id"], first["passed"], second["id"], second["passed"]) == ("a", True, 7, False)


async def test_rows_without_a_verdict_are_counted_and_named_in_the_output(tmp_path: Path) -> None:
    source, out = rows(tmp_path, '{"id": 1, "text": "Hello!"}', "{", '{"id": 3}', "[1]", "{")
    source.write_bytes(source.read_bytes() + b'{"id": 6, "text": "caf\xe9"}\n')
    assert "in.jsonl: 5 of 6 rows got no verdict." in await verify_stream(source, out, OPTIONS)
    assert [shown.get("error") for shown in read_rows(out)][:4] == [
        None,
        "line 2 is not JSON: Expecting property name enclosed in double quotes: line 2 column 1 (char 2)",
        "line 3: 'text': Field required",
        "line 4: Input should be an object",
    ]


async def test_half_an_emoji_does_not_end_a_stream(tmp_path: Path) -> None:
    source, out = rows(tmp_path, '{"id": "\\ud83d", "text": "Half \\ud83d an emoji"}')
    assert not await verify_stream(source, out, OPTIONS)
    assert len(read_rows(out)) == 1


async def test_a_stream_keeps_neither_its_rows_nor_its_verdicts(tmp_path: Path) -> None:
    """Ten megabytes in and ten out, in far less memory; what is cached is bounded and small."""
    source, out = rows(tmp_path, *(json.dumps({"id": f"{n}{'x' * 100_000}", "text": "Hello!"}) for n in range(100)))
    tracemalloc.start()
    await verify_stream(source, out, OPTIONS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert out.stat().st_size > 10_000_000
    assert peak < 3_000_000


@given(text=st.text(max_size=200), markdown=st.booleans(), repair=st.booleans())
def test_any_text_gets_a_verdict_in_json(text: str, *, markdown: bool, repair: bool) -> None:
    dialect: Dialect = "markdown" if markdown else "mrkdwn"
    shown = verdict_json(check(Draft(text=text, dialect=dialect, repair=repair)))
    assert json.loads(json.dumps(shown)) == shown


@pytest.mark.parametrize(
    ("reply", "settled"),
    [
        (None, [("yes", "quotation"), ("yes", "judge")]),
        (
            says('{"verdicts": [{"claim": 2, "lines": ["1.1"], "supported": false}]}'),
            [("yes", "quotation"), ("no", "judge")],
        ),
        (GARBAGE, [("yes", "quotation"), ("open", "nobody")]),
    ],
    ids=["agrees", "refutes", "is away"],
)
async def test_the_judge_settles_claims_that_the_rules_leave_open(
    tmp_path: Path, reply: Scripted | None, settled: list[tuple[str, str]]
) -> None:
    text = "Each API key may make 600 requests [1]. Any key has room for 600 of them [1]."
    source, out = rows(tmp_path, *(json.dumps({"id": n, "text": text, "sources": [SOURCE]}) for n in range(3)))
    async with ScriptedOpenAI(judgements=[reply] * 3 if reply else None) as server:
        judge = OpenAIModel(address=ServerAddress(base_url=server.url), model="j", timeouts=Timeouts(retries=0))
        await verify_stream(source, out, OPTIONS, judge)
        await judge.aclose()
    for number, found in enumerate(read_rows(out)):
        assert found["id"] == number
        assert [(claim["supported"], claim["settled_by"]) for claim in found["claims"]] == settled
        assert found["passed"] is (reply is None)


LABELLED = ROOT / "tests/data/verifier.jsonl"
PRECISE = (
    "altered quote",
    "broadcast",
    "date",
    "empty",
    "identifier",
    "invented link",
    "leaked json",
    "leaked tag",
    "missing citation",
    "secret",
    "time",
    "unit",
    "unknown citation",
)
"""Kinds of fault that must never pass. Vaguer ones (a name or number from elsewhere in the source, a twisted sentence,
an invention in plain words) are left to the judge, and counted below."""


def ruling(identity: str, *, passes: bool, passed: bool, kind: str = "") -> tuple[LabelledText, Verdict]:
    violations = () if passed else (Violation(rule="mrkdwn", severity="error"),)
    row = LabelledText(id=identity, text="x", passes=passes, kind=kind)
    return row, Verdict(passed=passed, text="x", violations=violations)


def test_wrong_passes_and_wrong_fails_are_counted_by_kind() -> None:
    report = count_errors(
        [
            ruling("a", passes=True, passed=True, kind="right"),
            ruling("b", passes=True, passed=False, kind="right"),
            ruling("c", passes=False, passed=True, kind="number"),
            ruling("d", passes=False, passed=False),
            ruling("e", passes=False, passed=False, kind="number"),
        ]
    )
    assert report == {
        "rows": 5,
        "should_pass": 2,
        "should_fail": 3,
        "false_accepts": 1,
        "false_rejects": 1,
        "false_accept_rate": 0.3333,
        "false_reject_rate": 0.5,
        "false_accepts_open": 0,
        "accepted": ["c"],
        "rejected": [{"id": "b", "rules": ["mrkdwn"]}],
        "kinds": {
            "number": {"rows": 2, "false_accepts": 1, "false_rejects": 0},
            "right": {"rows": 2, "false_accepts": 0, "false_rejects": 1},
        },
    }


def test_no_rows_are_a_report_of_zeros() -> None:
    assert (count_errors([])["false_accept_rate"], count_errors([])["kinds"]) == (0.0, {})


async def test_the_labelled_set_stays_within_its_measured_figures() -> None:
    (report,) = await evaluate_verifier([LABELLED])
    kinds = report["kinds"]
    assert report["rows"] >= 120
    assert {kind: kinds[kind]["false_accepts"] for kind in PRECISE} == dict.fromkeys(PRECISE, 0)
    # Measured on 2026-11-23, without a judge: 29 of 97 pass that should not, 1 of 75 fails that should not.
    assert report["false_accepts"] <= 29
    assert report["false_accepts_open"] >= 5
    assert report["false_rejects"] <= 1


def test_the_labelled_set_has_no_row_twice() -> None:
    rows = [json.loads(line) for line in LABELLED.read_text(encoding="utf-8").splitlines()]
    assert (
        len({row["id"] for row in rows}) == len({(row["text"], str(row.get("sources"))) for row in rows}) == len(rows)
    )

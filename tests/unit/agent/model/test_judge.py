"""Reading what a judge wrote: sound verdicts come through, everything else is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.judge import read_judgements
from verification.judgement import Judgement

ONE = {"claim": 1, "supported": True, "evidence": "Keep it open.", "reason": ""}
READ = Judgement(claim=1, supported=True, evidence="Keep it open.")


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"verdicts": [ONE]}),
        f"Sure:\n```json\n{json.dumps({'verdicts': [ONE]}, indent=1)}\n```",
        f"<think>{{}} {{'x'}} maybe</think>{json.dumps({'verdicts': [ONE]})} done",
        json.dumps({"verdicts": [{**ONE, "claim": 9}]}) + json.dumps({"verdicts": [ONE]}),
    ],
)
def test_f6_verdicts_are_found_in_what_servers_send(text: str) -> None:
    assert read_judgements(text) == (READ,)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "All claims are supported.",
        "[]",
        '{"verdicts": "yes"}',
        '{"verdicts": {"1": true}}',
        '{"verdicts": ["supported", null, 3]}',
        '{"verdicts": [{"claim": "1", "supported": true}]}',
        '{"verdicts": [{"claim": true, "supported": true}]}',
        '{"verdicts": [{"claim": 1, "supported": "true"}]}',
        '{"verdicts": [{"claim": 1}]}',
        '{"verdicts": [{"claim": 1, "supported": tr',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=range(13),
)
def test_f5_nonsense_is_no_judgement(text: str) -> None:
    assert read_judgements(text) == ()


def test_f5_fields_of_the_wrong_form_are_empty() -> None:
    text = json.dumps({"verdicts": [{"claim": 2, "supported": False, "evidence": 3, "reason": ["x"]}]})
    assert read_judgements(text) == (Judgement(claim=2, supported=False),)


@given(st.text())
def test_f5_any_text_is_read_without_an_exception(text: str) -> None:
    assert read_judgements(text) == ()

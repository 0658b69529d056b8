"""Reading what a judge wrote: sound verdicts come through, everything else is left out."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.model.openai import read_opinion
from agent.model.protocol import Opinion
from verification.judgement import NO_LINE, Judgement

ONE = {"claim": 1, "lines": ["2.14", "[3.0]"], "supported": True}
READ = Judgement(supported=True, lines=((2, 14), (3, 0)))


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"verdicts": [ONE]}),
        f"Sure:\n```json\n{json.dumps({'verdicts': [ONE]}, indent=1)}\n```",
        f"<think>{{}} {{'x'}} maybe</think>{json.dumps({'verdicts': [ONE]})} done",
        json.dumps({"verdicts": [{**ONE, "claim": 9}]}) + json.dumps({"verdicts": [ONE]}),
        '{"verdicts": [{"claim": "1", "supported": "True", "lines": "2.14, [3.0]"},]}',
        json.dumps([ONE]),
    ],
)
def test_verdicts_are_found_in_what_servers_send(text: str) -> None:
    assert read_opinion(text) == Opinion(judgements={1: READ})


def test_each_field_is_read() -> None:
    said = [
        {"claim": 1, "lines": [], "absent": True, "supported": True},
        {"claim": 2, "lines": ["1.3"], "supported": False, "instead": "The manager does."},
    ]
    assert read_opinion(json.dumps({"verdicts": said, "reply": "partly"})) == Opinion(
        judgements={
            1: Judgement(supported=True, absent=True),
            2: Judgement(supported=False, lines=((1, 3),), instead="The manager does."),
        },
        reply="partly",
    )


def test_line_written_as_a_number_is_the_line_it_names() -> None:
    said = read_opinion('{"verdicts": [{"claim": 1, "lines": [2.1, 2.10, "2.1-2.9", 7, null], "supported": true}]}')
    assert said.judgements[1].lines == ((2, 1), (2, 10), NO_LINE, NO_LINE, NO_LINE)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "All claims are supported.",
        "[]",
        '{"verdicts": "yes"}',
        '{"verdicts": {"1": true}}',
        '{"verdicts": ["supported", null, 3]}',
        '{"verdicts": [{"claim": true, "supported": true}]}',
        '{"verdicts": [{"claim": 1}]}',
        '{"verdicts": [{"claim": 1, "supported": true}, {"claim": 1, "supported": false}]}',
        '{"verdicts": [{"claim": 1, "supported": tr',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=range(12),
)
def test_nonsense_is_not_a_judgement(text: str) -> None:
    assert not read_opinion(text).judgements


@pytest.mark.parametrize("reply", ["yes", "", True, None, ["answered"], {}])
def test_fields_of_the_wrong_form_say_nothing(reply: object) -> None:
    said = {"verdicts": [{"claim": 2, "supported": False, "lines": {}, "instead": ["x"], "absent": 1}], "reply": reply}
    assert read_opinion(json.dumps(said)) == Opinion(judgements={2: Judgement(supported=False)})


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    assert read_opinion(text).reply is None

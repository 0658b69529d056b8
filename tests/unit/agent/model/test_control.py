import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import AskUser, Complete, NoReply, Respond, Step, ToolCall, ToolCalls
from agent.model.openai import ControlError, functions, read_arguments, read_calls, read_json, read_opinion
from agent.model.protocol import Opinion
from verification.judgement import NO_LINE, Judgement


def call(name: str, **arguments: object) -> ToolCall:
    return ToolCall(tool=name, input=arguments, call_id="1")


def test_a_plan_may_come_with_a_tool_call() -> None:
    text = '{"action": "tool_call", "tool": "a", "input": {"plan": 1}, "plan": [{"description": "find"}]}'
    call_ = ToolCall(call_id="call_1", tool="a", input={"plan": 1})
    assert read_json(text) == ToolCalls(calls=(call_,), plan=(Step(description="find"),))


@pytest.mark.parametrize(
    "text",
    [
        '{"action": "respond"}',
        'Let me see {x}.\n```json\n{"action": "respond"}\n```\nDone.',
        '<think>{"action": "complete", "summary": "no"}</think>\n{"action": "respond"}',
        '<answer>{"action": "respond"}</answer>',
        '{"note": 1} {"action": "respond"} {"action": "complete", "summary": "later"}',
        '[{"action": "respond"}]',
    ],
)
def test_json_is_found_in_any_surrounding_text(text: str) -> None:
    assert read_json(text) == Respond()


def test_several_tool_calls_of_one_reply_run_together() -> None:
    text = '{"action": "tool_call", "tool": "a", "input": {"x": 1}}\n{"action": "tool_call", "tool": "b"}'
    assert read_json(text) == ToolCalls(
        calls=(ToolCall(call_id="call_1", tool="a", input={"x": 1}), ToolCall(call_id="call_2", tool="b"))
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no JSON object"),
        ("{" * 100_000, "no JSON object"),
        ('{"a": "' * 200_000, "no JSON object"),
        ('{"a":' * 5_000, "no JSON object"),
        ('{"tool": "search"}', "no JSON object with an 'action'"),
        ('{"action": "search"}', "must be one of"),
        ('{"action": {"a": 1}}', "must be one of"),
        ('{"action": ["respond"]}', "must be one of"),
        ('{"action": "tool_call", "tool": "", "input": {}}', "needs 'tool'"),
        ('{"action": "tool_call", "tool": "a", "input": []}', "needs 'tool'"),
        ('{"action": "ask_user", "question": " ", "key": "k"}', "'ask_user' needs 'question'"),
        ('{"action": "ask_user", "question": "q"}', "'ask_user' needs 'key'"),
        ('{"action": "finish_step", "step": true, "result": "r"}', "'step'"),
        ('{"action": "finish_step", "step": 0, "result": "r"}', "'step'"),
        ('{"action": "finish_step", "step": 1}', "'result'"),
        ('{"action": "complete"}', "'summary'"),
        ('{"action": "respond", "plan": "look"}', "'plan' must be"),
        ('{"action": "respond", "plan": ["look"]}', "'plan' must be"),
        ('{"action": "respond", "plan": [{"description": "a", "tool": 1}]}', "'plan' must be"),
    ],
)
def test_unreadable_input_is_refused_with_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ControlError, match=reason):
        read_json(text)


def test_nested_input_is_refused_at_any_depth() -> None:
    for depth in range(800, 1_010):  # around Python's limit of recursion
        with pytest.raises(ControlError, match="JSON object"):
            read_json(r'{"a":' * depth + r'"\u0041"' + "}" * depth)


@settings(deadline=None)
@given(st.text(alphabet='{}[]",: \\actionrespd<>/', max_size=200))
def test_any_text_is_an_action_or_a_reason(text: str) -> None:
    with suppress(ControlError):
        assert read_json(text)


@pytest.mark.parametrize("plan", ['["look"]', '"look"', '[{"step": "look"}]', '{"steps": []}'])
def test_a_tool_call_next_to_an_unreadable_plan_is_made(plan: str) -> None:
    made = ToolCalls(calls=(ToolCall(call_id="call_1", tool="a", input={}),), plan=())
    assert read_json(f'{{"action": "tool_call", "tool": "a", "input": {{}}, "plan": {plan}}}') == made


def test_real_tools_run_before_a_control_call_and_the_plan_is_kept() -> None:
    action = read_calls([call("respond", plan=[{"description": "look", "tool": None}]), call("search", q="x")])
    assert action == ToolCalls(
        calls=(ToolCall(call_id="1", tool="search", input={"q": "x"}),), plan=(Step(description="look"),)
    )


def test_the_first_of_several_control_calls_counts() -> None:
    assert read_calls([call("complete", summary="Hi"), call("respond")]) == Complete(summary="Hi")
    assert read_calls([call("ask_user", question=" Which? ", key="k")]) == AskUser(question="Which?", key="k")
    with pytest.raises(ControlError, match="No function"):
        read_calls([])


@pytest.mark.parametrize("text", ["[1]", "{", '"a"', "[" * 5_000])
def test_arguments_must_be_an_object(text: str) -> None:
    with pytest.raises(ControlError, match="not a JSON object"):
        read_arguments(text)


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", {}),
        (" null ", {}),
        ("[]", {}),
        ('{"a": 1,}<|im_end|>', {"a": 1}),
        ('{"a": 1}{"a": 1}', {"a": 1}),
        ('"{\\"a\\": 1}"', {"a": 1}),
        ('{"a": "\\ud800"}', {"a": "?"}),
    ],
)
def test_arguments_are_read_in_every_form_that_servers_send(text: str, arguments: dict[str, object]) -> None:
    assert read_arguments(text) == arguments


def test_no_reply_is_offered_only_if_orion_was_not_addressed() -> None:
    names = [[each["function"]["name"] for each in functions([], addressed=addressed)] for addressed in (True, False)]
    assert "no_reply" not in names[0]
    assert names[1] == ["respond", "no_reply"]
    assert read_json('{"action": "no_reply"}') == NoReply()


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
        '{"verdicts": [{"claim": "Claim 1", "supported": "Yes.", "lines": "line 2.14, line 3.0"}]}',
        '{"verdicts": [{"claim": 1.0, "supported": 1, "lines": ["2.14-3.0"]}]}',
    ],
)
def test_verdicts_are_found_in_every_form_that_servers_send(text: str) -> None:
    assert read_opinion(text) == Opinion(judgements={1: READ})


def test_each_field_is_read() -> None:
    said = [
        {"claim": 1, "lines": [], "absent": True, "supported": True},
        {"claim": 3, "lines": [], "empty": True, "supported": True},
        {"claim": 2, "lines": ["1.3"], "supported": False, "instead": "The manager does."},
    ]
    assert read_opinion(json.dumps({"verdicts": said, "reply": "partly"})) == Opinion(
        judgements={
            1: Judgement(supported=True, absent=True),
            3: Judgement(supported=True, absent=True, empty=True),
            2: Judgement(supported=False, lines=((1, 3),), instead="The manager does."),
        },
        reply="partly",
    )


def test_line_written_as_a_number_is_the_line_it_names() -> None:
    said = read_opinion('{"verdicts": [{"claim": 1, "lines": [2.1, 2.10, "2.1-2.9", 7, null], "supported": true}]}')
    assert said.judgements[1].lines == ((2, 1), (2, 10), (2, 1), (2, 9), NO_LINE, NO_LINE)


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
        '{"verdicts": [{"claim": 0, "supported": true}, {"claim": 1, "supported": false}]}',
        '{"verdicts": [{"claim": 1, "supported": tr',
        "{" * 100_000,
        '{"a":' * 100_000,
    ],
    ids=range(13),
)
def test_nonsense_is_not_a_judgement(text: str) -> None:
    assert not read_opinion(text).judgements


@pytest.mark.parametrize("reply", ["yes", "", True, None, ["answered"], {}])
def test_malformed_fields_are_ignored(reply: object) -> None:
    said = {
        "verdicts": [{"claim": 2, "supported": False, "lines": {}, "instead": ["x"], "absent": "?"}],
        "reply": reply,
    }
    assert read_opinion(json.dumps(said)) == Opinion(judgements={2: Judgement(supported=False)})


@given(st.text())
def test_any_text_is_read_without_an_exception(text: str) -> None:
    assert read_opinion(text).reply is None

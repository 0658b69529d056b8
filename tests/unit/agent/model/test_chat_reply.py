from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import ToolCall
from agent.model.chat_reply import Reply
from agent.model.protocol import ModelError

FIELDS = ("choices", "index", "message", "delta", "content", "tool_calls", "function", "usage", "error", "text")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
)


@settings(deadline=None)
@given(JSON)
def test_any_json_is_a_reply_or_a_model_error(value: object) -> None:
    for check in (Reply.check_message, Reply.check_answer):
        reply = Reply()
        with suppress(ModelError):
            reply.read(value)
            check(reply)


def test_arguments_may_come_as_an_object_and_ids_may_be_missing() -> None:
    call = {"function": {"name": "a", "arguments": {"x": 1}}}
    reply = Reply()
    reply.read({"choices": [{"message": {"content": [{"type": "text", "text": "hi"}], "tool_calls": [call]}}]})
    assert reply.content == "hi"
    assert reply.calls == [(ToolCall(tool="a", call_id="call_1"), '{"x": 1}')]
    assert reply.usage is None

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.actions import ToolCall
from agent.budget import Usage
from agent.model.chat_reply import MAX_EVENT, StreamedReply, estimate_usage, read_reply
from agent.model.protocol import ModelError

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "delta", "content", "tool_calls", "function", "usage", "error", "text"]
            ),
            inner,
            max_size=4,
        )
    ),
)


@settings(deadline=None)
@given(JSON)
def test_any_json_is_a_reply_or_a_model_error(value: object) -> None:
    body = json.dumps(value).encode()
    stream = StreamedReply()
    for read in (lambda: read_reply(body), lambda: stream.feed(b"data: " + body + b"\n\n"), stream.close):
        with suppress(ModelError):
            read()


def test_arguments_may_come_as_an_object_and_ids_may_be_missing() -> None:
    call = {"function": {"name": "a", "arguments": {"x": 1}}}
    body = {"choices": [{"message": {"content": [{"type": "text", "text": "hi"}], "tool_calls": [call]}}]}
    reply = read_reply(json.dumps(body).encode())
    assert reply.content == "hi"
    assert reply.calls == ((ToolCall(tool="a", call_id="call_1"), '{"x":1}'),)
    assert reply.usage is None


def test_estimates_are_rounded_up_and_marked() -> None:
    assert estimate_usage(5, 8) == Usage(model_calls=1, prompt_tokens=2, completion_tokens=2, estimated=True)


def test_an_endless_event_is_a_model_error() -> None:
    stream = StreamedReply()
    with pytest.raises(ModelError, match="too long"):
        stream.feed(b"data: " + b"x" * (MAX_EVENT + 10))


def test_whole_reply_that_was_cut_off_is_a_token_limit() -> None:
    stream = StreamedReply()
    stream.feed(b' {"choices": [{"finish_reason": "length", "message": {"content": "x"}}]}')
    with pytest.raises(ModelError, match="TokenLimitError"):
        stream.close()

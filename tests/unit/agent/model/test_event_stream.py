from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.model.chat_reply import MAX_EVENT, EventStream
from agent.model.protocol import ModelError

STREAM = (
    b": a comment\r\ndata: one\r\n\r\nevent: x\ndata: two\ndata:lines\n\n"  # both line ends, both spellings
    b"error: {bad}\n\ndata: \xe2\x80\xa8\n\nid: 1\n\n"
)
EVENTS = [("", b"one"), ("x", b"two\nlines"), ("error", b"{bad}"), ("", "\u2028".encode())]


@settings(deadline=None)
@given(st.lists(st.integers(min_value=0, max_value=len(STREAM)), max_size=20))
def test_events_do_not_depend_on_where_the_bytes_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(STREAM)]
    stream = EventStream()
    events = [event for start, end in pairwise(edges) for event in stream.feed(STREAM[start:end])]
    assert events + stream.close() == EVENTS


def test_an_event_without_its_empty_line_comes_at_the_end() -> None:
    stream = EventStream()
    assert stream.feed(b"data: last") == []
    assert stream.close() == [("", b"last")]
    assert stream.close() == []


@pytest.mark.parametrize("line", [b"x" * 4096, b"data: " + b"x" * 4096 + b"\n"])
def test_an_endless_event_is_refused(line: bytes) -> None:
    stream = EventStream()
    for _ in range(MAX_EVENT // 4096 - 1):
        assert stream.feed(line) == []
    with pytest.raises(ModelError, match="too long"):
        stream.feed(line * 3)

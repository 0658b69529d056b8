from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.json_schema import MAX_DEPTH, faults


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"a": 1}, {"type": "object", "properties": {"a": {"type": "string"}}}, ["'a' must be string, not integer"]),
        ({}, {"type": "object", "required": ["a"]}, ["'a' is missing"]),
        ([], {"type": "object"}, ["the input must be object, not array"]),
        (True, {"type": "integer"}, ["the input must be integer, not boolean"]),
        (True, {"type": ["boolean", "null"]}, []),
        (1.5, {"type": ["integer", "string"]}, ["the input must be integer or string, not number"]),
        (2, {"type": "number", "minimum": 0, "maximum": 1}, ["the input must be at most 1"]),
        (float("nan"), {"type": "number", "minimum": 0}, ["the input must be at least 0"]),
        ("x", {"enum": ["a", "b"]}, ["the input must be one of a, b"]),
        ("", {"type": "string", "minLength": 1}, ["the input must not be shorter than 1 characters"]),
        ("abc", {"type": "string", "maxLength": 2}, ["the input must not be longer than 2 characters"]),
        ({"b": 1}, {"properties": {"a": {}}, "additionalProperties": False}, ["'b' is unknown; known are a"]),
        ([1, "x"], {"items": {"type": "integer"}}, ["'[1]' must be integer, not string"]),
        ({"a": {"b": 0}}, {"properties": {"a": {"properties": {"b": {"enum": [1]}}}}}, ["'a.b' must be one of 1"]),
        ({"a": object()}, {"properties": {"a": {"type": "string"}}}, ["'a' must be string, not object"]),
        ({"a": 1}, {"$ref": "#/x", "type": "weird", "oneOf": []}, []),
    ],
)  # fmt: skip
def test_d1_faults_say_what_to_mend(value: object, schema: dict[str, Any], expected: list[str]) -> None:
    assert list(faults(value, schema)) == expected


def test_d1_nesting_is_bounded() -> None:
    schema: dict[str, Any] = {}
    schema["items"] = schema
    value: list[Any] = []
    for _ in range(MAX_DEPTH + 1):
        value = [value]
    assert [fault.endswith("is nested too deeply") for fault in faults(value, schema)] == [True]


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_d1_any_value_can_be_checked(value: object) -> None:
    schema = {"type": "object", "properties": {"": {"type": "array", "items": {"type": "string"}}}, "required": [""]}
    assert all(isinstance(fault, str) for fault in faults(value, schema))

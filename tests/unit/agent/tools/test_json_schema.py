from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.json_schema import faults


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"a": 1}, {"type": "object", "properties": {"a": {"type": "string"}}}, ["'a' must be string, not integer"]),
        ({}, {"type": "object", "required": ["a"]}, ["'a' is missing in the input"]),
        ([], {"type": "object"}, ["the input must be object, not array"]),
        (True, {"type": "integer"}, ["the input must be integer, not boolean"]),
        (1.0, {"type": "integer"}, ["the input must be integer, not number"]),
        (True, {"type": ["boolean", "null"]}, []),
        (1.5, {"type": ["integer", "string"]}, ["the input must be integer or string, not number"]),
        (2, {"type": "number", "minimum": 0, "maximum": 1}, ["the input must be at most 1"]),
        ("x", {"enum": ["a", "b"]}, ["the input must be one of a, b"]),
        ("", {"type": "string", "minLength": 1}, ["the input must not be shorter than 1 characters"]),
        (
            {"b": 1},
            {"properties": {"a": {}}, "additionalProperties": False},
            ["'b' in the input is unknown; known are a"],
        ),
        ([1, "x"], {"items": {"type": "integer"}}, ["'[1]' must be integer, not string"]),
        ({"a": {"b": 0}}, {"properties": {"a": {"properties": {"b": {"enum": [1]}}}}}, ["'a.b' must be one of 1"]),
        ({"a": 1}, {"anyOf": [{"required": ["b"]}]}, ["the input does not fit 'anyOf' of its schema"]),
        ({"a": object()}, {"properties": {"a": {"type": "string"}}}, ["'a' must be string, not of another kind"]),
    ],
)
def test_faults_say_what_to_mend(value: object, schema: dict[str, Any], expected: list[str]) -> None:
    assert list(faults(value, schema)) == expected


def test_no_schema_of_a_server_can_follow_links_recurse_or_take_for_ever() -> None:
    doubled = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}] * 2} for n in range(60)}
    for schema in (
        {"$ref": "http://127.0.0.1:9/schema.json"},
        {"$ref": "#"},
        {"$ref": "#/$defs/d0", "$defs": doubled},
        {"pattern": "^(a+)+$"},
    ):
        assert list(faults("a" * 40 + "!", schema)) == []
    assert list(faults(float("nan"), {"multipleOf": 2})) == []


@given(
    st.recursive(
        st.none() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=8,
    )
)
def test_any_value_can_be_checked(value: object) -> None:
    schema = {"type": "object", "properties": {"": {"type": "array", "items": {"type": "string"}}}, "required": [""]}
    assert all(isinstance(fault, str) for fault in faults(value, schema))

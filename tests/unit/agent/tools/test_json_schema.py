from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.tools.tool import faults


@pytest.mark.parametrize(
    ("value", "schema", "expected"),
    [
        ({"a": 1}, {"properties": {"a": {"type": "string"}}}, ["'a' is not of type 'string'"]),
        ({}, {"type": "object", "required": ["a"]}, ["'a' is a required property"]),
        (True, {"type": "integer"}, ["the input is not of type 'integer'"]),
        (1.0, {"type": "integer"}, ["the input is not of type 'integer'"]),
        (True, {"type": ["boolean", "null"]}, []),
        (11, {"type": "number", "maximum": 1}, ["the input is greater than the maximum of 1"]),
        ("secret", {"enum": ["a", "b"]}, ["the input is not one of ['a', 'b']"]),
        ("secret", {"minLength": 9}, ["the input is too short (minLength: 9)"]),
        ([1, "x"], {"items": {"type": "integer"}}, ["'[1]' is not of type 'integer'"]),
        ({"a": {"b": 0}}, {"properties": {"a": {"properties": {"b": {"enum": [1]}}}}}, ["'a.b' is not one of [1]"]),
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

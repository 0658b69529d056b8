"""Results that are JSON, of any form, become text that people can read."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.mcp.results import failure_in, read_records

KEYS = st.sampled_from(["title", "name", "url", "updated", "id", "results", "plain_text", "error", "status", "ok"])
LEAVES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=8)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5))


@settings(max_examples=60)
@given(JSON, st.sampled_from([json.dumps, lambda value: json.dumps([json.dumps(value)])]))
def test_any_json_becomes_text_that_can_be_sent(value: Any, write: Any) -> None:
    text = write(value)
    for record in read_records(text):
        shown = record.text + record.title + record.url + record.updated_at
        assert shown.encode().decode() == shown
    assert isinstance(failure_in(text), str)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Errors: what to do\\n\\nCall Ann.", []),
        ('{"title": "Half \\ud83d", "body": "a\\nb"}', ["title: Half ?", "a", "b"]),
        ('{"results": [], "title": "Pay", "pages": 3}', ["title: Pay", "pages: 3"]),
        ('{"rich_text": [{"plain_text": "90 "}, {"plain_text": "days"}]}', ["rich text: 90 days"]),
        ('{"tags": ["a", "b"], "open": true, "none": null}', ["tags: a, b", "open: True"]),
        ('{"page": "{\\"title\\": \\"Pay\\"}"}', ["title: Pay"]),
    ],
)
def test_records_read_like_lines(text: str, said: list[str]) -> None:
    (record,) = read_records(text)
    assert record.text.splitlines() == (said or text.splitlines())
    assert failure_in(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"object": "error", "status": 404, "message": "no"}',
        '{"errors": [{"message": "no"}], "data": null}',
        "Error: no such page",
        "HTTP 502 from the server",
    ],
)
def test_failures_in_the_form_of_results_are_failures(text: str) -> None:
    assert failure_in(text)


def test_fields_of_the_record_itself_name_it_before_those_inside() -> None:
    issue = {
        "key": "OPS-12",
        "summary": "Gift cards fail",
        "status": {"name": "In Progress"},
        "browse_url": "https://jira.example/browse/OPS-12",
        "updated": "2026-10-20 09:30:00 UTC",
    }
    page = {"properties": {"Name": {"title": [{"plain_text": "Pay"}]}}, "created_by": {"name": "Ann"}}
    (first,) = read_records(json.dumps({"total": 1, "issues": [issue]}))
    assert (first.title, first.url, first.updated_at) == (issue["summary"], issue["browse_url"], "2026-10-20T09:30:00")
    assert read_records(json.dumps(page))[0].title == "Pay"

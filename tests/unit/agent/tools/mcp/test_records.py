"""Results of MCP servers: JSON in any dress becomes records with title, link and date, and failures are recognized."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.mcp.records import Record, failure_in, read_records, read_results, refusal_in

FIELDS = st.sampled_from(
    ["title", "name", "url", "updated", "id", "results", "plain_text", "error", "status", "ok", "type"]
)
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats()
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(FIELDS, inner))
LEAVE = {"id": "7", "title": "Leave", "url": "https://w.example/7", "body": "90 days."}
PAY = {"id": "8", "title": "Pay", "url": "https://w.example/8", "body": "900 euros."}
HITS = [LEAVE, PAY]
BOTH = [("Leave", LEAVE["url"]), ("Pay", PAY["url"])]


def titles_and_links(records: list[Record]) -> list[tuple[str, str]]:
    return [(record.title, record.url) for record in records]


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
        "\ufeff" + json.dumps({"results": HITS}),
        f"```json\n{json.dumps(HITS)}\n```",
        "\n".join(map(json.dumps, HITS)),
        json.dumps(json.dumps(json.dumps({"results": HITS}))),
        json.dumps([json.dumps(each) for each in HITS]),
        json.dumps({"data": {"pages": {"edges": [{"cursor": "x", "node": each} for each in HITS]}}}),
        json.dumps({"data": {"issues": {"nodes": HITS}}}),
        json.dumps({"result": {"items": HITS}}),
        json.dumps([*HITS, None]),
        json.dumps({"7": LEAVE, "8": PAY}),
        json.dumps({"results": {"7": LEAVE, "8": PAY}}),
        json.dumps({"hits": {"total": 2, "hits": [{"_id": each["id"], "_source": each} for each in HITS]}}),
        json.dumps({"documents": [{"page_content": "x", "metadata": each} for each in HITS]}),
        str(HITS),
    ],
    ids=range(14),
)
def test_each_listed_document_is_a_source_of_its_own(text: str) -> None:
    records = read_records(text)
    assert titles_and_links(records) == BOTH
    assert ["90 days" in record.text for record in records] == [True, False]


@pytest.mark.parametrize(
    ("value", "rest"),
    [
        ({"results": HITS, "next_cursor": "abc"}, "next cursor: abc"),
        ({"results": HITS, "has_more": True, "total": 2}, "has more: True\ntotal: 2"),
        ({"total": 240, "start_at": 0, "max_results": 10, "issues": HITS}, "total: 240"),
        ({"query": "q", "results": HITS, "facets": [{"name": "ENG", "count": 2}] * 3}, "query: q\n"),
        ({"title": "Results", "results": HITS}, "title: Results"),
        ({"pages": HITS, "users": [{"name": "Ann"}]}, "users name: Ann"),
    ],
)
def test_what_a_server_says_about_a_list_is_not_said_of_its_documents(value: object, rest: str) -> None:
    about, *records = read_records(json.dumps(value))
    assert titles_and_links(records) == BOTH
    assert about.text.startswith(rest)
    assert not about.url


@pytest.mark.parametrize(
    ("record", "title", "url"),
    [
        ({"title": "L", "children": HITS, "url": "https://w.example/1"}, "L", "https://w.example/1"),
        ({"body": "x", "author": {"title": "Manager", "name": "Ann", "url": "https://w.example/ann"}}, "", ""),
        ({"title": {"rendered": "Leave &amp; pay"}, "link": "https://w.example/1"}, "Leave & pay", "https://w.example/1"),
        ({"properties": {"Task": {"type": "title", "title": [{"plain_text": "T"}]}, "Summary": "s"}}, "T", ""),
        ({"key": "A-1", "fields": {"summary": "S", "status": {"name": "Done"}}}, "S", ""),
        ({"status": {"name": "Done"}, "summary": "S", "browse_url": "https://w.example/1"}, "S", "https://w.example/1"),
        ({"title": "@@@hl@@@Leave@@@endhl@@@ days", "url": "/7", "_links": {"base": "https://w.example/wiki"}},
         "Leave days", "https://w.example/wiki/7"),
        ({"title": "L", "url": "//evil.example/7"}, "L", ""),
        ({"title": "L", "url": "javascript:alert(1)", "href": "https://w.example/1"}, "L", "https://w.example/1"),
        ({"title": "L", "source": "the wiki"}, "L", ""),
    ],
    ids=range(10),
)  # fmt: skip
def test_title_and_link_are_the_documents_own(record: object, title: str, url: str) -> None:
    assert titles_and_links(read_records(json.dumps(record))) == [(title, url)]


@pytest.mark.parametrize(
    ("fields", "date"),
    [
        ({"updated": 1772000000000}, "2026-02-25T06:13:20Z"),
        ({"updated_at": "1772000000.5"}, "2026-02-25T06:13:20Z"),
        ({"updated": "1 March 2026"}, "2026-03-01"),
        ({"updated": "2026-10-20 09:30:00 UTC"}, "2026-10-20T09:30:00"),
        ({"updated": "Sun, 01 Mar 2026 10:00:00 GMT"}, "2026-03-01"),
        ({"updated": 9999999999}, ""),
        ({"version": {"when": "2026-03-01T10:00:00Z"}}, "2026-03-01T10:00:00Z"),
        ({"updated": "2026-99-99", "created": "2026-01-02"}, "2026-01-02"),
        ({"date": "9999-12-31", "created": "2026-01-02"}, "2026-01-02"),
        ({"updated": "03/04/2026"}, ""),
        ({"author": {"created": "2020-01-01"}}, ""),
    ],
)
def test_a_documents_date_is_a_day_that_has_come(fields: dict[str, Any], date: str) -> None:
    (record,) = read_records(json.dumps({"title": "L", **fields}))
    assert record.updated_at == date


ADF = {"type": "doc", "content": [{"type": "paragraph", "content": [
    {"type": "text", "text": "9"}, {"type": "text", "text": "0 days", "marks": [{"type": "strong"}]},
    {"type": "hardBreak"}, {"type": "mention", "attrs": {"text": "@Ann"}},
    {"type": "date", "attrs": {"timestamp": "1772000000000"}}]}]}  # fmt: skip
MACRO = (
    '<ac:structured-macro ac:name="code"><ac:parameter ac:name="language">sh</ac:parameter><ac:plain-text-body>'
    "<![CDATA[ls <x>]]></ac:plain-text-body></ac:structured-macro>"
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ({"old": {"limit": {"days": 3}}, "new": {"limit": {"days": 9}}}, "old limit days: 3\nnew limit days: 9"),
        ({"description": ADF}, "90 days\n@Ann2026-02-25"),
        ({"body": "<p>90<sup>2</sup> days</p>\n<p>x</p>"}, "90² days\n\nx"),
        ({"body": MACRO}, "body: ls <x>"),
        ({"excerpt": "90 <em>days</em> &amp; more"}, "excerpt: 90 days & more"),
        ({"thumb": "A" * 4_000}, "thumb: [data, not shown]"),
        ("<script setup>\nconst a = 1\n</script>\n<?php x ?>", "<script setup>\nconst a = 1\n</script>\n<?php x ?>"),
        ({"body": "# Leave <!-- 30 -->\n90 days<b hidden>30</b> `<b hidden>`"}, "# Leave \n90 days `<b hidden>`"),
        ({"body": "A menu:\n<ul hidden>\n<li>One"}, "A menu:\n<ul hidden>\n<li>One"),  # the file goes on
        ({"a": 1, "Status": {"id": "a", "type": "select", "select": {"name": "Done"}}}, "a: 1\nStatus name: Done"),
        ("90\ndays", "90\ndays"),
    ],
)  # fmt: skip
def test_values_are_shown_as_a_person_would_read_them(value: object, text: str) -> None:
    assert read_records(json.dumps(value))[0].text == text


@pytest.mark.parametrize(
    "value",
    [
        {"total": 2, "start_at": 0, "max_results": 10, "issues": HITS},
        {"object": "list", "results": HITS, "next_cursor": None, "has_more": False, "type": "page", "request_id": "x"},
        {"ok": True, "messages": HITS, "response_metadata": {"next_cursor": ""}},
    ],
    ids=["jira", "notion", "slack"],
)
def test_what_a_server_says_of_the_call_is_no_source(value: object) -> None:
    assert titles_and_links(read_records(json.dumps(value))) == BOTH


def test_blocks_of_a_page_are_not_prefixed_with_the_name_of_their_list() -> None:
    block = {"object": "block", "type": "paragraph", "paragraph": {"rich_text": [{"plain_text": "90 days"}]}}
    (record,) = read_records(json.dumps({"object": "list", "results": [block]}))
    assert record.text.splitlines()[1:] == ["object: block", "type: paragraph", "paragraph rich text: 90 days"]


def test_a_line_before_the_json_is_shown() -> None:
    assert read_records(f"Found 2 pages:\n{json.dumps(HITS)}")[0].text == "Found 2 pages:"
    page = '# Calls\n\n```json\n{"title": "x"}\n```\n'
    assert read_records(page) == [Record(text=page)]


@pytest.mark.parametrize(
    ("texts", "structured", "records"),
    [
        (["There are 41."], {"result": "There are 41."}, 1),
        ([json.dumps(LEAVE)], LEAVE, 1),
        (["a", "b"], {"result": ["a", "b"]}, 1),
        ([], LEAVE, 1),
        (["Found 2 pages."], {"pages": HITS}, 3),
        ([json.dumps({"title": "Leave", "url": LEAVE["url"]}), "# Leave\n90 days"], None, 1),
        ([json.dumps(HITS), "2 of 40"], None, 3),
    ],
    ids=range(7),
)
def test_structured_content_counts_if_the_texts_omit_it(texts: list[str], structured: Any, records: int) -> None:
    assert len(read_results(texts, structured)) == records


@pytest.mark.parametrize(
    "text",
    [
        '{"object": "error", "status": 404, "message": "no"}',
        '{"errors": [{"message": "no"}], "data": null}',
        '{"errors": [{"message": "no"}], "data": {"page": null}}',
        '{"error": "no", "results": [], "query": "x", "total": 0}',
        '{"status": "error", "message": "no"}',
        '{"success": "false"}',
        '{"isError": true, "content": [{"type": "text", "text": "no"}]}',
        '{"statusCode": "404", "message": "no"}',
        '{"message": "Not Found", "documentation_url": "https://docs.example"}',
        '{"detail": "Authentication credentials were not provided."}',
        '{"errorMessages": ["Issue does not exist"], "errors": {}}',
        '{"title": "Not Found", "status": 404, "type": "about:blank"}',
        '{"name": "AxiosError", "message": "no", "code": "ERR_BAD_REQUEST"}',
        '[{"error": "no"}]',
        '{"result": {"error": "no"}}',
        '"{\\"error\\": \\"no\\"}"',
        '```json\n{"error": "no"}\n```',
        '\ufeff{"error": "no"}',
        "Error: no such page",
        "**Error:** no such page",
        "ValueError: no such page",
        "Error executing tool get_page: no",
        "Failed to fetch page: 404 Client Error: Not Found for url",
        "MCP error -32602: no",
        "HTTP 502 from the server",
        "Page not found.",
        "An error occurred while searching",
    ],
)
def test_failures_sent_as_results_are_failures(text: str) -> None:
    assert failure_in(text)


@pytest.mark.parametrize(
    "text",
    [
        "Not authorized", "401 Unauthorized", "403 Forbidden", "Access denied.", "Permission denied", "Invalid API key",
        "You do not have permission to view this page.", "Request failed with status code 403", "Error: HTTP 401",
        "API Error: 401 - token expired", '{"message": "Unauthorized"}', '{"code": 401, "message": "no"}',
        '{"code": "unauthorized", "message": "API token is invalid."}', '{"fault": {"faultstring": "Invalid token"}}',
        "<!DOCTYPE html><title>Log in - Wiki</title><form></form>", '<html><body><input type="password"></body></html>',
    ],
)  # fmt: skip
def test_a_server_that_refuses_orion_is_recognized(text: str) -> None:
    assert refusal_in(failure_in(text)) == "does not let Orion in"


@pytest.mark.parametrize(
    "text",
    [
        "502 Bad Gateway", "Service Unavailable", "429 Too Many Requests", "Rate limit exceeded", "Request timed out",
        "Error: connect ECONNREFUSED 127.0.0.1:80", "HTTPSConnectionPool(host='x'): Max retries exceeded with url: /",
        '{"statusCode": 503, "message": "Service Unavailable"}', "<html><title>502 Bad Gateway</title></html>",
    ],
)  # fmt: skip
def test_a_server_whose_own_source_is_away_is_recognized(text: str) -> None:
    assert refusal_in(failure_in(text)) == "cannot answer now"


@pytest.mark.parametrize(
    "text",
    [
        "Errors: what to do. Call Ann.", "# Error handling\n\nRetry.", "Error rates fell to 3 % in May.",
        "Forbidden words are listed here: a, b.", "401(k) plans are offered to all.", "404 rooms are in the hotel.",
        "Not found is what customers see when the shop is closed.", "Failed payments are retried after 3 days.",
        "Common error: no badge.", "Payment failed: retry after 3 days.", "500 to 600 seats are free.",
        "401 in Building B.", "Timeout: 30 s", "Not permitted: dogs.", "Conflict: ask Ann.", "Timeout policy: 30 s",
        "Access denied pages are in the handbook.", '{"title": "Error codes", "body": "x"}',
        '{"name": "deploy", "status": "failed"}', '{"id": 7, "status": "failed", "reason": "disk full"}',
        '{"results": [{"title": "a", "status": "error", "url": "https://a.example"}]}', '{"errors": 0, "warnings": 3}',
        '{"key": "OPS-1", "summary": "s", "error": "trace"}', '{"message": "The canteen opens at noon."}',
        '{"code": 200, "data": {"title": "x"}}', '{"errors": [{"message": "slow"}], "data": {"page": {"days": 90}}}',
        "<html><head><title>Leave</title></head><body><p>90 days</p></body></html>",
    ],
)  # fmt: skip
def test_documents_about_failures_are_no_failures(text: str) -> None:
    assert failure_in(text) == ""


@pytest.mark.parametrize("mark", ["<![CDATA[", "<ri:page ", '<ri:page ri:content-title="', "<h1 "])
def test_a_page_of_one_repeated_mark_is_read_quickly(mark: str) -> None:
    begun = time.process_time()
    read_records("<p>" + mark * (300_000 // len(mark)))
    assert time.process_time() - begun < 5, "a search for the end after each mark takes half a minute"

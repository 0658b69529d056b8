"""The configuration of MCP servers: the usual form, and a sentence for each way to get it wrong."""

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.tools.mcp.config import McpServer, read_servers


def read(**servers: Any) -> tuple[McpServer, ...]:
    return read_servers(json.dumps({"mcpServers": servers}), {"TOKEN": "secret-token"})


def test_the_usual_configuration_is_read() -> None:
    assert read(
        files={"command": "npx", "args": ["-y", "fs"], "env": {"A": "b"}, "cwd": "/srv", "type": "stdio"},
        far={"url": "https://m.example/mcp", "headers": {"Authorization": "Bearer x"}, "allow": ["get_*"],
             "timeout_s": 3, "max_chars": 500},
        off={"command": "x", "disabled": True},
        elsewhere={"autoApprove": ["all"], "disabled": True},
    ) == (
        McpServer(name="files", command="npx", args=("-y", "fs"), env={"A": "b"}, cwd="/srv", type="stdio"),
        McpServer(
            name="far", url="https://m.example/mcp", headers={"Authorization": "Bearer x"}, allow=("get_*",),
            timeout_s=3.0, max_chars=500,
        ),
    )  # fmt: skip


def test_an_allow_list_allows_names_and_their_beginnings() -> None:
    server = McpServer(name="a", command="x", allow=("get_*", "list"))
    names = ("get_x", "list", "lists", "drop")
    assert [server.allows(name, reads=None) for name in names] == [True, True, False, False]


def test_a_tool_that_changes_something_needs_its_whole_name_on_the_allow_list() -> None:
    server = McpServer(name="a", command="x", allow=("*", "post"))
    assert [server.allows(name, reads=False) for name in ("post", "drop")] == [True, False]
    bare = McpServer(name="a", command="x")
    assert [bare.allows("anything", reads=reads) for reads in (True, False, None)] == [True, False, False]


def test_variables_are_read_from_the_environment_and_an_unset_one_is_named() -> None:
    (server,) = read(a={"command": "x", "env": {"KEY": "Bearer ${TOKEN}"}, "args": ["${TOKEN}"]})
    assert (server.env, server.args) == ({"KEY": "Bearer secret-token"}, ("secret-token",))
    assert server.without_secrets("401 for secret-token") == "401 for …"
    with pytest.raises(ValueError, match=re.escape("Server 'a', env, KEY: NOT_SET is not set in the environment.")):
        read(a={"command": "x", "env": {"KEY": "${NOT_SET}"}})


def test_the_audience_is_empty_unless_one_is_given() -> None:
    assert read(a={"command": "x"})[0].audience == "nobody"
    assert read(a={"command": "x", "audience": ["U12345", "C12345"]})[0].audience == "C12345,U12345"
    with pytest.raises(ValueError, match="Server 'a': audience: it should be"):
        read(a={"command": "x", "audience": "U12345"})


def test_links_lead_only_to_named_hosts() -> None:
    server = McpServer(name="a", url="https://m.example/mcp", link_hosts=("wiki.example",))
    urls = ("https://wiki.example/x", "https://m.example/x", "https://evil.example/x", "file://wiki.example/x", "")
    assert [server.links_to(url) for url in urls] == [True, True, False, False, False]


@pytest.mark.parametrize(
    ("name", "given_server", "reason"),
    [
        ("a b", {"command": "x"}, "Server 'a b': name: String should match pattern"),
        ("a", [], "Server 'a': Input should be a valid dictionary"),
        ("a", {"command": "x", "url": "http://a.example"}, "it needs either 'command' or 'url'."),
        ("a", {"comand": "x", "command": "x"}, "Server 'a': comand: Extra inputs are not permitted."),
        ("a", {"command": "x", "disabled": "yes"}, "Server 'a': disabled: Input should be a valid boolean."),
        ("a", {"url": "ftp://x"}, "'url' should be an http or https address."),
        ("a", {"url": "http://[x"}, "Server 'a': "),
        ("a", {"command": "x", "allow": [1]}, "Server 'a': allow.0: Input should be a valid string."),
        ("a", {"command": "x", "timeout_s": 0}, "timeout_s: Input should be greater than or equal to 0.1."),
    ],
)
def test_a_fault_is_reported_with_its_place(name: str, given_server: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=re.escape(reason)):
        read(**{name: given_server})


def test_faults_do_not_show_the_value() -> None:
    with pytest.raises(ValueError, match="headers") as raised:
        read(a={"url": "http://a.example", "headers": {"Authorization": ["secret-token"]}})
    assert "secret-token" not in str(raised.value)
    assert "secret-token" not in repr(McpServer(name="a", command="x", headers={"Authorization": "secret-token"}))


KEYS = st.sampled_from(["command", "url", "env", "args", "allow", "timeout_s", "a"])
LEAVES = st.none() | st.booleans() | st.floats() | st.text(max_size=5)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner))


@settings(max_examples=40)
@given(st.dictionaries(st.text(max_size=4), JSON, max_size=3))
def test_any_json_is_read_or_refused(servers: dict[str, Any]) -> None:
    try:
        found = read(**servers)
    except ValueError:
        return
    assert all(server.command or server.url for server in found)

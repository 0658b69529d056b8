"""One answer to "is it this machine?" for Slack, the model and the traces (H2)."""

from __future__ import annotations

import pytest

from observability.loopback import is_loopback


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:11434/v1",
        "http://LOCALHOST",
        "http://slack.localhost:3000/api/",
        "https://127.0.0.1/api/",
        "http://127.8.8.8",
        "http://[::1]:3000",
    ],
)
def test_h2_this_machine_is_known_by_name_and_by_address(url: str) -> None:
    assert is_loopback(url)


@pytest.mark.parametrize(
    "url",
    [
        "https://slack.com/api/",
        "https://cloud.langfuse.com",
        "http://localhost.example.com",
        "http://192.168.0.1",
        "http://0.0.0.0",
        "http://[::1",
        "localhost",
        "",
    ],
)
def test_h2_anything_else_is_elsewhere(url: str) -> None:
    assert not is_loopback(url)

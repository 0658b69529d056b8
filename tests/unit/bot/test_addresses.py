"""What is no web address is refused before anybody tries to reach it."""

from pathlib import Path

import pytest

from bot.errors import WrongUse
from bot.settings import find_invalid_addresses, is_web_address, load_settings
from tests.support.orion_running import settings_in


@pytest.mark.parametrize("text", ["http://127.0.0.1:11434/v1", "https://user:pw@host.example", "http://[::1]:8000"])
def test_web_addresses(text: str) -> None:
    assert is_web_address(text)


@pytest.mark.parametrize(
    "text",
    ["host", "127.0.0.1:80", "ftp://host", "http://", "http:///v1", "http://host:99999", "http://[::1", "http://a b"],
)
def test_what_is_none(text: str) -> None:
    assert not is_web_address(text)


def test_every_wrong_one_is_named_and_no_password_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "me:hunter2@host")
    monkeypatch.setenv("SLACK_API_URL", "slack")
    with pytest.raises(WrongUse, match=r"OPENAI_BASE_URL(.|\n)*SLACK_API_URL") as refused:
        load_settings()
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("name", ["docs_url", "git_url", "git_docs_url", "slack_exports_url"])
def test_what_links_are_made_of_must_make_links(tmp_path: Path, name: str) -> None:
    variable = f"ORION_{name.upper()}"
    wrong = find_invalid_addresses(settings_in(tmp_path, "", **{name: "wiki.example.com/handbook"}))
    assert wrong[variable].startswith("is not a web address; one looks like https://")
    assert not find_invalid_addresses(settings_in(tmp_path, "", **{name: "https://git.example/{repository}/{commit}"}))


def test_langfuse_host_matters_only_where_it_is_used(tmp_path: Path) -> None:
    assert not find_invalid_addresses(settings_in(tmp_path, "", langfuse_host="nowhere"))

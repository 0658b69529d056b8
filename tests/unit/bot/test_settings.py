"""Settings are read once at the door and refuse what makes no sense."""

from pathlib import Path

import pytest

from bot.errors import WrongUse
from bot.settings import find_unknown_names, load_settings, read_settings, unreadable_lines
from tests.support.orion_command import variables


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_nothing_set_is_the_keyless_engine() -> None:
    settings = load_settings()
    assert not settings.uses_server
    assert settings.index_path == Path(".orion/knowledge.sqlite3")


def test_lists_folders_and_switches_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORION_LINK_HOSTS", "a.example, b.example")
    monkeypatch.setenv("ORION_DOCS", '"one:two"')  # as `docker --env-file` passes it on
    monkeypatch.setenv("ORION_FEEDS", "'my pages.jsonl'")
    monkeypatch.setenv("ORION_MCP_CONFIG", "~/mcp.json")
    monkeypatch.setenv("ORION_TRACE_CONTENT", "off")
    assert not load_settings(port=None).streams
    monkeypatch.setenv("ORION_STREAMS", "on")
    settings = load_settings(port=None)
    assert settings.streams
    assert settings.link_hosts == {"a.example", "b.example"}
    assert (settings.docs, settings.mcp_config) == ((Path("one"), Path("two")), Path.home() / "mcp.json")
    assert settings.feeds == ("'my pages.jsonl'",)
    assert not settings.trace_content


def test_an_empty_variable_is_unset_but_an_empty_switch_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in variables():
        monkeypatch.setenv(name, " ")
    settings = load_settings()
    assert settings.trace_content is False
    for name in variables():
        monkeypatch.delenv(name)
    unset = load_settings()
    assert settings == unset.model_copy(update={"trace_content": False})
    assert (unset.home, unset.port, unset.slack_api_url) == (Path(".orion"), 3000, "https://slack.com/api/")


def test_the_dotenv_file_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("\ufeffORION_GENERAL=refuse\r\nORION_PORT=4000\r\n")  # as Windows writes it
    settings = load_settings(port=5000)
    assert settings.general == "refuse"
    assert settings.port == 5000


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("ORION_PORT", "abc", "ORION_PORT must be a whole number, not 'abc'"),
        ("ORION_PORT", "70000", "ORION_PORT must be at most 65535, not '70000'"),
        ("ORION_CATCH_UP_S", "soon", "ORION_CATCH_UP_S must be a number, not 'soon'"),
        ("ORION_MAX_ATTEMPTS", "0", "ORION_MAX_ATTEMPTS must be at least 1, not '0'"),
        ("ORION_GENERAL", "maybe", "ORION_GENERAL must be 'label' or 'refuse', not 'maybe'"),
        ("ORION_STREAMS", "perhaps", "ORION_STREAMS must be on or off, not 'perhaps'"),
        (
            "ORION_LINK_HOSTS",
            "wiki.example.com https://x.example",
            "ORION_LINK_HOSTS must be hosts such as wiki.example.com, without https://, a path or a *",
        ),
        ("ORION_LINK_HOSTS", "*.example.com", "ORION_LINK_HOSTS must be hosts such as"),
        ("ORION_DEBUG", "perhaps", "ORION_DEBUG must be on or off, not 'perhaps'"),
        ("SLACK_API_URL", "https://slack.test/api/#hunter22", "SLACK_API_URL must be a web address such as"),
        ("LANGFUSE_BASE_URL", "https://x.test/#hunter22", "LANGFUSE_BASE_URL must be an address such as"),
        ("LANGFUSE_BASE_URL", "https://me:hunter22@x.test", "LANGFUSE_BASE_URL must be an address such as"),
        ("LANGFUSE_BASE_URL", "https://x.test:99999", "LANGFUSE_BASE_URL must be an address such as"),
        ("ORION_SEARXNG_URL", "hello", "ORION_SEARXNG_URL must be an address such as"),
    ],
)
def test_a_wrong_value_names_the_variable_in_plain_words(
    name: str, value: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(WrongUse) as refused:
        load_settings()
    assert f"  {said}" in str(refused.value)
    assert "Value error" not in str(refused.value)
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize("text", ["http://127.0.0.1:11434/v1", "https://user:pw@host.example", "http://[::1]:8000"])
def test_a_web_address_is_accepted(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", text)
    assert load_settings().openai_base_url == text


@pytest.mark.parametrize(
    "text",
    ["host", "127.0.0.1:80", "ftp://host", "http://", "http:///v1", "http://host:99999", "http://[::1", "http://a b"],
)
def test_an_invalid_web_address_is_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", text)
    with pytest.raises(WrongUse, match="OPENAI_BASE_URL must be a web address such as http://127"):
        load_settings()


def test_every_wrong_address_is_named_and_no_password_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "SLACK_API_URL", "ORION_GIT_URL", "LANGFUSE_HOST"):
        monkeypatch.setenv(name, "me:hunter2@host")
    settings, faults = read_settings()
    assert list(faults) == ["SLACK_API_URL", "OPENAI_BASE_URL", "LANGFUSE_HOST", "ORION_GIT_URL"]
    assert "hunter2" not in str(faults)
    assert (settings.openai_base_url, settings.langfuse_host) == ("", "https://cloud.langfuse.com")


def test_valid_settings_are_read_despite_invalid_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_text("ORION_GENERAL=refuse\nORION_PORT=abc\n")
    monkeypatch.setenv("ORION_MAX_ATTEMPTS", "9")
    settings, faults = read_settings()
    assert list(faults) == ["ORION_PORT", "ORION_MAX_ATTEMPTS"]
    assert (settings.general, settings.port, settings.max_attempts) == ("refuse", 3000, 3)


def test_binary_dotenv_does_not_affect_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe\x00")
    monkeypatch.setenv("ORION_GENERAL", "refuse")
    settings, faults = read_settings()
    assert settings.general == "refuse"
    assert list(faults) == [".env"]
    assert unreadable_lines() == []
    assert find_unknown_names() == {}
    monkeypatch.setenv("ORION_PORT", "abc")
    with pytest.raises(
        WrongUse,
        match=r"(?s)\.env is not a readable UTF-8 text \(invalid start byte\).*ORION_PORT must be a whole number",
    ):
        read_settings()


def test_unreadable_lines_are_listed_by_number(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert unreadable_lines() == []
    (tmp_path / ".env").write_text("# a remark\nORION_GENERAL=refuse\nhello there\n=x\nexport ORION_PORT=4000\n")
    assert unreadable_lines() == [3, 4]
    assert load_settings().port == 4000
    assert caplog.text == ""


def test_secrets_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-123-secret")
    settings = load_settings()
    assert "xoxb-123-secret" not in repr(settings)
    assert "xoxb-123-secret" in settings.secrets

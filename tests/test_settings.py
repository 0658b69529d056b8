"""Settings are read once at the door and refuse what makes no sense."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.settings import SettingsError, load_settings


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_h1_nothing_set_is_the_keyless_engine() -> None:
    settings = load_settings()
    assert not settings.uses_server
    assert settings.index_path == Path(".orion/knowledge.sqlite3")


def test_lists_folders_and_switches_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ORION_LINK_HOSTS", "a.example, b.example")
    monkeypatch.setenv("ORION_DOCS", "one:two")
    monkeypatch.setenv("ORION_TRACE_CONTENT", "off")
    settings = load_settings(port=None)
    assert settings.link_hosts == {"a.example", "b.example"}
    assert settings.docs == (Path("one"), Path("two"))
    assert not settings.trace_content


def test_a_dotenv_file_is_read(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("ORION_GENERAL=refuse\nORION_PORT=4000\n")
    settings = load_settings(port=5000)
    assert settings.general == "refuse"
    assert settings.port == 5000


@pytest.mark.parametrize(
    ("name", "value"),
    [("ORION_PORT", "abc"), ("ORION_MAX_ATTEMPTS", "4"), ("ORION_GENERAL", "maybe"), ("ORION_DEBUG", "perhaps")],
)
def test_wrong_value_names_the_variable(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load_settings()


def test_i6_secrets_are_not_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLACK_BOT_TOKEN", "xoxb-123-secret")
    settings = load_settings()
    assert "xoxb-123-secret" not in repr(settings)
    assert "xoxb-123-secret" in settings.secrets

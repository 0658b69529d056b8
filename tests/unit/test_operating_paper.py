"""Files for operators: what the container copies and serves, and the user of the systemd unit."""

from tests.support.paths import ROOT


def test_the_image_contains_no_secret_and_no_history() -> None:
    ignored = set((ROOT / ".dockerignore").read_text().splitlines())
    assert {".env", ".env.*", ".git", ".orion", ".venv"} <= ignored


def test_the_container_listens_on_all_addresses_and_accepts_the_readmes_env_file() -> None:
    text = (ROOT / "Containerfile").read_text()
    assert 'CMD ["serve", "--host", "0.0.0.0"]' in text
    assert "mkdir /docs" in text
    assert "--env-file .env -e ORION_DOCS=/docs -v /srv/handbook:/docs:ro" in text


def test_the_systemd_unit_needs_no_user_that_nothing_creates() -> None:
    lines = (ROOT / "orion.service").read_text().splitlines()
    assert "DynamicUser=yes" in lines
    assert not any(line.startswith(("User=", "Group=")) for line in lines)

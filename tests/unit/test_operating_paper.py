"""Files for operators: the container, the systemd unit, the metrics page, and the audit of packages."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from observability.metrics import Metrics
from tests.audit import UNKNOWN, VULNERABLE, main
from tests.support.configuration_page import settings
from tests.support.paths import ROOT


def test_the_image_contains_no_secret_and_no_history() -> None:
    ignored = set((ROOT / ".dockerignore").read_text().splitlines())
    assert {"**/.env", "**/.env.*", ".git", ".orion", ".venv", "channels.toml"} <= ignored
    assert not (ROOT / ".containerignore").exists()  # podman would read it instead


def test_the_container_listens_on_all_addresses_and_accepts_the_readmes_env_file() -> None:
    text = (ROOT / "Containerfile").read_text()
    needed = ('CMD ["serve", "--host", "0.0.0.0"]', "mkdir /docs", "-e ORION_DOCS=/docs -v /srv/handbook:/docs:ro")
    assert [words for words in needed if words not in text] == []


def test_the_systemd_unit_needs_no_user_that_nothing_creates() -> None:
    lines = (ROOT / "orion.service").read_text().splitlines()
    assert "DynamicUser=yes" in lines
    assert not any(line.startswith(("User=", "Group=")) for line in lines)


@pytest.mark.parametrize(("file", "folder"), [("Containerfile", "/data"), ("orion.service", "/var/lib/orion")])
def test_a_server_writes_only_to_its_folder_for_state(file: str, folder: str) -> None:
    """Defaults are relative to the folder of the code, which a server's user cannot write."""
    words = (ROOT / file).read_text().replace("Environment=", "").split()
    written = [name for name, field in settings().items() if isinstance(field.get_default(), Path)]
    assert written
    assert [name for name in written if not any(word.startswith(f"{name}={folder}") for word in words)] == []


FOLDER = ROOT / "monitoring"
ALERTS = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
NAMES = re.findall(r"- alert: (\w+)", ALERTS)


def queries() -> Iterator[str]:
    board = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_dashboard_and_alerts_use_metrics_that_exist() -> None:
    asked = set(re.findall(r"\borion_\w+", ALERTS + "".join(queries())))
    assert len(asked) > 15
    kinds = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    assert asked <= {f"{one.name}{end}" for one in Metrics().registry.collect() for end in kinds[one.type]}


def test_the_pass_rate_has_a_line_at_the_target() -> None:
    board = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    (rate,) = [panel for panel in board["panels"] if panel["title"] == "Pass rate a day"]
    defaults = rate["fieldConfig"]["defaults"]
    assert (defaults["thresholds"]["steps"][-1]["value"], defaults["custom"]["thresholdsStyle"]["mode"]) == (
        0.95,
        "line",
    )


@pytest.mark.parametrize("name", NAMES)
def test_each_alert_is_tested_and_explained(name: str) -> None:
    assert f"alertname: {name}" in (FOLDER / "alerts_test.yml").read_text(encoding="utf-8")
    assert f"| `{name}` |" in (ROOT / "docs" / "operating.md").read_text(encoding="utf-8")


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (apt-get install prometheus)")
@pytest.mark.parametrize("command", [("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")])
def test_the_alert_rules_do_what_they_say(command: tuple[str, ...]) -> None:
    done = subprocess.run(["promtool", *command], cwd=FOLDER, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed (apt-get install prometheus)")
def test_prometheus_can_parse_every_query_of_the_dashboard(tmp_path: Path) -> None:
    rules = [{"record": f"panel:{number}", "expr": query} for number, query in enumerate(queries())]
    known = json.dumps({"groups": [{"name": "panels", "rules": rules}]}).replace("$__rate_interval", "5m")
    (tmp_path / "panels.yml").write_text(known)  # JSON is YAML
    command = ["promtool", "check", "rules", str(tmp_path / "panels.yml")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


SOUND: dict[str, Any] = {"name": "sound", "version": "1.0", "vulns": []}
FAULTY: dict[str, Any] = {
    "name": "faulty",
    "version": "2.0",
    "vulns": [{"id": "PYSEC-1", "fix_versions": ["2.1"]}, {"id": "PYSEC-2", "fix_versions": []}],
}
SKIPPED: dict[str, Any] = {"name": "strange", "skip_reason": "strange (3.0) is not known there"}


def fake_pip_audit(folder: Path, *packages: dict[str, Any], out: str | None = None, err: str = "") -> str:
    """Write a program that answers in place of pip-audit, and return its path."""
    said = json.dumps({"dependencies": packages, "fixes": []}) if out is None else out
    program = folder / "pip-audit"
    program.write_text(f"#!{sys.executable}\nimport sys\nprint({said!r})\nsys.exit({err!r} or 1)\n")
    program.chmod(0o755)
    return str(program)


def test_vulnerabilities_are_listed_first(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["requirements/runtime.txt"], fake_pip_audit(tmp_path, SOUND, FAULTY, SKIPPED)) == VULNERABLE
    out = capsys.readouterr().out
    assert "faulty 2.0: PYSEC-1, fixed in 2.1" in out
    assert "faulty 2.0: PYSEC-2, fixed in no version yet" in out
    assert "NOT AUDITED: strange (3.0)" in out


def test_packages_without_a_reply_are_not_called_safe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["requirements/runtime.txt"], fake_pip_audit(tmp_path, *[SKIPPED] * 5)) == UNKNOWN
    out = capsys.readouterr().out
    assert "and 2 more" in out
    assert "no known vulnerability" not in out
    assert "where there is a network" in out


@pytest.mark.parametrize("out", ["", "hello", "[]", "{}"])
def test_a_missing_network_is_named(out: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        main(["requirements/runtime.txt"], fake_pip_audit(tmp_path, out=out, err="ConnectionError: no route"))
        == UNKNOWN
    )
    assert "was not reached (ConnectionError: no route)" in capsys.readouterr().out

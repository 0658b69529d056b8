"""The Grafana dashboard and the alert rules fit the metrics there are, and each alert is explained."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from observability.metrics import Metrics
from tests.support.paths import ROOT

FOLDER = ROOT / "monitoring"
ALERTS = (FOLDER / "alerts.yml").read_text(encoding="utf-8")
NAMES = re.findall(r"- alert: (\w+)", ALERTS)


def exposed_names() -> set[str]:
    """Every name under which Prometheus gets a value."""
    kinds = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum"), "gauge": ("",)}
    return {f"{metric.name}{end}" for metric in Metrics().registry.collect() for end in kinds[metric.type]}


def queries() -> Iterator[str]:
    board = json.loads((FOLDER / "grafana.json").read_text(encoding="utf-8"))
    for panel in board["panels"]:
        yield from (target["expr"] for target in panel["targets"])


def test_dashboard_and_alerts_use_metrics_that_exist() -> None:
    asked = set(re.findall(r"\borion_\w+", ALERTS + "".join(queries())))
    assert len(asked) > 15
    assert asked <= exposed_names()


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

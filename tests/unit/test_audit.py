"""`make audit` names vulnerable packages and those it could not ask about, and never calls those safe."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.audit import UNKNOWN, VULNERABLE, main

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

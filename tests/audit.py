"""`make audit`: every locked package, asked about by its exact version. Also `python -m tests.audit FILE…`.

Promises: "no known vulnerability" is said only of packages that were answered for. Exit code 0: all of them; 1: there
are vulnerabilities; 3: some could not be asked about (no network, or an index that does not know them), none is known.
Make itself always exits with 2 on a failure. Its last line shows the code.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CLEAN, VULNERABLE, UNKNOWN = 0, 1, 3
SHOWN = 3
OPTIONS = ("--format=json", "--progress-spinner=off", "--disable-pip", "--require-hashes")


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """The result for one file: audited packages, vulnerable ones (a line each), and reasons for the others."""

    file: str
    answered: int = 0
    faults: tuple[str, ...] = ()
    unanswered: tuple[str, ...] = ()

    @property
    def code(self) -> int:
        """The exit code for this file."""
        return VULNERABLE if self.faults else UNKNOWN if self.unanswered else CLEAN

    def lines(self) -> list[str]:
        """The lines of the report."""
        told = [f"{self.file}: {fault}" for fault in self.faults]
        if self.unanswered:
            rest = len(self.unanswered) - SHOWN
            named = "; ".join(self.unanswered[:SHOWN]) + (f"; and {rest} more" if rest > 0 else "")
            told.append(f"{self.file}: NOT AUDITED: {named}")
        if self.answered and not self.faults:
            told.append(f"{self.file}: no known vulnerability in {self.answered} packages that were answered for")
        return told


def audit(file: str, program: str) -> Audit:
    """One file of locked packages, by pip-audit."""
    ran = subprocess.run([program, *OPTIONS, "-r", file], capture_output=True, text=True, check=False)
    try:
        return read(file, json.loads(ran.stdout)["dependencies"])
    except (ValueError, KeyError, TypeError):
        last = (ran.stderr.strip().splitlines() or ["pip-audit said nothing"])[-1]
        return Audit(file=file, unanswered=(f"the index of vulnerabilities was not reached ({last[:200]})",))


def read(file: str, packages: Sequence[dict[str, Any]]) -> Audit:
    """Read pip-audit's report on each package."""
    skipped = [str(each["skip_reason"]) for each in packages if each.get("skip_reason")]
    faults = tuple(_describe(each, fault) for each in packages for fault in each.get("vulns", ()))
    return Audit(file=file, answered=len(packages) - len(skipped), faults=faults, unanswered=tuple(skipped))


def _describe(package: dict[str, Any], fault: dict[str, Any]) -> str:
    fixed = ", ".join(fault["fix_versions"]) or "no version yet"
    return f"{package['name']} {package['version']}: {fault['id']}, fixed in {fixed}"


def main(files: Sequence[str], program: str = str(Path(sys.executable).with_name("pip-audit"))) -> int:
    """Audit each file; returns the exit code: vulnerabilities weigh most."""
    audits = [audit(file, program) for file in files]
    for line in (line for each in audits for line in each.lines()):
        print(line)  # noqa: T201 - a command's output
    if any(each.unanswered for each in audits):
        print("Not every package could be asked about: try again where there is a network.")  # noqa: T201 - as above
    codes = {each.code for each in audits}
    return VULNERABLE if VULNERABLE in codes else UNKNOWN if UNKNOWN in codes else CLEAN


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

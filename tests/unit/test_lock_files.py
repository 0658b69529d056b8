"""The lock files are complete, and nothing but them is installed.

``make`` runs here against an index on this machine: empty wheels in the place of some locked packages, each also in a
newer release that must not be taken.
"""

import hashlib
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import partial
from http.server import SimpleHTTPRequestHandler
from importlib.metadata import distribution
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.http_server import QuietHandler, serving
from tests.support.paths import ROOT

pytestmark = pytest.mark.timeout(300)  # it makes several environments
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
RUNTIME = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
DEV = [*RUNTIME, *PROJECT["dependency-groups"]["dev"]]
BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "orion-0-py3-none-any.whl"
    with zipfile.ZipFile(f"{folder}/{name}", "w") as wheel:
        lines = ["Metadata-Version: 2.1", "Name: orion", "Version: 0", "Requires-Dist: mdurl<1", ""]
        wheel.writestr("orion-0.dist-info/METADATA", "\\n".join(lines))
        wheel.writestr("orion-0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr("orion-0.dist-info/RECORD", "")
    return name
"""


def locked_versions(lock: str) -> dict[str, str]:
    """Return each package that the lock file has for this platform and Python, with its version."""
    lines = re.findall(r"^[a-z].*==.*", (ROOT / "requirements" / lock).read_text(encoding="utf-8"), re.MULTILINE)
    requirements = [Requirement(line.rstrip(" \\")) for line in lines]
    return {
        canonicalize_name(requirement.name): str(requirement.specifier).removeprefix("==")
        for requirement in requirements
        if requirement.marker is None or requirement.marker.evaluate()
    }


@pytest.mark.parametrize(("lock", "asked"), [("runtime.txt", RUNTIME), ("dev.txt", DEV)])
def test_a_lock_file_contains_everything_that_its_packages_need(lock: str, asked: list[str]) -> None:
    locked = locked_versions(lock)
    waiting, seen, missing = [(Requirement(line), "pyproject.toml") for line in asked], set[str](), list[str]()
    while waiting:
        requirement, wanted_by = waiting.pop()
        name = canonicalize_name(requirement.name)
        if not requirement.specifier.contains(locked.get(name, "0"), prereleases=True) or name not in locked:
            missing.append(f"{wanted_by} needs {requirement}, locked is {locked.get(name)}")
            continue
        for extra in {"", *requirement.extras}:
            if f"{name}[{extra}]" not in seen:
                seen.add(f"{name}[{extra}]")
                needs = map(Requirement, distribution(name).requires or ())
                waiting += [
                    (need, name) for need in needs if need.marker is None or need.marker.evaluate({"extra": extra})
                ]
    assert missing == []


def write_wheel(folder: Path, name: str, version: str, needs: list[str]) -> str:
    """Write an empty wheel and return the sha256 of it."""
    stem = f"{name.replace('-', '_')}-{version}"
    metadata = [f"Name: {name}", f"Version: {version}", *(f"Requires-Dist: {need}" for need in needs)]
    path = folder / name / f"{stem}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with ZipFile(path, "w") as wheel:
        wheel.writestr(f"{stem}.dist-info/METADATA", "\n".join(["Metadata-Version: 2.1", *metadata, ""]))
        wheel.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{stem}.dist-info/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


class QuietFiles(QuietHandler, SimpleHTTPRequestHandler):
    """Serve the folders of wheels as pip's simple index."""


def lay_out(checkout: Path, wheels: Path, locks: Mapping[str, Mapping[str, str]]) -> None:
    """Write a checkout with the real Makefile, and locks of empty wheels that each have a newer release."""
    (checkout / "requirements").mkdir(parents=True)
    (checkout / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"))
    (checkout / "backend.py").write_text(BACKEND)
    (checkout / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n[project]\nname = "orion"\n'
    )
    for lock in (ROOT / "requirements").glob("*.txt"):
        lines = []
        for name, version in locks.get(lock.name, {}).items():
            needs = distribution(name).requires or []
            lines.append(f"{name}=={version} --hash=sha256:{write_wheel(wheels, name, version, needs)}")
            write_wheel(wheels, name, "9999", needs)
        (checkout / "requirements" / lock.name).write_text("\n".join(lines))


def start_make(checkout: Path, target: str, index: str) -> subprocess.Popen[str]:
    """Start the Makefile's own installation against ``index`` and nothing else, for a person with odd settings."""
    elsewhere = checkout.parent / "elsewhere"
    pip_conf, constraints = checkout.parent / "pip.conf", checkout.parent / "constraints.txt"
    constraints.write_text("mdurl<0.1\n")
    pip_conf.write_text(
        f"[global]\nuser = true\nrequire-hashes = true\nconstraint = {constraints}\n"
        f"[install]\ntarget = {elsewhere}\nprefix = {elsewhere}\nroot = {elsewhere}\n"
    )
    settings = [f"PIP_INDEX_URL={index}", f"PIP_CONFIG_FILE={pip_conf}", "PIP_RETRIES=0", f"PYTHONHOME={elsewhere}"]
    command = ["env", "-u", "MAKEFLAGS", *settings, "make", "-s", target, f"PYTHON={sys.executable}"]
    return subprocess.Popen(command, cwd=checkout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def make(checkout: Path, target: str, index: str) -> tuple[int, str]:
    """Run the Makefile's own installation and return its exit code and what it printed."""
    with start_make(checkout, target, index) as process:
        printed, _ = process.communicate()
    return process.returncode, printed


def test_a_failed_set_up_says_what_is_wrong_and_the_next_one_installs_only_locked_versions(tmp_path: Path) -> None:
    packages = {
        "runtime.txt": ("markdown-it-py", "mdurl"),
        "dev.txt": ("iniconfig", "packaging", "pluggy", "pygments", "pytest"),
    }
    locks = {lock: {name: locked_versions("dev.txt")[name] for name in names} for lock, names in packages.items()}
    checkout, wheels = tmp_path / "orion", tmp_path / "wheels"
    lay_out(checkout, wheels, locks)
    lock = checkout / "requirements" / "runtime.txt"
    good = lock.read_text()

    def fails_with(words: str) -> None:
        code, printed = make(checkout, ".venv/.runtime", index)
        assert code != 0
        assert words in printed

    with serving(partial(QuietFiles, directory=wheels)) as port:
        index = f"http://127.0.0.1:{port}/"
        lock.write_text(re.sub(r"sha256:\w{8}", "sha256:00000000", good, count=1))
        fails_with("DO NOT MATCH THE HASHES")
        lock.write_text(good)
        (wheels / "markdown-it-py").rename(wheels / "away")
        fails_with("requirements/runtime.txt is not installed")
        (wheels / "away").rename(wheels / "markdown-it-py")
        lock.write_text("\n".join(line for line in good.splitlines() if not line.startswith("mdurl")))
        fails_with("requires mdurl, which is not installed")
        lock.write_text(good)
        code, printed = make(checkout, ".venv/.dev", index)
    assert code == 0, printed
    installed = (checkout / ".venv").glob("lib/*/site-packages/*.dist-info/METADATA")
    metadata = [re.findall(r"^(?:Name|Version): (.*)", path.read_text(), re.MULTILINE)[:2] for path in installed]
    taken = {canonicalize_name(name): version for name, version in metadata}
    assert taken.items() >= (locks["runtime.txt"] | locks["dev.txt"]).items()
    assert "9999" not in taken.values()


def test_two_makes_install_once_a_broken_or_moved_venv_is_made_again_and_an_upgrade_fits(tmp_path: Path) -> None:
    checkout, moved, wheels = tmp_path / "orion", tmp_path / "Orion für alle", tmp_path / "wheels"
    lay_out(checkout, wheels, {"runtime.txt": {"mdurl": locked_versions("runtime.txt")["mdurl"]}})
    (checkout / ".venv/bin").mkdir(parents=True)
    (checkout / ".venv/bin/python").symlink_to(tmp_path / "removed")
    (checkout / ".venv/.python").write_text(f"{checkout}\n")
    (checkout / ".venv/.runtime").touch()
    with serving(partial(QuietFiles, directory=wheels)) as port:
        index = f"http://127.0.0.1:{port}/"
        with start_make(checkout, ".venv/.runtime", index) as one, start_make(checkout, ".venv/.runtime", index) as two:
            printed = one.communicate()[0] + two.communicate()[0]
        assert (one.returncode, two.returncode, printed.count("Making .venv")) == (0, 0, 1), printed
        checkout.rename(moved)
        assert make(moved, ".venv/.runtime", index)[0] == 0
        assert str(moved) in subprocess.check_output([moved / ".venv/bin/pip", "--version"], text=True)
        (moved / "backend.py").write_text(BACKEND.replace("mdurl<1", "mdurl>1"))  # the next version needs more
        newer = f"mdurl==9999 --hash=sha256:{write_wheel(wheels, 'mdurl', '9999', [])}"
        (moved / "requirements" / "runtime.txt").write_text(newer)
        code, printed = make(moved, ".venv/.runtime", index)
    assert code == 0, printed
    assert list(moved.glob(".venv/lib/python*/site-packages/mdurl-9999*"))

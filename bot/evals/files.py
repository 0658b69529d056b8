"""Files that `orion verify` and the evaluations read and write. Few imports: `orion verify` must start fast."""

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bot.errors import WrongUse
from verification.types import Verdict


def read_text(file: str) -> str:
    """Return a file's text, or standard input's for ``-``. Raises ``WrongUse`` for bytes that are not UTF-8."""
    try:
        data = sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()
    except OSError as error:
        raise WrongUse(why=f"cannot read {file}: {error.strerror}") from None
    name = "Standard input" if file == "-" else file
    if b"\0" in data:
        raise WrongUse(why=f"{name} is not text: byte {data.index(0)} is 0. Name a text file in UTF-8.")
    try:
        return data.decode("utf-8-sig")  # editors on Windows put a mark in front
    except UnicodeDecodeError as error:
        message = (
            f"{name} is not text in UTF-8: byte {error.start} fits nowhere. Save it as UTF-8, or name a text file."
        )
        raise WrongUse(message) from None


def read_json(path: Path) -> Any:
    """Return a JSON file's value."""
    return json_of(read_text(str(path)).encode("utf-8", "surrogatepass"), str(path))


def json_of(data: bytes, place: str) -> Any:
    """Return the value of strict JSON in UTF-8 (no NaN). Raises ``WrongUse``, including for JSON nested too deeply."""
    try:
        return json.loads(data.decode("utf-8-sig"), parse_constant=_no_constant)
    except RecursionError:
        message = f"{place} is not JSON: it is nested too deeply"
    except ValueError as error:
        message = f"{place} is not JSON: {error}"
    raise WrongUse(message)


def _no_constant(name: str) -> None:
    message = f"{name} is not a JSON value"
    raise ValueError(message)


def same_file(one: Path, other: Path) -> bool:
    """Return True if both names are the same regular file (opening it for writing would empty it)."""
    return one.is_file() and other.is_file() and one.samefile(other)


def verdict_json(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict in the fields of the public contract."""
    return {
        "passed": verdict.passed,
        "text": verdict.text,
        "chunks": list(verdict.chunks),
        "repairs": [asdict(repair) for repair in verdict.repairs],
        "violations": [asdict(violation) for violation in verdict.violations],
        "claims": [
            {"cited": list(claim.cited)}
            | {name: getattr(claim, name) for name in ("text", "start", "end", "supported", "settled_by")}
            for claim in verdict.claims
        ],
    }

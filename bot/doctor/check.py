"""One line of `orion doctor`: what was looked at, how it stands, what to do about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing looked at. ``remedy`` says what to do when it is not ok."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

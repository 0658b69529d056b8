"""The fragment of a heading: citations link to it, and pages that show documents set it."""

from __future__ import annotations

import re


def slug(heading: str) -> str:
    """The fragment that repository hosts and most site builders give a heading."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower().strip())
    return kept.replace(" ", "-")

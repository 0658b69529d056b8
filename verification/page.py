"""What one pass over one text shares between its blocks and stretches.

Promises: plain state for a single pass, nothing outlives it. What costs a look at the whole text (which HTML tags have
a partner) is found once, and only if somebody asks.
"""

from __future__ import annotations

import re

from verification.answer import Dialect
from verification.edits import Findings

_TAG_NAME = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)")


class Page:
    """The text, the dialect, the definitions and the findings of a pass."""

    __slots__ = ("_tag_names", "dialect", "findings", "footnotes", "references", "text", "used")

    def __init__(self, text: str, dialect: Dialect) -> None:
        self.text = text
        self.dialect = dialect
        self.findings = Findings()
        self.references: dict[str, str] = {}
        self.footnotes: set[str] = set()
        self.used: set[str] = set()
        self._tag_names: frozenset[tuple[bool, str]] | None = None

    def has_tag(self, name: str, *, closing: bool) -> bool:
        """Whether an opening (or closing) tag of this name stands anywhere on the page."""
        if self._tag_names is None:
            found = _TAG_NAME.finditer(self.text)
            self._tag_names = frozenset((match[1] == "/", match[2].lower()) for match in found)
        return (closing, name) in self._tag_names

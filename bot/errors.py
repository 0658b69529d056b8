"""One error for whoever typed the command: what is wrong and how to mend it. Exit code 2."""

from __future__ import annotations


class WrongUse(Exception):  # noqa: N818 - it names what happened; the command line prints it as a sentence
    """The command cannot do that. The text is a sentence for a person."""

    def __init__(self, why: str) -> None:
        super().__init__(why)

"""An error for the person at the command line: what is wrong and how to fix it. Exit code 2."""


class WrongUse(Exception):  # noqa: N818 - the command line prints its text as a sentence
    """The command cannot do that. The text is a sentence for a person."""

    def __init__(self, why: str) -> None:
        super().__init__(why)

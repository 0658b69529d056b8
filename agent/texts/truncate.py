"""Cut a text that has to fit a limit."""


def truncate(text: str, limit: int) -> str:
    """Return the text in at most ``limit`` characters, with an ellipsis if it was cut."""
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "…"

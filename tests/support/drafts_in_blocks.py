"""A draft in blocks, and its sources."""

from verification.types import Draft, Source

SOURCES = (
    Source(id=1, title="Limits", url="https://docs.example/limits", text="Each key may send 600 requests a minute."),
    Source(id=2, title="Builds", url="https://docs.example/builds", text="The build runs on Tuesday at 14:00."),
)


BASE = Draft(text="", question="How many requests may a key send?", sources=SOURCES)
BLOCKS = (
    "Each key may send 600 requests a minute [1].",
    "The **build** runs on Tuesday at 14:00 [2].",
    "Each key may send 900 requests a minute [1].",
    "The limits:\n\n- Each key may send 600 requests a minute [1].\n- The build runs on Tuesday [2].",
    "1. Each key may send 600 requests a minute [1].\n\n2. The build runs at 14:00 [2].\n\n   On Tuesday [2].",
    "## Limits\n\nEach key may send 600 requests a minute [1].",
    "| what | how many |\n|---|---|\n| requests a minute | 600 [1] |",
    "```python\nx = 1\n\n\ny = '```'\n```",
    "````\n```\n\na\n```\n````",
    "~~~\n\n# no title\n\n~~~",
    "See [the page](https://evil.example/?q=600).",
    "<!channel> look [1]",
    "---",
    "-",
    "12",
    "**Bold**",
    "    indented",
    "[1]: https://docs.example/limits",
)

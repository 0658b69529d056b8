"""The output of `orion index` and `orion ask` at a terminal of 80 columns."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from pathlib import Path

_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
COLUMNS = 80


def at_terminal(folder: Path, *arguments: str, **variables: str) -> tuple[int, str]:
    """The exit code and all that a command wrote, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {"PATH": os.defpath, "TERM": "xterm", "ORION_HOME": str(folder / "home"), **variables}
    started = subprocess.Popen(
        [sys.executable, "-m", "bot", *arguments], cwd=folder, env=environment, stdin=theirs, stdout=theirs,
        stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    written = b""
    with suppress(OSError):  # Linux tells so that the other side was closed
        while piece := os.read(ours, 4096):
            written += piece
    os.close(ours)
    return started.wait(), _CONTROL.sub("", written.decode())


def folder_with(folder: Path, *names: str) -> Path:
    for name in names:
        (folder / name).mkdir()
        (folder / name / f"a-rather-long-name-of-a-document-about-{name}.md").write_text(
            f"# All about {name}\n\nThe canteen of {name} opens at 11:30 & closes at 14:00."
        )
    return folder


def test_an_index_is_replaced_and_its_documents_fit_the_terminal(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "lunch", "dinner")
    code, said = at_terminal(folder, "index", "lunch")
    assert (code, "1 added" in said) == (0, True)
    assert "1 added, 0 changed, 1 removed" in at_terminal(folder, "index", "dinner")[1]
    shown = at_terminal(folder, "docs")[1]
    assert max(map(len, shown.splitlines())) <= max(COLUMNS, len(str(folder)) + len("folder /dinner"))
    assert "a-rather-long-name-of-a-document-about-dinner.md" in shown.splitlines()  # not folded: it can be copied


def test_person_who_asks_sees_an_answer_and_no_log(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, "lunch")
    code, said = at_terminal(folder, "ask", "When does the canteen of lunch open?", "--docs", "lunch")
    assert code == 0
    assert "Looking it up" in said
    assert "opens at 11:30 & closes at 14:00" in said
    assert "[1] All about lunch  ·  a-rather-long-name-of-a-document-about-lunch.md  ·  today" in said
    away = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "ORION_MODEL": "m"}
    code, said = at_terminal(folder, "ask", "When does it open?", "--docs", "lunch", **away)
    assert code == 3
    assert "The language model didn't answer" in said
    assert "stamina.retry_scheduled" not in said

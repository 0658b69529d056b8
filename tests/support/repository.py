"""A Git repository that grows by commits with dates of a test's own."""

import os
import subprocess
from pathlib import Path

PLAIN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.defpath}


class Work:
    """A repository that grows by commits with dates of our own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, **environment: str) -> str:
        command = ["git", "-C", str(self.folder), *arguments]
        return subprocess.run(command, env=PLAIN | environment, check=True, capture_output=True, text=True).stdout

    def commit(self, message: str, *, at: str, author: str = "Ada Ray", name: str = "a.txt", text: str = "") -> str:
        (self.folder / name).parent.mkdir(exist_ok=True)
        (self.folder / name).write_text(text or message)
        self.git("add", "-A")
        when = {"GIT_AUTHOR_DATE": at, "GIT_COMMITTER_DATE": at}
        who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER")
               for part, value in (("NAME", author), ("EMAIL", "ada@secret.example"))}  # fmt: skip
        self.git("commit", "-q", "-m", message, **when, **who)
        return self.git("rev-parse", "HEAD").strip()

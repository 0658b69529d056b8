"""Count the files and functions of Orion that one easy mention enters: a second question, a played model, no judge.

Run it by hand: `python -m tests.measure.entered unix:///path/redis.sock [--list]`. The list is in the order of entry.
"""

import asyncio
import sys
import threading
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

from tests.support.stream_stage import FIRST, draft, stage

ROOT = f"{Path(__file__).parents[2]}/"
PACKAGES = ("agent", "bot", "observability", "verification")


class Entered:
    """Calls by file and function while ``on``; the local workspace is not Orion's part."""

    def __init__(self) -> None:
        self.calls: Counter[tuple[str, str]] = Counter()
        self.on = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if not self.on or event != "call" or not code.co_filename.startswith(ROOT):
            return
        file = code.co_filename.removeprefix(ROOT)
        if file.startswith(PACKAGES) and not file.startswith("bot/local/") and not code.co_qualname.endswith(">"):
            self.calls[file, code.co_qualname] += 1


async def count_mention(redis_url: str) -> Entered:
    entered = Entered()
    threading.setprofile(entered)
    sys.setprofile(entered)
    drafts = [draft(FIRST)] * 3
    with TemporaryDirectory() as home:
        async with stage(Path(home), redis_url, *drafts, judge=False, streams=False) as at:
            await at.wait_for_answer(at.ask())
            entered.on = True
            await at.wait_for_answer(at.ask())
            entered.on = False
    sys.setprofile(None)
    return entered


if __name__ == "__main__":
    calls = asyncio.run(count_mention(sys.argv[1])).calls
    if "--list" in sys.argv:
        for (file, name), times in calls.items():
            sys.stdout.write(f"{times:5} {file} {name}\n")
    before = list(calls).index(("agent/turn/loop.py", "run_turn"))
    sys.stdout.write(
        f"{len({file for file, _ in calls})} files, {len(calls)} functions, {calls.total()} calls; "
        f"{len({file for file, _ in list(calls)[:before]})} files before the turn loop\n"
    )

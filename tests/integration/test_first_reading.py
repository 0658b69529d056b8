"""A question while Orion reads its documents for the first time: they may hold what it does not find yet."""

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent.knowledge.types import IndexRun, Readable
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, says
from tests.support.orion_running import MENTION, idle, posts, running, settings_in, text_of
from tests.support.waiting import wait_until

SHED, CANTEEN = "The key of the bicycle shed hangs behind the reception desk.", "The canteen opens at noon."
READING = "I'm still reading the documents (1 so far), so something may be missing."
REFUSAL = f"I haven't found an answer to that yet. {READING} Please ask again in a few minutes."


@dataclass(frozen=True)
class SlowSource:
    """A source of one document, which it yields once it is ``released``."""

    key: str = "feed:slow"
    part: str = ""
    reached: threading.Event = field(default_factory=threading.Event)
    released: threading.Event = field(default_factory=threading.Event)

    def documents(self, _run: IndexRun) -> Iterator[Readable]:
        self.reached.set()
        self.released.wait()
        page = f"# Bicycle shed\n\n{SHED}\n".encode()
        yield Readable(id="s.md", key=f"{self.key}/s.md", name="s.md", source=self.key, read=lambda: (page, 0.0))


def draft(request: Any) -> Scripted:
    prompt = request["messages"][-1]["content"]
    asked = SHED if "bicycle" in prompt else CANTEEN
    return says(f"<answer>{asked} [1]</answer>" if asked in json.dumps(request) else "<answer>NOT_IN_SOURCES</answer>")


async def test_a_question_during_the_first_reading_is_told_that_documents_may_be_missing(
    tmp_path: Path, redis_url: str
) -> None:
    docs, source = tmp_path / "docs", SlowSource()
    docs.mkdir()
    (docs / "canteen.md").write_text(f"# Canteen\n\n{CANTEEN}\n")
    async with (
        ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=draft) as server,
        asyncio.TaskGroup() as group,
        running(settings_in(tmp_path / "home", redis_url, **server.settings, judge=False), docs=docs) as setting,
    ):

        async def reply_to(text: str) -> str:
            return text_of(await setting.answer_to(setting.ask(f"{MENTION} {text}")))

        syncing = group.create_task(asyncio.to_thread(setting.orion.engine.index.index, [docs, source]))
        try:
            await wait_until(source.reached.is_set, "the source is being read")
            thread = setting.ask(f"{MENTION} Where is the key of the bicycle shed?")
            refusal = text_of(await setting.answer_to(thread))
            before = len(posts(setting.workspace, "C0HELP"))
            setting.ask("and who has another key of the bicycle shed?", thread=thread)
            await wait_until(lambda: idle(setting), "the follow-up has been handled")
            after = len(posts(setting.workspace, "C0HELP"))
            answer = await reply_to("When does the canteen open?")
        finally:
            source.released.set()
        assert REFUSAL in refusal
        assert "didn't find" not in refusal
        assert after == before
        assert CANTEEN in answer
        assert READING in answer
        await syncing
        whole = await reply_to("Where is the key of the bicycle shed?")
        assert SHED in whole
        assert "still reading" not in whole
        await wait_until(lambda: idle(setting), "the last turn is counted")
        stats = await setting.orion.observers.stats.read(1)
        assert (stats["outcome:still_reading"], stats.refused, stats.answered) == (1, 0, 2)

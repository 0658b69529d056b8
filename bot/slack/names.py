"""Names for the ids in a conversation: the model reads ``@Ben`` and ``#ops``, not ``<@U…>`` and ``<#C…>``."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.knowledge.slack_message import named_ids, with_names
from agent.thread.conversation import Question, ThreadKey, ThreadMessage
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed

MAX_NAMES: Final = 12  # ids of one turn that are looked up; most are cached
log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Names:
    """Finds the names of people, channels and groups of one workspace."""

    people: People

    async def put_into(
        self, question: Question, history: Sequence[ThreadMessage]
    ) -> tuple[Question, tuple[ThreadMessage, ...]]:
        """Return question and history with names in place of ids, the latest first where there are many.

        The question gets the asker's time zone, and the names of those who spoke.
        """
        latest = [one for message in reversed(history) for one in (*named_ids(message.text), message.user) if one]
        team = question.thread.team
        names = await self._find(question.thread, dict.fromkeys([question.user, *named_ids(question.text), *latest]))
        try:
            tz = (await self.people.find_person(team, question.user)).tz
        except DeliveryFailed:
            tz = ""
        named = replace(question, text=with_names(question.text, names), tz=tz, names=names)
        return named, tuple(replace(message, text=with_names(message.text, names)) for message in history)

    async def _find(self, place: ThreadKey, ids: Iterable[str]) -> dict[str, str]:
        names: dict[str, str] = {}
        for found in list(ids)[:MAX_NAMES]:
            try:
                names[found] = await self._name(place, found)
            except DeliveryFailed as failure:
                log.info("name_not_found", reason=failure.reason)
                if not failure.permanent:
                    break  # an answer does not wait for names
        return {found: name for found, name in names.items() if name}

    async def _name(self, place: ThreadKey, found: str) -> str:
        team = place.team
        if found.startswith("S"):
            return await self.people.group_name(team, found)
        if found.startswith(("C", "G")):
            return await self.people.channel_name(team, found, within=place.channel)
        person = await self.people.find_person(team, found) if found.startswith(("U", "W")) else None
        return f"@{person.name}" if person and person.name else ""

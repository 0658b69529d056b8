"""The collaborators of a turn that belong to its workspace."""

from dataclasses import dataclass, replace

from agent.thread.audience import viewers_of
from agent.thread.conversation import AttachedFile, Question
from agent.thread.state import ThreadState
from bot.channel_settings import ChannelFile
from bot.slack.files import Attachments
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.memberships import Memberships
from bot.slack.message import Incoming
from bot.slack.names import Names
from bot.slack.search import SlackSearch
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed
from bot.turn.history import EarlierThread
from bot.turn.visibility import Visibility


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceLookups:
    """The collaborators of a turn that belong to one workspace."""

    people: People
    names: Names
    handoff: HandOffPlace
    attachments: Attachments
    search: SlackSearch
    visibility: Visibility
    memberships: Memberships
    channels: ChannelFile

    async def files(self, incoming: Incoming, earlier: EarlierThread) -> tuple[AttachedFile, ...]:
        """Return the files of the question and of the thread's first message; a marker if Slack's limits forbid it."""
        unseen = (AttachedFile(name="", trouble="unseen"),)
        if earlier.limited:
            return unseen
        try:
            return await self.attachments.read_all(incoming, earlier.first, earlier.asked)
        except DeliveryFailed as failure:
            if not failure.again_s:
                raise
            return unseen

    async def prepare(self, question: Question, state: ThreadState) -> tuple[Question, ThreadState]:
        """Add names and what holds in the channel; take out what the readers of the answer may not see any more."""
        settings = self.channels.of(question.thread.team, question.thread.channel)
        question = replace(
            question,
            memberships=await self.memberships.of(question),
            instruction=settings.model_instruction,
            documents=settings.documents,
            language=settings.language,
        )
        question, history = await self.names.put_into(question, state.history)
        return question, await self.visibility.visible_state(replace(state, history=history), viewers_of(question))

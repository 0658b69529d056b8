"""The parts that serve the messages of one workspace. The gates, the turn and unasked answers share them."""

from dataclasses import dataclass, field, replace

import structlog

from agent.texts.catalogue import say
from agent.thread.audience import viewers_of
from agent.thread.conversation import AttachedFile, Question
from agent.thread.state import ThreadState
from bot.channel_settings import ChannelFile
from bot.delivery.delivery import Delivery
from bot.delivery.pending_checks import PendingChecks
from bot.delivery.stream import Streams
from bot.slack.files import Attachments
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.memberships import Memberships
from bot.slack.message import Access, Incoming
from bot.slack.names import Names
from bot.slack.search import SlackSearch
from bot.slack.users import People
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import Stores
from bot.timeouts import TurnTimeouts
from bot.turn.engine import Engine
from bot.turn.history import EarlierThread
from bot.turn.job import Job
from bot.turn.observer import Observers
from bot.turn.visibility import Visibility

log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamServices:
    """The same for every message of a workspace.

    ``handoff`` is where people are asked. Without ``streams`` every answer is posted. ``saves_answers``: a folder for
    answers is configured.
    """

    engine: Engine
    stores: Stores
    observers: Observers
    delivery: Delivery
    people: People
    memberships: Memberships
    attachments: Attachments
    search: SlackSearch
    handoff: HandOffPlace
    channels: ChannelFile
    access: Access = field(default_factory=Access)
    timeouts: TurnTimeouts = field(default_factory=TurnTimeouts)
    streams: Streams | None = None
    saves_answers: bool = False

    @property
    def visibility(self) -> Visibility:
        """Decides which sources of an earlier turn may be shown."""
        return Visibility(self.engine.index)

    async def read_files(self, incoming: Incoming, earlier: EarlierThread) -> tuple[AttachedFile, ...]:
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
        """Add names and the channel's settings; remove sources that the answer's readers may no longer see."""
        settings = self.channels.of(question.thread.team, question.thread.channel)
        question = replace(
            question,
            memberships=await self.memberships.of(question),
            instruction=settings.model_instruction,
            documents=settings.documents,
            language=settings.language,
        )
        question, history = await Names(self.people).put_into(question, state.history)
        return question, await self.visibility.visible_state(replace(state, history=history), viewers_of(question))

    async def check_again(self, job: Job) -> None:
        """Leave a check of this question: two workers had it, or Slack may still begin a stream for it."""
        await PendingChecks(self.stores.mailbox).add_for(job.claimed, job.place, job.incoming.ts)

    async def notify_person(self, incoming: Incoming, text: str) -> DeliveryFailed | None:
        """Post a text that only the author sees. Return the failure if Slack did not take it."""
        place = incoming.thread
        if place.thread_ts == incoming.ts:  # Slack shows no ephemeral message in a thread without replies
            place = replace(place, thread_ts=place.channel)
        try:
            await self.delivery.post_ephemeral(place, incoming.user, text)
        except DeliveryFailed as failure:
            log.warning("notice_not_delivered", reason=failure.reason)
            return failure
        return None

    async def notify_person_once(self, incoming: Incoming, name: str, subject: str) -> None:
        """Post the text ``name`` the same way, once a day for each subject. A failed post may be tried again."""
        team, user = incoming.thread.team, incoming.user
        if not await self.people.claim_notice(team, user, subject):
            return
        failure = await self.notify_person(incoming, say(name, await self.people.notice_language(incoming)))
        if failure and not failure.permanent:
            await self.people.release_notice(team, user, subject)

"""Passes a claimed message of one workspace through the gates, in order, to its answer.

Four gates are defined here: for follow-ups, bystanders, late questions, and messages that Orion only overheard.
"""

import asyncio
import re
import unicodedata
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal

import structlog

from agent.json_data import parse_json
from agent.texts.catalogue import LANGUAGES, say
from agent.thread.conversation import ThreadMessage
from agent.thread.state import SCHEMA, is_waiting_for_another, with_messages
from bot.delivery.answer_key import Recheck, read_recheck
from bot.gates.access import cached_refusal, check_access, check_allowance, find_refusal, visit_of
from bot.gates.handoff import handle_hand_off, notify_failure
from bot.gates.stop import handle_stop
from bot.queue.claim import OK, Claimed, Ending, Lease, give_back, give_up
from bot.slack.directory import ACCESS_TTL_S
from bot.slack.history import sort_key
from bot.slack.message import MESSAGE_SCHEMA, Incoming, Kind, ThreadMode
from bot.slack.web_api import DeliveryFailed
from bot.stores.stores import read_facts
from bot.turn.answer import Answering
from bot.turn.job import Job, TeamServices
from bot.turn.recovery import run_recheck
from bot.turn.unasked import UnaskedAnswers

log = structlog.get_logger()

RETRY_S: Final = 30.0
MAX_MESSAGES: Final = 1_000
LATE_S: Final = 6 * 3600.0  # well within the time for which the queue knows event ids
AGED_S: Final = 60.0  # a newer question needs no call to Slack
NEWER_RETRY_S: Final = 5.0
# After a rollback no newer worker comes: this version then reads as much of the message as it can.
MAX_NEWER_WAIT_S: Final = 15 * 60.0
_SHORTCODE: Final = re.compile(r":[^\s:]+:")  # Slack writes most emoji so
_EMOJI_PARTS: Final = frozenset({"So", "Sk", "Mn", "Me", "Cf"})  # signs, skin tones, variants, keycaps, joiners
_MUTED: Final = frozenset(say("muted", language) for language in LANGUAGES)


async def check_follow_up(job: Job, services: TeamServices) -> Ending | None:
    """Let a follow-up pass only if Orion was addressed in its thread and not muted since.

    If Redis does not know the thread, ask Slack until it replies.
    """
    incoming = job.incoming
    if not incoming.unproven:
        follows_up = incoming.addressed == "follow_up"
        # It never answered here (only people without access addressed it), or was muted after the message was stored.
        is_unknown = job.facts.thread_mode is None and not job.facts.state.version
        return OK if follows_up and (is_unknown or job.facts.thread_mode == "muted") else None
    try:
        thread_mode = await _recall_thread_mode(incoming, services)
    except DeliveryFailed as failure:
        log.warning("thread_mode_not_recalled", reason=failure.reason)
        return OK if failure.permanent else give_back(failure.again_s or RETRY_S)
    return None if thread_mode == "engaged" else OK


async def _recall_thread_mode(incoming: Incoming, services: TeamServices) -> ThreadMode:
    """Return the thread's mode when the message was written. A later mention does not count."""
    thread_modes, thread = services.stores.thread_modes, incoming.thread
    mode = await thread_modes.get(thread)
    if mode in {"unknown", "muted"}:
        return mode
    if (noted := await thread_modes.load_lookup(thread, incoming.ts)) is not None:
        return noted
    earlier = await services.delivery.reader.read_conversation(thread, before=incoming.ts, limit=MAX_MESSAGES)
    own = [message.text for message in earlier.messages if message.role == "assistant"]
    recalled: ThreadMode = "unknown" if not own else "muted" if own[-1] in _MUTED else "engaged"
    await thread_modes.save_lookup(thread, incoming.ts, recalled)
    log.info("thread_mode_recalled", thread_mode=recalled)
    if mode == "lost":
        await (thread_modes.mark_stranger(thread) if recalled == "unknown" else thread_modes.set(thread, recalled))
    return recalled


async def check_bystander(job: Job, services: TeamServices) -> Ending | None:
    """Record a bystander's message while Orion waits for an answer, and tell them once how to ask.

    A message of emoji alone in a thread is a reaction, unless it answers a question. A mention always passes.
    """
    incoming, state = job.incoming, job.facts.state
    waits = is_waiting_for_another(state, incoming.user)
    if incoming.addressed == "mention":
        return None
    is_reaction = incoming.thread.thread_ts != incoming.ts and incoming.files == "none" and is_emoji(incoming.text)
    if is_reaction and (waits or state.pending_question is None):
        log.info("reaction_ignored")
        return OK
    if not waits or incoming.addressed != "follow_up":
        return None
    if all(message.ts != incoming.ts for message in state.history):
        remark = ThreadMessage(role="user", text=incoming.text, user=incoming.user, ts=incoming.ts, addressed=False)
        await services.stores.save(job.claimed, incoming.thread, with_messages(state, remark))
        await services.notify_person_once(incoming, "beside", f"beside:{incoming.thread.thread_ts}")
    log.info("bystander_noted", text_length=len(incoming.text))
    return OK


def is_emoji(text: str) -> bool:
    """Return whether a message is only emoji, as characters or as Slack's ``:names:``."""
    rest = "".join(_SHORTCODE.sub("", text).split()).replace("\ufe0f\u20e3", "")
    return bool(text.strip()) and all(unicodedata.category(one) in _EMOJI_PARTS or one in "‼⁉〰〽" for one in rest)


async def check_late_question(job: Job, services: TeamServices) -> Ending | None:
    """End a question that came late or waited long, as after an outage or from a backup, if it has an answer."""
    incoming, waited_s = job.incoming, job.claimed.waited_s  # a shortcut has no event_ts
    late_s = job.claimed.enqueued_at - sort_key(incoming.ts)[0]
    if not incoming.event_ts or max(late_s, waited_s) < AGED_S or job.claimed.tries > 1 or job.failed_since:
        return None
    # The thread's history proves nothing: the turn of a later question may have read this one from Slack.
    is_answered = incoming.ts in job.facts.state.posted
    try:
        posts = () if is_answered else await services.delivery.reader.find_posts(incoming.thread, incoming.ts)
    except DeliveryFailed as failure:
        # Slack's limits do not delay a long queue further. Only a question that Slack sends again has to wait.
        goes_on = failure.permanent or (failure.is_limited and late_s < LATE_S)
        return None if goes_on else give_back(failure.again_s or job.gate_wait_s)
    if is_answered or any(posted.turn_id for posted in posts):
        log.info("late_question_known", late_s=round(late_s), waited_s=round(waited_s))
        return OK
    return None


async def handle_overheard(job: Job, services: TeamServices) -> Ending | None:
    """Mute or unmute the channel, or let a question pass to its answer. Everything else ends here."""
    incoming = job.incoming
    try:
        if await find_refusal(visit_of(incoming, job.facts), services.access, services.people):
            return OK
        if incoming.kind in {"mute", "unmute"}:
            muted, team, channel = incoming.kind == "mute", incoming.thread.team, incoming.thread.channel
            await services.stores.listening.set_muted(team, channel, muted=muted)
            name = "listening_muted" if muted else "listening_unmuted"
            text = say(name, await services.people.notice_language(incoming))
            await services.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)
            return OK
    except DeliveryFailed as failure:
        log.info("overheard_message_dropped", reason=failure.reason)
        return OK
    facts = job.facts
    passes = incoming.kind == "question" and facts.pause is None and facts.exhausted is None and facts.is_wanted
    return None if passes else OK


Gate = Callable[[Job, TeamServices], Awaitable[Ending | None]]
"""Returns the message's ending, or None to let it pass to the next gate. Raises ``RedisError`` and ``LeaseLost``."""
GATES: Final[Mapping[Kind | Literal["overheard"], Sequence[Gate]]] = {
    "question": (check_follow_up, check_access, check_bystander, check_late_question, check_allowance),
    "edit": (check_access, check_allowance),
    "stop": (check_access, handle_stop),
    "hand_off": (check_access, handle_hand_off),
    "mute": (check_access,),
    "unmute": (check_access,),
    "delete": (),
    "overheard": (handle_overheard,),
}
"""The gates of each kind of message, in order. An overheard message has its own."""


@dataclass(frozen=True, slots=True)
class Flow:
    """Handles the messages of one workspace for the worker."""

    answering: Answering
    unasked: UnaskedAnswers
    gates: Mapping[Kind | Literal["overheard"], Sequence[Gate]] = field(default_factory=lambda: GATES)

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Carry out the message. Returns its ending in the mailbox. Raises ``LeaseLost`` and ``RedisError``."""
        lease.require()  # after a pause of this process, another worker may run the turn already
        services, (schema, message) = self.answering.services, read_body(claimed.body)
        if message is None:
            return defer_to_newer_version(claimed, schema) or give_up("unreadable message")
        if isinstance(message, Recheck):
            return await run_recheck(message, claimed, lease, services.stores, services.delivery)
        try:
            job = await self._job(claimed, lease, message)
            with structlog.contextvars.bound_contextvars(thread=claimed.thread, turn_id=job.turn_id):
                if left := defer_to_newer_version(job.claimed, schema, job.facts.state_schema):
                    return left
                overheard = job.incoming.addressed == "overheard"
                # A newer version's message may be of an unknown kind: it passes, and nothing happens.
                for gate in self.gates.get("overheard" if overheard else job.incoming.kind, ()):
                    if (ending := await gate(job, services)) is not None:
                        return ending
                return await (self.unasked if overheard else self.answering).answer(job)
        except asyncio.CancelledError:
            if not lease.stopped:
                raise
            return give_back()  # stopped before its turn began: the next try posts "Stopped."

    async def notify_given_up(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """Tell a person who addressed Orion that their message was given up. Raises ``DeliveryFailed``."""
        _, message = read_body(claimed.body)
        if not isinstance(message, Incoming) or message.kind == "stop":  # its turn ended long ago
            return
        job, access = await self._job(claimed, lease, message), self.answering.services.access
        if message.refused or cached_refusal(visit_of(message, job.facts), access) or not job.is_addressed:
            return
        if message.kind == "hand_off":
            await notify_failure(job, self.answering.services)
        else:
            await self.answering.notify_given_up(job, reason)

    async def _job(self, claimed: Claimed, lease: Lease, incoming: Incoming) -> Job:
        services, turn_id = self.answering.services, incoming.turn_id
        if claimed.tries > 1:  # the worker of an earlier try may have been killed
            await services.stores.budgets.release(turn_id, incoming)
        if claimed.waited_s > ACCESS_TTL_S:  # since then its channel may have been shared with another organisation
            incoming = replace(incoming, vouched=False)
        facts = await read_facts(services.stores, incoming, turn_id, claimed.id)
        if incoming.costs_tokens:  # the time of a pause does not count as an outage
            claimed = replace(claimed, enqueued_at=max(claimed.enqueued_at, facts.resumed))
        incoming = replace(incoming, action_token=facts.token)
        language = services.channels.of(incoming.thread.team, incoming.thread.channel).language
        return Job(claimed=claimed, lease=lease, incoming=incoming, facts=facts, channel_language=language)


def read_body(body: str) -> tuple[int, Incoming | Recheck | None]:
    """Return the schema of a stored body (1 if it has none) and the message, or None if it cannot be read."""
    try:
        fields = parse_json(body)
    except ValueError:
        return 1, None
    schema = fields.get("schema") if isinstance(fields, dict) else None
    number = schema if isinstance(schema, int) else 1
    try:
        return number, Incoming.from_fields(fields)
    except ValueError:
        return number, read_recheck(fields)


def defer_to_newer_version(claimed: Claimed, message_schema: int, state_schema: int = 0) -> Ending | None:
    """Give the message back, uncounted, if it or its thread's state has a newer schema, as during a deploy."""
    if message_schema <= MESSAGE_SCHEMA and state_schema <= SCHEMA:
        return None
    gives_back = claimed.waited_s <= MAX_NEWER_WAIT_S
    log.warning(
        "left_for_newer_version" if gives_back else "newer_schema_read_as_far_as_known",
        thread=claimed.thread,
        message_id=claimed.id,
        message_schema=message_schema,
        state_schema=state_schema,
    )
    return give_back(NEWER_RETRY_S) if gives_back else None

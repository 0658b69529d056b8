"""Gates for messages without a mention, where the thread or the channel decides, and for late questions.

If a thread is older than the data in Redis, Slack is asked whether Orion spoke there.
"""

import re
import unicodedata
from typing import Final

import structlog

from agent.texts.catalogue import LANGUAGES, say
from agent.thread.conversation import ThreadMessage
from agent.thread.state import is_waiting_for_another, with_messages
from bot.gates.access import find_refusal, visit_of
from bot.queue.lease import OK, Ending, retry_uncounted
from bot.slack.history import sort_key
from bot.slack.message import Incoming, ThreadMode
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job, gate_wait_s
from bot.turn.services import TeamServices

log = structlog.get_logger()

RETRY_S: Final = 30.0
MAX_MESSAGES: Final = 1_000
_SHORTCODE: Final = re.compile(r":[^\s:]+:")  # Slack writes most emoji so
_EMOJI_PARTS: Final = frozenset({"So", "Sk", "Mn", "Me", "Cf"})  # signs, skin tones, variants, keycaps, joiners
_MUTED: Final = frozenset(say("muted", language) for language in LANGUAGES)


async def check_thread_member(job: Job, at: TeamServices) -> Ending | None:
    """Let a follow-up pass only if Orion was addressed in its thread and not muted since.

    If Redis does not know the thread, Slack is asked until it answers. A thread where Orion never spoke is left alone
    for an hour.
    """
    incoming = job.incoming
    if not incoming.unproven:
        follows_up = incoming.addressed == "follow_up"
        # Only people without access addressed Orion here, or it was muted after the message was stored.
        strange = job.facts.thread_mode is None and not job.facts.state.version
        return OK if follows_up and (strange or job.facts.thread_mode == "muted") else None
    try:
        thread_mode = await _recall_thread_mode(incoming, at)
    except DeliveryFailed as failure:
        log.warning("standing_not_recalled", reason=failure.reason)
        return OK if failure.permanent else retry_uncounted(failure.again_s or RETRY_S)
    return None if thread_mode == "engaged" else OK


async def _recall_thread_mode(incoming: Incoming, at: TeamServices) -> ThreadMode:
    """Return the thread's mode as it was when the message was written. A later mention proves nothing for it."""
    thread_modes, thread = at.stores.thread_modes, incoming.thread
    mode = await thread_modes.get(thread)
    if mode in {"unknown", "muted"}:
        return mode
    if (noted := await thread_modes.load_lookup(thread, incoming.ts)) is not None:
        return noted
    earlier = await at.delivery.reader.read_conversation(thread, before=incoming.ts, limit=MAX_MESSAGES)
    own = [message.text for message in earlier.messages if message.role == "assistant"]
    recalled: ThreadMode = "unknown" if not own else "muted" if own[-1] in _MUTED else "engaged"
    await thread_modes.save_lookup(thread, incoming.ts, recalled)
    log.info("standing_recalled", thread_mode=recalled)
    if mode == "lost":
        note = {"engaged": thread_modes.engage, "muted": thread_modes.mute}.get(recalled, thread_modes.mark_stranger)
        await note(thread)
    return recalled


async def check_pending(job: Job, at: TeamServices) -> Ending | None:
    """Note a bystander's message while Orion waits for an answer, and tell them once how to ask.

    A message of emoji alone is a reaction, unless it answers a question. A mention always passes.
    """
    incoming, state = job.incoming, job.facts.state
    if incoming.addressed == "mention":
        return None
    waits = is_waiting_for_another(state, incoming.user)
    if incoming.files == "none" and is_emoji(incoming.text) and (waits or state.pending_question is None):
        log.info("reaction_left_alone")
        return OK
    if not waits or incoming.addressed != "follow_up":
        return None
    if all(message.ts != incoming.ts for message in state.history):
        remark = ThreadMessage(role="user", text=incoming.text, user=incoming.user, ts=incoming.ts, addressed=False)
        await at.stores.save(job.claimed, incoming.thread, with_messages(state, remark))
        await at.notify_person_once(incoming, "beside", f"beside:{incoming.thread.thread_ts}")
    log.info("bystander_noted", text_length=len(incoming.text))
    return OK


def is_emoji(text: str) -> bool:
    """Return whether a message is nothing but emoji, as characters or as Slack's ``:names:``."""
    rest = "".join(_SHORTCODE.sub("", text).split())
    signs = (
        unicodedata.category(sign) in _EMOJI_PARTS or sign in "‼⁉〰〽" for sign in rest.replace("\ufe0f\u20e3", "")
    )
    return bool(text.strip()) and all(signs)


LATE_S: Final = 6 * 3600.0  # well within the time for which the queue knows event ids


async def check_replay(job: Job, at: TeamServices) -> Ending | None:
    """End a late question if the thread or Slack shows that it was answered. A shortcut may use any old message."""
    incoming, state = job.incoming, job.facts.state
    late_s = job.claimed.enqueued_at - sort_key(incoming.ts)[0]
    if not incoming.event_ts or late_s < LATE_S or job.claimed.tries > 1:
        return None
    was_asked = any(message.ts == incoming.ts and message.addressed for message in state.history)
    try:
        is_answered = was_asked or incoming.ts in state.posted
        is_answered = is_answered or bool(await at.delivery.reader.find_posts(incoming.thread, incoming.ts))
    except DeliveryFailed as failure:
        return None if failure.permanent else retry_uncounted(failure.again_s or gate_wait_s(job.claimed))
    if is_answered:
        log.info("late_question_known", late_s=round(late_s))
    return OK if is_answered else None


async def handle_overheard(job: Job, at: TeamServices) -> Ending | None:
    """Mute or unmute the channel, or let a question pass to its answer. Everything else ends here."""
    incoming = job.incoming
    try:
        if await find_refusal(visit_of(incoming, job.facts.person, shared=job.facts.shared), at.access, at.people):
            return OK
        if incoming.kind in {"mute", "unmute"}:
            await at.stores.listening.set_muted(
                incoming.thread.team, incoming.thread.channel, muted=incoming.kind == "mute"
            )
            name = "listening_muted" if incoming.kind == "mute" else "listening_unmuted"
            text = say(name, await at.people.message_language(incoming))
            await at.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)
            return OK
    except DeliveryFailed as failure:
        log.info("overheard_message_dropped", reason=failure.reason)
        return OK
    facts = job.facts
    passes = incoming.kind == "question" and facts.pause is None and facts.exhausted is None and facts.is_wanted
    return None if passes else OK

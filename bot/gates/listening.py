"""The gate of a message that was not addressed to Orion, in a channel where it listens. It says nothing of itself."""

import structlog

from agent.texts.catalogue import say
from bot.gates.access import find_refusal, visit_of
from bot.queue.queue import OK, Ending
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job
from bot.turn.services import TeamServices

log = structlog.get_logger()


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

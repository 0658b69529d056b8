"""Decide whether Orion may answer now: it may be paused, or a budget used up.

An answer that was decided already is delivered even if the budget is used up.
"""

from typing import Final

import structlog

from agent.texts.catalogue import say
from bot.delivery.blocks import escape
from bot.queue.queue import OK, Ending, give_up, retry_uncounted
from bot.slack.web_api import DeliveryFailed
from bot.stores.budgets import Holder, duration_text
from bot.stores.switches import Pause
from bot.turn.job import Job, costs_tokens, gate_wait_s
from bot.turn.services import TeamServices

log = structlog.get_logger()

PAUSE_NOTICE_TTL_S: Final = 30 * 86_400


async def check_allowance(job: Job, at: TeamServices) -> Ending | None:
    """Let the message pass, let it wait for the end of a pause, or say that a budget is used up.

    A message that was not addressed to Orion gets no notice.
    """
    facts = job.facts
    if not costs_tokens(job.incoming) or not facts.is_wanted:
        return None
    try:
        if facts.pause is not None:
            log.info("question_waits", because="paused", message_id=job.claimed.id)
            if job.addressed:
                await _post_pause_notice(job, at, facts.pause)
            return retry_uncounted(gate_wait_s(job.claimed))  # not left unclaimed: deletions go on (decision 5)
        if facts.exhausted is None or facts.outbox:
            return None
        log.info("budget_used_up", holder=facts.exhausted)
        if job.addressed:
            await _post_budget_notice(job, at, facts.exhausted)
    except DeliveryFailed as failure:
        log.warning("notice_not_delivered", reason=failure.reason)
        if failure.permanent:
            return give_up(failure.reason)
        return retry_uncounted(failure.again_s or gate_wait_s(job.claimed))
    return OK


async def _post_budget_notice(job: Job, at: TeamServices, holder: Holder) -> None:
    incoming = job.incoming
    language, left = await at.people.message_language(incoming), duration_text(at.stores.budgets.seconds_until_reset)
    text = f"{say(f'budget_{holder}', language)} {say('budget_renewed', language, left=left)}"
    if incoming.kind == "edit":
        await at.notify_person(incoming, text)  # the answer to the earlier words stays as it is
    else:
        await at.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)


async def _post_pause_notice(job: Job, at: TeamServices, pause: Pause) -> None:
    """Post once a thread and pause, for an edit to its author alone. The answer is still to come."""
    incoming, mailbox, name = job.incoming, at.stores.mailbox, f"paused:{pause.since}"
    if await mailbox.get_mark(job.claimed.thread, name) is not None:
        return
    text = say("paused", await at.people.message_language(incoming))
    text = f"{text}\n{escape(pause.reason)}".rstrip()
    if incoming.kind == "edit":
        await at.notify_person(incoming, text)
    else:
        await at.delivery.post_notice(incoming.thread, text, f"{incoming.ts}:{name}", job.lease.require)
    await mailbox.mark(job.claimed, name, "told", ttl_s=PAUSE_NOTICE_TTL_S)

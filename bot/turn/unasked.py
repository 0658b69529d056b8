"""Answers to questions that nobody addressed to Orion, in channels where it listens.

It works unseen. Only an answer whose every claim the judge or a quotation supports is posted, and only if the question
is still there, unchanged and without a reply.
"""

from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.knowledge.slack_message import read_message
from agent.model.protocol import ModelError
from agent.outcome import SILENT, TurnOutcome
from agent.thread.state import with_posted
from bot.queue.queue import OK, Ending, retry_uncounted
from bot.slack.history import age_s
from bot.slack.web_api import DeliveryFailed
from bot.turn.job import Job
from bot.turn.services import TeamServices

log = structlog.get_logger()

MAX_AGE_S: Final = 120.0
BUSY_RETRY_S: Final = 3.0
MAX_QUESTION_CHARS: Final = 1_500
_MAX_REPLY_TOKENS: Final = 300  # a model that reasons needs more than the one word
_ASK: Final = """A message in a team's channel follows. It was not addressed to you. Reply with one word.
Reply "yes" only if it asks for a fact, a rule or a procedure that the team's written documents could state.
Reply "no" for small talk, jokes, requests to a particular person, opinions, plans, status reports and alerts.

Message:
"""


@dataclass(frozen=True, slots=True)
class UnaskedAnswers:
    """Works on overheard questions of one workspace."""

    at: TeamServices

    async def answer(self, job: Job) -> Ending:
        """Answer the question if that is certain, else leave no trace. Raises ``LeaseLost`` and ``RedisError``."""
        team, channel = job.place.team, job.place.channel
        listening = self.at.stores.listening
        if self._is_too_late(job) or self.at.engine.judge is None or not await listening.may_speak(team, channel):
            return OK
        if not await listening.begin(team, channel, job.turn_id):
            return retry_uncounted(BUSY_RETRY_S)
        try:
            return await self._answer(job)
        except DeliveryFailed as failure:  # better silent than late
            log.info("unasked_answer_dropped", reason=failure.reason)
            return OK
        finally:
            await listening.end(team, channel)

    async def notify_given_up(self, job: Job, reason: str) -> None:
        """Post nothing: nobody asked."""
        log.info("unasked_answer_dropped", turn_id=job.turn_id, reason=reason)

    async def _answer(self, job: Job) -> Ending:
        async with self.at.stores.budgets.count_turn(job.turn_id, job.incoming):
            if not await self._is_answerable(job):
                return OK
            question, state = await self.at.prepare(replace(job.question(), addressed=True), job.facts.state)
            async with self.at.observers.turn(question, job.turn_id, self.at.engine) as observer:
                outcome, state = await self.at.engine.run(question, state, emit=observer)
                if not is_certain(outcome) or self._is_too_late(job) or not await self._is_still_open(job):
                    await observer.record_end(SILENT)
                    return OK
                async with observer.during_delivery(outcome):
                    messages = await self.at.delivery.answer(job.place, outcome.answer, job.answer_key("unasked"))
                await observer.record_end(outcome)
        await self.at.stores.listening.count_post(job.place.team, job.place.channel)
        await self.at.stores.thread_modes.engage(job.place)
        await self.at.stores.save(job.claimed, job.place, with_posted(state, job.incoming.ts, messages))
        log.info("unasked_answer_posted", channel=job.place.channel)
        return OK

    def _is_too_late(self, job: Job) -> bool:
        return age_s(job.incoming.ts) > MAX_AGE_S

    async def _is_answerable(self, job: Job) -> bool:
        """Return whether the model takes the message for a question that documents could answer."""
        try:
            prompt = _ASK + job.incoming.text[:MAX_QUESTION_CHARS]
            generated = await self.at.engine.model.generate(prompt, max_tokens=_MAX_REPLY_TOKENS, temperature=0.0)
        except ModelError as error:
            log.info("unasked_question_not_judged", error_type=error.kind)
            return False
        self.at.stores.budgets.record_usage(job.turn_id, generated.usage.tokens)
        return generated.text.strip().strip(".\"'").casefold().endswith("yes")

    async def _is_still_open(self, job: Job) -> bool:
        """Return whether the message still says the same, and has no reply."""
        reader = self.at.delivery.reader
        found, _ = await reader.find_message(job.place, job.incoming.ts)
        own = await reader.workspace.identity()
        return bool(found) and not found.get("reply_count") and read_message(found, own.user).text == job.incoming.text


def is_certain(outcome: TurnOutcome) -> bool:
    """Return whether an outcome is a whole answer of which every claim is supported."""
    answer = outcome.answer
    claims = [claim for claim in answer.claims if claim.cited or claim.supported != "open"]
    supported = bool(claims) and all(claim.supported == "yes" for claim in claims)
    return outcome.name == "answered" and answer.verified and not answer.rules_only and supported

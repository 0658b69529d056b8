"""Answers to questions that were not addressed to Orion, in channels where it listens.

Orion works in the background, on one question per channel at a time. It posts an answer only if the judge or a
quotation supports every claim, and if right before the post the question is less than two minutes old, unchanged and
not answered by people.
"""

from dataclasses import dataclass, replace
from typing import Final

import structlog

from agent.json_data import string
from agent.knowledge.slack_message import read_message
from agent.model.protocol import ModelError
from agent.outcome import SILENT, TurnOutcome
from agent.texts.catalogue import truncate
from agent.thread.state import with_posted
from bot.queue.claim import OK, Ending, give_back
from bot.slack.history import age_s, is_own
from bot.slack.web_api import DeliveryFailed
from bot.stores.limits import TurnTokens
from bot.turn.job import Job, TeamServices

log = structlog.get_logger()

MAX_AGE_S: Final = 120.0
BUSY_RETRY_S: Final = 3.0
MAX_QUESTION_CHARS: Final = 1_500
_MAX_LATER_MESSAGES: Final = 20
_MAX_LATER_CHARS: Final = 300  # maximum length of a message
_MAX_REPLY_TOKENS: Final = 300  # a model that reasons needs more than one word
_ANSWERABLE: Final = """A message in a team's channel follows. It was not addressed to you. Reply with one word.
Reply "yes" only if it asks for a fact, a rule or a procedure that the team's written documents could state.
Reply "no" for small talk, jokes, requests to a particular person, opinions, plans, status reports and alerts.

Message:
{question}"""
_STILL_OPEN: Final = """A question in a team's channel follows, and what people wrote there later. Reply with one word.
Reply "yes" if the question still needs an answer.
Reply "no" if a later message answers it, says where the answer is, or shows that it is settled.

Question:
{question}

Later messages:
{later}"""


@dataclass(frozen=True, slots=True)
class UnaskedAnswers:
    """Works on overheard questions of one workspace."""

    services: TeamServices

    async def answer(self, job: Job) -> Ending:
        """Answer the question if that is certain; if not, leave no trace. Raises ``LeaseLost`` and ``RedisError``."""
        team, channel, listening = job.place.team, job.place.channel, self.services.stores.listening
        if age_s(job.incoming.ts) > MAX_AGE_S or self.services.engine.judge is None:
            return OK
        if not await listening.begin(team, channel, job.turn_id):
            return give_back(BUSY_RETRY_S)
        try:
            return await self._answer(job) if await listening.may_speak(team, channel) else OK
        except DeliveryFailed as failure:  # better silent than late
            log.info("unasked_answer_dropped", reason=failure.reason)
            return OK
        finally:
            await listening.end(team, channel, job.turn_id)

    async def _answer(self, job: Job) -> Ending:
        engine, stores = self.services.engine, self.services.stores
        async with stores.budgets.count_turn(job.incoming) as counter:
            if not await self._model_agrees(job, counter, _ANSWERABLE):
                return OK
            left_s = max(0.0, MAX_AGE_S - age_s(job.incoming.ts))
            engine = replace(engine, budget=replace(engine.budget, deadline_s=min(engine.budget.deadline_s, left_s)))
            asked = replace(job.incoming.question(), addressed=True)
            question, state = await self.services.prepare(asked, job.facts.state, job.facts.person)
            async with self.services.observers.turn(question, job.turn_id, engine) as observer:
                observer.counter = counter
                outcome, state = await engine.run(question, state, emit=observer)
                if not (is_certain(outcome) and await self._is_still_open(job, counter)):
                    observer.record_end(SILENT)
                    return OK
                answer_key = replace(job.answer_key("unasked"), lease_check=lambda: _require_recent(job))
                async with observer.during_delivery(outcome):
                    messages = await self.services.delivery.post_answer(job.place, outcome.answer, answer_key)
                observer.record_end(outcome)
        await stores.listening.count_post(job.place.team, job.place.channel)
        await stores.thread_modes.set(job.place, "engaged")
        await stores.save(job.claimed, job.place, with_posted(state, job.incoming.ts, messages))
        log.info("unasked_answer_posted", channel=job.place.channel)
        return OK

    async def _model_agrees(self, job: Job, counter: TurnTokens, prompt: str, later: str = "") -> bool:
        """Return whether the model replies "yes"; False without a reply."""
        question_prompt = prompt.format(question=job.incoming.text[:MAX_QUESTION_CHARS], later=later)
        try:
            generated = await self.services.engine.model.generate(
                question_prompt, max_tokens=_MAX_REPLY_TOKENS, temperature=0.0
            )
        except ModelError as error:
            log.info("unasked_question_not_judged", error_type=error.kind)
            return False
        counter.add(generated.usage.tokens)
        return generated.text.strip().strip(".\"'").casefold().endswith("yes")

    async def _is_still_open(self, job: Job, counter: TurnTokens) -> bool:
        """Return whether Orion may still speak here and the message is unchanged and unanswered.

        People may have replied in its thread or below it in the channel. The model decides whether they answered.
        """
        ts, reader = job.incoming.ts, self.services.delivery.reader
        if not await self.services.stores.listening.may_speak(job.place.team, job.place.channel):
            return False  # muted meanwhile
        own = await reader.workspace.identity()
        messages = await reader.read_since(replace(job.place, thread_ts=job.place.channel), ts)
        question = next((message for message in messages if string(message, "ts") == ts), {})
        if question.get("reply_count") or read_message(question, own.user).text != job.incoming.text:
            return False
        texts = [read_message(one, own.user).text for one in messages if one is not question and not is_own(one, own)]
        later = "\n".join(truncate(text, _MAX_LATER_CHARS) for text in filter(None, texts[-_MAX_LATER_MESSAGES:]))
        return not later or await self._model_agrees(job, counter, _STILL_OPEN, later)


def _require_recent(job: Job) -> None:
    """Raise ``LeaseLost``, or ``DeliveryFailed`` if the post had to wait until the question was too old."""
    job.lease.require()
    if age_s(job.incoming.ts) > MAX_AGE_S:
        raise DeliveryFailed(reason="too_late", permanent=True)


def is_certain(outcome: TurnOutcome) -> bool:
    """Return whether an outcome is a whole answer with only supported claims."""
    answer = outcome.answer
    claims = [claim for claim in answer.claims if claim.cited or claim.supported != "open"]
    supported = bool(claims) and all(claim.supported == "yes" for claim in claims)
    whole = outcome.name == "answered" and answer.verified and not (answer.rules_only or answer.in_part)
    return whole and supported

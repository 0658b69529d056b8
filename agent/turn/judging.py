"""Judges an attempt. If anything goes wrong, its claims stay unconfirmed and do not pass."""

import asyncio
from dataclasses import dataclass, replace

import structlog

from agent.model.prompts import MAX_DECIDE_MESSAGE_CHARS, MAX_DECIDE_MESSAGES, conversation_text
from agent.model.protocol import JudgeContext, ModelError, Opinion
from agent.texts.catalogue import say
from agent.turn.events import ModelEnd, ModelStart
from agent.turn.live import check_draft
from agent.turn.progress import Progress
from verification.judgement import apply_judgements, claim_key, claims_to_judge, open_claims
from verification.rules.references import citations
from verification.salvage import LeftOut, salvage
from verification.text.language import detect_language
from verification.types import Claim, Draft, Verdict

log = structlog.get_logger()

# after the first cut the rest may need the judge again; after the second the judge has seen every sentence
MAX_CUTS = 2


@dataclass(frozen=True, slots=True)
class AttemptJudge:
    """The judge of attempt ``number``. It sees each claim once per turn: a second caller waits for the same opinion."""

    progress: Progress
    draft: Draft
    number: int

    async def examine(self, verdict: Verdict, *, is_answer: bool = False) -> Verdict:
        """Return the verdict with the judge's opinion, unchanged without a judge.

        Only an answer as a whole (``is_answer``) may prove empty.
        """
        if self.progress.judge is None or not self.draft.has_judge:
            return verdict
        # Of drafts that fail a rule, one that lacks only citations is judged: it may say that there is no answer.
        is_uncited = _lacks_only_citations(verdict) and bool(verdict.text.strip()) and not citations(verdict.text)
        if verdict.passed or is_uncited:
            claims = tuple(dict.fromkeys(filter(self._may_be_asked, claims_to_judge(verdict))))
            # Quotations may be about something else than the heading above them, or than the question.
            misses_question = any(each.rule == "addresses_question" for each in verdict.violations)
            is_doubtful = bool(claims) and (misses_question or _has_other_words(verdict))
            is_any_open = any(claim.supported == "open" for claim in claims)
            if is_any_open or is_doubtful or (is_answer and await self._may_be_no_answer(verdict)):
                await self._ask(verdict, claims)
        record = self.progress.judge_record
        keys = [key for key in map(claim_key, verdict.claims) if key in record.claims]
        opinions = {key: await record.claims[key][1] for key in keys}
        reply = record.replies.get(verdict.text.strip())
        verdict = replace(verdict, no_answer=reply == "not_in_sources", in_part=reply == "partly")
        return apply_judgements(verdict, opinions, self.draft.sources)

    async def accept_small_talk(self, verdict: Verdict) -> Verdict:
        """Let a reply without citations pass if the judge finds that it states nothing that a source could contain."""
        if not verdict.errors or not _lacks_only_citations(verdict) or verdict.no_answer or not verdict.claims:
            return verdict
        claims = self.progress.judge_record.claims
        opinions = [await claims[key][1] if key in claims else None for key in map(claim_key, verdict.claims)]
        if not all(each and each.supported and each.absent for each in opinions):
            return verdict
        return replace(verdict, passed=True, claims=(), violations=tuple(set(verdict.violations) - set(verdict.errors)))

    async def salvage(self, verdict: Verdict) -> Verdict | None:
        """Return the verified part of a failed attempt (also checked by a judge, if any), or None without an answer."""
        language = self.progress.question.reply_language or detect_language(self.draft.text)
        left_out = LeftOut(step=say("left_out_step", language), row=say("left_out_row", language))
        for _ in range(MAX_CUTS):
            partial = await asyncio.to_thread(salvage, self.draft, verdict, check_draft, left_out)
            if partial is None or not partial.passed:
                return partial
            verdict = await self.examine(partial, is_answer=True)
            if verdict.passed:
                return verdict
        return None

    def _may_be_asked(self, claim: Claim) -> bool:
        """Return True for a new claim, and for one on which the judge said nothing usable in an earlier attempt."""
        attempt, opinion = self.progress.judge_record.claims.get(claim_key(claim), (0, None))
        return opinion is None or (attempt < self.number and opinion.done() and opinion.result() is None)

    async def _may_be_no_answer(self, verdict: Verdict) -> bool:
        """Return True if the text may only say that the sources lack the answer: not all of it is supported claims."""
        if verdict.text.strip() in self.progress.judge_record.replies:
            return False
        asked = self.progress.judge_record.claims
        opinions = [await asked[key][1] for key in map(claim_key, open_claims(verdict))]
        is_silent = any(each and each.absent for each in opinions)
        return is_silent or _has_other_words(verdict) or not citations(verdict.text)

    async def _ask(self, verdict: Verdict, claims: tuple[Claim, ...]) -> None:
        record, loop = self.progress.judge_record, asyncio.get_running_loop()
        for claim in claims:
            record.claims[claim_key(claim)] = (self.number, loop.create_future())
        opinion = Opinion()  # without a reply from the judge, no claim is confirmed
        history, question = self.progress.state.history, self.progress.question
        last = max((n for n, message in enumerate(history) if message.role == "assistant"), default=-1)
        asked = {n for n, message in enumerate(history) if n == last - 1 or message.user == question.user}
        said = [m for n, m in enumerate(history) if n in asked or (m.role == "assistant" and n - 1 in asked)]
        try:
            context = JudgeContext(
                question=self.draft.question,
                answer=verdict.text,
                claims=claims,
                sources=self.draft.sources,
                said=conversation_text(said[-MAX_DECIDE_MESSAGES:], question.names, MAX_DECIDE_MESSAGE_CHARS),
                today=question.date_asked(),
            )
            opinion = await self._request(context)
            record.replies[verdict.text.strip()] = opinion.reply  # asked once per text, as for a claim
        finally:
            for n, claim in enumerate(claims, 1):
                waiting = record.claims[claim_key(claim)][1]
                if not waiting.done():  # the text may contain the same claim twice
                    waiting.set_result(opinion.judgements.get(n))

    async def _request(self, context: JudgeContext) -> Opinion:
        progress, record, judge = self.progress, self.progress.judge_record, self.progress.judge
        facts = {"thread": str(progress.question.thread), "attempt": self.number}
        limit = progress.exceeded_limit() or ("judge_away" if record.lost == self.number else "")
        if judge is None or limit:
            log.warning("judge_not_asked", **facts, limit=limit)
            return Opinion()
        record.calls += 1
        call_id = str(record.calls)
        progress.emit(ModelStart(phase="judge", model=judge.name, attempt=self.number, call_id=call_id))
        opinion, error, claims = Opinion(), "", len(context.claims)
        try:
            opinion = await judge.judge(context)
        except ModelError as failure:
            error, record.lost = failure.kind, self.number
            opinion = Opinion(usage=failure.usage, call=failure.call)
            log.warning("judge_failed", **facts, error_type=error, reason=failure.detail)
        verdicts = [judgement.supported for n, judgement in opinion.judgements.items() if 1 <= n <= claims]
        if len(verdicts) < claims and not error:
            log.warning("judge_incomplete", **facts, claims=claims, judged=len(verdicts))
        yes, no = verdicts.count(True), verdicts.count(False)
        output = f"{claims} claims: {yes} supported, {no} not supported; reply: {opinion.reply}"
        end = ModelEnd(phase="judge", output=output, usage=opinion.usage, error=error, call=opinion.call)
        progress.record_model_call(replace(end, call_id=call_id))
        return opinion


def _has_other_words(verdict: Verdict) -> bool:
    """Return True if the text has words outside its claims."""
    rest = verdict.text
    for claim in reversed(verdict.claims):
        rest = rest[: claim.start] + rest[claim.end :]
    return any(map(str.isalpha, rest))


def _lacks_only_citations(verdict: Verdict) -> bool:
    return all(each.rule == "cites_sources" for each in verdict.errors)

"""An attempt before the judge. If anything goes wrong there, its claims stay unconfirmed and never pass."""

import asyncio
from dataclasses import replace

import structlog

from agent.model.judge import Judge, JudgeContext, Opinion
from agent.model.prompts import today_of
from agent.model.protocol import ModelError
from agent.texts.catalogue import say
from agent.turn.events import ModelEnd, ModelStart
from agent.turn.progress import AskedClaim, Progress
from agent.turn.rules import check_draft
from verification.judgement import apply_judgements, claim_key, open_claims
from verification.rules.citations import citations
from verification.salvage import LeftOut, salvage
from verification.text.language import detect_language
from verification.types import Claim, Draft, Verdict

log = structlog.get_logger()

MAX_CUTS = 2  # the rest of a cut may need the judge again; after the second cut the judge has seen every sentence


async def with_judgement(
    progress: Progress, draft: Draft, verdict: Verdict, number: int, *, whole: bool = False
) -> Verdict:
    """Return the verdict with the judge's opinion, or as it is without a judge or without anything to decide.

    A claim is put to the judge once a turn: a second caller waits for the same opinion. ``whole``: this is all of the
    answer, so the judge may have to say if it is one, even without an open claim.
    """
    judge = progress.judge
    if judge is None or not draft.has_judge:
        return verdict
    # A text that cites nothing, and has no other fault, may say that the sources hold no answer.
    is_uncited = _lacks_only_citations(verdict) and bool(verdict.text.strip()) and not citations(verdict.text)
    if (verdict.passed or is_uncited) and (
        _unjudged_claims(progress, verdict, number) or (whole and await _may_be_no_answer(progress, verdict))
    ):
        await _ask_judge(progress, judge, draft, verdict, number)
    record = progress.judge_record
    keys = [key for key in map(claim_key, open_claims(verdict)) if key in record.claims]
    opinions = {key: await record.claims[key].opinion for key in keys}
    verdict = replace(verdict, no_answer=record.replies.get(verdict.text.strip()) == "not_in_sources")
    return await asyncio.to_thread(apply_judgements, verdict, opinions, draft.sources)


async def accept_small_talk(progress: Progress, verdict: Verdict) -> Verdict:
    """Let a reply without citations pass if the judge finds that it states nothing that a source could hold."""
    if not verdict.errors or not _lacks_only_citations(verdict) or verdict.no_answer or not verdict.claims:
        return verdict
    claims = progress.judge_record.claims
    opinions = [await claims[key].opinion if key in claims else None for key in map(claim_key, verdict.claims)]
    if not all(each and each.supported and each.absent for each in opinions):
        return verdict
    return replace(verdict, passed=True, claims=(), violations=tuple(set(verdict.violations) - set(verdict.errors)))


async def _ask_judge(progress: Progress, judge: Judge, draft: Draft, verdict: Verdict, number: int) -> None:
    record, loop = progress.judge_record, asyncio.get_running_loop()
    claims = _unjudged_claims(progress, verdict, number)
    for claim in claims:
        record.claims[claim_key(claim)] = AskedClaim(number, loop.create_future())
    opinion = Opinion()  # without a reply of the judge, no claim is confirmed
    try:
        context = JudgeContext(
            question=draft.question,
            answer=verdict.text,
            claims=claims,
            sources=draft.sources,
            said=draft.known_text,
            today=today_of(progress.question),
        )
        opinion = await _opinion(progress, judge, context, number)
        record.replies[verdict.text.strip()] = opinion.reply  # asked once of a text, as of a claim
    finally:
        for n, claim in enumerate(claims, 1):
            waiting = record.claims[claim_key(claim)].opinion
            if not waiting.done():  # the text may hold the same claim twice
                waiting.set_result(opinion.judgements.get(n))


async def salvage_verified(progress: Progress, draft: Draft, verdict: Verdict, number: int) -> Verdict | None:
    """Return the verified part of a failed attempt, checked by the judge too, or None if it is not an answer."""
    language = detect_language(draft.question) or detect_language(draft.text)
    left_out = LeftOut(step=say("left_out_step", language), row=say("left_out_row", language))
    for _ in range(MAX_CUTS):
        partial = await asyncio.to_thread(salvage, draft, verdict, check_draft, left_out)
        if partial is None or not partial.passed:
            return partial
        verdict = await with_judgement(progress, draft, partial, number, whole=True)
        if verdict.passed:
            return verdict
    return None


def _unjudged_claims(progress: Progress, verdict: Verdict, number: int) -> tuple[Claim, ...]:
    asked = progress.judge_record.claims
    keys = {claim: claim_key(claim) for claim in open_claims(verdict)}
    return tuple(c for c, key in keys.items() if key not in asked or asked[key].is_open_again(number))


def _lacks_only_citations(verdict: Verdict) -> bool:
    return all(each.rule == "cites_sources" for each in verdict.errors)


async def _may_be_no_answer(progress: Progress, verdict: Verdict) -> bool:
    """Return True if a text without a claim to be asked may only say that the sources hold no answer.

    It does not if every word of it belongs to a claim that a source supports.
    """
    if verdict.text.strip() in progress.judge_record.replies:
        return False
    opinions = [await progress.judge_record.claims[key].opinion for key in map(claim_key, open_claims(verdict))]
    rest = verdict.text
    for claim in reversed(verdict.claims):
        rest = rest[: claim.start] + rest[claim.end :]
    return any(each and each.absent for each in opinions) or any(map(str.isalpha, rest)) or not citations(verdict.text)


async def _opinion(progress: Progress, judge: Judge, context: JudgeContext, number: int) -> Opinion:
    thread = str(progress.question.thread)
    if limit := progress.exceeded_limit() or ("judge_away" if progress.judge_record.lost == number else ""):
        log.warning("judge_not_asked", thread=thread, attempt=number, limit=limit)
        return Opinion()
    progress.judge_record.calls += 1
    call_id = str(progress.judge_record.calls)
    progress.emit(ModelStart(phase="judge", model=judge.name, attempt=number, call_id=call_id))
    opinion, error, claims = Opinion(), "", len(context.claims)
    try:
        opinion = await judge.judge(context)
    except ModelError as failure:
        error, progress.judge_record.lost = failure.kind, number
        opinion = Opinion(usage=failure.usage, call=failure.call)
        log.warning("judge_failed", thread=thread, attempt=number, error_type=error, reason=failure.detail)
    verdicts = [judgement.supported for n, judgement in opinion.judgements.items() if 1 <= n <= claims]
    if len(verdicts) < claims and not error:
        log.warning("judge_incomplete", thread=thread, attempt=number, claims=claims, judged=len(verdicts))
    refuted = len(verdicts) - sum(verdicts)
    output = f"{claims} claims: {sum(verdicts)} supported, {refuted} not supported; reply: {opinion.reply}"
    end = ModelEnd(phase="judge", output=output, usage=opinion.usage, error=error, call=opinion.call, call_id=call_id)
    progress.record_model_call(end)
    return opinion

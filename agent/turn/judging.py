"""An attempt before the judge: asked once, counted, traced; whatever goes wrong leaves its claims unconfirmed (F5, F6).

Promises: only a text that passed every rule is put to the judge, and only what the rules could not decide. A judge that
is out of reach, too late or too dear is an opinion that nobody gave: never a pass, never an exception.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from functools import partial

import structlog

from agent.model.judge import Judge, JudgeContext, Opinion
from agent.model.protocol import ModelError
from agent.turn.crash_log import log_crash
from agent.turn.events import ModelEnd, ModelStart
from agent.turn.progress import Progress
from verification.check import check
from verification.judgement import carried, judged, open_claims
from verification.salvage import salvage
from verification.types import Draft, Verdict

log = structlog.get_logger()

CUTS_MOST = 2
"""What a cut leaves may need the judge again; after the second cut every sentence left has been before it."""


async def examined(progress: Progress, draft: Draft, verdict: Verdict, number: int) -> Verdict:
    """The verdict after the judge had its say; as it is where there is no judge or nothing to decide."""
    judge = progress.judge
    if judge is None or not draft.judged or not verdict.passed or not open_claims(verdict):
        return verdict
    opinion = await _opinion(progress, judge, _context(draft, verdict), number)
    return await asyncio.to_thread(judged, verdict, opinion.judgements, draft.sources)


async def kept_of(progress: Progress, draft: Draft, verdict: Verdict, number: int) -> Verdict | None:
    """What is verified of a failed attempt (F4), with a judge also by the judge; None if that is no answer."""
    before = verdict
    for _ in range(CUTS_MOST):
        kept = await asyncio.to_thread(salvage, draft, before, partial(check, on_crash=log_crash))
        if kept is None or not kept.passed or progress.judge is None:
            return kept
        kept = await examined(progress, draft, carried(kept, before), number)
        if kept.passed:
            return kept
        before = kept
    return None


def _context(draft: Draft, verdict: Verdict) -> JudgeContext:
    claims = open_claims(verdict)
    cited = {number for claim in claims for number in claim.cited}
    return JudgeContext(
        question=draft.question,
        answer=verdict.text,
        claims=claims,
        sources=tuple(source for source in draft.sources if source.id in cited),
    )


async def _opinion(progress: Progress, judge: Judge, context: JudgeContext, number: int) -> Opinion:
    thread = str(progress.question.thread)
    if progress.exhausted():
        log.warning("judge_not_asked", thread=thread, attempt=number, limit=progress.exhausted())
        return Opinion()
    progress.emit(ModelStart(phase="judge", model=judge.name, attempt=number))
    opinion, error = Opinion(), ""
    try:
        opinion = await judge.judge(context)
    except ModelError as failure:
        error = failure.kind
        opinion = Opinion(usage=failure.usage)
        log.warning("judge_failed", thread=thread, attempt=number, error_type=error, reason=failure.detail)
    else:
        asked, read = len(context.claims), len({judgement.claim for judgement in opinion.judgements})
        if read < asked:
            log.warning("judge_incomplete", thread=thread, attempt=number, claims=asked, judged=read)
    spent = replace(opinion.usage, model_calls=max(1, opinion.usage.model_calls))
    progress.spend(spent)
    supported = sum(1 for judgement in opinion.judgements if judgement.supported)
    said = f"{len(context.claims)} claims: {supported} supported, {len(opinion.judgements) - supported} not supported"
    told = ModelEnd(phase="judge", output=said, usage=spent, error=error, attempt=number, prompt=opinion.prompt)
    progress.emit(told)
    return opinion

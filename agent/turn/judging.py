"""An attempt before the judge: whatever goes wrong there leaves its claims unconfirmed, never passed."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import structlog

from agent.model.judge import Judge, JudgeContext, Opinion
from agent.model.prompts import today_of
from agent.model.protocol import ModelError
from agent.texts.catalogue import say
from agent.turn.events import ModelEnd, ModelStart
from agent.turn.progress import Progress
from agent.turn.rules import checked
from verification.judgement import judged, key_of, open_claims
from verification.rules.citations import citations
from verification.salvage import LeftOut, salvage
from verification.text.language import detect
from verification.types import Claim, Draft, Verdict

log = structlog.get_logger()

CUTS_MOST = 2  # what a cut leaves may need the judge again; after the second cut every sentence left has been before it


async def examined(progress: Progress, draft: Draft, verdict: Verdict, number: int, *, whole: bool = False) -> Verdict:
    """The verdict after the judge had its say; as it is where there is no judge or nothing to decide.

    A claim is put to the judge once a turn: whoever meets it again waits for that opinion. ``whole``: this is all of
    the answer, so the judge may have to say whether it is one, also where no claim is open.
    """
    judge = progress.judge
    if judge is None or not draft.judged:
        return verdict
    # A text that cites nothing, and has no other fault, may say that the sources hold no answer.
    is_uncited = _lacks_only_citations(verdict) and bool(verdict.text.strip()) and not citations(verdict.text)
    if (verdict.passed or is_uncited) and (
        _unseen(progress, verdict) or (whole and await _may_be_no_answer(progress, verdict))
    ):
        await _ask(progress, judge, draft, verdict, number)
    opinions, reply = progress.judge_said.opinions, progress.judge_said.replies.get(verdict.text.strip())
    said = {key: await opinions[key] for key in map(key_of, open_claims(verdict)) if key in opinions}
    verdict = replace(verdict, no_answer=reply == "not_in_sources")
    return await asyncio.to_thread(judged, verdict, said, draft.sources)


async def small_talk(progress: Progress, verdict: Verdict) -> Verdict:
    """The verdict on a reply without citations. It passes if the judge finds that no source could hold any of it."""
    if not verdict.errors or not _lacks_only_citations(verdict) or verdict.no_answer or not verdict.claims:
        return verdict
    opinions = progress.judge_said.opinions
    said = [await opinions[key] if key in opinions else None for key in map(key_of, verdict.claims)]
    if not all(each and each.supported and each.absent for each in said):
        return verdict
    return replace(verdict, passed=True, claims=(), violations=tuple(set(verdict.violations) - set(verdict.errors)))


def forget_unconfirmed(progress: Progress) -> None:
    """Another attempt begins: what the judge said nothing of may be asked again."""
    opinions = progress.judge_said.opinions
    for key in [key for key, said in opinions.items() if said.done() and said.result() is None]:
        del opinions[key]


async def _ask(progress: Progress, judge: Judge, draft: Draft, verdict: Verdict, number: int) -> None:
    opinions, loop = progress.judge_said.opinions, asyncio.get_running_loop()
    claims = _unseen(progress, verdict)
    waiting = [opinions.setdefault(key_of(claim), loop.create_future()) for claim in claims]
    opinion = Opinion()  # where the judge cannot be asked, nobody confirms a claim
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
        progress.judge_said.replies[verdict.text.strip()] = opinion.reply  # asked once of a text, as of a claim
    finally:
        for n, said in enumerate(waiting, 1):
            if not said.done():  # the same claim may stand there twice
                said.set_result(opinion.judgements.get(n))


async def kept_of(progress: Progress, draft: Draft, verdict: Verdict, number: int) -> Verdict | None:
    """What is verified of a failed attempt, with a judge also by the judge; None if that is no answer."""
    language = detect(draft.question) or detect(draft.text)
    left_out = LeftOut(step=say("left_out_step", language), row=say("left_out_row", language))
    for _ in range(CUTS_MOST):
        kept = await asyncio.to_thread(salvage, draft, verdict, checked, left_out)
        if kept is None or not kept.passed:
            return kept
        verdict = await examined(progress, draft, kept, number, whole=True)
        if verdict.passed:
            return verdict
    return None


def _unseen(progress: Progress, verdict: Verdict) -> tuple[Claim, ...]:
    return tuple(claim for claim in open_claims(verdict) if key_of(claim) not in progress.judge_said.opinions)


def _lacks_only_citations(verdict: Verdict) -> bool:
    return all(each.rule == "cites_sources" for each in verdict.errors)


async def _may_be_no_answer(progress: Progress, verdict: Verdict) -> bool:
    """Whether a text of which no claim is left to be asked may only say that the sources hold no answer.

    It does not if every word of it is a claim that a source bears out.
    """
    if verdict.text.strip() in progress.judge_said.replies:
        return False
    opinions = progress.judge_said.opinions
    said = [await opinions[key] for key in map(key_of, open_claims(verdict))]
    rest = verdict.text
    for claim in reversed(verdict.claims):
        rest = rest[: claim.start] + rest[claim.end :]
    return any(each and each.absent for each in said) or any(map(str.isalpha, rest)) or not citations(verdict.text)


async def _opinion(progress: Progress, judge: Judge, context: JudgeContext, number: int) -> Opinion:
    thread = str(progress.question.thread)
    if limit := progress.exhausted() or ("judge_away" if progress.judge_said.lost == number else ""):
        log.warning("judge_not_asked", thread=thread, attempt=number, limit=limit)
        return Opinion()
    progress.judge_said.calls += 1
    call_id = str(progress.judge_said.calls)
    progress.emit(ModelStart(phase="judge", model=judge.name, attempt=number, call_id=call_id))
    opinion, error, asked = Opinion(), "", len(context.claims)
    try:
        opinion = await judge.judge(context)
    except ModelError as failure:
        error, progress.judge_said.lost = failure.kind, number
        opinion = Opinion(usage=failure.usage)
        log.warning("judge_failed", thread=thread, attempt=number, error_type=error, reason=failure.detail)
    found = [said.supported for n, said in opinion.judgements.items() if 1 <= n <= asked]
    if len(found) < asked and not error:
        log.warning("judge_incomplete", thread=thread, attempt=number, claims=asked, judged=len(found))
    told = f"{asked} claims: {sum(found)} supported, {len(found) - sum(found)} not supported; reply: {opinion.reply}"
    end = ModelEnd(phase="judge", output=told, usage=opinion.usage, error=error, call=opinion.call, call_id=call_id)
    progress.ended(end)
    return opinion

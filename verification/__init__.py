"""Check whether a text is fit to send. A pure library: no I/O, no clock, no network, no vendor SDK.

``check`` repairs the formatting of a draft, splits it into the chunks that Slack would get, and checks those chunks. It
never raises on bad input. ``salvage`` keeps the verified part of a draft that failed. ``retry_text`` tells a model what
to fix. ``apply_judgements`` adds a judge's opinions to a verdict.

>>> pay = Source(id=1, title="Travel", url="https://docs.example/travel", text="Hotels cost up to 140 euros a night.")
>>> draft = Draft(text="**Hotels** cost up to 140 euros a night [1].", question="What is a hotel?", sources=(pay,))
>>> verdict = check(draft)
>>> verdict.passed, verdict.text, [repair.kind for repair in verdict.repairs]
(True, '*Hotels* cost up to 140 euros a night [1].', ['bold'])
>>> verdict.chunks
('*Hotels* cost up to 140 euros a night <https://docs.example/travel|[1]>.',)
>>> [(claim.supported, claim.settled_by) for claim in verdict.claims]
[('yes', 'quotation')]
>>> wrong = check(Draft(text="Hotels cost up to 190 euros a night [1].", sources=(pay,)))
>>> [(error.rule, error.words, error.detail) for error in wrong.errors]
[('claim_supported', '190 euros', 'source [1] says 140 euros, not 190 euros')]
>>> text, repairs = repair("# Costs", "mrkdwn")
>>> text
'*Costs*'
"""

from verification.check import check, is_better
from verification.feedback import retry_text
from verification.judgement import Judgement, apply_judgements, open_claims
from verification.markup.mrkdwn import repair
from verification.salvage import LeftOut, salvage
from verification.types import Answer, Claim, Dialect, Draft, Repair, RuleName, Severity, Source, Verdict, Violation

__all__ = [
    "Answer", "Claim", "Dialect", "Draft", "Judgement", "LeftOut", "Repair", "RuleName", "Severity", "Source",
    "Verdict", "Violation", "apply_judgements", "check", "is_better", "open_claims", "repair", "retry_text",
    "salvage",
]  # fmt: skip

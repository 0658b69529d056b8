"""Ways a turn can end. Outcomes are values; cancellation from outside and bugs are exceptions."""

from dataclasses import dataclass
from typing import ClassVar, Final, Literal

from verification.types import Answer

OutcomeName = Literal["answered", "partial", "unsourced", "asked", "refused", "failed", "out_of_budget", "no_reply"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _WithAnswer:
    """``reason`` is one word for logs and traces that says why there is no answer."""

    name: ClassVar[OutcomeName]  # spelled as in the public contract
    answer: Answer
    reason: str = ""


class Answered(_WithAnswer):
    """Every rule passed."""

    name = "answered"


class Partial(_WithAnswer):
    """Only the verified part was kept, and the answer says so."""

    name = "partial"


class Unsourced(_WithAnswer):
    """A general answer with a label, because no source was found. It neither passes nor fails."""

    name = "unsourced"


class Asked(_WithAnswer):
    """Orion asked a clarifying question; the turn continues with the person's next message."""

    name = "asked"


class Refused(_WithAnswer):
    """Nothing was found that answers the question. The text is the model's, or names the closest documents."""

    name = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed(_WithAnswer):
    """Nothing could be verified, or the model was unreachable. ``answer`` is the message for the person."""

    name = "failed"
    retry_after_s: float | None = None  # pause that the model's server asked for


class OutOfBudget(_WithAnswer):
    """A limit of the turn was reached; ``answer`` says so."""

    name = "out_of_budget"


class Silent(_WithAnswer):
    """Orion posts nothing and counts nothing: the message was meant for other people. ``answer`` is empty."""

    name = "no_reply"


SILENT: Final = Silent(answer=Answer(text="", chunks=()))

TurnOutcome = Answered | Partial | Unsourced | Asked | Refused | Failed | OutOfBudget | Silent

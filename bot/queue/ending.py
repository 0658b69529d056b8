"""How a turn ends, as its handler tells the worker and the worker the mailbox."""

from __future__ import annotations

from dataclasses import dataclass, field

from bot.queue.queue import Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a turn ended, for the mailbox. ``after_s`` and ``reason`` belong to ``retry`` and ``dead``.

    ``settles`` names the mark that is of no use any more.
    """

    verb: Verb
    after_s: float = 0.0
    reason: str = ""
    settles: str = field(default="", compare=False)


OK = Ending(verb="ok")
GIVEBACK = Ending(verb="giveback")


def retry(after_s: float) -> Ending:
    """Try the message again after so many seconds; what came later in its thread waits. It counts as a try."""
    return Ending(verb="retry", after_s=after_s)


def later(after_s: float) -> Ending:
    """Try the message again after so many seconds, and do not count this try: a far end was away, nobody failed."""
    return Ending(verb="giveback", after_s=after_s)


def dead(reason: str) -> Ending:
    """Give the message up; ``reason`` is for the operator. ``on_dead`` is called before."""
    return Ending(verb="dead", reason=reason)

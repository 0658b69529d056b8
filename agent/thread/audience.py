"""Who may see a source, and who would see an answer.

An audience is ``public``, or a list of ids with commas between: a channel (everybody in it), a person, a workspace;
with a workspace before a slash (``T1/C1``) it means that one's channel or person only. A source may be used in a place
when everybody who can see the place may see the source: the place's own channel or workspace is listed, or, in a direct
chat, the one person. What is not listed is not allowed: nobody is asked who is in a channel.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from agent.thread.conversation import Question

PUBLIC: Final = "public"
NOBODY: Final = "nobody"
_ENTRY: Final = re.compile(r"(?:[TE][A-Z0-9]{2,20}/)?[CDGUWTE][A-Z0-9]{2,20}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewers:
    """Who sees what is said in a place. ``user`` is set where that is one person: in a direct chat."""

    team: str
    channel: str
    user: str = ""


def viewers_of(question: Question) -> Viewers:
    """Who will see the answer to a question."""
    thread = question.thread
    direct = thread.channel.startswith("D")
    return Viewers(team=thread.team, channel=thread.channel, user=question.user if direct else "")


def may_see(audience: str, viewers: Viewers) -> bool:
    """Whether all of these viewers belong to the audience."""
    entries = {entry.strip() for entry in audience.split(",")}
    if PUBLIC in entries:
        return True
    own = {name for name in (viewers.channel, viewers.user) if name}
    return not entries.isdisjoint({viewers.team, *own, *(f"{viewers.team}/{name}" for name in own)} - {""})


def parse_audience(entries: object) -> str | None:
    """The audience for what an admin wrote: ``public``, or a list of ids; None when it is neither."""
    if entries == PUBLIC:
        return PUBLIC
    if not isinstance(entries, list) or not entries:
        return None
    if not all(isinstance(entry, str) and _ENTRY.fullmatch(entry) for entry in entries):
        return None
    return ",".join(sorted(set(entries)))

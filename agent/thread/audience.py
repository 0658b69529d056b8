"""Audiences of sources, and the viewers of an answer.

An audience is ``public``, or a list of entries with commas between: the id of a channel (everybody in it), a person, a
user group or a workspace, or an e-mail address; with a workspace before a slash (``T1/C1``) an id counts only there.
Entries joined by ``+`` must all apply. A source may be used in a place if everybody who can see the place may see the
source: the place's own channel or workspace is listed, or, in a direct chat, the one person, one of their groups or
channels, or their address. Anything not listed is denied.
"""

import re
from dataclasses import dataclass, replace
from typing import Final

from agent.thread.conversation import Question

PUBLIC: Final = "public"
NOBODY: Final = "nobody"
_ONE: Final = r"(?:(?:[TE][A-Z0-9]{2,20}/)?[CDGSUWTE][A-Z0-9]{2,20}|[^\s,+@]{1,80}@[^\s,+@]{1,120})"
_ENTRY: Final = re.compile(rf"{_ONE}(?:\+{_ONE})*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewers:
    """The people who see what is said in a place."""

    team: str
    channel: str
    user: str = ""  # in a direct chat
    memberships: frozenset[str] = frozenset()  # ids of their groups and channels, and their e-mail address


def viewers_of(question: Question) -> Viewers:
    """Return the people who will see the answer to a question."""
    place = Viewers(team=question.thread.team, channel=question.thread.channel)
    is_direct = place.channel.startswith("D")
    return replace(place, user=question.user, memberships=question.memberships) if is_direct else place


def may_see(audience: str, viewers: Viewers) -> bool:
    """Return whether all of these viewers belong to the audience."""
    names = {viewers.channel, viewers.user, *viewers.memberships} - {""}
    own = {PUBLIC, viewers.team, *names, *(f"{viewers.team}/{name}" for name in names)} - {""}
    return any(own.issuperset(entry.strip().split("+")) for entry in audience.split(","))


def needs_memberships(audience: str) -> bool:
    """Return whether a person may belong to an audience through a group, a channel or an address."""
    return re.search(r"(?:^|[,+/])[CGS][A-Z0-9]+(?=[,+]|$)|@", audience) is not None


def parse_audience(entries: object) -> str | None:
    """Return the audience that an admin wrote, ``public`` or a list of entries; None if it is neither."""
    if entries == PUBLIC:
        return PUBLIC
    if not isinstance(entries, list) or not entries:
        return None
    if not all(isinstance(entry, str) and _ENTRY.fullmatch(entry) for entry in entries):
        return None
    return ",".join(sorted({entry.lower() if "@" in entry and "+" not in entry else entry for entry in entries}))

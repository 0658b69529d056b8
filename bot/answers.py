"""Answers that people save: their files, who may save them, and proposals awaiting approval."""

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

from redis.asyncio import Redis

from agent.json_data import parse_json
from agent.knowledge.sources.answers import MAX_ANSWER_CHARS, MAX_QUESTION_CHARS, AnswerFolder, SavedAnswer
from verification import Draft, Source, check

PROPOSAL_TTL_S: Final = 90 * 86_400
MAX_PROPOSALS: Final = 200  # per workspace
Fault = Literal["empty", "long", "secret", "broadcast", "injection"]
_RULES: Final[dict[str, Fault]] = {"no_secrets": "secret", "no_broadcast": "broadcast", "no_injection": "injection"}


def find_fault(answer: SavedAnswer) -> Fault | None:
    """Return why an answer may not be saved; None if it may."""
    text = f"{answer.question}\n\n{answer.answer}"
    if not (answer.question.strip() and answer.answer.strip()):
        return "empty"
    if len(answer.question) > MAX_QUESTION_CHARS or len(answer.answer) > MAX_ANSWER_CHARS:
        return "long"
    # Here the text is its own source, because an instruction counts as one only if a source contains it.
    verdict = check(Draft(text=text, sources=(Source(id=1, title=answer.question, text=text),)))
    return next((_RULES[each.rule] for each in verdict.errors if each.rule in _RULES), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerBook:
    """Saved answers as files. Methods block, and raise ``OSError`` if the folder cannot be written."""

    folder: Path

    def write(self, answer: SavedAnswer, *, replaces: str = "") -> None:
        """Write an answer in place of the one with the key ``replaces``.

        Raises ``FileExistsError`` if another answer to this question has the same audience.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self._file(answer.key)
        descriptor, name = tempfile.mkstemp(dir=self.folder, prefix=".", suffix=".part")
        part = Path(name)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
                stream.write(answer.to_markdown())
                stream.flush()
                os.fsync(stream.fileno())
            part.chmod(0o644)
            if replaces == answer.key or self.answers().get(answer.key) == answer:
                part.replace(file)
                return
            file.hardlink_to(part)  # only one of two workers writes
        finally:
            part.unlink(missing_ok=True)
        if replaces and replaces != answer.key:
            self.delete(replaces)

    def delete(self, key: str) -> None:
        """Delete an answer if it still exists."""
        self._file(key).unlink(missing_ok=True)

    def answers(self) -> dict[str, SavedAnswer]:
        """Return the saved answers by file name."""
        found = AnswerFolder(folder=self.folder).answers()
        return {file.stem: answer for file, answer in found if isinstance(answer, SavedAnswer)}

    def overdue(self, today: date) -> list[SavedAnswer]:
        """Return the answers whose review is due, the longest overdue first."""
        due = [answer for answer in self.answers().values() if answer.is_overdue(today)]
        return sorted(due, key=lambda answer: answer.review or today)

    def _file(self, key: str) -> Path:
        return self.folder / f"{Path(key).name}.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An answer proposed by a person who may not save. ``replaces`` is the key of the answer it changes."""

    answer: SavedAnswer
    proposer: str
    replaces: str = ""


@dataclass(frozen=True, slots=True)
class Proposals:
    """The proposals of all workspaces. Methods raise ``RedisError``."""

    redis: Redis
    prefix: str = "orion"

    def key(self, team: str) -> str:
        """Redis key of a workspace's proposals."""
        return f"{self.prefix}:proposals:{team}"

    async def add(self, team: str, proposal: Proposal) -> bool:
        """Store a proposal, replacing an earlier one for the same question. Return False if too many are waiting."""
        key, name = self.key(team), proposal.answer.key
        if await self.redis.hlen(key) >= MAX_PROPOSALS and not await self.redis.hexists(key, name):
            return False
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.hset(key, name, json.dumps(asdict(proposal), default=date.isoformat))
            pipe.expire(key, PROPOSAL_TTL_S)
            await pipe.execute()
        return True

    async def take(self, team: str, key: str) -> Proposal | None:
        """Remove a proposal and return it. If two people click, only one gets it."""
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.hget(self.key(team), key)
            pipe.hdel(self.key(team), key)
            stored, _ = await pipe.execute()
        return parse_proposal(stored)

    async def waiting(self, team: str) -> list[Proposal]:
        """Return the proposals of a workspace."""
        stored = await self.redis.hgetall(self.key(team))
        return [found for text in stored.values() if (found := parse_proposal(text))]


def parse_proposal(stored: bytes | str | None) -> Proposal | None:
    """Return a stored proposal; None if it cannot be read."""
    try:
        fields: dict[str, Any] = parse_json(stored or "")
        answer = fields.pop("answer")
        days = {name: date.fromisoformat(answer[name]) for name in ("confirmed", "review") if answer[name]}
        return Proposal(answer=SavedAnswer(**answer | days), **fields)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswers:
    """The saved answers of an installation. ``sync`` reads them into the index; it blocks and never raises."""

    book: AnswerBook
    proposals: Proposals
    admins: frozenset[str]
    editors: frozenset[str]
    sync: Callable[[], None]

    def may_save(self, user: str) -> bool:
        """Return whether this person may save without approval."""
        return user in self.admins | self.editors

    def editable(self, team: str, user: str) -> dict[str, SavedAnswer]:
        """Return the answers of a workspace that this person owns, or all for an admin, by key. Blocks."""
        return {
            key: answer
            for key, answer in self.book.answers().items()
            if user in {answer.owner, *self.admins} and _is_of(answer, team)
        }

    async def waiting_for(self, team: str, user: str) -> list[Proposal]:
        """Return the proposals that this person may approve."""
        waiting = await self.proposals.waiting(team) if self.may_save(user) else []
        return [proposal for proposal in waiting if proposal.answer.owner == user]


def _is_of(answer: SavedAnswer, team: str) -> bool:
    """Return whether an audience is in this workspace. If it names no workspace, an admin wrote it."""
    return all(team == place for place, slash, _ in (e.partition("/") for e in answer.audience.split(",")) if slash)

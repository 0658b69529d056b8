"""Permissions to save, edit and approve answers, and the commit and indexing after that."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from agent.knowledge.saved_answer import SavedAnswer
from bot.answers.answer_book import AnswerBook
from bot.answers.proposals import Proposal, Proposals


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedAnswers:
    """The saved answers of an installation. ``sync`` reads them into the index; it blocks and raises nothing."""

    book: AnswerBook
    proposals: Proposals
    admins: frozenset[str]
    editors: frozenset[str]
    sync: Callable[[], None]

    def may_save(self, user: str) -> bool:
        """Return whether this person may save without approval."""
        return user in self.admins | self.editors

    def default_owner(self, user: str) -> str:
        """Return the owner that the dialog suggests: the person, or one of those who may approve."""
        return user if self.may_save(user) else min(self.editors or self.admins)

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

    def publish(self, subject: str, files: list[Path]) -> bool:
        """Commit and index changed files. Return False if Git refused the commit. Blocks."""
        committed = self.book.commit(subject, files)
        self.sync()
        return committed


def _is_of(answer: SavedAnswer, team: str) -> bool:
    """Return whether an audience lies in this workspace. One that names no workspace was written by an admin."""
    return all(team == place for place, slash, _ in (e.partition("/") for e in answer.audience.split(",")) if slash)

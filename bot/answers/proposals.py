"""Answers that wait for their owner's approval, in Redis."""

import json
from dataclasses import asdict, dataclass
from datetime import date
from typing import Any, Final

from redis.asyncio import Redis

from agent.knowledge.saved_answer import SavedAnswer

PROPOSAL_TTL_S: Final = 90 * 86_400
MAX_PROPOSALS: Final = 200  # of one workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """An answer that a person who may not save proposed. ``replaces`` is the key of the answer it changes."""

    answer: SavedAnswer
    proposer: str
    replaces: str = ""

    def to_json(self) -> str:
        """Return one line of JSON."""
        return json.dumps(asdict(self), default=date.isoformat)


@dataclass(frozen=True, slots=True)
class Proposals:
    """The proposals of all workspaces. Methods raise ``RedisError``."""

    redis: Redis
    prefix: str = "orion"

    def key(self, team: str) -> str:
        """Redis key of a workspace's proposals."""
        return f"{self.prefix}:proposals:{team}"

    async def add(self, team: str, proposal: Proposal) -> bool:
        """Keep a proposal, in place of an earlier one for the same question. Return False if too many wait."""
        key, name = self.key(team), proposal.answer.key
        if await self.redis.hlen(key) >= MAX_PROPOSALS and not await self.redis.hexists(key, name):
            return False
        async with self.redis.pipeline(transaction=True) as pipe:
            pipe.hset(key, name, proposal.to_json())
            pipe.expire(key, PROPOSAL_TTL_S)
            await pipe.execute()
        return True

    async def take(self, team: str, key: str) -> Proposal | None:
        """Remove a proposal and return it. Only one of two clicks gets it."""
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
        fields: dict[str, Any] = json.loads(stored or "")
        answer = fields.pop("answer")
        days = {name: date.fromisoformat(answer[name]) for name in ("confirmed", "review") if answer[name]}
        return Proposal(answer=SavedAnswer(**answer | days), **fields)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None

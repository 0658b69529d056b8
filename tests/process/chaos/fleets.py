"""A cluster of three primaries, and a primary behind a Sentinel, in which the primary is what dies."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.thread.store import hash_tag
from tests.support.redis_fleet import Fleet, cluster, sentinel

SHARDS = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class StruckFleet:
    """A fleet of which one primary at a time dies; its replica takes over, and the dead one comes back as replica."""

    fleet: Fleet
    dice: random.Random

    @property
    def url(self) -> str:
        return self.fleet.url

    async def die(self) -> None:
        thread = f"T0LOCAL:{self.dice.random()}"
        await self.fleet.fail_over(hash_tag(thread, shards=SHARDS) if self.fleet.clustered else "")
        await self.fleet.restore()


@asynccontextmanager
async def struck_cluster(dice: random.Random) -> AsyncIterator[StruckFleet]:
    async with cluster() as fleet:
        yield StruckFleet(fleet=fleet, dice=dice)


@asynccontextmanager
async def struck_sentinel(dice: random.Random) -> AsyncIterator[StruckFleet]:
    async with sentinel() as fleet:
        yield StruckFleet(fleet=fleet, dice=dice)

"""The workspaces that installed Orion, in Redis, with their tokens encrypted.

The first key encrypts, all keys decrypt, and an entry under an older key is encrypted again when it is read. An entry
that no key opens stays as it is and counts as an outage: with the right key it works again. A known text sealed under
the key reveals a wrong one at the start.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

import structlog
from cryptography.fernet import Fernet, InvalidToken, MultiFernet
from redis.asyncio import Redis
from redis.asyncio.lock import Lock

from agent.packing import parse_record
from bot.slack.web_api import DeliveryFailed

# A refresh may take this long before another process tries. A call to Slack ends long before.
REFRESH_LOCK_TTL_S: Final = 60.0
_KNOWN_TEXT: Final = "Orion's installations"
log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Installation:
    """Orion in one workspace. Times are seconds since 1970; ``expires_at`` 0 means that the token does not expire.

    ``sealed`` is the encrypted text found in Redis. It reveals a change by another process.
    """

    team: str
    name: str = ""
    bot_token: str
    bot_user: str
    bot_id: str
    scopes: str = ""
    refresh_token: str = ""
    expires_at: float = 0.0
    installed_at: float = 0.0
    sealed: str = field(default="", compare=False, repr=False)


class UnreadableInstallation(DeliveryFailed):
    """No key opens this installation, or it was changed. It may be readable again later."""

    def __init__(self) -> None:
        super().__init__("installation_unreadable", permanent=False)


class Seal:
    """Encrypts with the first key, decrypts with any."""

    def __init__(self, keys: Sequence[str]) -> None:
        """Raise ``ValueError`` if a key is not a Fernet key."""
        self._keys = MultiFernet([Fernet(key) for key in keys])
        self._first = MultiFernet([Fernet(keys[0])])  # recognises text that an older key sealed

    def close(self, text: str) -> str:
        """Encrypt and sign the text."""
        return self._keys.encrypt(text.encode()).decode()

    def open(self, sealed: str, *, first: bool = False) -> str | None:
        """Decrypt the text. None if no key (``first``: the first one) opens it or it was changed."""
        try:
            return (self._first if first else self._keys).decrypt(sealed).decode()
        except InvalidToken:
            return None


class Installations:
    """The installations of every workspace. Every method raises ``RedisError`` when Redis is away.

    Those that read one raise ``UnreadableInstallation``.
    """

    def __init__(self, redis: Redis, seal: Seal, *, prefix: str = "orion") -> None:
        self._redis = redis
        self._seal = seal
        self._prefix = prefix
        self._teams_key = f"{prefix}:installs"
        self._known_text_key = f"{prefix}:install_key_check"
        self._swap = redis.register_script(Path(__file__).with_name("swap.lua").read_text(encoding="utf-8"))

    def key(self, team: str) -> str:
        """Redis key of a workspace's installation. It has no TTL: uninstalling deletes it."""
        return f"{self._prefix}:install:{team}"

    def refresh_lock(self, team: str) -> Lock:
        """Lock for refreshing a workspace's token: a refresh token works once."""
        name, ttl_s = f"{self._prefix}:install_lock:{team}", REFRESH_LOCK_TTL_S
        return Lock(self._redis, name, timeout=ttl_s, blocking_timeout=ttl_s / 2)

    async def has_right_key(self) -> bool:
        """Return whether a key opens the known text; without one, whether a key opens one of the installations."""
        sealed = await self._redis.get(self._known_text_key)
        if sealed is not None:
            return self._seal.open(str(sealed)) == _KNOWN_TEXT
        stored = [str(await self._redis.get(self.key(team)) or "") for team in await self.teams()]
        return not any(stored) or any(self._seal.open(one) is not None for one in stored)

    async def keep_known_text(self) -> None:
        """Store the known text sealed under the first key."""
        await self._redis.set(self._known_text_key, self._seal.close(_KNOWN_TEXT))

    async def teams(self) -> tuple[str, ...]:
        """List the ids of all workspaces, sorted."""
        return tuple(sorted(map(str, await self._redis.smembers(self._teams_key))))

    async def find(self, team: str) -> Installation | None:
        """Find a workspace's installation. Encrypt it again if an older key sealed it."""
        sealed = await self._redis.get(self.key(team))
        if not sealed:
            return None
        found = parse_record(Installation, self._seal.open(str(sealed)))
        if found is None or found.team != team:  # a copy of another workspace's entry is not valid here
            log.error("installation_unreadable", team=team)
            raise UnreadableInstallation
        found = replace(found, sealed=str(sealed))
        fresh = self._seal.open(found.sealed, first=True) is not None
        return found if fresh else await self.replace(found, found) or await self.find(team)

    async def save(self, installation: Installation) -> None:
        """Store the installation of a workspace, also a repeated one."""
        await self._redis.set(self.key(installation.team), self._encrypt(installation))
        await self._redis.sadd(self._teams_key, installation.team)

    async def replace(self, found: Installation, installation: Installation) -> Installation | None:
        """Replace the installation that was found. None if another process changed it meanwhile."""
        sealed = self._encrypt(installation)
        swapped = await self._swap(keys=[self.key(installation.team)], args=[found.sealed, sealed])
        return replace(installation, sealed=sealed) if swapped else None

    async def delete(self, team: str, *, as_of: float | None = None) -> bool:
        """Delete a workspace's tokens, unless it was installed again after ``as_of``: Slack's event may be late."""
        found = await self.find(team)
        # Slack's event times are whole seconds: one more lets an event of the same second count.
        if found is not None and as_of is not None and found.installed_at > as_of + 1:
            return False
        gone = await self._redis.delete(self.key(team))
        await self._redis.srem(self._teams_key, team)
        return bool(gone)

    def _encrypt(self, installation: Installation) -> str:
        return self._seal.close(json.dumps(asdict(replace(installation, sealed=""))))

"""Redis clients that drop a damaged key and repeat the command, so that one such key stops no question.

A key is damaged if it has another type than the command works on, or if a counter is not a number. Orion can read
nothing from it. A script that finds such a key returns the error ``WRONGTYPE type key`` before its first effect.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final

import structlog
from redis.asyncio import Redis
from redis.asyncio.client import Pipeline
from redis.exceptions import ResponseError

# KEYS key  ARGV its right type, the field of a counter (''; the key itself; missing: not a counter)
# -> what was dropped, or '' if another client has already dropped it
# A set of the queue is rebuilt from the mailboxes once `rebuild` is set.
_DROP: Final = """
local key, kind, field = KEYS[1], ARGV[1], ARGV[2]
local found = redis.call('TYPE', key).ok
if found ~= 'none' and found ~= kind then
  redis.call('DEL', key)
  local queue = kind == 'zset' and string.match(key, '^(.-{.-}):')
  if queue then redis.call('SET', queue .. ':rebuild', 1, 'EX', 86400) end
  return 'it was a ' .. found .. ', not a ' .. kind
end
if found == 'none' or not field then return '' end
local count = field == '' and redis.call('GET', key) or field ~= '' and redis.call('HGET', key, field)
if not count or (#count < 19 and string.match(count, '^-?%d+$')) then return '' end
if field == '' then redis.call('DEL', key) else redis.call('HDEL', key, field) end
return 'it was not a number'
"""
_NAMED: Final = re.compile(r"WRONGTYPE (hash|list|stream|string|zset) (.+)", re.DOTALL)
_NOT_A_NUMBER: Final = re.compile(r"not an integer|would overflow")
_TYPES: Final = {"B": "list", "H": "hash", "L": "list", "R": "list", "X": "stream", "Z": "zset"}  # by first letter
_SET_COMMANDS: Final = ("SADD", "SMEMBERS", "SREM")
_COUNTERS: Final = {"HINCRBY": 2, "INCRBY": None}  # the place of the field; redis-py sends INCR as INCRBY
_TOKENS: Final = re.compile(r":install:[^:]+$")  # of a workspace: without them its stored questions would be dropped
MAX_DROPPED: Final = 8  # by one command: a script may meet several
log = structlog.get_logger()


class MendingRedis(Redis):
    """The client of one server or of a primary behind Sentinels."""

    async def execute_command(self, *args: Any, **options: Any) -> Any:
        """Execute a command, and once more if it met a damaged key. Raises ``RedisError``."""
        return await send_mending(self, super().execute_command, args, options)

    def pipeline(self, transaction: bool = True, shard_hint: str | None = None) -> Pipeline:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        """Pipeline of commands."""
        pipe = _MendingPipeline(self.connection_pool, self.response_callbacks, transaction, shard_hint)
        pipe.owner = self
        return pipe


class _MendingPipeline(Pipeline):
    owner: Redis

    async def execute(self, raise_on_error: bool = True) -> list[Any]:  # noqa: FBT001, FBT002 (the signature is redis-py's)
        commands = list(self.command_stack)
        replies = await super().execute(raise_on_error=False)
        return await mend_replies(self.owner, commands, replies, raise_on_error=raise_on_error)


async def send_mending(
    redis: Redis, send: Callable[..., Awaitable[Any]], command: Sequence[Any], options: Mapping[str, Any]
) -> Any:
    """Send a command, and again after each damaged key that it met. Raises ``RedisError``."""
    for _ in range(MAX_DROPPED):
        try:
            reply = await send(*command, **options)
        except ResponseError as error:
            if not await drop_damaged(redis, error, command):
                raise
            continue
        # A claim or a lock that no one holds, because the key is not a string.
        refused = reply is None and command[0] == "SET" and "NX" in command
        if not (refused and await _drop(redis, str(command[1]), "string")):
            return reply
    return await send(*command, **options)


async def mend_replies(
    redis: Redis,
    commands: Sequence[tuple[Sequence[Any], Mapping[str, Any]]],
    replies: list[Any],
    *,
    raise_on_error: bool,
) -> list[Any]:
    """Execute the commands of a pipeline that met a damaged key once more. Return all replies, or raise one."""
    dropped: set[Any] = set()
    for place, (command, options) in enumerate(commands):
        reply = replies[place]
        is_damaged = isinstance(reply, ResponseError) and await drop_damaged(redis, reply, command)
        if is_damaged or (command[0] == "EXPIRE" and command[1] in dropped):  # the TTL was dropped with the key
            dropped.add(command[1])
            replies[place] = await redis.execute_command(*command, **options)  # type: ignore[no-untyped-call]  # redis-py's own
        elif isinstance(reply, Exception) and raise_on_error:
            raise reply
    return replies


async def drop_damaged(redis: Redis, error: Exception, command: Sequence[Any]) -> bool:
    """Drop the key that made this command fail. Return False for any other error, and for a workspace's tokens."""
    name, field = str(command[0]), list[str]()
    if name == "EVALSHA":
        named = _NAMED.search(str(error))
        if named is None:
            return False
        kind, key = named.groups()
    elif "WRONGTYPE" in str(error):
        kind, key = "set" if name in _SET_COMMANDS else _TYPES.get(name[0], "string"), str(command[1])
    elif name in _COUNTERS and _NOT_A_NUMBER.search(str(error)):
        kind, key, place = _TYPES.get(name[0], "string"), str(command[1]), _COUNTERS[name]
        field = [str(command[place]) if place else ""]
    else:
        return False
    if _TOKENS.search(key):
        return False
    await _drop(redis, key, kind, *field)
    return True


async def _drop(redis: Redis, key: str, kind: str, *field: str) -> bool:
    dropped: Any = redis.eval(_DROP, 1, key, kind, *field)
    if reason := await dropped:
        log.warning("damaged_key_dropped", key=key, field="".join(field), reason=reason)
    return bool(reason)

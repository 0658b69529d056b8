"""The whole content of a Redis."""

from typing import Any

from redis.asyncio import Redis

from agent.json_data import decompress


async def everything(redis: Redis) -> dict[str, str]:
    """The value of each key as one text, with its names and compressed parts."""
    found: dict[str, str] = {}
    async for key in redis.scan_iter():
        parts: Any
        match await redis.type(key):
            case "string":
                parts = [await redis.get(key)]
            case "hash":
                parts = [part for pair in (await redis.hgetall(key)).items() for part in pair]
            case "list":
                parts = await redis.lrange(key, 0, -1)
            case "stream":
                parts = await redis.xrange(key)
            case "set":
                parts = await redis.smembers(key)
            case _:
                parts = await redis.zrange(key, 0, -1)
        found[str(key)] = " ".join(decompress(str(part)) for part in parts)
    return found

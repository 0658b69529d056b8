"""Installed workspaces: encrypted at rest, keys that change, deletion. A real Valkey."""

import json
from dataclasses import asdict, replace

import pytest
from cryptography.fernet import Fernet
from redis.asyncio import Redis
from structlog.testing import capture_logs

from bot.errors import WrongUse
from bot.install.installations import Installation, Installations, Seal, UnreadableInstallation
from bot.install.workspaces import seal_of
from bot.settings import Settings
from tests.support.redis_contents import everything

OLD, NEW = Fernet.generate_key().decode(), Fernet.generate_key().decode()
ONE = Installation(team="T1", name="One", bot_token="xoxb-1-made-up", bot_user="UORION", bot_id="BORION")


def installations(redis: Redis, *keys: str) -> Installations:
    return Installations(redis, Seal(keys or (OLD,)))


async def test_tokens_are_encrypted_at_rest(redis_client: Redis) -> None:
    store = installations(redis_client)
    whole = replace(ONE, refresh_token="xoxe-1-made-up", expires_at=1.5)
    await store.save(whole)
    assert await store.find("T1") == whole
    assert await store.teams() == ("T1",)
    at_rest = str(await everything(redis_client))
    assert "xox" not in at_rest
    assert "UORION" not in at_rest


async def test_any_key_decrypts_and_the_first_one_encrypts_again(redis_client: Redis) -> None:
    await installations(redis_client, OLD).save(ONE)
    before = await redis_client.get("orion:install:T1")
    assert await installations(redis_client, NEW, OLD).find("T1") == ONE
    assert await redis_client.get("orion:install:T1") != before
    assert await installations(redis_client, NEW).find("T1") == ONE


async def test_without_its_key_an_installation_is_an_outage_and_stays(redis_client: Redis) -> None:
    await installations(redis_client, OLD).save(ONE)
    with capture_logs() as lines, pytest.raises(UnreadableInstallation):
        await installations(redis_client, NEW).find("T1")
    assert lines == [{"event": "installation_unreadable", "log_level": "error", "team": "T1"}]
    assert await installations(redis_client, OLD).find("T1") is not None


COPIED = json.dumps({**asdict(ONE), "team": "T2"})  # of another team


@pytest.mark.parametrize("text", ["no json", "[]", '{"team": "T1"}', "7", "[" * 100_000, COPIED])
async def test_an_invalid_installation_counts_as_an_outage(redis_client: Redis, text: str) -> None:
    store = installations(redis_client)
    await redis_client.set("orion:install:T1", Seal([OLD]).close(text))
    for read in (store.find, store.delete):
        with pytest.raises(UnreadableInstallation):
            await read("T1")
    assert await redis_client.exists("orion:install:T1")


KEYS = [
    ("the same", (OLD,), (OLD,), True), ("added in front", (OLD,), (NEW, OLD), True),
    ("replaced", (OLD,), (NEW,), False),
    ("old one goes after a start with both", (NEW, OLD), (NEW,), True), ("added behind", (OLD,), (OLD, NEW), True),
    ("behind a foreign one", (NEW,), (OLD, NEW), True), ("only the second of two", (OLD, NEW), (NEW,), False),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "right"), [row[1:] for row in KEYS], ids=[row[0] for row in KEYS])
@pytest.mark.parametrize("has_known_text", [True, False])
async def test_known_text_reveals_a_wrong_key(
    redis_client: Redis, before: tuple[str, ...], after: tuple[str, ...], *, right: bool, has_known_text: bool
) -> None:
    first = installations(redis_client, *before)
    await first.save(ONE)
    assert await first.has_right_key()
    await first.keep_known_text()
    if not has_known_text:
        await redis_client.delete("orion:install_key_check")
    stored = await redis_client.get("orion:install:T1")
    assert await installations(redis_client, *after).has_right_key() is right
    assert await redis_client.get("orion:install:T1") == stored


async def test_nothing_is_written_over_a_newer_installation(redis_client: Redis) -> None:
    store = installations(redis_client)
    text = json.dumps({**asdict(ONE), "something_new": [1]})  # of a newer version
    await redis_client.set("orion:install:T1", Seal([OLD]).close(text))
    read = await store.find("T1")
    assert read is not None
    assert read == ONE
    again = replace(ONE, bot_token="xoxb-1-again")
    await store.save(again)
    assert await store.replace(read, replace(ONE, bot_token="xoxb-1-late")) is None
    assert await store.find("T1") == again


async def test_uninstalling_deletes_the_tokens_of_an_earlier_installation(redis_client: Redis) -> None:
    store = installations(redis_client)
    await store.save(replace(ONE, installed_at=2000.0))
    assert not await store.delete("T1", as_of=1000.0), "the word of an earlier uninstalling came late"
    assert await store.delete("T1", as_of=2100.0)
    assert not await store.delete("T1")
    assert (await store.find("T1"), await store.teams()) == (None, ())
    assert await everything(redis_client) == {}


@pytest.mark.parametrize("keys", [(), ("short",), (OLD, "é" * 44)])
def test_invalid_keys_are_refused_without_showing_them(keys: tuple[str, ...]) -> None:
    with pytest.raises(WrongUse) as failure:
        seal_of(Settings(ORION_ENCRYPTION_KEYS=",".join(keys)))  # type: ignore[call-arg]  # by the variable's name
    assert not any(key in str(failure.value) for key in keys)

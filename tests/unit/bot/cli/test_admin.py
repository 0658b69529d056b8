"""`orion pause`, `resume` and `forget` as an admin types them."""

from pathlib import Path

import pytest
import redis

from bot.cli.forget import langfuse_user
from tests.support.orion_command import Terminal


@pytest.fixture
def terminal(terminal: Terminal, redis_url: str, tmp_path: Path) -> Terminal:
    terminal.set(REDIS_URL=redis_url, ORION_HOME=str(tmp_path))
    return terminal


def test_pause_and_resume_report_the_current_state(terminal: Terminal, redis_url: str) -> None:
    paused = terminal.orion("pause", "--reason", "The index is rebuilt")
    assert (paused.code, "kept until `orion resume`" in paused.out) == (0, True)
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert "The index is rebuilt" in str(client.get("orion:paused"))
    assert "Orion continues" in terminal.orion("resume").out
    assert "was not paused" in terminal.orion("resume").out


def test_forget_counts_deletions_and_names_data_it_cannot_delete(terminal: Terminal, redis_url: str) -> None:
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        client.set("orion:turn:0a", '{"thread": "T1:C1:1.0", "user": "U12"}')
        client.hset("orion:feedback:0a", "U2", "good")
    found = terminal.orion("forget", "--user", "U12")
    assert found.code == 0
    assert [line.split(maxsplit=1) for line in found.out.splitlines()[:2]] == [["1", "turn records"], ["1", "feedback"]]
    assert langfuse_user("U12") in found.out
    nothing = terminal.orion("forget", "--thread", "T1:C1:1.0")
    assert (nothing.code, "There was nothing" in nothing.out) == (0, True)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((), "Name either a person or a thread"),
        (("--user", "U12", "--thread", "T1:C1:1.0"), "Name either a person or a thread"),
        (("--user", "ann"), "--user must be a Slack user id"),
        *(
            (("--thread", wrong), "--thread must be")
            for wrong in ("1.1", "T1:C1", "https://acme.slack.com/archives/C1")
        ),
    ],
)
def test_wrong_use_ends_with_a_remedy(terminal: Terminal, words: tuple[str, ...], says: str) -> None:
    done = terminal.orion("forget", *words)
    assert (done.code, says in done.err) == (2, True)


def test_a_local_workspace_is_paused_separately(terminal: Terminal, redis_url: str) -> None:
    assert terminal.orion("pause", "--local", "8765").code == 0
    with redis.Redis.from_url(redis_url, decode_responses=True) as client:
        assert client.get("orion:paused") is None
        assert client.get("orion-local-8765:paused") is not None
        client.set("orion-local-8765:turn:0a", '{"thread": "T1:C1:1.0", "user": "U12"}')
    assert "was not paused" in terminal.orion("resume").out
    assert "Orion continues" in terminal.orion("resume", "--local", "8765").out
    assert "nothing" in terminal.orion("forget", "--user", "U12").out
    assert "turn records" in terminal.orion("forget", "--user", "U12", "--local", "8765").out

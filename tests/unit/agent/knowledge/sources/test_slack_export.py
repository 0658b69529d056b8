"""An exported workspace: threads with permalinks, each for those who could see its channel."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent.knowledge.index.index import KnowledgeIndex
from agent.knowledge.sources.slack_export import SlackExport
from agent.knowledge.types import IndexReport, IndexRun
from agent.thread.conversation import Viewers, may_see

URL = "https://acme.slack.com"


def message(ts: str, text: str, user: str = "U1", **more: Any) -> dict[str, Any]:
    return {"type": "message", "user": user, "text": text, "ts": ts, **more}


def write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(value))


@pytest.fixture
def export(tmp_path: Path) -> Path:
    folder = tmp_path / "export"
    write(folder / "channels.json", [{"id": "C0OPS", "name": "ops"}, {"id": "C0UP", "name": "../up"}])
    write(folder / "groups.json", [{"id": "G0HR", "name": "hr"}])
    write(folder / "dms.json", [{"id": "D0X"}])
    ann = {"id": "U1", "profile": {"display_name": "Ann", "email": "ann@example.org"}}
    write(folder / "users.json", [ann, {"id": "U2", "real_name": "Bo", "profile": None}])
    question = "How do I rotate the key of the &lt;vault&gt;, <@U2>? See <https://v.example|the page>."
    write(
        folder / "ops" / "2026-01-02.json",
        [
            message("1767348000.000100", question, thread_ts="1767348000.000100"),
            message("1767351600.000200", "Good morning from the canteen"),
            message("1767351700.000200", "joined", subtype="channel_join"),
            message("1767351800.000200", "I am a bot", bot_id="B1"),
            message("not a ts", "lost"),
        ],
    )
    reply = message("1767434400.000100", "Run `rotate` in <#C0OPS|ops>.", "U2", thread_ts="1767348000.000100")
    write(folder / "ops" / "2026-01-03.json", [reply])
    write(folder / "hr" / "2026-01-02.json", [message("1767348000.000100", "The bonus is 900 euros", "U9")])
    return folder


def test_a_thread_is_a_document_with_its_permalink(index: KnowledgeIndex, export: Path) -> None:
    assert index.index([SlackExport(folder=export, url=URL)]) == IndexReport(added=3)
    found = index.search("rotate the vault key")[0]
    assert found.document == "slack/ops/1767348000.000100"
    assert found.url == "https://acme.slack.com/archives/C0OPS/p1767348000000100"
    assert found.updated_at == "2026-01-03"
    assert found.title.startswith("#ops: How do I rotate the key of the <vault>, @Bo?")
    assert found.text == (
        "Ann (2026-01-02 10:00): How do I rotate the key of the <vault>, @Bo? See the page (https://v.example).\n\n"
        "Bo (2026-01-03 10:00): Run `rotate` in #ops."
    )
    assert [d.id for d in index.documents()][1:] == ["slack/ops/1767348000.000100", "slack/ops/2026-01-02"]
    assert index.index([SlackExport(folder=export, url=URL)]) == IndexReport(unchanged=3)


def test_a_private_channel_is_only_for_its_members(index: KnowledgeIndex, export: Path) -> None:
    index.index([SlackExport(folder=export, url=URL)])
    audience = {d.id: d.audience for d in index.documents()}["slack/hr/2026-01-02"]
    assert may_see(audience, Viewers(team="T1", channel="G0HR"))
    assert not may_see(audience, Viewers(team="T1", channel="C0OPS"))
    assert "@example.org" not in "".join(p.text for p in index.search("Ann Bo bonus canteen vault", limit=20))


def test_damage_is_reported_and_the_rest_continues(export: Path) -> None:
    (export / "ops" / "2026-01-03.json").write_text("{broken")
    with (export / "ops" / "2026-01-04.json").open("wb") as file:
        file.truncate(60_000_000)
    run = IndexRun()
    assert len(list(SlackExport(folder=export).documents(run))) == 3
    assert run.failed == [
        ("slack/ops/2026-01-03.json", "(2026-01-03.json) cannot be read"),
        ("slack/ops/2026-01-04.json", "is too big"),
    ]


def test_an_invalid_export_keeps_its_documents(index: KnowledgeIndex, export: Path) -> None:
    source = SlackExport(folder=export)
    index.index([source])
    (export / "channels.json").unlink()
    report = index.index([source])
    assert (report.removed, [name for name, _ in report.failed]) == (0, [str(export)])
    assert len(index.documents()) == 3

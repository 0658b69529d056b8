"""The dashboard in Langfuse: made once, of the very names that traces carry; what goes wrong is a sentence."""

from collections.abc import Iterator

import pytest

from observability.langfuse.dashboards import CHARTS, DashboardsError, make_dashboard
from tests.support.http_server import answering
from tests.support.langfuse_dashboards import LangfuseDashboards
from tests.support.orion_command import Terminal


@pytest.fixture
def langfuse() -> Iterator[LangfuseDashboards]:
    there = LangfuseDashboards()
    with answering(there.answer) as port:
        there.url = f"http://127.0.0.1:{port}"
        yield there


def make(there: LangfuseDashboards, key: str = "sk-1") -> tuple[list[str], str]:
    return make_dashboard(public_key="pk-1", secret_key=key, host=there.url + "/")


def test_the_dashboard_is_made_with_every_chart_on_it(langfuse: LangfuseDashboards) -> None:
    added, url = make(langfuse)
    assert (len(added), url) == (len(CHARTS), f"{langfuse.url}/project/p1/dashboards/d0")
    (board,) = langfuse.boards
    tiles = board["definition"]["widgets"]
    assert [tile["widgetId"] for tile in tiles] == [w["id"] for w in langfuse.widgets]
    assert [(tile["x"], tile["y"]) for tile in tiles[:4]] == [(0, 0), (6, 0), (0, 6), (6, 6)]
    assert len({widget["name"] for widget in langfuse.widgets}) == len(CHARTS)


def test_a_second_run_completes_an_interrupted_one_and_changes_no_existing_chart(langfuse: LangfuseDashboards) -> None:
    make(langfuse)
    langfuse.widgets[0]["chartType"] = "NUMBER"  # its owner likes it better so
    del langfuse.widgets[-1]
    del langfuse.boards[0]["definition"]["widgets"][-2:]
    again, _ = make(langfuse)
    assert again == [chart["title"] for chart in CHARTS[-2:]]
    assert langfuse.widgets[0]["chartType"] == "NUMBER"
    below = max(tile["y"] for tile in langfuse.boards[0]["definition"]["widgets"][:-2]) + 6
    assert [(t["x"], t["y"]) for t in langfuse.boards[0]["definition"]["widgets"][-2:]] == [(0, below), (6, below)]
    assert len(langfuse.widgets) == len(langfuse.boards[0]["definition"]["widgets"]) == len(CHARTS)


def test_no_average_is_drawn_as_a_line() -> None:
    """Langfuse draws 0 on a line for each day without data."""
    lines = [chart["title"] for chart in CHARTS if chart["type"] == "LINE_TIME_SERIES"]
    assert lines == []
    assert [chart["type"] for chart in CHARTS if chart["names"] == ["verify_pass"]] == ["NUMBER", "BAR_TIME_SERIES"]


def test_charts_count_only_questions_asked_in_slack(langfuse: LangfuseDashboards) -> None:
    make(langfuse)
    for widget in langfuse.widgets:
        (elsewhere,) = [one for one in widget["filters"] if one["column"] == "environment"]
        assert (elsewhere["operator"], set(elsewhere["value"])) == ("none of", {"terminal", "eval", "sdk-experiment"})


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (403, b"", "may not make dashboards"),
        (404, b"", "4.59 or newer"),
        (429, b"", "try again in a minute"),
        (500, b"", "it answered 500"),
        (0, b"<html>", "not as Langfuse does"),
        (0, b"[]", "not as Langfuse does"),
        (0, b"{}", "not as Langfuse does"),
    ],
)
def test_refusals_of_langfuse_are_reported(langfuse: LangfuseDashboards, status: int, body: bytes, said: str) -> None:
    langfuse.status, langfuse.body = status, body
    with pytest.raises(DashboardsError, match=said):
        make(langfuse)


def test_wrong_keys_and_an_unreachable_host_are_reported(langfuse: LangfuseDashboards) -> None:
    with pytest.raises(DashboardsError, match="does not accept LANGFUSE_PUBLIC_KEY"):
        make(langfuse, "sk-2")
    with pytest.raises(DashboardsError, match=r"cannot be reached \(ConnectError\)"):
        make_dashboard(public_key="pk-1", secret_key="sk-1", host="http://127.0.0.1:9")


def test_the_command_says_where_the_dashboard_is(terminal: Terminal, langfuse: LangfuseDashboards) -> None:
    without = terminal.orion("dashboards")
    assert (without.code, "Set LANGFUSE_PUBLIC_KEY" in without.err) == (2, True)
    terminal.set(LANGFUSE_PUBLIC_KEY="pk-1", LANGFUSE_SECRET_KEY="sk-1", LANGFUSE_HOST=langfuse.url)
    made = terminal.orion("dashboards")
    assert made.code == 0
    assert "added  pass rate" in made.out
    assert f"has {len(CHARTS)} charts: {langfuse.url}/project/p1/dashboards/d0" in made.out
    langfuse.status = 404
    refused = terminal.orion("dashboards")
    assert (refused.code, "4.59 or newer" in refused.err) == (1, True)

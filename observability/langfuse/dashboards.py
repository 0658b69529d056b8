"""Creates the dashboard of Orion's figures in Langfuse over its public API. What exists already is left alone."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import httpx

from observability.langfuse.transport import http_options

NAME: Final = "Orion"
_ABOUT: Final = {"name": NAME, "description": "How well answers pass verification, and what they cost."}
_FILE: Final = Path(__file__).with_name("dashboard.toml")
# What `orion ask` and `orion eval` send must not count into the figures of a day.
_NOT_ELSEWHERE: Final = {
    "column": "environment",
    "type": "stringOptions",
    "operator": "none of",
    "value": ["terminal", "eval", "sdk-experiment"],
}
_API: Final = "/api/public"
_PAGE: Final = 100
# A server that never says that it was the last page must not be asked for ever.
_MOST_PAGES: Final = 50
_WIDTH, _HEIGHT = 6, 6  # of a grid of twelve columns
_REFUSALS: Final[Mapping[int, str]] = {
    401: "it refuses LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
    403: "these keys may not make dashboards",
    404: "it has no API for dashboards: Langfuse 4.59 or newer is needed",
    429: "it asks to wait: try again in a minute",
}


class DashboardsError(Exception):
    """The dashboard could not be made, or not all of it. The text says why; trying again goes on where it ended."""


def charts() -> list[dict[str, Any]]:
    """The charts as the file of them has them."""
    found: list[dict[str, Any]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["chart"]
    return found


def _widget(chart: Mapping[str, Any]) -> dict[str, Any]:
    """A chart as the API takes it, of people's questions in Slack only."""
    measure, agg = chart["metric"].split()
    named = {"column": "name", "type": "stringOptions", "operator": "any of", "value": chart["names"]}
    return {
        "name": f"{NAME}: {chart['title']}",
        "description": chart["says"],
        "view": chart["view"],
        "dimensions": [{"field": chart["by"]}] if "by" in chart else [],
        "metrics": [{"measure": measure, "agg": agg}],
        "filters": [named, _NOT_ELSEWHERE],
        "chartType": chart["type"],
    }


@dataclass(slots=True, kw_only=True)
class Made:
    """What stands now: charts that were added and that were there, and the dashboard's address."""

    added: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)
    url: str = ""


def make_dashboard(*, public_key: str, secret_key: str, host: str, timeout_s: float = 10.0) -> Made:
    """The dashboard with all its charts. Raises ``DashboardsError``."""
    auth, base = httpx.BasicAuth(public_key, secret_key), host.rstrip("/")
    with _told(base), httpx.Client(**http_options(base, timeout_s), base_url=base, auth=auth) as client:
        made = Made()
        board = next((board for board in _all(client, "dashboards") if board["name"] == NAME), None)
        board = board or _asked(client, "POST", "dashboards", _ABOUT)
        placed = {tile.get("widgetId") for tile in board["definition"]["widgets"]}
        known = {widget["name"]: widget["id"] for widget in _all(client, "dashboard-widgets")}
        for chart in charts():
            wanted = _widget(chart)
            # A chart that its owner changed stays as it is: it is known by its name.
            widget = known.get(wanted["name"]) or _asked(client, "POST", "dashboard-widgets", wanted)["id"]
            if widget in placed:
                made.kept.append(chart["title"])
            else:
                # Without a position Langfuse puts it below what is there.
                tile = {"type": "widget", "widgetId": widget, "width": _WIDTH, "height": _HEIGHT}
                _asked(client, "POST", f"dashboards/{board['id']}/placements", tile)
                made.added.append(chart["title"])
        projects = client.get(f"{_API}/projects").raise_for_status().json()
        made.url = f"{base}/project/{projects['data'][0]['id']}/dashboards/{board['id']}"
        return made


def _all(client: httpx.Client, what: str) -> Iterator[Any]:
    for page in range(1, _MOST_PAGES + 1):
        found = _asked(client, "GET", f"{what}?page={page}&limit={_PAGE}")
        yield from found["data"]
        if page >= found["meta"]["totalPages"]:
            return


def _asked(client: httpx.Client, method: str, what: str, body: Any = None) -> Any:
    return client.request(method, f"{_API}/unstable/{what}", json=body).raise_for_status().json()


@contextmanager
def _told(host: str) -> Iterator[None]:
    """What goes wrong over there, as a sentence."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        message = f"{host} refused: {_REFUSALS.get(status, f'it answered {status}')}."
    except httpx.HTTPError as error:
        message = f"{host} cannot be reached ({type(error).__name__}). Check LANGFUSE_HOST."
    except (ValueError, LookupError, TypeError, AttributeError):
        message = f"{host} answered, but not as Langfuse does. Check LANGFUSE_HOST."
    else:
        return
    raise DashboardsError(message)

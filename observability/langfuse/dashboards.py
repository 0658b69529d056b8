"""Creates the dashboard of Orion's figures in Langfuse over its public API. Existing charts stay unchanged."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx

from observability.loopback import client_options

NAME: Final = "Orion"
_ABOUT: Final = {"name": NAME, "description": "How well answers pass verification, and what they cost."}
_FILE: Final = Path(__file__).with_name("dashboard.toml")
CHARTS: Final[Sequence[Mapping[str, Any]]] = tomllib.loads(_FILE.read_text(encoding="utf-8"))["chart"]
# Traces of `orion ask` and `orion eval` do not belong in a day's figures.
_FROM_SLACK: Final = {
    "column": "environment",
    "type": "stringOptions",
    "operator": "none of",
    "value": ["terminal", "eval", "sdk-experiment"],
}
_API: Final = "/api/public"
_PAGE: Final = 100
_WIDTH, _HEIGHT = 6, 6  # two columns in Langfuse's grid of twelve
_REFUSALS: Final[Mapping[int, str]] = {
    401: "it does not accept LANGFUSE_PUBLIC_KEY and LANGFUSE_SECRET_KEY",
    403: "these keys may not make dashboards",
    404: "it has no API for dashboards: Langfuse 4.59 or newer is needed",
    429: "it asks to wait: try again in a minute",
}


class DashboardsError(Exception):
    """The dashboard could not be made, or not completely. The text says why; another try continues there."""


def _widget(chart: Mapping[str, Any]) -> dict[str, Any]:
    measure, agg = chart["metric"].split()
    named = {"column": "name", "type": "stringOptions", "operator": "any of", "value": chart["names"]}
    return {
        "name": f"{NAME}: {chart['title']}",
        "description": chart["says"],
        "view": chart["view"],
        "dimensions": [{"field": chart["by"]}] if "by" in chart else [],
        "metrics": [{"measure": measure, "agg": agg}],
        "filters": [named, _FROM_SLACK],
        "chartType": chart["type"],
    }


def make_dashboard(*, public_key: str, secret_key: str, host: str, timeout_s: float = 10.0) -> tuple[list[str], str]:
    """Create the dashboard, or add the charts that it lacks. Return their titles, and the dashboard's address.

    Raises ``DashboardsError``.
    """
    auth, base = httpx.BasicAuth(public_key, secret_key), host.rstrip("/")
    options = client_options(base) | {"timeout": timeout_s}
    with _explain_errors(base), httpx.Client(base_url=base, auth=auth, **options) as client:
        added: list[str] = []
        board = next((board for board in _list(client, "dashboards") if board["name"] == NAME), None)
        board = board or _request(client, "POST", "dashboards", _ABOUT)
        tiles = board["definition"]["widgets"]
        placed = {tile.get("widgetId") for tile in tiles}
        bottom = max((int(tile.get("y") or 0) + int(tile.get("height") or _HEIGHT) for tile in tiles), default=0)
        known = {widget["name"]: widget["id"] for widget in _list(client, "dashboard-widgets")}
        for chart in CHARTS:
            wanted = _widget(chart)
            # A chart is identified by its name: one that its owner changed stays as it is.
            widget = known.get(wanted["name"]) or _request(client, "POST", "dashboard-widgets", wanted)["id"]
            if widget not in placed:
                row, column = divmod(len(added), 2)  # without a position, all tiles are in the left half
                at = {"x": column * _WIDTH, "y": bottom + row * _HEIGHT, "width": _WIDTH, "height": _HEIGHT}
                tile = {"type": "widget", "widgetId": widget, **at}
                _request(client, "POST", f"dashboards/{board['id']}/placements", tile)
                added.append(chart["title"])
        projects = client.get(f"{_API}/projects").raise_for_status().json()
        return added, f"{base}/project/{projects['data'][0]['id']}/dashboards/{board['id']}"


def _list(client: httpx.Client, path: str) -> Iterator[Any]:
    page, pages = 1, 1
    while page <= pages:
        listed = _request(client, "GET", f"{path}?page={page}&limit={_PAGE}")
        yield from listed["data"]
        page, pages = page + 1, listed["meta"]["totalPages"]


def _request(client: httpx.Client, method: str, path: str, body: Any = None) -> Any:
    return client.request(method, f"{_API}/unstable/{path}", json=body).raise_for_status().json()


@contextmanager
def _explain_errors(host: str) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        message = f"{host} refused: {_REFUSALS.get(status, f'it answered {status}')}."
    except httpx.HTTPError as error:
        message = f"{host} cannot be reached ({type(error).__name__}). Check LANGFUSE_BASE_URL."
    except (ValueError, LookupError, TypeError, AttributeError):
        message = f"{host} answered, but not as Langfuse does. Check LANGFUSE_BASE_URL."
    else:
        return
    raise DashboardsError(message)

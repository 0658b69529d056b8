"""Modals and App Home, with Slack's rules for triggers (three seconds, once) and hashes."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from bot.local.events.payloads import identifier
from bot.local.model.block_limits import ID_TEXT
from bot.local.model.errors import ApiError, invalid
from bot.local.model.feed import Feed
from bot.local.model.limits import Strictness, check_blocks
from bot.local.model.roster import APP_ID, BOT_ID, TEAM_ID, Json

TITLE_TEXT: Final = 24
PRIVATE_METADATA: Final = 3_000


@dataclass(slots=True, kw_only=True)
class OpenView:
    """A modal on one person's screen."""

    view: Json
    user: str


class Views:
    """The modals on screen and the published homes."""

    def __init__(self, feed: Feed, strictness: Strictness, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds that only rise, for the life of triggers."""
        self._feed = feed
        self._strictness = strictness
        self._clock = clock
        self._triggers: dict[str, tuple[float, str]] = {}
        self._used: set[str] = set()
        self.open: dict[str, OpenView] = {}
        self.homes: dict[str, Json] = {}

    def new_trigger(self, user: str) -> str:
        """A trigger id for something this person just did."""
        trigger = f"{secrets.randbelow(10**12)}.{secrets.randbelow(10**12)}.{secrets.token_hex(16)}"
        self._triggers[trigger] = (self._clock() + self._strictness.trigger_seconds, user)
        return trigger

    def exchange(self, trigger: str) -> str:
        """The person behind a trigger, which is thereby used up.

        Raises ``ApiError``: ``invalid_trigger_id``, ``expired_trigger_id`` or ``exchanged_trigger_id``.
        """
        if trigger in self._used:
            raise ApiError(error="exchanged_trigger_id")
        if trigger not in self._triggers:
            raise ApiError(error="invalid_trigger_id")
        deadline, user = self._triggers.pop(trigger)
        if self._clock() > deadline:  # told apart from a trigger that never was, as Slack does
            raise ApiError(error="expired_trigger_id")
        self._used.add(trigger)
        return user

    def show(self, user: str, given: Json, *, parent: str = "") -> Json:
        """Puts a modal on a person's screen (on top of ``parent``) and returns its view object."""
        view = self._made(given, "modal")
        view["root_view_id"] = self.open[parent].view["root_view_id"] if parent in self.open else view["id"]
        view["previous_view_id"] = parent or None
        self.open[view["id"]] = OpenView(view=view, user=user)
        self._feed.publish("view", view_id=view["id"], user=user)
        return view

    def update(self, view_id: str, external_id: str, given: Json, view_hash: str) -> Json:
        """Replaces a modal on screen. Raises ``ApiError``: ``not_found`` or ``hash_conflict``."""
        found = next(
            (
                one
                for one in self.open.values()
                if view_id == one.view["id"] or (external_id and external_id == one.view["external_id"])
            ),
            None,
        )
        if found is None:
            raise ApiError(error="not_found")
        if view_hash and view_hash != found.view["hash"]:
            raise ApiError(error="hash_conflict")
        kept = {key: found.view[key] for key in ("id", "root_view_id", "previous_view_id")}
        found.view = self._made(given, "modal") | kept
        self._feed.publish("view", view_id=found.view["id"], user=found.user)
        return found.view

    def close(self, view_id: str, *, whole_stack: bool = False) -> None:
        """Takes a modal off the screen, and with ``whole_stack`` all of its stack."""
        found = self.open.get(view_id)
        if found is None:
            return
        root = found.view["root_view_id"]
        gone = [
            one for one in self.open if one == view_id or (whole_stack and self.open[one].view["root_view_id"] == root)
        ]
        for one in gone:
            del self.open[one]
            self._feed.publish("view_closed", view_id=one, user=found.user)

    def publish(self, user: str, given: Json, view_hash: str) -> Json:
        """Sets a person's App Home. Raises ``ApiError``: ``hash_conflict``."""
        before = self.homes.get(user)
        if view_hash and before is not None and view_hash != before["hash"]:
            raise ApiError(error="hash_conflict")
        view = self._made(given, "home")
        if before is not None:
            view["id"] = before["id"]
        view["root_view_id"] = view["id"]
        self.homes[user] = view
        self._feed.publish("home", user=user)
        return view

    def _made(self, given: Json, kind: str) -> Json:
        """A view object from an app's view payload, judged."""
        check_view(given, kind, self._strictness)
        blocks = [{"block_id": secrets.token_urlsafe(4), **block} for block in given.get("blocks", [])]
        optional: dict[str, Any] = {
            "callback_id": "",
            "private_metadata": "",
            "external_id": "",
            "submit": None,
            "close": None,
            "title": None,
            "clear_on_close": False,
            "notify_on_close": False,
        }
        return {
            "id": identifier("V"),
            "team_id": TEAM_ID,
            "type": kind,
            "blocks": blocks,
            **{key: given.get(key, value) for key, value in optional.items()},
            "state": {"values": {}},
            "hash": f"{time.time():.0f}.{secrets.token_hex(4)}",
            "root_view_id": None,
            "previous_view_id": None,
            "app_id": APP_ID,
            "app_installed_team_id": TEAM_ID,
            "bot_id": BOT_ID,
        }


def check_view(given: Json, kind: str, strictness: Strictness) -> None:
    """Refuses a view that Slack would refuse. Raises ``ApiError``: ``invalid_arguments`` with pointers."""
    faults: list[str] = []
    if given.get("type") != kind:
        faults.append(f"must be {kind} [json-pointer:/view/type]")
    if not isinstance(given.get("blocks"), list):
        faults.append("missing required field: blocks [json-pointer:/view]")
    if kind == "modal":
        faults += _title_faults(given.get("title"))
    if len(str(given.get("callback_id") or "")) > ID_TEXT:
        faults.append(f"must be less than {ID_TEXT + 1} characters [json-pointer:/view/callback_id]")
    if len(str(given.get("private_metadata") or "")) > PRIVATE_METADATA:
        faults.append(f"must be less than {PRIVATE_METADATA + 1} characters [json-pointer:/view/private_metadata]")
    if faults:
        raise invalid(faults)
    blocks = given["blocks"]
    check_blocks(blocks, strictness, view=True)
    if kind == "modal" and any(block["type"] == "input" for block in blocks) and not given.get("submit"):
        raise invalid(["missing required field: submit [json-pointer:/view]"])


def _title_faults(title: object) -> list[str]:
    if not isinstance(title, dict) or title.get("type") != "plain_text" or not title.get("text"):
        return ["missing required field: title [json-pointer:/view/title]"]
    if len(str(title["text"])) > TITLE_TEXT:
        return [f"must be less than {TITLE_TEXT + 1} characters [json-pointer:/view/title/text]"]
    return []

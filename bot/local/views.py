"""Modals and App Home, with Slack's rules for triggers (three seconds, once) and hashes."""

import secrets
import time
from dataclasses import dataclass, field
from typing import Any, Final

from bot.local.events.payloads import identifier, with_block_ids
from bot.local.model.errors import ApiError, invalid
from bot.local.model.feed import Feed
from bot.local.model.limits import ID_TEXT, VIEW_BLOCKS, Faults, block_faults, too_long
from bot.local.model.roster import APP_ID, BOT_ID, TEAM_ID, Json

TITLE_TEXT: Final = 24
PRIVATE_METADATA: Final = 3_000


@dataclass(slots=True, kw_only=True)
class OpenView:
    """A modal on one person's screen."""

    view: Json
    user: str


@dataclass(slots=True)
class Views:
    """The open modals and the published homes."""

    feed: Feed
    trigger_seconds: float
    open: dict[str, OpenView] = field(default_factory=dict)
    homes: dict[str, Json] = field(default_factory=dict)
    _triggers: dict[str, tuple[float, str]] = field(default_factory=dict)
    _used: set[str] = field(default_factory=set)

    def new_trigger(self, user: str) -> str:
        """Return a trigger id for this person's latest action."""
        trigger = f"{secrets.randbelow(10**12)}.{secrets.randbelow(10**12)}.{secrets.token_hex(16)}"
        self._triggers[trigger] = (time.monotonic() + self.trigger_seconds, user)
        return trigger

    def exchange(self, trigger: str) -> str:
        """Return the person of a trigger, and use the trigger up."""
        if trigger in self._used:
            raise ApiError(error="exchanged_trigger_id")
        if trigger not in self._triggers:
            raise ApiError(error="invalid_trigger_id")
        deadline, user = self._triggers.pop(trigger)
        if time.monotonic() > deadline:  # distinguished from an unknown trigger, as in Slack
            raise ApiError(error="expired_trigger_id")
        self._used.add(trigger)
        return user

    def show(self, user: str, given: Json, *, parent: str = "") -> Json:
        """Open a modal for a person (on top of ``parent``) and return its view object."""
        view = self._new_view(given, "modal")
        view["root_view_id"] = self.open[parent].view["root_view_id"] if parent in self.open else view["id"]
        view["previous_view_id"] = parent or None
        self.open[view["id"]] = OpenView(view=view, user=user)
        self.feed.publish("view", view_id=view["id"], user=user)
        return view

    def update(self, view_id: str, given: Json, view_hash: str = "") -> Json:
        """Replace an open modal. Raises ``ApiError``: ``not_found`` or ``hash_conflict``."""
        found = self.open.get(view_id)
        if found is None:  # closed while the app was asked
            raise ApiError(error="not_found")
        if view_hash and view_hash != found.view["hash"]:
            raise ApiError(error="hash_conflict")
        kept = {key: found.view[key] for key in ("id", "root_view_id", "previous_view_id")}
        found.view = self._new_view(given, "modal") | kept
        self.feed.publish("view", view_id=view_id, user=found.user)
        return found.view

    def close(self, view_id: str, *, whole_stack: bool = False) -> None:
        """Close a modal, and with ``whole_stack`` its whole stack."""
        found = self.open.get(view_id)
        if found is None:
            return
        root = found.view["root_view_id"]
        stack = [one for one in self.open if self.open[one].view["root_view_id"] == root]
        for one in stack if whole_stack else [view_id]:
            del self.open[one]
            self.feed.publish("view_closed", view_id=one, user=found.user)

    def publish(self, user: str, given: Json, view_hash: str) -> Json:
        """Set a person's App Home. Raises ``ApiError``: ``hash_conflict``."""
        before = self.homes.get(user)
        if view_hash and before is not None and view_hash != before["hash"]:
            raise ApiError(error="hash_conflict")
        view = self._new_view(given, "home")
        view["root_view_id"] = view["id"] = before["id"] if before else view["id"]
        self.homes[user] = view
        self.feed.publish("home", user=user)
        return view

    def _new_view(self, given: Json, kind: str) -> Json:
        own_faults = [f"{words} [json-pointer:{at}]" for words, at in _faults(given, kind)]
        if faults := own_faults or block_faults(given["blocks"], limit=VIEW_BLOCKS):
            raise invalid(faults)
        optional: dict[str, Any] = {
            **dict.fromkeys(("callback_id", "private_metadata", "external_id"), ""),
            **dict.fromkeys(("submit", "close", "title")),
            **dict.fromkeys(("clear_on_close", "notify_on_close"), False),
        }
        return {
            "id": identifier("V"),
            "team_id": TEAM_ID,
            "type": kind,
            "blocks": with_block_ids(given["blocks"]),
            **{key: given.get(key, value) for key, value in optional.items()},
            "state": {"values": {}},
            "hash": f"{time.time():.0f}.{secrets.token_hex(4)}",
            "root_view_id": None,
            "previous_view_id": None,
            "app_id": APP_ID,
            "app_installed_team_id": TEAM_ID,
            "bot_id": BOT_ID,
        }


def _faults(given: Json, kind: str) -> Faults:
    """Return the faults for which Slack would refuse a view, except those inside its blocks."""
    blocks, title = given.get("blocks"), given.get("title")
    if given.get("type") != kind:
        yield f"must be {kind}", "/view/type"
    if not isinstance(blocks, list):
        yield "missing required field: blocks", "/view"
    elif kind == "modal" and any(block.get("type") == "input" for block in blocks) and not given.get("submit"):
        yield "missing required field: submit", "/view"
    if kind == "modal":
        if not isinstance(title, dict) or title.get("type") != "plain_text" or not title.get("text"):
            yield "missing required field: title", "/view/title"
        else:
            yield from too_long(title["text"], TITLE_TEXT, "/view/title/text")
    yield from too_long(given.get("callback_id"), ID_TEXT, "/view/callback_id")
    yield from too_long(given.get("private_metadata"), PRIVATE_METADATA, "/view/private_metadata")

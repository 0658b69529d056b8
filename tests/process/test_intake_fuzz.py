"""Made-up events against intake: none crashes it, and none is answered unless a person wrote it to Orion."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from bot.events.intake import apply_thread_mode, parse_event
from bot.slack.message import Access, Ignored, Incoming, ThreadMode
from tests.support.intake_fuzz import OWN, payloads

SAID = {"", "file_share", "thread_broadcast", "me_message"}


@pytest.mark.parametrize("seed", [1, 2])
def test_no_payload_crashes_intake_or_is_answered_unasked(seed: int) -> None:
    fates = Counter[str]()
    for envelope, mode, access in payloads(1_000, seed):
        try:
            settled = apply_thread_mode(parse_event(envelope, OWN, access), mode)
        except Ignored as ignored:
            fates[ignored.reason] += 1
            continue
        fates[settled.kind] += 1
        assert Incoming.from_json(settled.to_json()) == replace(settled, action_token=""), envelope
        if settled.kind in {"question", "edit"} and settled.addressed != "overheard":
            assert is_asked(envelope, mode, access), (mode, envelope)
    assert {"question", "edit", "stop", "delete", "self", "bot", "malformed"} <= set(fates)


def is_asked(envelope: Any, mode: ThreadMode, access: Access) -> bool:
    """Return whether a person, or a bot that the admin lists, wrote to Orion or in a thread that it follows."""
    event = envelope["event"]
    edit = event.get("subtype") == "message_changed"
    message = {name: value for name, value in (event["message"] if edit else event).items() if isinstance(value, str)}
    user, bot = message.get("user", ""), message.get("bot_id", "")
    is_listed = bool({user, bot, message.get("app_id")} & access.allow_bots)
    if OWN.user == user or OWN.bot == bot or not (edit or is_listed or message.get("subtype", "") in SAID):
        return False
    is_direct = event.get("channel_type") == "im" or event["channel"].startswith("D")
    if event["type"] == "app_mention" or OWN.user in message.get("text", "") or is_direct:
        return is_listed or (user not in {"", "USLACKBOT"})
    return mode != "unknown" and (is_listed or not bot or "client_msg_id" in message)

"""The dialog that asks what was wrong with an answer. Pure."""

from __future__ import annotations

from typing import Final

from agent.texts.catalogue import say
from bot.delivery.blocks import Block, plain_text

COMPLAINT: Final = "orion_complaint"
"""The dialog's ``callback_id``; its ``private_metadata`` is the turn's id and where the answer stands."""
REASONS: Final = ("wrong", "outdated", "incomplete", "beside_the_point", "hard_to_read")
WHY, SAID = "why", "said"
LONGEST_SAID: Final = 1_000


def feedback_modal(about: str, language: str | None = None) -> Block:
    """The dialog as a view; ``about`` comes back with what is sent."""
    options = [{"text": plain_text(say(f"wrong_{reason}", language)), "value": reason} for reason in REASONS]
    why = {"type": "checkboxes", "action_id": WHY, "options": options}
    said = {"type": "plain_text_input", "action_id": SAID, "multiline": True, "max_length": LONGEST_SAID}
    return {
        "type": "modal",
        "callback_id": COMPLAINT,
        "private_metadata": about,
        "title": plain_text(say("wrong_title", language)),
        "submit": plain_text(say("wrong_send", language)),
        "close": plain_text(say("wrong_skip", language)),
        "blocks": [
            _asked(WHY, say("wrong_which", language), why),
            _asked(SAID, say("wrong_said", language), said),
        ],
    }


def _asked(block_id: str, label: str, element: Block) -> Block:
    return {"type": "input", "block_id": block_id, "optional": True, "label": plain_text(label), "element": element}

"""The dialog that asks what was wrong with an answer. Pure."""

from typing import Final

from agent.payload import mapping, objects, string
from agent.texts.catalogue import say
from bot.delivery.blocks import Block, dialog, input_block, plain_text

COMPLAINT: Final = "orion_complaint"
"""The dialog's ``callback_id``. Its ``private_metadata`` is the turn's id and the answer's place."""
REASONS: Final = ("wrong", "outdated", "incomplete", "beside_the_point", "hard_to_read")
REASONS_FIELD, COMMENT_FIELD = "why", "said"
MAX_COMMENT_LENGTH: Final = 1_000


def feedback_modal(about: str, language: str | None = None) -> Block:
    """Return the dialog as a view; ``about`` comes back with the submission."""
    options = [{"text": plain_text(say(f"wrong_{reason}", language)), "value": reason} for reason in REASONS]
    comment = {"type": "plain_text_input", "multiline": True, "max_length": MAX_COMMENT_LENGTH}
    inputs = [
        input_block(
            REASONS_FIELD, say("wrong_which", language), {"type": "checkboxes", "options": options}, optional=True
        ),
        input_block(COMMENT_FIELD, say("wrong_said", language), comment, optional=True),
    ]
    send = plain_text(say("wrong_send", language))
    return dialog("wrong_title", inputs, language, callback_id=COMPLAINT, private_metadata=about, submit=send)


def read_complaint(body: object) -> tuple[tuple[str, ...], str]:
    """Read the sent dialog: some of ``REASONS``, and the person's own words."""
    values = mapping(body, "view", "state", "values")
    chosen = {string(option, "value") for option in objects(values, REASONS_FIELD, REASONS_FIELD, "selected_options")}
    comment = string(values, COMMENT_FIELD, COMMENT_FIELD, "value").strip()[:MAX_COMMENT_LENGTH]
    return tuple(reason for reason in REASONS if reason in chosen), comment

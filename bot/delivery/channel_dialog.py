"""The dialog for a channel's settings, and the list of channels in App Home, both for admins. Pure."""

from collections.abc import Mapping
from typing import Any, Final, get_args

from agent.payload import mapping, string
from agent.texts.catalogue import LANGUAGES, say, truncate
from bot.channel_settings import MAX_INSTRUCTION_CHARS, ChannelSettings, Mode
from bot.delivery.blocks import Block, button, dialog, escape, initial_value, input_block, plain_text, section

EDIT_CHANNEL: Final = "orion_channel"  # its value is the channel's id; empty: one that is chosen in the dialog
CHANNEL_DIALOG: Final = "orion_channel_settings"
WHICH, DOCUMENTS, INSTRUCTION, MODE = "which", "documents", "instruction", "mode"
HANDOFF, LANGUAGE = "handoff", "language"
_ASKERS: Final = "asker"  # Slack takes no empty value for an option
_MAX_LISTED: Final = 15
_MAX_LINE_CHARS: Final = 300


def channel_blocks(channels: Mapping[str, ChannelSettings], language: str | None) -> list[Block]:
    """Return the section of App Home: a line and a button for each channel, and a button for another one."""
    blocks = [section(f"*{say('channel_heading', language)}*")]
    for channel, settings in list(channels.items())[:_MAX_LISTED]:
        parts = [say(f"channel_{settings.mode}", language), settings.language, settings.handoff]
        parts += [*settings.documents, settings.instruction]
        line = truncate(" · ".join(filter(None, parts)), _MAX_LINE_CHARS)
        change = button(say("save_edit", language), EDIT_CHANNEL, channel)
        blocks.append(section(f"<#{channel}> · {escape(line)}") | {"accessory": change})
    if more := len(channels) - _MAX_LISTED:
        blocks += [section(say("and_more", language, n=str(more)))] if more > 0 else []
    add = button(say("channel_add", language), EDIT_CHANNEL, "new")
    return [*blocks, {"type": "actions", "elements": [add]}]


def channel_dialog(channel: str, settings: ChannelSettings, language: str | None = None) -> Block:
    """Return the dialog as a view. Without a ``channel`` it asks for one."""
    text = {"type": "plain_text_input"}
    filters = {"include": ["public", "private"], "exclude_bot_users": True}
    modes = {mode: say(f"channel_{mode}", language) for mode in get_args(Mode)}
    languages = {_ASKERS: say("channel_asker", language), **{code: code for code in LANGUAGES}}
    long = {**text, "multiline": True}
    inputs: dict[str, Block] = {
        WHICH: {"type": "conversations_select", "filter": filters},
        DOCUMENTS: {**long, **initial_value("\n".join(settings.documents))},
        INSTRUCTION: {**long, "max_length": MAX_INSTRUCTION_CHARS, **initial_value(settings.instruction)},
        MODE: _select(modes, settings.mode),
        HANDOFF: {**text, **initial_value(settings.handoff)},
        LANGUAGE: _select(languages, settings.language or _ASKERS),
    }
    optional = {DOCUMENTS, INSTRUCTION, HANDOFF}
    blocks = [section(f"<#{channel}>")] if channel else []
    blocks += [
        input_block(name, say(f"channel_{name}", language), element, optional=name in optional)
        for name, element in inputs.items()
        if not (channel and name == WHICH)
    ]
    submit = plain_text(say("save_submit", language))
    return dialog(
        "channel_title", blocks, language, callback_id=CHANNEL_DIALOG, private_metadata=channel, submit=submit
    )


def read_channel_dialog(body: object) -> tuple[str, dict[str, Any]]:
    """Read a submitted dialog: the channel, and its table as it would be in the file."""
    values = mapping(body, "view", "state", "values")
    texts = {name: string(values, name, name, "value").strip() for name in (DOCUMENTS, INSTRUCTION, HANDOFF)}
    picked = {name: string(values, name, name, "selected_option", "value") for name in (MODE, LANGUAGE)}
    table: dict[str, Any] = {
        **texts,
        **picked,
        DOCUMENTS: [line.strip() for line in texts[DOCUMENTS].splitlines() if line.strip()],
        LANGUAGE: "" if picked[LANGUAGE] == _ASKERS else picked[LANGUAGE],
    }
    return string(body, "view", "private_metadata") or string(values, WHICH, WHICH, "selected_conversation"), table


def _select(options: Mapping[str, str], chosen: str) -> Block:
    made = {value: {"text": plain_text(text), "value": value} for value, text in options.items()}
    return {"type": "static_select", "options": [*made.values()], "initial_option": made[chosen]}

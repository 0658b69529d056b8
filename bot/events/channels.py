"""Listeners for admins who change a channel's settings in App Home."""

from dataclasses import dataclass

import structlog

from agent.payload import string
from agent.texts.catalogue import say
from bot.channel_settings import ChannelSettings, ChannelSettingsError, parse_settings
from bot.delivery.delivery import Delivery
from bot.delivery.dialogs import DOCUMENTS, HANDOFF, INSTRUCTION, WHICH, channel_dialog, read_channel_dialog
from bot.events.clicks import Click, Services

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class ChannelDialogs:
    """One method for each click. People who are not ``admins`` change nothing."""

    services: Services

    async def on_edit(self, click: Click) -> None:
        """Open the dialog for a channel, or for one that is chosen there."""
        listed = self.services.channels.channels_of(click.team)
        chosen = click.value if click.value in listed else ""

        async def edit(delivery: Delivery) -> None:
            view = channel_dialog(chosen, listed.get(chosen, ChannelSettings()), await click.language())
            await delivery.open_modal(click.trigger_id, view)

        if click.user in self.services.admins and not await click.refusal():
            click.after_ack(edit)

    async def on_submit(self, click: Click) -> dict[str, str]:
        """Write the settings before the ack. Return why they are not written, by block."""
        channels, language = self.services.channels, await click.language()
        if click.user not in self.services.admins:
            return {}
        if refusal := await click.refusal():  # also if Slack is slow: an admin must not take it for saved
            return {DOCUMENTS: say(refusal, language)}
        channel, table = read_channel_dialog(click.body)
        if channel in channels.channels_of(click.team) and not string(click.body, "view", "private_metadata"):
            return {WHICH: say("channel_known", language, file=channels.path.name)}
        try:
            channels.save(click.team, channel, parse_settings(channel, table))
        except ChannelSettingsError as fault:
            typed = fault.field in {DOCUMENTS, INSTRUCTION, HANDOFF}
            name = f"channel_fault_{fault.field}" if typed else "channel_not_changed"
            return {fault.field if typed else DOCUMENTS: say(name, language, file=channels.path.name)}
        except OSError as error:
            log.warning("channel_settings_not_written", reason=type(error).__name__)
            return {DOCUMENTS: say("channel_not_written", language, file=channels.path.name)}
        log.info("channel_settings_saved", team=click.team, channel=channel, user=click.user)
        click.after_ack(click.show_home)
        return {}

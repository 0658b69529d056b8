"""Listeners for admins who change a channel's settings in App Home."""

from dataclasses import dataclass

import structlog
from slack_bolt.async_app import AsyncAck, AsyncBoltContext

from agent.texts.catalogue import say
from bot.channel_settings import ChannelSettings, ChannelSettingsError, parse_settings
from bot.delivery.channel_dialog import (
    DOCUMENTS,
    HANDOFF,
    INSTRUCTION,
    channel_dialog,
    read_channel_dialog,
)
from bot.delivery.delivery import Delivery
from bot.events.clicks import Body, Click, Services, read_click

_log = structlog.get_logger()


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

        if await self._may_change(click):
            click.after_ack(edit)

    async def _may_change(self, click: Click) -> bool:
        return click.user in self.services.admins and not await click.refusal()

    async def on_submit(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Write the settings before the ack, or show in the dialog why they are not written."""
        click, channels, errors = read_click(self.services, body, context), self.services.channels, {}
        if await self._may_change(click):
            language = await click.language()
            channel, table = read_channel_dialog(body)
            try:
                channels.save(click.team, channel, parse_settings(channel, table))
            except ChannelSettingsError as fault:
                typed = fault.field in {DOCUMENTS, INSTRUCTION, HANDOFF}
                name = f"channel_fault_{fault.field}" if typed else "channel_not_changed"
                errors = {fault.field if typed else DOCUMENTS: say(name, language, file=channels.path.name)}
            except OSError as error:
                _log.warning("channel_settings_not_written", reason=type(error).__name__)
                errors = {DOCUMENTS: say("channel_not_written", language, file=channels.path.name)}
            else:
                _log.info("channel_settings_saved", team=click.team, channel=channel, user=click.user)
                click.after_ack(click.show_home)
        await (ack(response_action="errors", errors=errors) if errors else ack())

"""Listeners for admins who change a channel's settings in App Home."""

from dataclasses import dataclass
from typing import Any

import structlog
from slack_bolt.async_app import AsyncAck, AsyncApp, AsyncBoltContext

from agent.payload import string
from agent.texts.catalogue import say
from bot.channel_settings import ChannelFile, ChannelSettings, ChannelSettingsError, parse_settings
from bot.delivery.channel_dialog import (
    CHANNEL_DIALOG,
    DOCUMENTS,
    EDIT_CHANNEL,
    HANDOFF,
    INSTRUCTION,
    channel_dialog,
    read_channel_dialog,
)
from bot.delivery.delivery import Delivery
from bot.events.gestures import Gestures, Homes
from bot.events.interactions import button_value

Body = dict[str, Any]
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelDialogs:
    """One method for each click. People who are not ``admins`` change nothing."""

    channels: ChannelFile
    admins: frozenset[str]
    homes: Homes
    gestures: Gestures

    def register(self, app: AsyncApp) -> None:
        """Register the listeners."""
        app.action(EDIT_CHANNEL)(self.on_edit)
        app.view(CHANNEL_DIALOG)(self.on_submit)

    async def on_edit(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Open the dialog for a channel, or for one that is chosen there."""
        user, team, channel = string(body, "user", "id"), context.team_id or "", button_value(body)
        listed = self.channels.channels_of(team)
        chosen = channel if channel in listed else ""

        async def edit(delivery: Delivery) -> None:
            language = await self.gestures.language_for(context, user)
            view = channel_dialog(chosen, listed.get(chosen, ChannelSettings()), language)
            await delivery.open_modal(string(body, "trigger_id"), view)

        if await self._may_change(context, user):
            self.gestures.after_ack(context, edit)
        await ack()

    async def _may_change(self, context: AsyncBoltContext, user: str) -> bool:
        return user in self.admins and not await self.gestures.refusal(context, user)

    async def on_submit(self, body: Body, context: AsyncBoltContext, ack: AsyncAck) -> None:
        """Write the settings before the ack, or show in the dialog why they are not written."""
        user, team, errors = string(body, "user", "id"), context.team_id or "", {}
        if await self._may_change(context, user):
            language = await self.gestures.language_for(context, user)
            channel, table = read_channel_dialog(body)
            try:
                self.channels.save(team, channel, parse_settings(channel, table))
            except ChannelSettingsError as fault:
                typed = fault.field in {DOCUMENTS, INSTRUCTION, HANDOFF}
                name = f"channel_fault_{fault.field}" if typed else "channel_not_changed"
                errors = {fault.field if typed else DOCUMENTS: say(name, language, file=self.channels.path.name)}
            except OSError as error:
                _log.warning("channel_settings_not_written", reason=type(error).__name__)
                errors = {DOCUMENTS: say("channel_not_written", language, file=self.channels.path.name)}
            else:
                _log.info("channel_settings_saved", team=team, channel=channel, user=user)

                async def show(delivery: Delivery) -> None:
                    await delivery.publish_home(user, await self.homes.figures(team, user, language), language)

                self.gestures.after_ack(context, show)
        await (ack(response_action="errors", errors=errors) if errors else ack())

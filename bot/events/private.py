"""Private questions about a message, and sharing the answer in its thread if everyone there may see its sources."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Final

from agent.json_data import mapping, objects, string
from agent.knowledge.slack_message import shared_files
from agent.texts.catalogue import say, truncate
from agent.thread.conversation import ThreadKey, Viewers
from bot.delivery.answer_key import AnswerKey, Badge
from bot.delivery.blocks import escape, link
from bot.delivery.delivery import Delivery
from bot.delivery.trust import QUOTING
from bot.events.clicks import Click, ListenerServices, read_shortcut
from bot.events.intake import attached_files
from bot.slack.web_api import DeliveryFailed
from bot.stores.turn_records import sources_of
from bot.turn.job import visible_sources
from verification.markup.chunks import split_chunks
from verification.text.language import detect_language
from verification.types import Answer

MAX_QUOTED_CHARS: Final = 500


@dataclass(frozen=True, slots=True)
class PrivateAsking:
    """The shortcut, and the button under its answer."""

    services: ListenerServices

    async def on_ask(self, click: Click) -> None:
        """Ask the message's question in a direct message to the person."""
        shortcut, attached = read_shortcut(click.body), attached_files(shared_files(mapping(click.body, "message")))

        async def ask(delivery: Delivery) -> None:
            if not shortcut:
                return
            place, user = shortcut.thread, shortcut.user
            # Only this person sees the answer, so it does not matter who else can read the message.
            if refusal := self.services.access.refusal(user, place.channel) or await click.refusal(""):
                await delivery.send_direct_message(user, say(refusal, await click.language()))
                return
            people, where = (await self.services.workspaces.of(place.team)).people, ""
            named = " ".join((await people.name_ids(place, shortcut.text)).split())
            text = escape(truncate(named, MAX_QUOTED_CHARS))
            with suppress(DeliveryFailed):  # Orion is not in that conversation
                where = await delivery.reader.permalink(place.channel, shortcut.ts)
            opened = f"\n{link(where, say('hand_off_where', detect_language(shortcut.text)))}" if where else ""
            channel, ts = await delivery.send_direct_message(user, f"_{text or '…'}_{opened}")
            thread = ThreadKey(team=place.team, channel=channel, thread_ts=ts)
            question = replace(
                shortcut, thread=thread, ts=ts, addressed="direct", event_ids=(f"private:{thread}",), attached=attached,
                origin=f"{place.channel} {place.thread_ts}" if where else "",
            )  # fmt: skip
            await self.services.intake.store_or_carry_out(question)

        click.after_ack(ask)

    async def on_share(self, click: Click) -> None:
        """Post the answer once in the thread that it is about, or explain why not."""
        user, chat = click.user, click.place
        turn_id, channel, thread_ts = [*click.value.split(" "), "", ""][:3]
        place = ThreadKey(team=chat.team, channel=channel, thread_ts=thread_ts)

        async def share(delivery: Delivery) -> None:
            record = await self.services.records.load_for(turn_id, chat) or {}
            language = await click.record_language(record)
            if not record:
                obstacle = say("share_unknown", language)
            elif refusal := await click.refusal(channel):
                obstacle = say(refusal, language)
            elif place.channel != chat.channel and not await self._may_post(place, user):
                obstacle = say("share_failed", language)
            else:
                obstacle = await self._find_hidden(record, place, language)
            if not obstacle:
                obstacle = await self._post(delivery, record, place, user, language)
            await delivery.post_ephemeral(chat, user, obstacle or say("share_done", language))

        if user and channel and thread_ts:
            click.after_ack(share)

    async def _may_post(self, place: ThreadKey, user: str) -> bool:
        """Return whether the person can read the channel now: they may have left a private one since they asked."""
        people = (await self.services.workspaces.of(place.team)).people
        with suppress(DeliveryFailed):  # such as that Orion is not there
            if await people.channel_name(place.team, place.channel):  # a public one
                return True
            # Ask for one kind, because an admin may have refused the scope for the other.
            named = await people.channel_name(place.team, place.channel, within=place.channel)
            return place.channel in await people.channels_of(user, "private_channel" if named else "mpim")
        return False

    async def _find_hidden(self, record: Mapping[str, Any], place: ThreadKey, language: str | None) -> str:
        """Return a text naming the sources that not everyone in the place may see; empty if all may."""
        sources, viewers = sources_of(record), Viewers(team=place.team, channel=place.channel)
        visible = await visible_sources(self.services.index, sources, viewers)
        # Words from direct messages must stay there, although such a source is stored as public.
        open_ids = {source.id for source in visible if source.origin != "thread"}
        hidden = [f"• {escape(source.title)}" for source in sources if source.id not in open_ids]
        return "\n".join([say("share_hidden", language), *hidden]) if hidden else ""

    async def _post(
        self, delivery: Delivery, record: Mapping[str, Any], place: ThreadKey, user: str, language: str | None
    ) -> str:
        """Post the answer, once. Return why it failed, or an empty text."""
        turn_id, sources = string(record, "turn_id"), tuple(sources_of(record))
        asked_ts = string(record, "thread").rpartition(":")[2]  # the question opened its thread
        if not await self.services.records.claim_share(turn_id):
            return ""
        checkers = {string(one, "settled_by") for one in objects(record, "claims")}
        badges: list[Badge] = ["partial"] if record.get("outcome") == "partial" else []
        if string(record, "model") in QUOTING:
            badges.append("quotes")
        answer = Answer(
            text=string(record, "answer"), chunks=split_chunks(string(record, "answer"), sources), sources=sources,
            verified=True, rules_only="nobody" in checkers, label=say("share_label", language, who=f"<@{user}>"),
        )  # fmt: skip
        key = AnswerKey(question_ts=asked_ts, language=language, badges=tuple(badges), may_exist=False)
        try:
            await delivery.post_answer(place, answer, key)
        except DeliveryFailed:
            await self.services.records.release_share(turn_id)
            return say("share_failed", language)
        return ""

"""A human is asked (A13): a click on an answer that was none brings the question to the people an admin named.

Promises: people are asked once, however often and by whomever the button is pressed, also after a crash between asking
and noting it; the button then says so; what fails is told in the thread, and may be tried again. Nothing of a model's
text goes along but what stands in the answer already; the user group's mention is made here, of the configured id, and
is the only one that ever leaves Orion. Must never carry a question anywhere before somebody in its place pressed.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
from redis.asyncio import Redis

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.delivery.blocks import HAND_OFF_ACTION, Block, clipped, context, section
from bot.delivery.delivery import Delivery, today_utc
from bot.delivery.links import escape, link, source_line
from bot.queue.lease import Lease
from bot.queue.queue import Claimed, Mailbox
from bot.queue.worker import OK, Ending, Handle, OnDead, later
from bot.slack.client import Workspace
from bot.slack.history import HAND_OFF_EVENT, is_direct
from bot.slack.message import Incoming, Own
from bot.slack.payload import mapping, objects, string
from bot.slack.web_api import DeliveryFailed, Reply, SlackCalls
from bot.stores.turn_records import TurnRecords
from bot.turn.duplicates import PendingChecks
from verification.text.language import detect
from verification.types import Source

log = structlog.get_logger()

PATIENCE_S: Final = 3_600.0
"""How long a Slack that is away is waited for before the person is told."""
AGAIN_S: Final = 15.0
KEPT_S: Final = 30 * 86_400
_LONGEST_QUESTION: Final = 2_500
_PAGE: Final = 200
_CUT_ENTITY: Final = re.compile(r"&\w{0,4}$")


def offers_human(handoff: str, place: ThreadKey) -> bool:
    """Whether the button makes sense here: a user group cannot be called into a direct chat."""
    return bool(handoff) and not (handoff.startswith("S") and place.channel.startswith("D"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Handover:
    """One click in our hands. ``record`` is what is kept of the turn, perhaps nothing any more."""

    claimed: Claimed
    lease: Lease
    incoming: Incoming
    record: Mapping[str, Any]

    @property
    def turn_id(self) -> str:
        """The turn whose answer was pressed."""
        return self.incoming.text

    @property
    def since(self) -> str:
        """A ts before which nobody can have been asked."""
        return f"{self.claimed.enqueued_at - 60:.6f}"

    @property
    def language(self) -> str | None:
        """The question's."""
        return detect(string(self.record, "question"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Helpers:
    """Where one workspace's people are asked: ``handoff`` is a user group, a channel's id or its ``#name``."""

    handoff: str
    calls: SlackCalls
    workspace: Workspace
    delivery: Delivery


class HandingOff:
    """Stands before whoever answers; only clicks on the button stay here."""

    def __init__(  # noqa: PLR0913 - the parts of one way, each named at the call
        self, handle: Handle, on_dead: OnDead, *, helpers: Helpers, mailbox: Mailbox, records: TurnRecords, redis: Redis
    ) -> None:
        self._handle = handle
        self._on_dead = on_dead
        self._helpers = helpers
        self._mailbox = mailbox
        self._records = records
        self._redis = redis
        self._channel = ""

    async def handle(self, claimed: Claimed, lease: Lease) -> Ending:
        """Ask people, or hand the message on."""
        incoming = _click(claimed)
        if incoming is None:
            return await self._handle(claimed, lease)
        record = await self._records.load(incoming.text) or {}
        click = Handover(claimed=claimed, lease=lease, incoming=incoming, record=record)
        try:
            await self._hand_off(click)
        except DeliveryFailed as failure:
            log.warning("hand_off_failed", reason=failure.reason, permanent=failure.permanent)
            if not failure.permanent and time.time() - claimed.enqueued_at < PATIENCE_S:
                return later(AGAIN_S)
            await self._tell_failed(click)
        return OK

    async def tell_dead(self, claimed: Claimed, lease: Lease, reason: str) -> None:
        """A click that was given up is told as one that failed."""
        incoming = _click(claimed)
        if incoming is None:
            await self._on_dead(claimed, lease, reason)
        else:
            await self._tell_failed(Handover(claimed=claimed, lease=lease, incoming=incoming, record={}))

    async def _hand_off(self, click: Handover) -> None:
        name = f"handed:{click.turn_id}"
        if await self._mailbox.marked(click.claimed.thread, name) is None:
            place = await self._place(click)
            reply = await self._find(click, place) or await self._post(click, place)
            await self._mailbox.mark(click.claimed, name, string(reply, "ts") or "asked", ttl_s=KEPT_S)
            log.info("handed_off", thread=click.claimed.thread, turn_id=click.turn_id)
        with suppress(DeliveryFailed):  # people were asked: a button that cannot be changed is no reason to say no
            await self._change_button(click)
        with suppress(DeliveryFailed):
            text = say("handed_off", click.language)
            await self._helpers.delivery.thank(click.incoming.thread, click.incoming.user, text)

    async def _place(self, click: Handover) -> ThreadKey:
        """Where people are asked: the thread itself for a user group, else the channel. Raises ``DeliveryFailed``."""
        handoff, thread = self._helpers.handoff, click.incoming.thread
        if handoff.startswith("S"):
            return thread
        if not handoff.startswith("#"):
            return ThreadKey(team=thread.team, channel=handoff, thread_ts=handoff)
        if not self._channel:
            self._channel = await channel_named(self._helpers.calls, handoff[1:])
        return ThreadKey(team=thread.team, channel=self._channel, thread_ts=self._channel)

    async def _find(self, click: Handover, place: ThreadKey) -> Reply | None:
        """What an earlier try, or one without a reply, posted already."""
        own = (await self._helpers.workspace.identity()).own
        params: dict[str, Any] = {"channel": place.channel, "oldest": click.since, "limit": _PAGE}
        if not is_direct(place):
            params["ts"] = place.thread_ts
        method = "conversations.history" if is_direct(place) else "conversations.replies"
        reply = await self._helpers.calls.read(method, include_all_metadata="true", **params)
        return next((m for m in objects(reply, "messages") if _is_hand_off(m, own, click.turn_id)), None)

    async def _post(self, click: Handover, place: ThreadKey) -> Reply:
        blocks, text = await self._content(click, place)
        payload = {"event_type": HAND_OFF_EVENT, "event_payload": {"turn_id": click.turn_id}}
        quiet = {"unfurl_links": False, "unfurl_media": False}
        body: dict[str, Any] = {"channel": place.channel, "text": text, "blocks": blocks, "metadata": payload, **quiet}
        if not is_direct(place):
            body["thread_ts"] = place.thread_ts
        return await self._helpers.calls.write(
            "chat.postMessage",
            body,
            lease_check=click.lease.require,
            look=lambda: self._find(click, place),
            maybe_posted=partial(PendingChecks(self._mailbox).note, place, click.since),
        )

    async def _content(self, click: Handover, place: ThreadKey) -> tuple[list[Block], str]:
        """Who asks, what, where, and what was found: each escaped, so that nothing in it calls anybody."""
        group, incoming = self._helpers.handoff.startswith("S"), click.incoming
        head = say("hand_off_head", click.language, who=f"<@{incoming.user}>")
        if group:
            head = f"<!subteam^{self._helpers.handoff}> {head}"
        asked = _CUT_ENTITY.sub("", escape(string(click.record, "question"))[:_LONGEST_QUESTION])
        blocks = [section(head)]
        if asked:
            blocks.append(section(asked))
        if near := _sources(click):
            blocks.append(context([say("nearest", click.language), *near], click.language))
        if place.channel != incoming.thread.channel:
            where = link(await self._permalink(incoming), say("hand_off_where", click.language))
            blocks.append(section(where))
        return blocks, clipped([head, asked], _LONGEST_QUESTION + 200, click.language).rstrip()

    async def _permalink(self, incoming: Incoming) -> str:
        found = await self._helpers.calls.read(
            "chat.getPermalink", channel=incoming.thread.channel, message_ts=incoming.ts
        )
        return string(found, "permalink")

    async def _change_button(self, click: Handover) -> None:
        """The answer as it stands, its button saying that people were asked."""
        incoming = click.incoming
        params: dict[str, Any] = {"channel": incoming.thread.channel, "oldest": incoming.ts, "latest": incoming.ts}
        if not is_direct(incoming.thread):
            params["ts"] = incoming.thread.thread_ts
        method = "conversations.history" if is_direct(incoming.thread) else "conversations.replies"
        reply = await self._helpers.calls.read(method, inclusive="true", include_all_metadata="true", **params)
        answer = next((m for m in objects(reply, "messages") if string(m, "ts") == incoming.ts), {})
        blocks = [_asked(block, say("human_asked", click.language)) for block in objects(answer, "blocks")]
        if blocks and blocks != list(objects(answer, "blocks")):
            kept = {"text": string(answer, "text"), "metadata": dict(mapping(answer, "metadata"))}
            body = {"channel": incoming.thread.channel, "ts": incoming.ts, "blocks": blocks, **kept}
            await self._helpers.calls.write("chat.update", body, lease_check=click.lease.require)

    async def _tell_failed(self, click: Handover) -> None:
        """In the thread; and the next click counts again."""
        incoming = click.incoming
        for event_id in incoming.event_ids:
            await self._redis.delete(self._mailbox.seen_key(click.claimed.thread, event_id))
        with suppress(DeliveryFailed):
            text = say("hand_off_failed", click.language)
            await self._helpers.delivery.say(incoming.thread, text, incoming.ts, click.lease.require)


async def channel_named(calls: SlackCalls, name: str) -> str:
    """The id of the channel with this name. Raises ``DeliveryFailed``, ``channel_not_found`` when there is none."""
    cursor: dict[str, str] = {}
    while True:
        reply = await calls.read(
            "conversations.list", types="public_channel,private_channel", exclude_archived="true", limit=_PAGE, **cursor
        )
        for channel in objects(reply, "channels"):
            if name in {string(channel, "name"), string(channel, "name_normalized")}:
                return string(channel, "id")
        following = string(reply, "response_metadata", "next_cursor")
        if not following:
            reason = "channel_not_found"
            raise DeliveryFailed(reason, permanent=True)
        cursor = {"cursor": following}


async def reach(calls: SlackCalls, handoff: str) -> tuple[str, str] | None:
    """What is wrong with the place, and what to do about it; None when people can be asked there.

    Raises:
        DeliveryFailed: Slack does not tell.
    """
    if handoff.startswith("S"):
        groups = await calls.read("usergroups.list")
        if any(string(group, "id") == handoff for group in objects(groups, "usergroups")):
            return None
        return f"there is no user group {handoff}", "Put the group's id (S…) into ORION_HANDOFF."
    try:
        channel = await channel_named(calls, handoff[1:]) if handoff.startswith("#") else handoff
        found = mapping(await calls.read("conversations.info", channel=channel), "channel")
    except DeliveryFailed as failure:
        if failure.reason != "channel_not_found":
            raise
        remedy = "Put a channel's id or #name into ORION_HANDOFF; a private one must have Orion in it."
        return f"there is no channel {handoff} that Orion can see", remedy
    if found.get("is_member") is False:
        return f"Orion is not in {handoff}", "Invite it there: /invite @Orion"
    return None


def _click(claimed: Claimed) -> Incoming | None:
    """The message if it is a click on the button; what cannot be read is left to whoever answers."""
    incoming = Incoming.in_body(claimed.body)
    return incoming if incoming and incoming.kind == "hand_off" else None


def _is_hand_off(message: Mapping[str, Any], own: Own, turn_id: str) -> bool:
    metadata = mapping(message, "metadata")
    ours = string(message, "user") == own.user or bool(own.bot and string(message, "bot_id") == own.bot)
    return (
        ours
        and string(metadata, "event_type") == HAND_OFF_EVENT
        and string(metadata, "event_payload", "turn_id") == turn_id
    )


def _sources(click: Handover) -> Sequence[str]:
    """The nearest sources as lines, each a link of the source's own."""
    found = [
        Source(id=number, title=string(s, "title"), url=string(s, "url"), updated_at=string(s, "updated_at"))
        for number, s in enumerate(objects(click.record, "sources"), 1)
    ]
    return [source_line(source, today_utc(), click.language) for source in found]


def _asked(block: Mapping[str, Any], text: str) -> Block:
    """The block, its button for people saying that they were asked."""
    elements = [
        {
            "type": "button",
            "action_id": HAND_OFF_ACTION,
            "value": string(e, "value"),
            "text": {"type": "plain_text", "text": text},
        }
        if string(e, "action_id") == HAND_OFF_ACTION
        else e
        for e in objects(block, "elements")
    ]
    return {**block, "elements": elements} if elements else dict(block)

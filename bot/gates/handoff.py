"""A human is asked: a click under what may be no answer brings the question to the people an admin named.

People are asked once, however often and by whomever the button is pressed, also after a crash between asking and noting
it. The user group's mention is made here, of the configured id, and is the only one that ever leaves Orion.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import structlog

from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey
from bot.delivery.blocks import HAND_OFF_ACTION, Block, button, context, join_lines, section
from bot.delivery.links import escape, link, source_line
from bot.gates.services import GateServices
from bot.queue.queue import OK, Ending, retry_uncounted
from bot.slack.message import Incoming
from bot.slack.payload import mapping, objects, string
from bot.slack.web_api import DeliveryFailed, SlackCalls
from bot.stores.turn_records import sources_of
from bot.turn.job import Job
from verification.text.language import detect_language

log = structlog.get_logger()

MAX_WAIT_S: Final = 3_600.0  # how long a Slack that is away is waited for before the person is told
RETRY_S: Final = 15.0
MARK_TTL_S: Final = 30 * 86_400
_MAX_QUESTION_CHARS: Final = 2_500
_PAGE: Final = 200
_CUT_ENTITY: Final = re.compile(r"&\w{0,4}$")  # half an entity at the cut would be shown as it stands


def offers_human(handoff: str, place: ThreadKey) -> bool:
    """Whether the button makes sense here: a user group cannot be called into a direct chat."""
    return bool(handoff) and not (handoff.startswith("S") and place.channel.startswith("D"))


@dataclass(frozen=True, slots=True, kw_only=True)
class HumanRequest:
    """One click in our hands. ``record`` is what is kept of the turn, perhaps nothing any more."""

    job: Job
    at: GateServices
    record: Mapping[str, Any]

    @property
    def incoming(self) -> Incoming:
        """The click as a message: its text is the turn whose answer was pressed."""
        return self.job.incoming

    @property
    def group(self) -> bool:
        """Whether a user group is asked, in the thread itself."""
        return self.at.handoff.startswith("S")

    @property
    def language(self) -> str | None:
        """The question's."""
        return detect_language(string(self.record, "question"))


async def handle_hand_off(job: Job, at: GateServices) -> Ending | None:
    """Ask people, where the message is a click on the button."""
    if job.incoming.kind != "hand_off":
        return None
    request = HumanRequest(job=job, at=at, record=await at.records.load(job.incoming.text) or {})
    try:
        await _ask_people(request)
    except DeliveryFailed as failure:
        log.warning("hand_off_failed", reason=failure.reason, permanent=failure.permanent)
        if not failure.permanent and job.claimed.waited_s < MAX_WAIT_S:
            return retry_uncounted(failure.again_s or RETRY_S)
        await notify_failure(job, at, request.language)
    return OK


async def notify_failure(job: Job, at: GateServices, language: str | None = None) -> None:
    """In the thread; and the next click counts again."""
    incoming = job.incoming
    for event_id in incoming.event_ids:
        await at.stores.redis.delete(at.stores.mailbox.seen_key(job.claimed.thread, event_id))
    with suppress(DeliveryFailed):
        text = say("hand_off_failed", language)
        await at.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)


async def _ask_people(request: HumanRequest) -> None:
    job, at, incoming = request.job, request.at, request.incoming
    name = f"handed:{incoming.text}"
    place = await _find_destination(request)
    if await at.stores.mailbox.get_mark(job.claimed.thread, name) is None:
        blocks, text = await _build_post(request, place)
        await at.delivery.post_notice(place, text, f"{incoming.ts}:{name}", job.lease.require, blocks=blocks)
        await at.stores.mailbox.mark(job.claimed, name, "asked", ttl_s=MARK_TTL_S)
        log.info("handed_off", answered_turn=incoming.text)
    with suppress(DeliveryFailed):  # people were asked: a button that cannot be changed is no reason to say no
        await _mark_button(request)
    with suppress(DeliveryFailed):
        await at.delivery.post_ephemeral(
            incoming.thread, incoming.user, say("handed_off", request.language, where=_mention_of(request, place))
        )


async def _find_destination(request: HumanRequest) -> ThreadKey:
    """Where people are asked: the thread itself for a user group, else the channel. Raises ``DeliveryFailed``."""
    at, thread = request.at, request.incoming.thread
    if request.group:
        return thread
    channel = at.handoff
    if channel.startswith("#"):
        if channel not in at.channels:
            at.channels[channel] = await find_channel(at.calls, channel[1:])
        channel = at.channels[channel]
    return ThreadKey(team=thread.team, channel=channel, thread_ts=channel)


def _mention_of(request: HumanRequest, place: ThreadKey) -> str:
    return f"<!subteam^{request.at.handoff}>" if request.group else f"<#{place.channel}>"


async def _build_post(request: HumanRequest, place: ThreadKey) -> tuple[list[Block], str]:
    """Who asks, what, where, and what was found: each escaped, so that nothing in it calls anybody."""
    incoming, language = request.incoming, request.language
    head = say("hand_off_head", language, who=f"<@{incoming.user}>")
    if request.group:
        head = f"{_mention_of(request, place)} {head}"
    asked = _CUT_ENTITY.sub("", escape(string(request.record, "question"))[:_MAX_QUESTION_CHARS])
    blocks = [section(head)]
    if asked:
        blocks.append(section(asked))
    today = request.at.delivery.today()
    if near := [source_line(source, today, language) for source in sources_of(request.record)]:
        blocks.append(context([say("nearest", language), *near], language))
    if place.channel != incoming.thread.channel:
        calls, channel = request.at.calls, incoming.thread.channel
        found = await calls.read("chat.getPermalink", channel=channel, message_ts=incoming.ts)
        blocks.append(section(link(string(found, "permalink"), say("hand_off_where", language))))
    return blocks, join_lines([head, asked], _MAX_QUESTION_CHARS + 200, language).rstrip()


async def _mark_button(request: HumanRequest) -> None:
    """The answer as it stands, its button saying that people were asked."""
    incoming, calls = request.incoming, request.at.calls
    answer, _ = await request.at.delivery.reader.find_message(incoming.thread, incoming.ts)
    blocks = [_with_button_text(block, say("human_asked", request.language)) for block in objects(answer, "blocks")]
    if blocks and blocks != list(objects(answer, "blocks")):
        kept = {"text": string(answer, "text"), "metadata": dict(mapping(answer, "metadata"))}
        body = {"channel": incoming.thread.channel, "ts": incoming.ts, "blocks": blocks, **kept}
        await calls.write("chat.update", body, lease_check=request.job.lease.require)


async def find_channel(calls: SlackCalls, name: str) -> str:
    """The id of the channel with this name. Raises ``DeliveryFailed``, ``channel_not_found`` when there is none."""
    types, cursor = "public_channel,private_channel", ""
    while True:
        reply = await calls.read("conversations.list", types=types, exclude_archived="true", limit=_PAGE, cursor=cursor)
        for channel in objects(reply, "channels"):
            if name in {string(channel, "name"), string(channel, "name_normalized")}:
                return string(channel, "id")
        cursor = string(reply, "response_metadata", "next_cursor")
        if not cursor:
            reason = "channel_not_found"
            raise DeliveryFailed(reason, permanent=True)


async def check_destination(calls: SlackCalls, handoff: str) -> tuple[str, str] | None:
    """What is wrong with the place, and what to do; None where people can be asked. Raises ``DeliveryFailed``."""
    if handoff.startswith("S"):
        groups = await calls.read("usergroups.list")
        if any(string(group, "id") == handoff for group in objects(groups, "usergroups")):
            return None
        return f"there is no user group {handoff}", "Put the group's id (S…) into ORION_HANDOFF."
    try:
        channel = await find_channel(calls, handoff[1:]) if handoff.startswith("#") else handoff
        found = mapping(await calls.read("conversations.info", channel=channel), "channel")
    except DeliveryFailed as failure:
        if failure.reason != "channel_not_found":
            raise
        remedy = "Put a channel's id or #name into ORION_HANDOFF; a private one must have Orion in it."
        return f"there is no channel {handoff} that Orion can see", remedy
    if found.get("is_member") is False:
        return f"Orion is not in {handoff}", "Invite it there: /invite @Orion"
    return None


def _with_button_text(block: Mapping[str, Any], text: str) -> Block:
    elements = [
        button(text, HAND_OFF_ACTION, string(e, "value")) if string(e, "action_id") == HAND_OFF_ACTION else e
        for e in objects(block, "elements")
    ]
    return {**block, "elements": elements} if elements else dict(block)

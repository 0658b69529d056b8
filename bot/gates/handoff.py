"""Hands a question over to people: a click on "Ask a human" posts it where the admin wants it.

People are asked once, no matter how often the button is pressed, even after a crash between the post and its record.
The user group's mention, from the configured id, is the only mention that Orion ever posts.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import structlog

from agent.json_data import mapping, objects, string
from agent.texts.catalogue import say
from agent.thread.conversation import ThreadKey, Viewers
from bot.delivery.blocks import HAND_OFF_ACTION, button, context, escape, join_lines, link, list_sources, section
from bot.delivery.dialogs import SAVE_ACTION
from bot.delivery.rich_text import Block
from bot.queue.claim import OK, Ending, give_back
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.message import Incoming
from bot.slack.web_api import DeliveryFailed
from bot.stores.turn_records import sources_of
from bot.turn.job import Job, TeamServices, visible_sources
from verification.text.language import detect_language

log = structlog.get_logger()

MAX_WAIT_S: Final = 3_600.0  # how long Slack may be down before the person is told that it failed
RETRY_S: Final = 15.0
MARK_TTL_S: Final = 30 * 86_400
_MAX_QUESTION_CHARS: Final = 2_500
_CUT_ENTITY: Final = re.compile(r"&\w{0,4}$")  # Slack would show half an entity as it is


async def handle_hand_off(job: Job, services: TeamServices) -> Ending:
    """Ask people. The message is a click on the button."""
    incoming = job.incoming
    record = await services.observers.records.load_for(incoming.text, incoming.thread) or {}
    language, handoff = detect_language(string(record, "question")), services.handoff.in_channel(incoming.thread)
    try:
        await _ask_people(job, services, record, handoff, language)
    except DeliveryFailed as failure:
        log.warning("hand_off_failed", reason=failure.reason, permanent=failure.permanent)
        if not failure.permanent and job.claimed.waited_s < MAX_WAIT_S:
            return give_back(failure.again_s or RETRY_S)
        await notify_failure(job, services, language)
    return OK


async def notify_failure(job: Job, services: TeamServices, language: str | None = None) -> None:
    """Say in the thread that people could not be asked. The next click counts again."""
    incoming = job.incoming
    for event_id in incoming.event_ids:
        await services.stores.redis.delete(services.stores.mailbox.key(job.claimed.thread, "seen", event_id))
    with suppress(DeliveryFailed):
        text = say("hand_off_failed", language)
        await services.delivery.post_own_text(incoming.thread, text, incoming.ts, job.lease.require)


async def _ask_people(
    job: Job, services: TeamServices, record: Mapping[str, Any], handoff: HandOffPlace, language: str | None
) -> None:
    incoming, name = job.incoming, f"handed:{job.incoming.text}"  # the click's text is the turn's id
    place = await handoff.find(incoming.thread)
    group = f"<!subteam^{handoff.name}>" if handoff.is_group else ""
    if not await services.stores.mailbox.has_mark(job.claimed.thread, name):
        blocks, text = await _build_post(incoming, services, record, place, group)
        await services.delivery.post_notice(place, text, f"{incoming.ts}:{name}", job.lease.require, blocks=blocks)
        await services.stores.mailbox.mark(job.claimed, name, "asked", ttl_s=MARK_TTL_S)
        log.info("handed_off", answered_turn=incoming.text)
        people = {incoming.user, string(record, "user")}
        await services.stores.thread_modes.expect_reply(incoming.thread, incoming.text, people)
        await services.stores.thread_modes.set(incoming.thread, "muted")  # from now on messages there are for people
    with suppress(DeliveryFailed):  # people were asked, so it does not matter if the button stays as it is
        await _mark_button(job, services, language)
    with suppress(DeliveryFailed):
        text = say("handed_off", language, where=group or f"<#{place.channel}>")
        await services.delivery.post_ephemeral(incoming.thread, incoming.user, text)


async def _build_post(
    incoming: Incoming, services: TeamServices, record: Mapping[str, Any], place: ThreadKey, group: str
) -> tuple[list[Block], str]:
    """Build the post with asker, question, place and findings. All of it is escaped, so it mentions no one else."""
    language = detect_language(string(record, "question"))
    head = f"{group} {say('hand_off_head', language, who=f'<@{incoming.user}>')}".lstrip()
    question = _CUT_ENTITY.sub("", escape(string(record, "question"))[:_MAX_QUESTION_CHARS])
    blocks = [section(head), *([section(question)] if question else [])]
    today = services.delivery.today()
    readers = Viewers(team=place.team, channel=place.channel)
    sources = await visible_sources(services.engine.index, sources_of(record), readers)
    if near := list_sources(sources, today, language):
        blocks.append(context([say("nearest", language), *near], language))
    # The channel may be the same one, but readers still look for the thread. They cannot open a direct message.
    if place != incoming.thread and not incoming.thread.channel.startswith("D"):
        permalink = await services.delivery.reader.permalink(incoming.thread.channel, incoming.ts)
        blocks.append(section(link(permalink, say("hand_off_where", language))))
    if services.saves_answers:
        save = button(say("save_title", language), SAVE_ACTION, incoming.text)
        blocks.append({"type": "actions", "elements": [save]})
    return blocks, join_lines([head, question], _MAX_QUESTION_CHARS + 200, language).rstrip()


async def _mark_button(job: Job, services: TeamServices, language: str | None) -> None:
    """Show the answer again, with a button that says that people were asked."""
    incoming, asked = job.incoming, say("human_asked", language)
    answer, _ = await services.delivery.reader.find_message(incoming.thread, incoming.ts)
    blocks = [dict(block) for block in objects(answer, "blocks")]
    for block in blocks:
        if elements := objects(block, "elements"):
            block["elements"] = [
                button(asked, HAND_OFF_ACTION, string(element, "value"))
                if string(element, "action_id") == HAND_OFF_ACTION
                else element
                for element in elements
            ]
    if blocks != list(objects(answer, "blocks")):
        unchanged = {"text": string(answer, "text"), "metadata": dict(mapping(answer, "metadata"))}
        body = {"channel": incoming.thread.channel, "ts": incoming.ts, "blocks": blocks, **unchanged}
        await services.delivery.calls.write("chat.update", body, lease_check=job.lease.require)

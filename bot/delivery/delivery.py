"""Post, update and delete Orion's messages in Slack.

A question's answer appears in its thread once, even after a crash or with a second worker. The lease is checked right
before each call. Only an ``Answer``'s own text is posted.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Final

import stamina
import structlog

from agent.json_data import string
from agent.texts.catalogue import own_message
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import ENDS_SESSION, AnswerKey, Recheck
from bot.delivery.blocks import Post, blocks_under_stream, context, render, section
from bot.delivery.home import HomeFigures, home_view
from bot.delivery.rich_text import Block
from bot.queue.queue import Mailbox
from bot.slack.agent_session import STATUS_METHOD, end_session
from bot.slack.client import SlackWorkspace
from bot.slack.history import (
    ANSWER_EVENT,
    NOTICE_EVENT,
    WORKING_EVENT,
    Posted,
    StreamedMessage,
    ThreadReader,
    is_direct,
)
from bot.slack.web_api import DeliveryFailed, LeaseCheck, Look, Reply, SlackCalls, no_lease
from verification.types import Answer

_BLOCKS_REFUSED: Final = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
_DELETED: Final = frozenset({"message_not_found", "thread_not_found"})
_CANNOT_UPDATE: Final = _DELETED | {"edit_window_closed", "cant_update_message", "msg_too_long", "block_mismatch"}
_MAX_UPDATE_LENGTH: Final = 3_900  # chat.update accepts 4,000 characters of text, chat.postMessage ten times as many
_BROKEN_TOKEN: Final = re.compile(r"(?:<[^<>]*|&\w{0,4})$")
_DIRECT_MESSAGE_TRIES: Final = 4
# A preview would fetch an address from a document without a click.
_NO_PREVIEWS: Final = {"unfurl_links": False, "unfurl_media": False}
log = structlog.get_logger()


def today_utc() -> date:
    """Return today's date, from which ages are counted."""
    return datetime.now(UTC).date()


@dataclass(slots=True, eq=False)
class Delivery:
    """Delivers to one workspace. Each method raises ``DeliveryFailed`` if the place is gone or Slack stays unreachable.

    ``today`` is the date that ages count from. ``mailbox`` takes the recheck of a question whose post got no reply.
    """

    workspace: SlackWorkspace
    today: Callable[[], date] = today_utc
    mailbox: Mailbox | None = None
    calls: SlackCalls = field(init=False)
    reader: ThreadReader = field(init=False)
    _placeholders: dict[tuple[ThreadKey, str], Posted] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.calls, self.reader = self.workspace.calls, ThreadReader(self.workspace)

    async def recheck_later(self, place: ThreadKey, question_ts: str) -> None:
        """Check later that this question has only one answer, or end the session (``ENDS_SESSION``)."""
        if self.mailbox:
            await Recheck(place=place, question_ts=question_ts).add(self.mailbox)

    async def end_session(self, place: ThreadKey, lease_check: LeaseCheck = no_lease, *, title: str = "") -> None:
        """End the agent session and with it the status; later if Slack is down. Raises what ``lease_check`` raises."""
        try:
            await end_session(self.calls, place, lease_check, title)
        except DeliveryFailed as failure:
            if not failure.permanent:
                await self.recheck_later(place, ENDS_SESSION)

    async def post_answer(self, place: ThreadKey, answer: Answer, answer_key: AnswerKey) -> tuple[str, ...]:
        """Post the answer, or update the messages of an earlier one. Return the ts of its messages."""
        placeholder = self._placeholders.pop((place, answer_key.question_ts), None)
        if stream := answer_key.stream:
            blocks, metadata = blocks_under_stream(answer, answer_key, self.today()), _metadata(answer_key, answer)
            if await stream.close(answer.text, blocks, metadata):
                answer_key.lease_check()
                log.info("answer_delivered", messages=1, updated=0, verified=answer.verified, streamed=True)
                if placeholder:
                    await self._delete(place.channel, placeholder.ts, answer_key.lease_check)
                return (stream.streamed.ts,)
        posts = render(answer, answer_key, self.today())
        existing = await self._find_posted(place, answer_key)
        # Before the first answer, reuse a placeholder, preferably a stream that has part of it. Delete the others.
        waiting = sorted(existing, key=lambda posted: not posted.stream) or ([placeholder] if placeholder else [])
        reusable = [posted for posted in existing if not posted.placeholder] or waiting[:1]
        assigned = assign_messages(reusable, len(posts), answer_key.turn_id)
        stamps: list[str] = []
        for number, (post, message) in enumerate(zip(posts, assigned, strict=True), 1):
            metadata = _metadata(answer_key, answer, number)
            stamps.append(await self._put_message(place, metadata, post, answer_key, message))
        for surplus in (posted for posted in existing if posted not in assigned):
            await self.delete_post(place, surplus, answer_key)
        answer_key.lease_check()  # without the lease, the next worker counts this answer and checks it again
        log.info("answer_delivered", messages=len(posts), updated=len(reusable), verified=answer.verified)
        return tuple(stamps)

    async def _find_posted(self, place: ThreadKey, answer_key: AnswerKey) -> tuple[Posted, ...]:
        """Return the messages for the question: those in Slack, and those recorded when they were posted."""
        if not answer_key.may_exist:
            return ()
        try:
            messages = await self.reader.find_posts(place, answer_key.question_ts, answer_key.streamed)
        except DeliveryFailed as failure:
            # Do not make people wait for Slack's limits if our records are complete.
            if not (failure.again_s and answer_key.posted_is_complete):
                raise
            messages = ()
        stamps = {posted.ts for posted in messages}
        # Messages of this answer that Slack does not return.
        recorded = [Posted(ts=ts, part=part) for part, ts in enumerate(answer_key.posted, 1) if ts not in stamps]
        return tuple(sorted((*messages, *recorded), key=lambda posted: posted.part))

    async def is_waiting_to_post(self, place: ThreadKey, answer: Answer, answer_key: AnswerKey) -> bool:
        """Return whether the answer's first post still waits in the rate limiter, so no part can be in Slack."""
        body = {**_address(place), "metadata": _metadata(answer_key, answer)}
        return self.calls.limits is not None and await self.calls.limits.is_waiting("chat.postMessage", body)

    async def post_own_text(
        self, place: ThreadKey, text: str, question_ts: str, lease_check: LeaseCheck = no_lease
    ) -> tuple[str, ...]:
        """Post one of Orion's own messages (help, muted, stopped), once for this question."""
        answer_key = AnswerKey(question_ts=question_ts, lease_check=lease_check)
        return await self.post_answer(place, own_message(text), answer_key)

    async def post_notice(
        self, place: ThreadKey, text: str, about: str, lease_check: LeaseCheck = no_lease, blocks: Sequence[Block] = ()
    ) -> None:
        """Post a notice, once per ``about``, which begins with the ts of the message that caused it."""

        async def look() -> Reply | None:
            return {} if await self.reader.has_notice(place, about) else None

        if await look() is None:
            metadata = {"event_type": NOTICE_EVENT, "event_payload": {"about": about}}
            key = AnswerKey(question_ts=about.partition(":")[0], lease_check=lease_check)
            await self._post(place, {"text": text, "blocks": list(blocks), "metadata": metadata}, key, look)

    async def delete_answer(
        self,
        place: ThreadKey,
        question_ts: str,
        lease_check: LeaseCheck = no_lease,
        *,
        posted: Sequence[str] = (),
        only_placeholders: bool = False,
    ) -> int:
        """Delete the answer to a question with the recorded messages ``posted``, or placeholders. Return how many."""
        key = AnswerKey(question_ts=question_ts, posted=tuple(posted), posted_is_complete=bool(posted))
        shown = self._placeholders.pop((place, question_ts), None)
        if shown and shown.ts:  # first, by its ts, because Orion may not be allowed to read the history
            await self._delete(place.channel, shown.ts, lease_check)
        deleted = shown.ts if shown else ""
        posts = [one for one in await self._find_posted(place, key) if one.placeholder or not only_placeholders]
        messages = [one for one in posts if one.ts != deleted]
        for message in messages:
            await self._delete(place.channel, message.ts, lease_check)
        return len(messages)

    async def set_status(
        self, place: ThreadKey, text: str, loading: Sequence[str] = (), *, lease_check: LeaseCheck = no_lease
    ) -> None:
        """Show the current activity; an empty text clears it. Slack removes it after two minutes."""
        body = {"channel_id": place.channel, "thread_ts": place.thread_ts, "status": text}
        loads = {"loading_messages": list(loading[:10])} if loading and text else {}
        lease_check()
        await self.calls.call_once(STATUS_METHOD, body | loads)

    async def show_placeholder(self, place: ThreadKey, text: str, answer_key: AnswerKey) -> None:
        """Show the current activity as a message, if Slack has no status. The answer replaces it."""
        key = (place, answer_key.question_ts)
        content = {"text": text, "blocks": [section(text)]}  # a section, so that hosts in a step do not become links
        if (shown := self._placeholders.get(key)) is not None:
            body = {"channel": place.channel, "ts": shown.ts, **content}
            await self.calls.write("chat.update", body, lease_check=answer_key.lease_check)
            return
        look = self._look(place, answer_key, lambda posted: posted.placeholder)
        reply = await self._post(place, {**content, "metadata": _working_metadata(answer_key)}, answer_key, look)
        self._placeholders[key] = Posted(ts=string(reply, "ts"), placeholder=True)

    async def end_streams(self, place: ThreadKey, answer_key: AnswerKey, note: str = "") -> bool:
        """End the open streams, with a ``note`` or for the next answer to reuse. Return whether the note is shown."""
        posts = await self.reader.find_posts(place, answer_key.question_ts, answer_key.streamed)
        streams = [posted for posted in posts if posted.stream]
        for posted in streams:
            if not await self._end_stream(place.channel, posted, answer_key, note) and note:
                ended = StreamedMessage("begun", posted.ts)
                await self.post_answer(place, own_message(note), replace(answer_key, turn_id="", streamed=ended))
        return bool(note and streams)

    async def delete_streams(self, place: ThreadKey, answer_key: AnswerKey, *, wordless: bool = False) -> None:
        """Delete the question's streams; ``wordless``: only those without any text of an answer."""
        for posted in await self.reader.find_posts(place, answer_key.question_ts, answer_key.streamed):
            if posted.stream and (not wordless or posted.blank or posted.planned):
                await self.delete_post(place, posted, answer_key)

    async def post_ephemeral(self, place: ThreadKey, user: str, text: str, *, blocks: Sequence[Block] = ()) -> None:
        """Post a message that only this person sees."""
        content = {"user": user, "text": text, **({"blocks": list(blocks)} if blocks else {})}
        await self.calls.call_once("chat.postEphemeral", {**_address(place), **content})

    async def send_direct_message(self, user: str, text: str) -> tuple[str, str]:
        """Send a person one of Orion's own messages. Return the channel of their direct messages, and its ts."""
        # The person pressed a button and would not understand silence after a rate limit.
        body = {"channel": user, "text": text, **_NO_PREVIEWS}
        async for attempt in stamina.retry_context(_limit_pause_s, attempts=_DIRECT_MESSAGE_TRIES, timeout=None):
            with attempt:
                reply = await self.calls.call_once("chat.postMessage", body)
        return string(reply, "channel"), string(reply, "ts")

    async def open_modal(self, trigger_id: str, view: Block) -> None:
        """Open a dialog. A trigger lives for three seconds."""
        await self.calls.call_once("views.open", {"trigger_id": trigger_id, "view": view})

    async def publish_home(self, user: str, figures: HomeFigures, language: str | None = None) -> None:
        """Publish App Home for one person."""
        view = home_view(figures, self.today(), language)
        await self.calls.call_once("views.publish", {"user_id": user, "view": view})

    async def _put_message(
        self, place: ThreadKey, metadata: Mapping[str, Any], post: Post, answer_key: AnswerKey, message: Posted | None
    ) -> str:
        """Leave, update or post one message of the answer. Return its ts."""
        if message:
            if message.stream:  # an open stream cannot be updated
                await self._end_stream(place.channel, message, answer_key)
            # A message of this turn was complete when it was posted. Only a button press has no turn.
            if answer_key.turn_id and message.turn_id == answer_key.turn_id:
                return message.ts
            try:
                await self._write(place, {"metadata": metadata, "ts": message.ts}, post, answer_key)
            except DeliveryFailed as failure:
                if failure.reason not in _CANNOT_UPDATE:
                    raise
                await self._delete(place.channel, message.ts, answer_key.lease_check)
            else:
                return message.ts
        own = (metadata["event_payload"].get("part", 1), answer_key.turn_id)
        look = self._look(place, answer_key, lambda p: not p.placeholder and (p.part, p.turn_id) == own)
        return string(await self._write(place, {"metadata": metadata}, post, answer_key, look), "ts")

    async def _write(
        self, place: ThreadKey, body: Mapping[str, Any], post: Post, answer_key: AnswerKey, look: Look | None = None
    ) -> Reply:
        """Post a message, or update the one that ``body`` names by its ts.

        If the server refuses the blocks, send the plain ones, and finally the text alone.
        """
        choices = [post.blocks, post.plain, ()]
        while True:
            blocks, text = list(choices.pop(0)), post.text
            try:
                if look:
                    return await self._post(place, {**body, "text": text, "blocks": blocks}, answer_key, look)
                if blocks and len(text) > _MAX_UPDATE_LENGTH:  # the blocks have the whole text
                    text = _BROKEN_TOKEN.sub("", text[:_MAX_UPDATE_LENGTH]) + "…"
                update = {"channel": place.channel, **body, "text": text, "blocks": blocks}
                return await self.calls.write("chat.update", update, lease_check=answer_key.lease_check)
            except DeliveryFailed as failure:
                if failure.reason not in _BLOCKS_REFUSED or not choices:
                    raise
                log.warning("blocks_refused", reason=failure.reason, blocks=len(blocks))

    def _look(self, place: ThreadKey, answer_key: AnswerKey, is_it: Callable[[Posted], bool]) -> Look:
        """Return a function that looks for the message of a post without a reply."""

        async def look() -> Reply | None:
            messages = await self.reader.find_posts(place, answer_key.question_ts)
            return next(({"ts": posted.ts} for posted in messages if is_it(posted)), None)

        return look

    async def _post(self, place: ThreadKey, content: Mapping[str, Any], answer_key: AnswerKey, look: Look) -> Reply:
        return await self.calls.write(
            "chat.postMessage",
            {**_address(place), **content, **_NO_PREVIEWS},
            lease_check=answer_key.lease_check,
            look=look,
            maybe_posted=partial(self.recheck_later, place, answer_key.question_ts),
            fresh=not answer_key.may_exist,
        )

    async def _end_stream(self, channel: str, posted: Posted, answer_key: AnswerKey, note: str = "") -> bool:
        """End a stream as a placeholder, or with a ``note`` as the answer. Return False if it was not open."""
        end: dict[str, Any] = {"metadata": _working_metadata(answer_key)}
        if note:
            end = {
                "blocks": [context([note])],
                "metadata": _metadata(replace(answer_key, turn_id=""), own_message(note)),
            }
        try:
            body = {"channel": channel, "ts": posted.ts, **end}
            await self.calls.write("chat.stopStream", body, lease_check=answer_key.lease_check)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            log.info("stream_ended_before", reason=failure.reason)
            return False
        return True

    async def delete_post(
        self, place: ThreadKey, posted: Posted, answer_key: AnswerKey, *, keep_ended: bool = False
    ) -> bool:
        """Delete one message; ``keep_ended``: not a stream that its own turn has since ended as an answer."""
        if posted.stream and not await self._end_stream(place.channel, posted, answer_key) and keep_ended:
            return False
        await self._delete(place.channel, posted.ts, answer_key.lease_check)
        return True

    async def _delete(self, channel: str, ts: str, lease_check: LeaseCheck) -> None:
        try:
            await self.calls.write("chat.delete", {"channel": channel, "ts": ts}, lease_check=lease_check)
        except DeliveryFailed as failure:
            if failure.reason not in _DELETED:
                raise


def assign_messages(existing: Sequence[Posted], parts: int, turn_id: str) -> list[Posted | None]:
    """Return a message for each part: the one that this turn already posted, else one to update, else None.

    An older notice before the turn's own parts ("Orion is paused") must not shift them.
    """
    own: dict[int, Posted] = {}
    others: list[Posted] = []
    for posted in existing:
        if turn_id and posted.turn_id == turn_id:
            own.setdefault(posted.part, posted)
        else:
            others.append(posted)
    return [own.get(part) or (others.pop(0) if others else None) for part in range(1, parts + 1)]


def _limit_pause_s(failure: Exception) -> float | bool:
    """Return the pause that Slack asks for, at most 5 seconds; False if the failure is not a rate limit."""
    return isinstance(failure, DeliveryFailed) and failure.is_limited and min(failure.again_s or 1.0, 5.0)


def _address(place: ThreadKey) -> dict[str, Any]:
    """Return the address of a message. Direct messages without threads have no thread_ts."""
    return {"channel": place.channel} if is_direct(place) else {"channel": place.channel, "thread_ts": place.thread_ts}


def _metadata(answer_key: AnswerKey, answer: Answer, number: int = 1) -> dict[str, Any]:
    payload = {"question_ts": answer_key.question_ts, "turn_id": answer_key.turn_id, "verified": answer.verified}
    return {"event_type": ANSWER_EVENT, "event_payload": payload | ({"part": number} if number > 1 else {})}


def _working_metadata(answer_key: AnswerKey) -> dict[str, Any]:
    return {"event_type": WORKING_EVENT, "event_payload": {"question_ts": answer_key.question_ts}}

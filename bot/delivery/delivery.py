"""What Orion posts, updates and deletes in Slack.

A question's answer stands in its thread once, also after a crash or a second worker; the lease is checked right before
each call. Only an ``Answer``'s own text is posted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from functools import partial
from typing import Any, Final

import structlog

from agent.texts.catalogue import SUGGESTED_PROMPTS, own_words
from agent.thread.conversation import ThreadKey
from bot.delivery.answer_key import AnswerKey
from bot.delivery.blocks import Block, Post, context, render, section, under_stream
from bot.delivery.home import HomeFigures, home_view
from bot.delivery.slots import first_to_take, seats
from bot.delivery.stream import AnswerStream
from bot.slack.agent_session import STATUS_METHOD, AgentSessions
from bot.slack.history import ANSWER_EVENT, NOTICE_EVENT, WORKING_EVENT, Posted, ThreadReader, is_direct
from bot.slack.message import Own
from bot.slack.web_api import DeliveryFailed, LeaseCheck, Look, Reply, SlackCalls, no_lease
from verification.types import Answer

_BLOCKS_REFUSED: Final = frozenset({"invalid_blocks", "invalid_blocks_format", "msg_blocks_too_long"})
_GONE: Final = frozenset({"message_not_found", "thread_not_found"})
_CANNOT_UPDATE: Final = _GONE | {"edit_window_closed", "cant_update_message", "msg_too_long", "block_mismatch"}
_LONGEST_UPDATE: Final = 3_900  # chat.update takes 4,000 characters of text, chat.postMessage ten times as many
_CUT_TOKEN: Final = re.compile(r"(?:<[^<>]*|&\w{0,4})$")
_GREETED_LATER: Final = 3
# A preview would ask for an address that a document chose, without a click.
_QUIET: Final = {"unfurl_links": False, "unfurl_media": False}
_log = structlog.get_logger()

ENDS_SESSION: Final = "session"
"""In place of a question's ts: what is to be done again is the end of the place's session."""

Note = Callable[[ThreadKey, str], Awaitable[object]]


def today_utc() -> date:
    """The date that ages count from."""
    return datetime.now(UTC).date()


async def _unnoted(_place: ThreadKey, _question_ts: str) -> None:
    """Nobody looks again."""


class Delivery:
    """Delivers to one workspace. ``identity`` tells who Orion is there; ``today`` is the date that ages count from.

    ``maybe_posted`` hears which question's place to look at again: Slack may carry out later what it gave no reply to.
    Every method raises ``DeliveryFailed`` where the place is gone, or Slack away for longer than patience lasts.
    """

    def __init__(
        self,
        calls: SlackCalls,
        identity: Callable[[], Awaitable[Own]],
        today: Callable[[], date] = today_utc,
        *,
        prompts: Sequence[Mapping[str, str]] = SUGGESTED_PROMPTS,
        maybe_posted: Note = _unnoted,
    ) -> None:
        self._calls = calls
        self.reader = ThreadReader(calls, identity)
        self.sessions = AgentSessions(calls, lambda place: maybe_posted(place, ENDS_SESSION))
        self.today = today
        self._prompts = prompts
        self._maybe_posted = maybe_posted
        self._placeholders: dict[tuple[ThreadKey, str], Posted] = {}

    async def answer(self, place: ThreadKey, answer: Answer, answer_key: AnswerKey) -> tuple[str, ...]:
        """Posts the answer, or brings what stands there already up to date. Returns the ts of its messages."""
        placeholder = self._placeholders.pop((place, answer_key.question_ts), None)
        if answer_key.stream and await self._closed(answer_key.stream, answer, answer_key):
            if placeholder:
                await self._delete(place.channel, placeholder.ts, answer_key.lease_check)
            return (answer_key.stream.ts,)
        posts = render(answer, answer_key, self.today())
        found = await self._found(place, answer_key)
        # A placeholder is taken over only where no answer stands yet; one that a dead worker left goes at the end.
        earlier = first_to_take(found) or ((placeholder,) if placeholder else ())
        standing = [posted for posted in found if not posted.placeholder] or earlier
        taken = seats(standing, len(posts), answer_key.turn_id)
        stamps: list[str] = []
        for number, (post, seat) in enumerate(zip(posts, taken, strict=True), 1):
            metadata = _metadata(answer_key, verified=answer.verified, number=number)
            stamps.append(await self._place(place, metadata, post, answer_key, seat))
        for surplus in (posted for posted in found if posted not in taken):
            await self._remove(place, surplus, answer_key)
        answer_key.lease_check()  # what was posted without the thread is somebody else's to count, and to look at again
        _log.info("answer_delivered", messages=len(posts), updated=len(standing), verified=answer.verified)
        return tuple(stamps)

    async def _found(self, place: ThreadKey, answer_key: AnswerKey) -> tuple[Posted, ...]:
        """What stands there for the question: as Slack has it, and as it was noted when it was posted."""
        if not answer_key.may_exist:
            return ()
        try:
            found = await self.reader.posted(place, answer_key.question_ts, answer_key.streamed)
        except DeliveryFailed as failure:
            # Slack's limits are no reason to keep a person waiting where what is stored tells all but the unlikely.
            if not (failure.again_s and answer_key.unlikely):
                raise
            found = ()
        return _with_noted(found, answer_key.posted)

    async def unposted(self, place: ThreadKey, answer: Answer, answer_key: AnswerKey) -> bool:
        """Whether this answer waits for its first turn under Slack's limits: no part of it can stand anywhere."""
        body = {**_address(place), "metadata": _metadata(answer_key, verified=answer.verified)}
        return await self._calls.unmade("chat.postMessage", body)

    async def say(
        self, place: ThreadKey, text: str, question_ts: str, lease_check: LeaseCheck = no_lease
    ) -> tuple[str, ...]:
        """Posts one of Orion's own messages (help, muted, stopped), once for this question."""
        return await self.answer(place, own_words(text), AnswerKey(question_ts=question_ts, lease_check=lease_check))

    async def notify(
        self,
        place: ThreadKey,
        text: str,
        about: str,
        lease_check: LeaseCheck = no_lease,
        *,
        blocks: Sequence[Block] = (),
    ) -> None:
        """Posts something of Orion's own that is no answer, once for what it is ``about``.

        That begins with the ts of the message it is posted for: nothing about it can stand here from before.
        """

        async def look() -> Reply | None:
            return {} if await self.reader.noted(place, about) else None

        if await look() is None:
            metadata = {"event_type": NOTICE_EVENT, "event_payload": {"about": about}}
            key = AnswerKey(question_ts=about.partition(":")[0], lease_check=lease_check)
            await self._post(place, {"text": text, "blocks": list(blocks), "metadata": metadata}, key, look)

    async def withdraw(
        self, place: ThreadKey, question_ts: str, lease_check: LeaseCheck = no_lease, *, posted: Sequence[str] = ()
    ) -> int:
        """Deletes the answer to a question that was deleted, also the messages ``posted``. Returns how many went."""
        key = AnswerKey(question_ts=question_ts, posted=tuple(posted), unlikely=bool(posted))
        found = await self._found(place, key)
        for one in found:
            await self._delete(place.channel, one.ts, lease_check)
        return len(found)

    async def take_away(self, place: ThreadKey, posted: Posted, answer_key: AnswerKey) -> bool:
        """Deletes one message. False where it is a stream that its turn, which lives, ended as an answer meanwhile."""
        if posted.stream and not await self._ended(place.channel, posted, answer_key):
            return False
        await self._delete(place.channel, posted.ts, answer_key.lease_check)
        return True

    async def status(
        self, place: ThreadKey, text: str, loading: Sequence[str] = (), *, lease_check: LeaseCheck = no_lease
    ) -> None:
        """Shows what Orion does right now; an empty text clears it. Slack forgets it after two minutes."""
        body = {"channel_id": place.channel, "thread_ts": place.thread_ts, "status": text}
        extra = {"loading_messages": list(loading[:10])} if loading and text else {}
        lease_check()
        await self._calls.once(STATUS_METHOD, {**body, **extra})

    async def placeholder(self, place: ThreadKey, text: str, answer_key: AnswerKey) -> None:
        """Shows what Orion does right now where there is no status: a message that the answer will take over."""
        key = (place, answer_key.question_ts)
        said = {"text": text, "blocks": [section(text)]}  # it may name a plan's step: no host in it becomes a link
        if (known := self._placeholders.get(key)) is not None:
            body = {"channel": place.channel, "ts": known.ts, **said}
            await self._calls.write("chat.update", body, lease_check=answer_key.lease_check)
            return
        look = self._look(place, answer_key, lambda posted: posted.placeholder)
        reply = await self._post(place, {**said, "metadata": _working(answer_key)}, answer_key, look)
        self._placeholders[key] = Posted(ts=str(reply.get("ts", "")), placeholder=True)

    async def drop_placeholders(self, place: ThreadKey, answer_key: AnswerKey) -> None:
        """Takes away what placeholder no answer took over, also one whose post was cut off by a cancellation."""
        self._placeholders.pop((place, answer_key.question_ts), None)
        for posted in await self.reader.posted(place, answer_key.question_ts):
            if posted.placeholder:
                await self._delete(place.channel, posted.ts, answer_key.lease_check)

    async def end_streams(self, place: ThreadKey, answer_key: AnswerKey, note: str = "") -> bool:
        """Ends what nobody ended, with a ``note`` or for the next answer to take over. Whether the note was said."""
        streams = [p for p in await self.reader.posted(place, answer_key.question_ts, answer_key.streamed) if p.stream]
        for posted in streams:
            if not await self._ended(place.channel, posted, answer_key, note) and note:
                await self.answer(place, own_words(note), replace(answer_key, turn_id="", streamed=posted.ts))
        return bool(note and streams)

    async def drop_streams(self, place: ThreadKey, answer_key: AnswerKey, *, wordless: bool = False) -> None:
        """Takes away what was streamed for a question; ``wordless``: only where no word of an answer stands."""
        for posted in await self.reader.posted(place, answer_key.question_ts, answer_key.streamed):
            if posted.stream and (not wordless or posted.blank or posted.planned):
                await self._remove(place, posted, answer_key)

    async def thank(self, place: ThreadKey, user: str, text: str) -> None:
        """Says something that only this person sees."""
        await self._calls.once("chat.postEphemeral", {**_address(place), "user": user, "text": text})

    async def greet(self, user: str, text: str) -> tuple[str, str]:
        """Says something of Orion's own in a person's direct chat. Returns the chat's id and the message's ts.

        Where Slack's limits stand against it, it is said a little later: nobody sees that a press came to nothing.
        """
        said = {"channel": user, "text": text, **_QUIET}
        for _ in range(_GREETED_LATER):
            try:
                reply = await self._calls.once("chat.postMessage", said)
                break
            except DeliveryFailed as failure:
                if not failure.limited:
                    raise
                await asyncio.sleep(min(failure.again_s or 1.0, 5.0))
        else:
            reply = await self._calls.once("chat.postMessage", said)
        return str(reply.get("channel", "")), str(reply.get("ts", ""))

    async def open_modal(self, trigger_id: str, view: Block) -> None:
        """Opens a dialog. A trigger lives for three seconds."""
        await self._calls.once("views.open", {"trigger_id": trigger_id, "view": view})

    async def publish_home(self, user: str, figures: HomeFigures, language: str | None = None) -> None:
        """Publishes App Home for one person."""
        view = home_view(figures, self.today(), language)
        await self._calls.once("views.publish", {"user_id": user, "view": view})

    async def suggest_prompts(self, channel: str, questions: Sequence[str] = ()) -> None:
        """Suggests first questions in a direct chat. Without thread_ts: with one the call fails silently there."""
        asked = [{"title": question, "message": question} for question in questions]
        body = {"channel_id": channel, "prompts": asked or [dict(prompt) for prompt in self._prompts]}
        await self._calls.once("assistant.threads.setSuggestedPrompts", body)

    async def _place(
        self, place: ThreadKey, metadata: Mapping[str, Any], post: Post, answer_key: AnswerKey, known: Posted | None
    ) -> str:
        """Puts one message where it belongs: leaves it, updates it, or posts it."""
        if known:
            await self._hand_over(place.channel, known, answer_key)
            # An answer of this very turn was complete when it was posted; only a button press carries no turn.
            if answer_key.turn_id and known.turn_id == answer_key.turn_id:
                return known.ts
            if await self._updated({"channel": place.channel, "metadata": metadata}, post, known.ts, answer_key):
                return known.ts
            await self._delete(place.channel, known.ts, answer_key.lease_check)
        own = (metadata["event_payload"].get("part", 1), answer_key.turn_id)
        look = self._look(place, answer_key, lambda p: not p.placeholder and (p.part, p.turn_id) == own)
        said = {"metadata": metadata, "text": post.text}
        reply = await _with_blocks(post, lambda blocks: self._post(place, {**said, "blocks": blocks}, answer_key, look))
        return str(reply.get("ts", ""))

    async def _updated(self, body: Mapping[str, Any], post: Post, ts: str, answer_key: AnswerKey) -> bool:
        async def update(blocks: list[Block]) -> Reply:
            text = _shortened(post.text) if blocks else post.text
            whole = {**body, "ts": ts, "text": text, "blocks": blocks}
            return await self._calls.write("chat.update", whole, lease_check=answer_key.lease_check)

        try:
            await _with_blocks(post, update)
        except DeliveryFailed as failure:
            if failure.reason not in _CANNOT_UPDATE:
                raise
            return False
        return True

    def _look(self, place: ThreadKey, answer_key: AnswerKey, is_it: Callable[[Posted], bool]) -> Look:
        """Finds what a post without a reply may have left."""

        async def look() -> Reply | None:
            found = await self.reader.posted(place, answer_key.question_ts)
            return next(({"ts": posted.ts} for posted in found if is_it(posted)), None)

        return look

    async def _post(self, place: ThreadKey, said: Mapping[str, Any], answer_key: AnswerKey, look: Look) -> Reply:
        return await self._calls.write(
            "chat.postMessage",
            {**_address(place), **said, **_QUIET},
            lease_check=answer_key.lease_check,
            look=look,
            maybe_posted=partial(self._maybe_posted, place, answer_key.question_ts),
            fresh=not answer_key.may_exist,
        )

    async def _closed(self, stream: AnswerStream, answer: Answer, answer_key: AnswerKey) -> bool:
        """Whether the stream could be ended as this answer."""
        blocks = under_stream(answer, answer_key, self.today())
        whole = await stream.close(answer.text, blocks, _metadata(answer_key, verified=answer.verified))
        if whole:
            answer_key.lease_check()
            _log.info("answer_delivered", messages=1, updated=0, verified=answer.verified, streamed=True)
        return whole

    async def _hand_over(self, channel: str, posted: Posted, answer_key: AnswerKey) -> None:
        """While a stream grows nobody can update it."""
        if posted.stream:
            await self._ended(channel, posted, answer_key)

    async def _ended(self, channel: str, posted: Posted, answer_key: AnswerKey, note: str = "") -> bool:
        """End a stream as a placeholder; with a ``note`` under it as the answer. False where it is none any more."""
        how: dict[str, Any] = {"metadata": _working(answer_key)}
        if note:
            metadata = _metadata(replace(answer_key, turn_id=""), verified=False)
            how = {"blocks": [context([note])], "metadata": metadata}
        try:
            body = {"channel": channel, "ts": posted.ts, **how}
            await self._calls.write("chat.stopStream", body, lease_check=answer_key.lease_check)
        except DeliveryFailed as failure:
            if not failure.permanent:
                raise
            _log.info("stream_ended_before", reason=failure.reason)
            return False
        return True

    async def _remove(self, place: ThreadKey, posted: Posted, answer_key: AnswerKey) -> None:
        await self._hand_over(place.channel, posted, answer_key)
        await self._delete(place.channel, posted.ts, answer_key.lease_check)

    async def _delete(self, channel: str, ts: str, lease_check: LeaseCheck) -> None:
        try:
            await self._calls.write("chat.delete", {"channel": channel, "ts": ts}, lease_check=lease_check)
        except DeliveryFailed as failure:
            if failure.reason not in _GONE:
                raise


def _address(place: ThreadKey) -> dict[str, Any]:
    """Where a message goes. A direct chat without thread is answered where it stands."""
    return {"channel": place.channel} if is_direct(place) else {"channel": place.channel, "thread_ts": place.thread_ts}


def _metadata(answer_key: AnswerKey, *, verified: bool, number: int = 1) -> dict[str, Any]:
    payload = {"question_ts": answer_key.question_ts, "turn_id": answer_key.turn_id, "verified": verified}
    part = {"part": number} if number > 1 else {}
    return {"event_type": ANSWER_EVENT, "event_payload": {**payload, **part}}


def _working(answer_key: AnswerKey) -> dict[str, Any]:
    return {"event_type": WORKING_EVENT, "event_payload": {"question_ts": answer_key.question_ts}}


async def _with_blocks(post: Post, send: Callable[[list[Block]], Awaitable[Reply]]) -> Reply:
    """Sends with all blocks; where a server refuses them with the plain ones, and at last with the text alone."""
    for blocks in (post.blocks, post.plain):
        try:
            return await send(list(blocks))
        except DeliveryFailed as failure:
            if failure.reason not in _BLOCKS_REFUSED:
                raise
            _log.warning("blocks_refused", reason=failure.reason, blocks=len(blocks))
    return await send([])


def _with_noted(found: tuple[Posted, ...], noted: Sequence[str]) -> tuple[Posted, ...]:
    """What Slack has of an answer, and the messages noted for it that it does not tell from others."""
    known = {posted.ts for posted in found}
    more = [Posted(ts=ts, part=part) for part, ts in enumerate(noted, 1) if ts not in known]
    return tuple(sorted((*found, *more), key=lambda posted: posted.part))


def _shortened(text: str) -> str:
    """A text for notifications; the blocks beside it hold the whole."""
    return text if len(text) <= _LONGEST_UPDATE else _CUT_TOKEN.sub("", text[:_LONGEST_UPDATE]) + "…"

"""Events from Slack become stored messages, or a reason to ignore them."""

import json
from dataclasses import replace
from typing import Any

import pytest

from agent.thread.conversation import ThreadKey
from bot.events.intake import apply_thread_mode, parse_event
from bot.slack.message import Access, BotIdentity, Ignored, Incoming, ThreadMode
from tests.support.slack_events import envelope, mention, message

OWN = BotIdentity(user="UORION", bot="BORION")
OPEN = Access()


def incoming(event: dict[str, Any], **fields: Any) -> Incoming:
    return parse_event(envelope(event, **fields), OWN, OPEN)


def reason(event: dict[str, Any], access: Access = OPEN, **fields: Any) -> str:
    try:
        return parse_event(envelope(event, **fields), OWN, access).refused
    except Ignored as ignored:
        return ignored.reason


def settle(found: Incoming, thread_mode: ThreadMode) -> Incoming | str:
    """Return the message as the thread's mode leaves it, or why it is ignored."""
    try:
        return apply_thread_mode(found, thread_mode)
    except Ignored as ignored:
        return ignored.reason


def test_a_mention_opens_its_own_thread() -> None:
    assert incoming(mention()) == Incoming(
        kind="question",
        thread=ThreadKey(team="T1", channel="C1", thread_ts="1700000000.000100"),
        user="UANN",
        ts="1700000000.000100",
        addressed="mention",
        text="how do we release?",
        event_ts="1700000000.000100",
        channel_type="channel",
        event_ids=("evt:T1:Ev1", "msg:T1:C1:1700000000.000100"),
        vouched=True,
        files="unknown",
    )


def test_only_a_message_event_lists_files_and_files_alone_are_a_question() -> None:
    chat = {"type": "message", "channel": "D1", "channel_type": "im", "user": "UANN", "ts": "1.000001"}
    assert incoming({**chat, "text": "hi"}).files == "none"
    shared = incoming({**chat, "text": "", "subtype": "file_share", "files": [{"id": "F1"}]})
    assert (shared.kind, shared.text, shared.files) == ("question", "", "some")
    bare = incoming({**mention(), "text": "<@UORION>"})
    assert (bare.kind, bare.text, bare.files) == ("question", "", "unknown")


def test_a_direct_message_opens_its_own_thread() -> None:
    found = incoming(message(channel="D1", channel_type="im"))
    place = ThreadKey(team="T1", channel="D1", thread_ts="1700000009.000200")
    assert (found.addressed, found.thread) == ("direct", place)
    threaded = incoming(message(channel="D1", channel_type="im", thread_ts="1600000000.000001"))
    assert threaded.thread.thread_ts == "1600000000.000001"


def test_a_group_direct_message_counts_if_it_mentions_orion() -> None:
    found = incoming(message(channel="G1", channel_type="mpim", text="<@UORION> hello?"))
    assert (found.addressed, found.thread.thread_ts) == ("mention", "1700000009.000200")
    assert reason(message(channel="G1", channel_type="mpim")) == "not_addressed"


def test_a_follow_up_waits_for_the_threads_mode() -> None:
    found = incoming(message(thread_ts="1700000000.000100"))
    assert found.addressed == "follow_up"
    assert settle(found, "engaged") is found
    assert settle(found, "unknown") == "not_addressed"
    assert settle(found, "lost") == replace(found, unproven=True)
    assert settle(replace(found, kind="mute"), "lost") == "not_addressed"
    assert settle(found, "muted") == "muted"


@pytest.mark.parametrize("text", ["<@UBEN> can you?", "<!here> look", "<!subteam^S1|@team> look"])
def test_a_message_to_someone_else_gets_no_answer_and_other_talk_is_overheard(text: str) -> None:
    assert reason(message(thread_ts="1700000000.000100", text=text)) == "to_somebody_else"
    assert reason(message(text=text)) == "to_somebody_else"
    assert incoming(message()).addressed == "overheard"


def test_mute_lasts_until_the_next_mention() -> None:
    muting = incoming(message(thread_ts="1700000000.000100", text="Mute."))
    assert (muting.kind, settle(muting, "engaged")) == ("mute", muting)
    again = incoming(mention(thread_ts="1700000000.000100"))
    assert settle(again, "muted") is again
    direct = incoming(message(channel="D1", channel_type="im"))
    assert settle(direct, "muted") == "muted"
    assert settle(direct, "unknown") is direct


@pytest.mark.parametrize("place", [{}, {"channel": "G1", "channel_type": "mpim"}])
def test_both_events_of_a_mention_are_read_and_share_a_key(place: dict[str, Any]) -> None:
    said = {**place, "text": "<@UORION> how do we release?", "ts": "1700000000.000100"}
    first, second = incoming(mention(**said), event_id="Ev1"), incoming(message(**said), event_id="Ev2")
    assert first.event_ids[0] != second.event_ids[0]
    assert first.event_ids[1] == second.event_ids[1] == f"msg:T1:{first.thread.channel}:1700000000.000100"
    assert (first.kind, first.addressed, first.thread, first.text) == (
        second.kind, second.addressed, second.thread, second.text
    )  # fmt: skip


# The forms of a message that Slack's documentation and recorded events of its SDKs show.
FILE = {"id": "F1", "name": "log.txt", "mimetype": "text/plain", "mode": "snippet"}
SHARED = {
    "id": 1, "ts": "1699999999.000500", "channel_id": "C9", "author_id": "UBEN", "author_name": "Ben",
    "footer": "Posted", "from_url": "https://acme.slack.com/archives/C9/p1699999999000500",
    "fallback": "[November 14th] ben: deploy *fails*",
    "text": "deploy *fails* &amp; stays red", "mrkdwn_in": ["text"], "is_msg_unfurl": True,
}  # fmt: skip
PARTS = [{"type": "text", "text": "ask "}, {"type": "user", "user_id": "UCID"}, {"type": "text", "text": " first"}]
RICH = {"type": "rich_text", "elements": [{"type": "rich_text_section", "elements": PARTS}]}
BLOCKS = [{"team": "T1", "channel": "C9", "ts": "1.2", "message": {"blocks": [RICH]}}]
FORWARDED = {"is_share": True, "author_subname": "Ben", "text": "", "message_blocks": BLOCKS}
THROUGH_APP = {"bot_id": "BVOICE", "app_id": "AVOICE", "bot_profile": {"id": "BVOICE", "app_id": "AVOICE"}}
PREVIEW = {"title": "Status page", "text": "all green", "from_url": "https://status.example"}


@pytest.mark.parametrize(
    ("event", "text", "files"),
    [
        (message(text="<@UORION> what is this?", subtype="file_share", files=[FILE]), "what is this?", "some"),
        (mention(text="<@UORION> what is this?", files=[FILE]), "what is this?", "some"),
        (mention(attachments=[SHARED]), "how do we release?\n\nBen: deploy *fails* & stays red", "unknown"),
        (mention(text="<@UORION>", attachments=[FORWARDED]), "Ben: ask <@UCID> first", "unknown"),
        (mention(attachments=[PREVIEW]), "how do we release?", "unknown"),
        (mention(text="<@UORION> stop", attachments=[SHARED]), "stop\n\nBen: deploy *fails* & stays red", "unknown"),
        (message(text="<@UORION> asks for release notes", subtype="me_message"), "asks for release notes", "none"),
        (mention(client_msg_id="0f1e", **THROUGH_APP), "how do we release?", "unknown"),
        (mention(**THROUGH_APP), "how do we release?", "unknown"),
    ],
)  # fmt: skip
def test_every_form_of_a_message_is_a_question(event: dict[str, Any], text: str, files: str) -> None:
    found = incoming(event)
    assert (found.kind, found.addressed, found.text, found.files) == ("question", "mention", text, files)
    assert found.mentioned == frozenset(), "whom a shared message names, the question does not"
    assert found.through_app is ("bot_id" in event and "client_msg_id" not in event)


def edit(text: str = "how do we <@UORION> roll back?", **fields: Any) -> dict[str, Any]:
    before = {"type": "message", "user": "UANN", "text": "<@UORION> how do we release?", "ts": "1700000000.000100"}
    after = {**before, "text": text, "edited": {"user": "UANN", "ts": "1700000042.000000"}, **fields}
    place = {"type": "message", "channel": "C1", "channel_type": "channel", "event_ts": "1700000042.000300"}
    return {**place, "subtype": "message_changed", "hidden": True, "message": after, "previous_message": before}


def deletion(gone: dict[str, Any]) -> dict[str, Any]:
    place = {"type": "message", "channel": "C1", "channel_type": "channel", "event_ts": "1700000050.000000"}
    return {**place, "subtype": "message_deleted", "deleted_ts": gone["ts"], "previous_message": gone}


def test_an_edit_is_a_new_version_of_the_same_message() -> None:
    found = incoming(edit())
    assert (found.kind, found.ts, found.edited_ts) == ("edit", "1700000000.000100", "1700000042.000000")
    assert found.text == "how do we  roll back?"
    assert found.thread.thread_ts == "1700000000.000100"
    assert found.event_ids[1] == "msg:T1:C1:1700000000.000100:1700000042.000000"
    mentioned = incoming(mention(edited={"user": "UANN", "ts": "1700000042.000000"}))
    assert (mentioned.kind, mentioned.event_ids[1]) == ("edit", found.event_ids[1])

    plain = incoming(edit("how do we roll back?"))
    assert plain.addressed == "follow_up"
    assert settle(plain, "unknown") == "not_addressed"
    assert settle(plain, "muted") is plain


def test_an_edit_that_adds_the_mention_is_a_new_question() -> None:
    event = edit()
    event["previous_message"]["text"] = "how do we release?"
    found = incoming(event)
    asked = settle(found, "unknown")
    assert settle(found, "lost") == asked
    assert isinstance(asked, Incoming)
    assert (found.kind, asked.kind, asked.edited_ts) == ("edit", "question", "1700000042.000000")
    assert settle(found, "engaged") is found


def test_unfurls_and_own_updates_are_not_edits() -> None:
    assert reason(edit("<@UORION> how do we release?")) == "not_an_edit"
    assert reason(edit(edited={})) == "not_an_edit"
    preview = {"from_url": "https://x.example", "text": "A page"}
    assert reason(edit("<@UORION> how do we release?", attachments=[preview])) == "not_an_edit"
    asked = edit("<@UORION> how do we release?", edited={}, attachments=[SHARED])
    gone = {**asked, "message": asked["previous_message"], "previous_message": asked["message"]}
    assert reason(gone) == "not_an_edit", "a preview that its author removed"
    assert reason(edit(user="UORION", bot_id="BORION")) == "self"
    assert reason(edit("New title", subtype="assistant_app_thread")) == "subtype"


LINKED: Any = {"attachments": [SHARED]}, "\n\nBen: deploy *fails* & stays red", {}


@pytest.mark.parametrize(
    ("link", "added", "words", "files"),
    [
        ("https://acme.slack.com/archives/C9/p1699999999000500", *LINKED),
        ("https://a.enterprise.slack.com/archives/G9/p16?a=b", *LINKED),
        ("https://acme.slack.com/docs/T1/F1", {"files": [FILE]}, "", {"files": "some", "attached": (FILE,)}),
    ],
)
def test_a_linked_message_or_file_that_slack_adds_later_belongs_to_the_same_question(
    link: str, added: dict[str, Any], words: str, files: dict[str, Any]
) -> None:
    place = {"channel": "C1", "channel_type": "channel", "ts": "1700000000.000100", "thread_ts": "1690000000.000100"}
    for text, addressed in ((f"<@UORION> why? <{link}>", "mention"), (f"why? <{link}>", "follow_up")):
        asked, shown = incoming(message(**place, text=text)), edit(text, edited={}, thread_ts=place["thread_ts"])
        shown["previous_message"] = {**shown["message"]}
        shown["message"] |= added
        whole = incoming(shown)
        read = {"text": f"why? {link}{words}", "links_message": False, "event_ts": whole.event_ts, **files}
        assert whole == replace(asked, **read), "with the same key"
        assert (asked.links_message, asked.addressed) == (True, addressed)
        assert reason({**shown, "ts": "1700086400.000100"}) == "not_an_edit", "a day later, as if it were new"
        shown["message"]["text"] = shown["previous_message"]["text"] = f"<@UBEN> see <{link}>"
        assert reason(shown) == "to_somebody_else"


def test_an_edit_of_a_block_or_a_file_counts() -> None:
    table = {"type": "table", "rows": [[{"type": "raw_text", "text": "12 €"}]]}
    assert incoming(edit("<@UORION> how do we release?", blocks=[table])).text == (
        "how do we release?\n| 12 € |\n| --- |"
    )
    assert incoming(edit("<@UORION> how do we release?", files=[{"id": "F1"}])).kind == "edit"


def test_a_deleted_question_is_reported() -> None:
    gone = {"type": "message", "user": "UANN", "text": "<@UORION> how?", "ts": "1700000000.000100"}
    found = incoming(deletion(gone))
    assert (found.kind, found.ts, found.text) == ("delete", "1700000000.000100", "")
    assert found.event_ids[1] == "msg:T1:C1:1700000000.000100:deleted"
    assert reason(deletion({**gone, "user": "UORION", "bot_id": "BORION"})) == "self"
    tombstone = edit()
    tombstone["message"] = {"subtype": "tombstone", "user": "USLACKBOT", "ts": "1700000000.000100", "text": "gone"}
    assert incoming(tombstone).event_ids[1] == found.event_ids[1]


@pytest.mark.parametrize("text", ["<@UBEN> the PIN is 4711", "<!here> look", "mute"])
def test_a_deleted_message_between_people_in_a_thread_is_passed_on(text: str) -> None:
    gone = {"user": "UANN", "text": text, "ts": "1700000000.000300", "thread_ts": "1700000000.000100"}
    found = incoming(deletion(gone))
    assert (found.kind, found.thread.thread_ts) == ("delete", "1700000000.000100")
    assert settle(found, "engaged") is found, "it may stand in Orion's memory"
    assert settle(found, "unknown") == "not_addressed"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"user": "UORION"}, "self"),
        ({"bot_id": "BORION"}, "self"),
        ({"bot_id": "BOTHER", "user": None}, "bot"),
        ({"user": "USLACKBOT"}, "bot"),
        ({"subtype": "bot_message", "bot_id": "BOTHER"}, "subtype"),
        ({"subtype": "channel_join"}, "subtype"),
        ({"subtype": "channel_topic"}, "subtype"),
        ({"subtype": "reminder_add"}, "subtype"),
    ],
)
def test_orion_never_answers_itself_bots_or_notices(fields: dict[str, Any], why: str) -> None:
    assert reason(message(channel="D1", channel_type="im", **fields)) == why


@pytest.mark.parametrize("name", ["BOTHER", "AOTHER", "UOTHER"])
def test_an_allow_listed_bot_may_ask(name: str) -> None:
    access = Access(allow_bots=frozenset({name}))
    event = mention(bot_id="BOTHER", app_id="AOTHER", user="UOTHER")
    assert parse_event(envelope(event), OWN, access)
    classic = message(
        subtype="bot_message", channel="D1", channel_type="im", bot_id="BOTHER", app_id="AOTHER", user="UOTHER"
    )
    assert parse_event(envelope(classic), OWN, access)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "stop",
            "stop|<@UORION> Stop!|<@UORION>, stop|<@UORION>: Stop …| STOP. |Anhalten|arrête|detente|berhenti|停止|停。",
        ),
        ("mute", "mute|stumm|muet|silencio|bisukan|ミュート|静音"),
        ("unmute", "unmute|stumm aus|réactiver|reactivar|aktifkan|ミュート解除|取消静音"),
        ("question", "stop the press|is it mute?|why unmute|para qué"),
    ],
)
def test_a_command_is_a_whole_message_in_any_of_the_seven_languages(kind: str, words: str) -> None:
    for word in words.split("|"):
        found = incoming(message(thread_ts="1700000000.000100", text=word, channel_type="mpim"))
        assert found.kind == kind, word
        if kind in {"stop", "unmute"}:
            assert settle(found, "muted") is found


def test_the_stop_button_stops() -> None:
    where = {"channel": "D1", "thread_ts": "1700000000.000100", "streaming_message_ts": []}
    found = incoming({"type": "agent_session_stopped", **where, "user": "UANN", "event_ts": "1700000060.000000"})
    assert (found.kind, found.thread.thread_ts, found.event_ids) == ("stop", "1700000000.000100", ("evt:T1:Ev1",))


@pytest.mark.parametrize(
    ("access", "why"),
    [
        (Access(deny_users=frozenset({"UANN"})), "user_refused"),
        (Access(allow_users=frozenset({"UBEN"})), "user_refused"),
        (Access(deny_channels=frozenset({"C1"})), "channel_refused"),
        (Access(allow_channels=frozenset({"C2"})), "channel_refused"),
    ],
)
def test_people_and_channels_on_the_lists_are_refused(access: Access, why: str) -> None:
    assert reason(mention(), access) == why


def test_external_channels_are_refused_unless_opened() -> None:
    assert reason(mention(), is_ext_shared_channel=True) == "external_channel"
    shared = envelope(mention(), is_ext_shared_channel=True, team_id="TOTHER")
    found = parse_event(shared, OWN, Access(allow_external=True))
    assert found.thread.team == "T1"


@pytest.mark.parametrize("body", ["", "7", "[]", '"x"', "{}", '{"thread":7}', '{"thread":{},"kind":"stop"}'])
def test_an_invalid_body_is_reported(body: str) -> None:
    with pytest.raises(ValueError, match=r"message|Expecting"):
        Incoming.from_json(body)
    newer = {**json.loads(incoming(mention()).to_json()), "mood": "curious"}
    assert Incoming.from_json(json.dumps(newer)) == incoming(mention())


@pytest.mark.parametrize("fields", [{"user": None}, {"channel": "C:1"}, {"ts": "soon"}, {"thread_ts": "C1:x"}])
def test_impossible_fields_are_malformed(fields: dict[str, Any]) -> None:
    assert reason(mention(**fields)) == "malformed"


@pytest.mark.parametrize(("said", "told"), [(mention(), True), (message(thread_ts="1700000000.000100"), False)])
def test_a_person_without_access_gets_a_notice_and_their_text_is_not_stored(
    said: dict[str, Any], *, told: bool
) -> None:
    given = {**said, "action_token": "xact-1", "files": [{"id": "F1", "name": "plans.md"}]}
    access = Access(deny_users=frozenset({"UANN"}))
    if told:
        telling = parse_event(envelope(given), OWN, access)
        kept = (telling.refused, telling.text, telling.mentioned, telling.attached, telling.action_token)
        assert kept == ("user_refused", "", frozenset(), (), "")
        assert Incoming.from_json(telling.to_json()) == telling
    else:
        assert reason(given, access) == "user_refused"


@pytest.mark.parametrize(("told", "vouched"), [(False, True), (None, False), ("no", False)])
def test_a_stored_message_records_whether_its_event_named_the_sharing(told: object, *, vouched: bool) -> None:
    found = parse_event(envelope(mention(), is_ext_shared_channel=told), OWN, Access(allow_external=True))
    assert found.vouched is vouched

"""The words of a Slack message, in the shapes that Slack's documentation shows: each thing is read once."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.slack_message import (
    MAX_TEXT_CHARS,
    named_ids,
    plain_text,
    read_message,
    shared_files,
    with_names,
)
from tests.support.message_forms import FORMS, FORWARDED, MENTION, ORION, Json, rich, text


@pytest.mark.parametrize(("message", "words"), FORMS)
def test_each_form_is_read_once(message: Json, words: str) -> None:
    assert read_message(message, ORION).text == words


@pytest.mark.parametrize(
    ("wire", "mentioned", "words"),
    [
        (f"<@{ORION}> how?", True, "how?"),
        (f"how, <@{ORION}|orion>?", True, "how, ?"),
        (f"try `<@{ORION}> how?`", False, f"try `<@{ORION}> how?`"),
        (f"```\n<@{ORION}> how?\n```", False, f"```\n<@{ORION}> how?\n```"),
        (f"&gt; <@{ORION}> how?\nno idea", False, f"> <@{ORION}> how?\nno idea"),
        (f"&gt; <@{ORION}> how?\n<@{ORION}> well?", True, f"> <@{ORION}> how?\n well?"),
        (f"&gt;&gt;&gt; a\n<@{ORION}> how?", False, f">>> a\n<@{ORION}> how?"),
        (f"[ask <@{ORION}>](https://x.example)", False, f"[ask <@{ORION}>](https://x.example)"),
        (f"&lt;@{ORION}&gt; is how you write it", False, f"<@{ORION}> is how you write it"),
    ],
)
def test_a_quoted_mention_does_not_count_and_stays_readable(wire: str, mentioned: bool, words: str) -> None:  # noqa: FBT001 - a column
    content = read_message({"text": wire}, ORION)
    assert (ORION in content.mentioned, content.text) == (mentioned, words)
    assert ORION not in content.mentioned & content.quoted


def test_a_mention_in_a_rich_quote_or_fence_is_quoted() -> None:
    for kind in ("rich_text_quote", "rich_text_preformatted"):
        content = read_message({"blocks": [rich({"type": kind, "elements": [MENTION, text(" how?")]})]}, ORION)
        assert (not content.mentioned, content.quoted) == (True, frozenset({ORION}))


@pytest.mark.parametrize(
    ("wire", "words"),
    [
        ("<@UORION|orion> a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("see <https://x.example/a?b=1&amp;c=2>", "see https://x.example/a?b=1&c=2"),
        ("<http://x.example|x.example>", "x.example"),
        ("what is in <http://README.md|README.md>?", "what is in README.md?"),
        ("<https://x.example/a|x.example>", "https://x.example/a"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("ask <@UBEN> in <#C9|ops> or <#C8|>", "ask <@UBEN> in #ops or <#C8>"),
        ("<!here> at <!date^1700000000^{date}|Nov 14>", "@here at Nov 14"),
        ("<!> and <@>", "<!> and <@>"),
    ],
)
def test_the_text_of_an_event_reads_as_its_author_wrote_it(wire: str, words: str) -> None:
    assert plain_text(wire, ORION) == words


def test_ids_become_names() -> None:
    words = plain_text("<@U1> asked <!subteam^S1> and <@U2> in <#C1|> or <#C9|ops> <!here>")
    assert named_ids(words) == ("U1", "S1", "U2", "C1")
    names = {"U1": "@Ann", "S1": "@oncall", "C1": "#help"}
    assert with_names(words, names) == "@Ann asked @oncall and <@U2> in #help or #ops @here"
    assert with_names(words, {}, unknown="@someone").startswith("@someone asked @someone")


def test_a_message_with_many_quotations_and_mentions_is_read_quickly() -> None:
    began = time.process_time()
    read_message({"text": "\n> a <@UANN>" * 3_000}, ORION)
    assert time.process_time() - began < 0.5


def test_files_of_a_shared_message_are_included_and_deleted_ones_are_not() -> None:
    files = [{"id": "F0"}, {"id": "F2", "mode": "tombstone"}]
    assert [one["id"] for one in shared_files({"files": files, "attachments": [FORWARDED]})] == ["F0", "F1"]


anything = st.recursive(
    st.none() | st.text(max_size=5) | st.integers(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["text", "type", "fields", "blocks", "elements", "rows"]), inner)
    ),
    max_leaves=12,
)


@given(st.fixed_dictionaries({"text": anything, "attachments": anything, "blocks": anything}))
def test_any_message_gives_a_text(message: Json) -> None:
    assert len(read_message(message, ORION).text) <= MAX_TEXT_CHARS

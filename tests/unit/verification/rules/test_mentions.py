"""Mentions: an answer notifies no one whom the question did not name."""

from __future__ import annotations

import pytest

from verification.check import check
from verification.types import Dialect, Draft


def violations_of(text: str, dialect: Dialect = "mrkdwn", mentions: frozenset[str] = frozenset()) -> list[str]:
    verdict = check(Draft(text=text, question="Who is on call?", dialect=dialect, mentions=mentions))
    return [each.words for each in verdict.errors if each.rule == "no_broadcast"]


@pytest.mark.parametrize("dialect", ["mrkdwn", "markdown"])
@pytest.mark.parametrize(
    "text",
    [
        "<!here> the deploy is done.", "<!channel> look.", "<!everyone|everyone> look.",
        "<!subteam^S012AB> is on call.", "<!subteam^S012AB|@sre> is on call.", "<@U0999999> is on call.",
        "<@W0999999|ann> is on call.", "Hey @here, the deploy is done.", "Hey @channel: look.", "ask @everyone.",
        "ASK @HERE!", "(@channel)", "*@here* look", "皆さん@channelを見てください",
        "`<!here>` in code is still a token", "<!Channel> look",
    ],
)  # fmt: skip
def test_broadcast_is_an_error_and_never_repaired(text: str, dialect: Dialect) -> None:
    assert violations_of(text, dialect)


@pytest.mark.parametrize("dialect", ["mrkdwn", "markdown"])
@pytest.mark.parametrize(
    "text",
    [
        "The person on call is here. Everyone in the channel knows.",
        "Write to here@acme.test or ops@here.test.",
        "Use `@here` with care.",
        "```\n@channel\n```",
        "The package @here/maps and @channels.",
        "Ask in <#C012AB|general>.",
        "It ended <!date^1392734382^{date}|on Tuesday>.",
        "The handle @everyone_else is free.",
        "See https://acme.test/@here for the page.",
    ],
)
def test_text_that_only_looks_like_a_mention_passes(text: str, dialect: Dialect) -> None:
    assert violations_of(text, dialect) == []


def test_person_the_question_named_may_be_mentioned() -> None:
    assert violations_of("<@U0123456> is on call.", mentions=frozenset({"U0123456"})) == []
    assert len(violations_of("<@U0123456> and <@U0999999>.", mentions=frozenset({"U0123456"}))) == 1


TABLE = "| Severity | Who |\n|---|---|\n| SEV1 | Primary |"


@pytest.mark.parametrize("call", ["<!here>", "<!channel>", "@here", "@channel", "<@U0456EFGH>", "<!subteam^S01|ops>"])
@pytest.mark.parametrize("form", ["{call} {table}", "{table} {call}", "*Note for {call}:* {table}"])
def test_call_that_a_table_would_swallow_is_found_all_the_same(call: str, form: str) -> None:
    assert len(violations_of(form.format(call=call, table=TABLE))) == 1


def test_table_without_a_mention_notifies_no_one() -> None:
    assert violations_of(TABLE) == []
    assert violations_of(f"{TABLE}\n| SEV2 | <@U0456EFGH> |", mentions=frozenset({"U0456EFGH"})) == []
    assert violations_of(f"{TABLE}\n| SEV2 | `@here` |") == []


def test_mention_in_small_letters_is_plain_text() -> None:
    assert check(Draft(text="<@u0123abcd> Keys expire.", own_words=True)).chunks == ("&lt;@u0123abcd&gt; Keys expire.",)

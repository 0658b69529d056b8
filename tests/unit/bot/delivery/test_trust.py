"""The dialog behind "Why trust this?", A9."""

from datetime import date
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agent.texts.catalogue import LANGUAGES, say
from bot.delivery.trust import trust_modal
from bot.local.model.limits import check_view

TODAY = date(2026, 11, 21)
PASSAGE = "Each API key may make 600 requests a minute."
CLAIM = {
    "text": "A key may send 600 *requests* & more.",
    "cited": [1],
    "passages": [{"source": 1, "text": PASSAGE, "marks": [[9, 12], [22, 34]]}],
    "settled_by": "judge",
}
DRAFT = {
    "passed": False,
    "objected": [
        {"rule": "claim_supported", "text": "It costs\n5 euros."},
        {"rule": "claim_supported", "text": "The key is sk-12345."},
        {"rule": "no_secrets", "text": "The key is sk-12345."},
    ],
}
QUOTATION = {**CLAIM, "settled_by": "quotation"}
RECORD: dict[str, Any] = {
    "turn_id": "turn-7-and-much-more",
    "outcome": "answered",
    "verified": True,
    "answer": "A key may send 600 requests [1].",
    "model": "gpt & co",
    "attempts": [DRAFT, {"passed": True}],
    "claims": [CLAIM],
    "sources": [{"id": 1, "title": "Rate limits", "url": "https://x.example/r", "updated_at": "2026-11-20"}],
}


def passage(text: str, *marks: list[int]) -> list[dict[str, Any]]:
    return [{"source": 1, "text": text, "marks": list(marks)}]


def texts(value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for one in value for text in texts(one)]
    if not isinstance(value, dict):
        return []
    own = value.get("text")
    return [own] if isinstance(own, str) else [text for one in value.values() for text in texts(one)]


def test_each_claim_is_shown_with_its_passage_and_marked_words() -> None:
    view = trust_modal(RECORD, TODAY)
    assert (view["type"], view["title"]["text"]) == ("modal", "Why trust this?")
    headline, claim, checked, origin = view["blocks"]
    assert headline["text"]["text"].startswith("*✓ Verified.*")
    said, quote = claim["elements"]
    assert texts(said) == ["A key may send 600 requests & more."]
    marked = [each["text"] for each in quote["elements"] if "style" in each]
    assert (quote["type"], texts(quote), marked) == (
        "rich_text_quote",
        ["Each API ", "key", " may make ", "600 requests", " a minute."],
        ["key", "600 requests"],
    )
    assert texts(checked) == [
        "<https://x.example/r|[1] Rate limits> · 1 day ago · Checked a second time by the language model"
    ]
    linked = {
        **CLAIM,
        "passages": [
            {**passage("Six.")[0], "url": f"https://x.example/r#{part}", "title": f"Rate limits › {part}"}
            for part in "ab"
        ],
    }
    link = texts(trust_modal({**RECORD, "claims": [linked]}, TODAY)["blocks"][2])[0]
    assert link.startswith("<https://x.example/r#a|[1] Rate limits › a>")
    assert texts(origin) == [
        "It took 2 drafts until every check passed. · Model: gpt &amp; co · ID for an admin: turn-7-and-m"
    ]


def test_passages_of_two_sources_say_which_each_is_of() -> None:
    passages = [*passage("Colorado: 16 weeks"), {**passage("California: 8 weeks")[0], "source": 2}]
    (_, *quotes) = trust_modal({**RECORD, "claims": [{**CLAIM, "passages": passages}]}, TODAY)["blocks"][1]["elements"]
    assert [texts(quote) for quote in quotes] == [["Colorado: 16 weeks", " [1]"], ["California: 8 weeks", " [2]"]]


def test_claims_that_follow_each_other_show_their_passage_once() -> None:
    page = "Keys may make 600 requests. Bursts are accepted. A partner may make more."
    claims = [{**QUOTATION, "text": f"{one}.", "passages": passage(page, [5, 9])} for one in page[:-1].split(". ")[1:]]
    (both, _) = trust_modal({**RECORD, "claims": claims}, TODAY)["blocks"][1:3]
    assert [texts(element) for element in both["elements"]] == [
        [page[28:48]], [page[49:]], [page[:28], page[28:48], " ", page[49:]],
    ]  # fmt: skip
    judged = [
        {**CLAIM, "text": text, "passages": passage(page, marks)} for text, marks in (("One", [0, 4]), ("Two", [2, 8]))
    ]
    (both, _) = trust_modal({**RECORD, "claims": judged}, TODAY)["blocks"][1:3]
    assert [texts(element) for element in both["elements"]] == [["One"], ["Two"], [page[:4], page[4:8], page[8:]]]


def test_a_long_introduction_of_two_neighbours_is_shown_once() -> None:
    lead = "Each new colleague gets a mentor, who is expected to:"
    items = [{**CLAIM, "text": text, "passages": passage(f"{lead}\n- {text}ly", [60, 62])} for text in ("Meet", "Help")]
    (first, second, _) = trust_modal({**RECORD, "claims": items}, TODAY)["blocks"][1:4]
    assert "".join(texts(first["elements"][1])) == f"{lead}\n- Meetly"
    assert "".join(texts(second["elements"][1])) == "…\n- Helply"


def test_each_passage_is_below_its_own_claim_also_a_quotation() -> None:
    sentence = "The alert `DiskFull` pages the lead, who answers within a quarter of an hour on every day."
    part = {**QUOTATION, "text": sentence, "passages": passage(f"{sentence} Colleagues sleep.", [4, 9])}
    view = trust_modal({**RECORD, "model": "extractive", "claims": [CLAIM, part]}, TODAY)
    (_, judged, _, quoted, _, _) = view["blocks"]
    assert [element["type"] for element in quoted["elements"]] == ["rich_text_section", "rich_text_quote"]
    assert [texts(block["elements"][0])[0] for block in (judged, quoted)] == [
        "A key may send 600 requests & more.",
        "The alert DiskFull pages the lead, who answers within a quarter of an hour on e…",
    ]
    plain = sentence.replace("`", "")
    assert texts(quoted["elements"][1]) == [plain, " Colleagues sleep."]
    assert not any("extractive" in text for text in texts(view["blocks"]))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cut_passage_and_a_claim_that_no_source_mentions_say_so(language: str) -> None:
    cut = {**CLAIM, "passages": [{**passage("Keys … 600")[0], "is_cut": True}]}
    absent = {**CLAIM, "passages": [], "is_absent": True}
    greeting = {**CLAIM, "passages": [], "is_empty": True}
    (_, shortened, silent, *rest) = trust_modal({**RECORD, "claims": [cut, greeting, absent]}, TODAY, language)[
        "blocks"
    ]
    assert [block["type"] for block in rest] == ["context", "context"]
    assert texts(shortened)[-1] == f"\n({say('trust_cut', language)})"
    assert texts(silent)[-1] == f"\n{say('trust_absent', language)}"


def test_a_claim_whose_passages_a_viewer_may_not_see_is_still_shown() -> None:
    (_, claim, *_) = trust_modal({**RECORD, "claims": [{**CLAIM, "passages": []}]}, TODAY)["blocks"]
    assert texts(claim) == ["A key may send 600 requests & more."]


def test_a_passage_is_read_without_the_signs_of_headings_and_rows() -> None:
    row = {**CLAIM, "passages": passage("# Logs\n| Audit logs | 400 days |", [9, 19], [22, 30])}
    quote = trust_modal({**RECORD, "claims": [row]}, TODAY)["blocks"][1]["elements"][1]
    assert [each["text"] for each in quote["elements"] if "style" in each] == ["Audit logs", "400 days"]
    assert "".join(texts(quote)).split() == ["Logs", "Audit", "logs", "·", "400", "days"]


def test_omitted_sentences_are_listed_with_the_reason_but_no_secret() -> None:
    told = texts(trust_modal({**RECORD, "outcome": "partial"}, TODAY)["blocks"])
    at = told.index("*Left out of the answer*")
    assert told[at + 1 : at + 3] == ["It costs 5 euros.", f" {say('reason_claim', None)}"]
    assert not any("sk-12345" in text for text in told)


def test_a_sentence_corrected_in_a_later_draft_is_not_listed_as_left_out() -> None:
    mended = {"objected": [{"rule": "claim_supported", "text": "A key may send *600* requests [3]."}]}
    record = {**RECORD, "outcome": "partial", "attempts": [mended, DRAFT]}
    told = texts(trust_modal(record, TODAY)["blocks"])
    assert "It costs 5 euros." in told
    assert not any("[3]" in text for text in told)


@pytest.mark.parametrize(
    ("change", "start"),
    [
        ({"outcome": "partial"}, "*◐ Partly verified.*"),
        ({"verified": False}, "*Not verified.*"),
        ({"claims": [QUOTATION], "model": "extractive"}, "*❝ Quoted.*"),
        ({"claims": [QUOTATION]}, "*✓ Verified.*"),
        ({"claims": [CLAIM, {**CLAIM, "settled_by": "nobody"}]}, "*Checked by rules only.*"),
        ({"claims": []}, "*✓ Verified.*"),
    ],
)
def test_the_headline_says_how_far_the_answer_was_checked(change: dict[str, Any], start: str) -> None:
    assert texts(trust_modal({**RECORD, **change}, TODAY)["blocks"])[0].startswith(start)


def test_a_missing_or_older_record_shows_what_is_known() -> None:
    assert texts(trust_modal(None, TODAY)["blocks"]) == [say("trust_unknown", None)]
    old = {name: RECORD[name] for name in ("verified", "outcome", "sources")}
    assert texts(trust_modal(old, TODAY)["blocks"])[1] == "*Sources*\n<https://x.example/r|[1] Rate limits> · 1 day ago"


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_dialog_is_in_the_language_and_within_slacks_limits(language: str) -> None:
    many = {**RECORD, "outcome": "partial", "claims": [CLAIM] * 60, "attempts": [DRAFT] * 50}
    modal = trust_modal(many, TODAY, language)
    assert len(modal["title"]["text"]) <= 24
    check_view(modal, "modal")
    if language != "en":
        own = {say(key, None) for key in ("trust_is_partial", "trust_left_out", "trust_by_judge", "reason_claim")}
        assert not any(english in text for text in texts(modal["blocks"]) for english in own)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
CLAIMS = st.lists(st.fixed_dictionaries({}, optional=dict.fromkeys(CLAIM, JSON)), max_size=3)
FIELDS = dict.fromkeys(["turn_id", "outcome", "verified", "attempts", "sources"], JSON) | {"claims": JSON | CLAIMS}


@settings(suppress_health_check=[HealthCheck.too_slow])  # a busy machine says nothing about the views
@given(st.fixed_dictionaries({}, optional=FIELDS))
def test_any_record_makes_a_view_that_slack_takes(record: dict[str, Any]) -> None:
    check_view(trust_modal(record, TODAY), "modal")

"""Texts that people see: each in all seven languages, with the same gaps, as valid mrkdwn."""

import re
from string import Formatter
from typing import get_args

from agent.texts.catalogue import LANGUAGES, LOADING, join_names, say, texts, translate_status
from agent.thread.conversation import FileTrouble
from bot.answers import Fault
from bot.delivery.answer_key import Badge
from bot.delivery.dialogs import REASONS
from tests.support.paths import ROOT
from verification.markup.mrkdwn import repair

# Characters that Slack allows there.
ROOM = {
    **dict.fromkeys(("why_trust", "helpful", "not_helpful", "ask_human", "human_asked", "home_try", "share"), 75),
    **dict.fromkeys(("yes", "no"), 30),
    "hand_off_confirm": 300,
    **dict.fromkeys(("trust_title", "trust_close", "save_title", "save_submit", "channel_title"), 24),
}
BUILT = re.compile(
    r"away_(documents|web|slack|git|files)|budget_(user|channel|workspace)|command_\w+|file_\w+|trust_by_\w+|was_\w+|wrong_\w+"
    r"|(partial|quotes|failed|unasked)_badge|save_(fault_\w+|question|answer|audience|owner|review|approve|reject|edit|withdraw)"
    r"|channel_(fault_\w+|which|documents|instruction|mode|handoff|language|mention|listen)"
)
"""Keys whose second half is a value of the program."""


def gaps(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


def test_every_language_has_every_text_with_the_same_gaps() -> None:
    english = texts("en")
    for language in LANGUAGES:
        assert list(texts(language)) == list(english)
        assert {key: gaps(text) for key, text in texts(language).items()} == {k: gaps(t) for k, t in english.items()}
        assert [key for key, text in texts(language).items() if text != text.strip() or not text] == []
    repeated = {key for key in english if len({texts(language)[key] for language in LANGUAGES}) < len(LANGUAGES) - 1}
    assert repeated == set()


def test_every_text_is_valid_mrkdwn_and_notifies_no_one() -> None:
    for language in LANGUAGES:
        for key in texts(language):
            text = say(key, language, **dict.fromkeys(gaps(texts(language)[key]), "7"))
            assert repair(text) == (text, ()), key
            assert not re.search("[<@]", text), key
            assert len(text) <= ROOM.get(key, 300), key


def test_every_text_is_used_and_every_text_that_is_used_is_there() -> None:
    sources = [path for room in ("agent", "bot") for path in (ROOT / room).rglob("*.py")]
    named = set(re.findall(r'["\']([a-z]+(?:_[a-z]+)*)["\']', "\n".join(path.read_text() for path in sources)))
    said = set(re.findall(r'\bsay\(\s*"(\w+)"', "\n".join(path.read_text() for path in sources)))
    assert said <= set(texts("en"))
    statuses = {key for key in texts("en") if translate_status(say(key, None), "de") != say(key, None)}
    assert {key for key in texts("en") if not BUILT.fullmatch(key)} - statuses <= named


def test_every_reason_checker_and_file_problem_has_its_text() -> None:
    assert {f"trust_by_{checker}" for checker in ("quotation", "rule", "judge", "nobody")} <= set(texts("en"))
    assert {f"wrong_{reason}" for reason in REASONS} <= set(texts("en"))
    assert {f"save_fault_{fault}" for fault in get_args(Fault)} <= set(texts("en"))
    assert {f"{badge}_badge" for badge in get_args(Badge)} <= set(texts("en"))
    assert {f"file_{trouble}" for trouble in get_args(FileTrouble) if trouble} <= set(texts("en"))


def test_every_status_in_the_code_has_its_text() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "bot" / "turn").glob("*.py"))
    shown = set(re.findall(r'"((?:is|cannot) [^"]+…)"', code))
    assert len(shown) > 8
    assert shown <= {text for key, text in texts("en").items() if key.startswith("status_")}
    assert all(
        translate_status(text, "de").endswith("…") and translate_status(text, "de") != text
        for text in (*shown, *LOADING)
    )


def test_other_languages_get_english_texts() -> None:
    assert say("muted", "nl") == say("muted", None) == say("muted", "en")
    assert translate_status("is thinking…", "de") == "denkt nach…"
    assert translate_status("a step's own title", "de") == "a step's own title"


def test_names_are_joined_with_the_comma_of_the_language() -> None:
    joined = {join_names(["A", "B"], language) for language in ("de", "ja", None)}
    assert joined == {"A, B", "A、B"}

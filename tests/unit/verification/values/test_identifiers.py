"""Identifiers: their kinds, their places, and when two are the same."""

from hypothesis import given
from hypothesis import strategies as st

from verification.check import check
from verification.text.language import normalise_text
from verification.types import Draft, Source
from verification.values.identifiers import Identifier, identifiers, is_whole_word_in, missing_words, most_similar


def test_identifiers_of_every_kind_are_found() -> None:
    for text, kind, found in [
        ("see https://a.example/b_(c).", "url", "https://a.example/b_(c)"),
        ("see https://a.example/b, or", "url", "https://a.example/b"),
        ("(https://a.example/b)", "url", "https://a.example/b"),
        ("run `x --y` now", "code", "x --y"),
        ("mail ops@team.example now", "email", "ops@team.example"),
        ("use --dry-run here", "flag", "--dry-run"),
        ("use -v here", "flag", "-v"),
        ("on v2.1", "version", "v2.1"),
        ("on 2.1.3-rc1 now", "version", "2.1.3-rc1"),
        ("in /etc/hosts.", "path", "/etc/hosts"),
        ("in src/app/main.py", "path", "src/app/main.py"),
        ("in config.yaml", "path", "config.yaml"),
        ("set MY_VAR to", "name", "MY_VAR"),
        ("call my_function to", "name", "my_function"),
        ("post in #ops-alerts", "name", "#ops-alerts"),
        ("got E4012 again", "code_number", "E4012"),
        ("fixed ABC-123 today", "code_number", "ABC-123"),
        ("at localhost:8080 it", "address", "localhost:8080"),
    ]:
        assert [(i.kind, i.text) for i in identifiers(text)] == [(kind, found)]
        (identifier,) = identifiers(text)
        assert text[identifier.start : identifier.end].strip("`") == found


def test_text_that_is_not_an_identifier() -> None:
    for text in ["and/or", "24/7", "1.234.567", "a - b", "well-known", "It is 5.", "", "e.g. this"]:
        assert identifiers(text) == ()


def test_a_name_matches_only_as_a_whole() -> None:
    for needle, haystack, there in [
        ("--dry", "use --dry now", True),
        ("--dry", "use --dry-run now", False),
        ("--dry", "use ---dry now", False),
        ("2.1.3", "on v2.1.3 now", True),
        ("2.1.3", "on 2.1.30 now", False),
        ("1.3", "on 2.1.3 now", False),
        ("2.1", "on 2.1.3 now", False),
        ("my_var", "set my_var2", False),
        ("my_var", "my_var", True),
        ("a", "", False),
        ("", "x", True),
        ("/etc", "in/etc", True),
        ("3日", "上限3日です", True),
        ("orion", "orion-cli", True),
        ("release", "release-notes are out", True),
        ("2.4.1", "xv2.4.1", False),
        ("force", "--force", True),
        ("-f", "--f", False),
        ("5", ".5 of 7", True),
        ("5", "1.5", False),
    ]:
        assert is_whole_word_in(needle, haystack) is there


def test_missing_words_of_a_command_exclude_placeholders() -> None:
    command = Identifier(kind="code", text="orion index <DIR> --force ...", start=0, end=1)
    assert missing_words(command, normalise_text("Call `orion index docs`")) == ("--force",)
    assert missing_words(Identifier(kind="version", text="v2.1.3", start=0, end=1), "on 2.1.3") == ()
    assert missing_words(Identifier(kind="flag", text="--x", start=0, end=1), "nothing") == ("--x",)


def test_the_nearest_known_identifier_is_named() -> None:
    known = identifiers("`orion backup --full` and /etc/hosts")
    assert most_similar("orion backup --fast", known) == "orion backup --full"
    assert most_similar("zzz", known) == ""


@given(st.text(max_size=80))
def test_any_text_is_read_without_trouble(text: str) -> None:
    for identifier in identifiers(text):
        assert 0 <= identifier.start <= identifier.end <= len(text)


def test_severity_with_one_digit_is_an_identifier_but_not_a_chemical() -> None:
    assert [found.text for found in identifiers("A SEV5 at EC2 in Q3, CO2 or H2")] == ["SEV5"]


def test_a_cloud_region_is_an_identifier() -> None:
    assert [(each.kind, each.text) for each in identifiers("It runs in eu-central-1 and us-east-1a.")] == [
        ("name", "eu-central-1"),
        ("name", "us-east-1a"),
    ]
    assert identifiers("The on-call engineer has a one-to-one talk, top-10.") == ()
    page = (Source(id=1, title="", text="Production runs in eu-central-1."),)
    assert check(Draft(text="Production runs in eu-central-1 [1].", sources=page)).passed
    assert not check(Draft(text="Production runs in us-east-1 [1].", sources=page)).passed


def test_localhost_without_a_scheme_is_an_address() -> None:
    assert [each.text for each in identifiers("It runs on localhost now")] == ["localhost"]

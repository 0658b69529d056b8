from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observability.redaction import REDACTED, redact, redact_field

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-123456-abcdef", "xoxe.xoxp-1-Mi0yLTEyMzQ1", "xapp-1-A111-222-abcdef", "sk-proj-abcdefgh12345678",
        "pk-lf-1234567890", "sk-lf-1234567890", JWT, "ghp_abcdefghijklmnop1234", "AKIAABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
    ],
)  # fmt: skip
def test_secrets_are_found_wherever_they_stand(secret: str) -> None:
    for text in (secret, f"before {secret} after", f"token={secret}", f'"{secret}"'):
        assert secret not in redact(text)
        assert REDACTED in redact(text)


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abcdefgh.123", "Authorization: [redacted]"),
        ("redis://user:hunter22@db:6379/0", "redis://[redacted]@db:6379/0"),
        ("redis://:hunter22@db", "redis://[redacted]@db"),
        ("password=hunter22 next", "[redacted] next"),
        ("https://docs.example/a:b@c", "https://docs.example/a:b@c"),
        ("ask-about-risk-management", "ask-about-risk-management"),
        ("prompt_tokens 12", "prompt_tokens 12"),
    ],
)
def test_what_is_around_a_secret_stays(text: str, redacted: str) -> None:
    assert redact(text) == redacted


def test_field_that_is_named_a_secret_loses_its_value() -> None:
    assert redact_field("slack_bot_token", "plain") == REDACTED
    assert redact_field("api_key", {"a": 1}) == REDACTED
    assert redact_field("prompt_tokens", 12) == 12
    assert redact_field("has_token", False) is False
    assert redact({"a": [{"password": "x", "n": 1.5, "t": ("xoxb-123456-abcdef",)}]}) == {
        "a": [{"password": REDACTED, "n": 1.5, "t": [REDACTED]}]
    }


def test_deep_nesting_ends() -> None:
    value: list[object] = []
    value.append(value)
    assert "[nested]" in str(redact(value))


@settings(deadline=None)
@given(
    st.recursive(
        st.none() | st.floats() | st.text(), lambda i: st.lists(i) | st.dictionaries(st.text(), i), max_leaves=8
    )
)
def test_any_value_can_be_redacted(value: object) -> None:
    redact(value)


@pytest.mark.parametrize(
    "piece", ["eyJaaaaaaaa.", "xoxb-", "://a:", "password=", "-----BEGIN PRIVATE KEY-----", "sk-", "bearer "]
)
def test_redaction_is_linear(piece: str) -> None:
    began = time.process_time()
    redact(piece * (200_000 // len(piece)))
    # Quadratic work on this would take minutes: the limit only tells the two apart.
    assert time.process_time() - began < 5

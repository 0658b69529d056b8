import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from observability.redaction import REDACTED, redact, redact_field

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NSJ9.c2lnbmF0dXJl"


R = "0a1B2c3D4e5F6a7B8c9D0e1F2a3B4c5D"


@pytest.mark.parametrize(
    "secret",
    [
        "xoxb-123456-abcdef", "XOXB-123456-ABCDEF", "xoxe.xoxp-1-Mi0yLTEyMzQ1", "xapp-1-A111-222-abcdef",
        "sk-proj-abcdefgh12345678", "pk-lf-1234567890", "sk-lf-1234567890", JWT, "ghp_abcdefghijklmnop1234",
        "AKIAABCDEFGHIJKLMNOP",
        "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----",
        f"glpat-{R}", f"gldt-{R}", f"npm_{R}", f"pypi-{R}", f"hvs.{R}", f"sk_live_{R}", f"rk_test_{R}", f"whsec_{R}",
        f"ATATT3{R}", f"ntn_{R}", f"secret_{R}", f"dapi{R.lower()}", f"hf_{R}", f"SG.{R}.{R}", f"123456789:AA{R}",
        f"SK{R.lower()}", f"ya29.{R}", f"shpat_{R}", f"pplx-{R}", f"dop_v1_{R}", f"pcsk_{R}", f"tskey-auth-{R}",
        f"ops_eyJ{R}", f"figd_{R}", f"sb_secret_{R}", f"AGE-SECRET-KEY-1{R}", f"SSWS {R}", f"{R[:14]}.atlasv1.{R * 2}",
        f"key-{'0a1b2c3d' * 4}", f"{'0a1b2c3d' * 4}-us12", f"a1b8Q~{R}a", f"2/3425093249375627:{'0a1b2c3d' * 4}",
        f"s.{R[:24]}", f"11{'0a1b2c3d' * 4}", f"u+{R[:18]}", f"{R}{R}{R[:12]}AZDO{R[:4]}", f"{'abcdefghijk23' * 4}",
    ],
)  # fmt: skip
def test_tokens_are_found_anywhere(secret: str) -> None:
    for text in (secret, f"before {secret} after", f"token={secret}", f'"{secret}"', f"(`{secret}`)"):
        assert secret not in redact(text)
        assert REDACTED in redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "{name}: {value}", "{name}={value}", '{{"{name}": "{value}"}}', "x-{name}: {value}",
        "curl -H '{name}: {value}'", "'{name}' => '{value}'",
        "**{name}**: {value}", "*{name}:* `{value}`", r'{{\"{name}\": \"{value}\"}}',
        "https://host/path?{name}={value}", "https://host/path?a=b&{name}={value}#end", "MY_{name}={value} next",
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "name",
    [
        "password", "clientSecret", "client_secret", "client-secret", "accessToken", "access_token", "x-api-key",
        "apiKey", "API_KEY", "token", "AccountKey", "privateKey", "Passphrase", "aws_secret_access_key", "pwd",
    ],
)  # fmt: skip
def test_values_are_found_by_the_name_before_them(name: str, text: str) -> None:
    shown = redact(text.format(name=name, value="hunter22"))
    assert "hunter22" not in shown
    assert name in shown


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abcdefgh.123", "Authorization: [redacted]"),
        ("with Bearer abcdefgh.123.", "with Bearer [redacted]"),
        ("redis://user:hunter22@db:6379/0", "redis://[redacted]@db:6379/0"),
        ("redis://:hunter22@db", "redis://[redacted]@db"),
        ("postgresql+asyncpg://u:p@ss@db/x", "postgresql+asyncpg://[redacted]@db/x"),
        ("http://me:pw@search.example:8888", "http://[redacted]@search.example:8888"),
        (f"https://{R}@git.example/a.git", "https://[redacted]@git.example/a.git"),
        ("https://hooks.slack.com/services/T1/B2/abc", "https://hooks.slack.com/[redacted]"),
        ("https://discord.com/api/webhooks/1/abc", "https://discord.com/api/webhooks/1/[redacted]"),
        ("https://x.example/a?sig=abcdef&page=2", "https://x.example/a?sig=[redacted]&page=2"),
        ("password=hunter22 next", "password=[redacted] next"),
        ("password: a&b;(c)<d>9!, then", "password: [redacted], then"),
        ('{"password": "correct horse"}', '{"password": "[redacted]"}'),
        ("密码：hunter22", "密码：[redacted]"),
        ("sshpass -p hunter22 ssh x --password hunter23", "sshpass -p [redacted] ssh x --password [redacted]"),
        ("wiki-feed --api-token hunter22 --page 5", "wiki-feed --api-token [redacted] --page 5"),
        ('{"auth": "aHVudGVyMjI="}', '{"auth": "[redacted]"}'),
        ("db.acme.test:5432:*:app:hunter22", "db.acme.test:5432:*:app:[redacted]"),
        (f"PagerDuty key {R[:20]}", "PagerDuty key [redacted]"),
        ("hooks.zapier.com/hooks/catch/12345/abcdefg", "hooks.zapier.com/hooks/catch/12345/[redacted]"),
        ("ssh://git@github.com/a", "ssh://git@github.com/a"),
        ("https://docs.example/a:b@c", "https://docs.example/a:b@c"),
        ("ask-about-risk-management", "ask-about-risk-management"),
        ("Basic information about tokens: 5000", "Basic information about tokens: 5000"),
        ("prompt_tokens 12", "prompt_tokens 12"),
    ],
)
def test_text_around_a_secret_stays(text: str, redacted: str) -> None:
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "name", ["slack_bot_token", "clientSecret", "accessToken", "x-api-key", "apikey", "API-Key", "privateKey", "Cookie"]
)
def test_a_field_named_as_a_secret_loses_its_value(name: str) -> None:
    assert redact_field(name, "plain") == REDACTED
    assert redact({"a": [{name: {"b": 1}}]}) == {"a": [{name: REDACTED}]}


def test_other_fields_keep_their_values() -> None:
    for name, value in {
        "prompt_tokens": 12,
        "has_token": False,
        "tokenizer": "x",
        "key": "name",
        "publicKey": "x",
    }.items():
        assert redact_field(name, value) == value
    assert redact({"n": 1.5, "t": ("xoxb-123456-abcdef",)}) == {"n": 1.5, "t": [REDACTED]}


def test_deep_nesting_is_read_to_a_limit() -> None:
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
    "piece",
    [
        "eyJaaaaaaaa.", "xoxb-", "://a:", "password=", "-----BEGIN PRIVATE KEY-----", "sk-", "bearer ", "?token",
        "a=", "secret", "hooks.slack.com/", "discord", "https://a", "sk", "gl", "redis-cli ",
        "WIFI:", "a--",
    ],
)  # fmt: skip
def test_redaction_is_linear(piece: str) -> None:
    began = time.process_time()
    redact(piece * (200_000 // len(piece)))
    # Quadratic work on this would take minutes: the limit only tells the two apart.
    assert time.process_time() - began < 5

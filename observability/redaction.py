"""Replaces secrets in everything that leaves the process, found by their form, a name before them, or in addresses."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final

REDACTED: Final = "[redacted]"
MAX_DEPTH: Final = 12  # levels of nesting, because an object may contain itself
MIN_KNOWN: Final = 6  # minimum characters of a configured secret: a shorter one may be part of any word
MAX_CACHED: Final = 128  # texts
MAX_NAMES: Final = 1_024  # of fields

_NAMED: Final = r"""secret|passw(?:or)?[dt]|kennwort|contraseña|clave|mot[ ]de[ ]passe|senha|wachtwoord|kata[ ]sandi
    |パスワード|密码|密碼|passphrase|pwd|token|credential|signature|sharedaccesskey
    |(?:api|access|account|private|shared|secret|signing|encryption|routing|integration)[_-]?key"""
_QUERY: Final = r"[\w.-]{0,40}(?:token|signature|secret|password|credential)|api[_-]?key|key|sig|code|auth|pwd"
# Each row: lower-case texts, one of which every such secret contains, and the pattern. Group 1 is not replaced.
_SHAPES: Final = tuple(
    (signs, re.compile(pattern, re.VERBOSE))
    for signs, pattern in (
        (("xox",), r"()(?i:xox[a-z](?:\.xox[a-z])?-[\w.-]{6,})"),  # Slack
        (("xapp-",), r"()xapp-[\w-]{6,}"),
        (("hooks.slack.com/",), r"(hooks\.slack\.com/)[\w/-]+"),
        (("k-lf-",), r"()\b[ps]k-lf-[\w-]{6,}"),  # Langfuse
        (("sk-",), r"()\bsk-[\w-]{8,}"),  # OpenAI and others with the same form
        (("k_live_", "k_test_", "whsec_"), r"()\b(?:[spr]k_(?:live|test)|whsec)_\w{8,}"),  # Stripe
        (("gho_", "ghp_", "ghr_", "ghs_", "ghu_", "github_pat_"), r"()\b(?:gh[oprsu]|github_pat)_\w{16,}"),
        (("gl",), r"()\bgl(?:pat|ptt|dt|rt|rtr|soat|cbt|ft|imt|agent|oas|ffct)-[\w.-]{10,}"),  # GitLab
        (("npm_", "pypi-", "dckr_"), r"()\b(?:npm_|pypi-|dckr_[po]at_)[\w-]{16,}"),
        (("hvs.", "hvb.", "hvr."), r"()\bhv[sbr]\.[\w-]{8,}"),  # HashiCorp Vault
        (("s.", "b.", "r."), r"()(?<![\w.])[sbr]\.(?=[A-Za-z]{0,23}\d)[A-Za-z0-9]{24}\b"),  # Vault before 1.10
        (("11",), r"()\b11[0-9a-f]{32}\b"),  # Jenkins
        (("+",), r"()\b[a-z]\+(?=[A-Za-z_-]{0,17}\d)[\w-]{18}(?![\w-])"),  # PagerDuty
        (("pagerduty", "pager duty"),
         r"""(?i:(pager[ ]?duty[^\n]{0,80}?(?<![\w+/.-])))(?:(?=[A-Za-z_+-]{0,18}\d)(?=[a-z0-9_+-]{0,19}[A-Z])
         [\w+-]{20}|[0-9a-f]{32}|R0[A-Z0-9]{30})(?![\w+/-])"""),
        (("azdo",), r"()\b[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}\b"),  # Azure DevOps, now and before 2024
        (("",), r"()\b(?=[a-z]{0,51}[2-7])[a-z2-7]{52}\b"),
        ((":",),  # .pgpass: host:port:database:user:password
         r"""((?<![\w:.*-])(?!\d+:)[\w.*-]{1,80}:(?:\d{2,5}|\*):[\w.*-]{1,60}:[\w.@*-]{1,60}:)(?!\d+(?:\s|$))
         (?:\\.|[^\s:\\,;"']){5,120}(?![\w:])"""),
        (("akia", "asia"), r"()\bA[KS]IA[0-9A-Z]{16}\b"),  # AWS
        (("aiza", "ya29.", "gocspx-"), r"()(?:\bAIza[\w-]{30,}|\bya29\.[\w-]{16,}|\bGOCSPX-[\w-]{16,})"),  # Google
        (("atatt3", "atctt3"), r"()\bAT[AC]TT3[\w=-]{16,}"),  # Atlassian
        (("ntn_", "secret_"), r"()\b(?:ntn|secret)_[A-Za-z0-9]{20,}"),  # Notion
        (("dapi", "hf_", "gsk_", "lin_api_", "shp", "glsa_"),
         r"()\b(?:dapi[0-9a-f]{32}|hf_\w{20,}|gsk_\w{20,}|lin_api_\w{16,}|shp(?:at|ss|ca|pa)_\w{16,}|glsa_\w{16,})"),
        (("sg.", ":aa"), r"()\b(?:SG\.[\w-]{16,}\.[\w-]{16,}|\d{8,10}:AA[\w-]{30,})"),  # SendGrid, Telegram
        (("-", "_", "."),  # the prefixes of many services
         r"""()\b(?:AGE-SECRET-KEY-1|NRAK-|PMAK-|figd_|r8_|xai-|sntry[su]_|pscale_tkn_|lsv2_(?:pt|sk)_|sbp_|sb_secret_
         |pplx-|glc_|do[opr]_v1_|dp\.(?:pt|st|ct|sa)\.|pul-|CCIPAT_|bk[uc]a_|pcsk_|tskey-[a-z]{2,12}-|vercel_blob_rw_
         |fm[12]_|sq0(?:atp|csp|idp)-|rubygems_|sl\.[\w-]{80}|key-(?=[0-9a-f]{32}\b))[\w.=-]{20,}"""),
        (("akcp", "eaaa", "ops_eyj", "ssws"), r"()\b(?:AKCp|EAAA[\w-]{30}|ops_eyJ|SSWS[ ])[\w.=-]{20,}"),
        (("us", "q~", "nral", "atlasv1", "pat", ":", "ac"),  # Mailchimp, Azure, New Relic, Terraform, Airtable, Asana
         r"""()(?:\b[0-9a-f]{32}-us\d{1,2}\b|\b[\w~.-]{3}\dQ~[\w~.-]{31,34}|\b[0-9a-f]{36}NRAL\b
         |\b[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}|\bpat[A-Za-z0-9]{14}\.[0-9a-f]{64}|\bAC[0-9a-f]{32}\b
         |\b\d/\d{12,20}(?:/\d{12,20})?:[0-9a-f]{32}\b)"""),
        ((".",), r"()\b[MNO][\w-]{23,27}\.[\w-]{6}\.[\w-]{27,45}\b"),  # Discord
        (("webhook.office.com",), r"(webhook\.office\.com/webhookb2/)[\w@/-]+"),
        (("-u", "user"), r"""((?:\s-u|--user)[\s=]["']?[^\s:"']{1,60}:)[^\s"']{4,}"""),
        (("password", "passphrase", "<secret", "<token"),
         r"(?i:((?:login\s\S+\spassword|passphrase\sis)\s|<(?:password|secret|token)>))[^\s<]{4,}"),
        (("_pass", "mysql"), r"""(?i:(\w_pass\s*=\s*["']?|\bmysql\w*\b[^\n]{0,80}?\s-p))[^\s"']{4,}"""),
        (("discord",), r"(discord(?:app)?\.com/api/webhooks/\d+/)[\w-]+"),
        (("sk",), r"()\bSK[0-9a-f]{32}\b"),  # Twilio
        (("eyj",), r"()\beyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]*)?"),  # JSON web tokens
        (("-----begin",), r"()-----BEGIN[ A-Z]*PRIVATE[ ]KEY(?:[ ]BLOCK)?-----[\s\S]*?(?:-----END[ A-Z]*-----|\Z)"),
        (("access_token$", "private-lines", "private-", "hooks/catch/", "wifi:", '"auth"'),
         r"""(access_token\$production\$|Private-Lines:[ ]\d+\s+|/ical/[^\s/]+/private-|hooks/catch/\d+/
         |WIFI:[^\n]{0,80}?;P:|"auth"\s?:\s?")[\w$+/=-]{6,}"""),
        (("--", "sshpass", "redis-cli"),
         rf"""((?:(?i:(?<![\w-])--(?=[a-z])[\w-]{{0,30}}(?:{_NAMED}))|sshpass\s-p|redis-cli\b[^\n]{{0,200}}?\s-a)[\s=]["']?)[^\s"']{{4,}}"""),
        (("://",), r"(://)[^\s/?\#@:]*:[^\s/?\#]+(?=@)"),  # user and password of an address
        (("http",), r"(https?://)[^\s/?\#@:]+(?=@)"),  # a token may take the place of a user name
        (("=",), rf"(?i:([?&;\#](?:{_QUERY})=))(?!\[redacted)[^\s&;\#\"'<>|)\]]{{4,}}"),
        (("authorization", "cookie"), r"""(?i:((?:authorization|cookie)["']?\s*[=:]\s*["']?))[^"'\r\n]{4,}"""),
        (("bearer", "basic"), r"(?i:(\b(?:bearer|basic)\s+))(?=[A-Za-z+/-]*[\d.~_=])[\w.~+/=-]{8,}"),
        (("secret", "passw", "passphrase", "pwd", "key", "token", "credential", "signature", "kennwort", "contraseña",
          "clave", "mot de passe", "senha", "wachtwoord", "kata sandi", "パスワード", "密码", "密碼"),
         rf"""(?i:((?:{_NAMED})[\\"'`*_]{{0,4}}\s*(?:=>|[=:：])[\s\\"'`*_]{{0,8}}))(?!\[redacted|\d+\b)
         (?:(?<=")[^"\n]{{4,}}|(?<=')[^'\n]{{4,}}|(?<=`)[^`\n]{{4,}}|[^\s"'`]{{3,}}[^\s"'`,;.<>(){{}}|\]])"""),
    )
)  # fmt: skip
_SECRET_NAME: Final = re.compile(
    r"(?:^|_)(?:token|secrets?|passwords?|passwd|pwd|passphrase|authorization|cookies?|credentials?"
    r"|(?:api|access|account|private|shared|secret|signing|encryption)_?keys?|webhook(?:_url)?)$"
)
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")


def known_secrets(secrets: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern for exactly these secrets, without those so short that they would match in words."""
    long = sorted({secret for secret in secrets if len(secret) >= MIN_KNOWN}, key=len, reverse=True)
    return re.compile("|".join(map(re.escape, long))) if long else None


def redact(value: Any, *, known: re.Pattern[str] | None = None, depth: int = 0) -> Any:
    """Return ``value`` with every string in it redacted. Nesting deeper than ``MAX_DEPTH`` is cut off."""
    if isinstance(value, str):
        return _redact_text(value, known)
    if depth > MAX_DEPTH:
        return "[nested]"
    if isinstance(value, Mapping):
        return {str(k): redact_field(str(k), v, known=known, depth=depth + 1) for k, v in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redact(item, known=known, depth=depth + 1) for item in value]
    return value


@lru_cache(maxsize=MAX_CACHED)
def _redact_text(text: str, known: re.Pattern[str] | None) -> str:
    """Return the text without secrets. Cached: each call of a turn repeats the same instructions and sources."""
    text = known.sub(REDACTED, text) if known else text
    folded = text.lower()
    for signs, secret in _SHAPES:
        if any(map(folded.__contains__, signs)):  # 50 times faster than the pattern, and prompts are long
            text = secret.sub(rf"\g<1>{REDACTED}", text)
    return text


def redact_field(name: str, value: Any, *, known: re.Pattern[str] | None = None, depth: int = 0) -> Any:
    """Redact ``value`` of the field ``name``, which may be in snake_case, camelCase or kebab-case."""
    if value and not isinstance(value, bool) and _is_secret_name(name):
        return REDACTED
    return redact(value, known=known, depth=depth)


@lru_cache(maxsize=MAX_NAMES)
def _is_secret_name(name: str) -> bool:
    return _SECRET_NAME.search(_HUMP.sub("_", name).lower()) is not None

"""The links of an answer: which there are, which resolve, and which are better shown as code.

A link resolves if it is a source's url, or stands in a source's text or the question on a host of the sources' own
urls or of the allowed hosts. One that merely stands in a text is shown as code; one from nowhere is left to the
citation rule, which fails it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from propcache.api import cached_property

from verification.markup.edits import Edit, applied, blanked
from verification.markup.scanner import prose
from verification.text.words import around
from verification.types import Draft, Repair

Standing = Literal["resolves", "as_code", "unknown"]

_SCHEME: Final = r"(?:https?|ftp|mailto|tel|slack|file|javascript|data)"
_TOP_LEVEL: Final = (
    "(?:com|net|org|io|dev|app|ai|co|info|biz|xyz|site|online|top|link|click|me|cloud"
    "|de|fr|es|id|jp|cn|uk|eu|ru|nl|it|example|test|invalid)"
)
# Case makes no difference here, and to fold it letter by letter would take most of the time this module needs to load.
_URL_LETTER: Final = '(?-i:[^\\s<>`|"“”«»\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])'
_LONGEST: Final = 2000
_BARE: Final = re.compile(
    rf"(?<![A-Za-z0-9_@./-])(?:(?:https?|ftp)://|www\.(?=\w)){_URL_LETTER}{{1,{_LONGEST}}}"
    rf"|(?<![A-Za-z0-9_@./:-])(?:[a-z0-9](?:[a-z0-9-]{{0,62}})\.){{1,8}}{_TOP_LEVEL}(?::[0-9]{{1,5}})?/{_URL_LETTER}{{1,{_LONGEST}}}",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(rf"<({_SCHEME}:[^<>|\s]+)(?:\|([^<>\n]*))?>", re.IGNORECASE)
# Compiled by ``re`` when the first text with "](" comes: that takes as long as a check.
_MARKDOWN: Final = (
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,200})\]"
    r"\(\s{0,3}<?((?:[^\s()<>]|\([^\s()<>]{0,300}\)){1,4000})>?(?:\s{1,3}[\"'(][^\n]{0,300}?[\"')])?\s{0,3}\)"
)
_CITED: Final = re.compile(r"(?:\[[0-9][0-9, -]{0,40}\][.,;:!?]?)+$")

_IN_BARE: Final = re.compile(r"[/Ww](?:(?<=/)|[Ww]{2}\.)")
_TRAILING: Final = ".,;:!?'*_~。，、；：！？」』】）"
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_ENTITIES: Final = (("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_HOST_AND_PATH: Final = re.compile(r"([^/?#]*)(/?)(.*)", re.DOTALL)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class Link(NamedTuple):
    """A link in a text: its span there, its target as written, and its label (empty when it has none)."""

    start: int
    end: int
    target: str
    label: str = ""


@dataclass(frozen=True)
class KnownLinks:
    """The targets an answer may use, normalised. No slots: each kind is looked for when it is first asked for."""

    draft: Draft

    @cached_property
    def own(self) -> frozenset[str]:
        """The sources' own urls, with and without the place in the page."""
        own = {normal(source.url) for source in self.draft.sources if source.url}
        return frozenset(own | {key.partition("#")[0] for key in own})

    @cached_property
    def seen(self) -> frozenset[str]:
        """What stands in the sources' texts, the question and the known text."""
        draft = self.draft
        texts = [draft.question, draft.known_text, *(source.text for source in draft.sources)]
        return frozenset[str]().union(*map(_seen, texts))

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts that may be linked: those of the sources, and the allowed ones."""
        own = {host for key in self.own if (host := _host(key))}
        return frozenset(own | {host.casefold() for host in self.draft.link_hosts})

    def standing(self, target: str) -> Standing:
        """Whether a target resolves, is to be shown as code, or comes from nowhere."""
        key = normal(target)
        if key in self.own:
            return "resolves"
        if key not in self.seen:
            return "unknown"
        return "resolves" if key.startswith(("mailto:", "tel:")) or _host(key) in self.hosts else "as_code"


@lru_cache(maxsize=64)  # several steps ask for the same text
def links(masked: str) -> tuple[Link, ...]:
    """The links of a text whose code is blanked out, in order, none inside another."""
    found = [Link(m.start(), m.end(), m[1], m[2] or "") for m in _TOKEN.finditer(masked)] if "<" in masked else []
    rest = blanked(masked, [link[:2] for link in found])
    marked = [Link(m.start(), m.end(), m[2], m[1]) for m in re.finditer(_MARKDOWN, rest)] if "](" in rest else []
    rest = blanked(rest, [link[:2] for link in marked])
    bare = [_bare_link(m) for start, end in around(rest, _IN_BARE) for m in _BARE.finditer(rest, start, end)]
    return tuple(sorted([*found, *marked, *bare], key=lambda link: link.start))


def _bare_link(match: re.Match[str]) -> Link:
    target = trimmed(_CITED.sub("", match[0]))
    return Link(match.start(), match.start() + len(target), target)


def trimmed(target: str) -> str:
    """A URL or path without the sentence's own punctuation; a closing bracket stays where it was opened inside."""
    # GitHub's autolinks leave out the sentence's punctuation and unopened brackets, too.
    while target:
        last = target[-1]
        unopened = last in _PAIRS and target.count(last) > target.count(_PAIRS[last])
        if last not in _TRAILING and not unopened:
            break
        target = target[:-1]
    return target


@lru_cache(maxsize=256)
def _seen(text: str) -> frozenset[str]:
    """The targets a text names, normalised: its links, also those in code, and its mail addresses."""
    # Remembered: an answer's attempts have the same sources.
    targets = [link.target for shown in links(text) for link in (shown, *links(shown.label))]
    addresses = (match[0] for start, end in around(text, _AT) for match in _ADDRESS.finditer(text, start, end))
    return frozenset(map(normal, (*targets, *(f"mailto:{address}" for address in addresses))))


_AT: Final = re.compile("@")
_ADDRESS: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")


@lru_cache(maxsize=1024)
def normal(target: str) -> str:
    """A target in the one spelling that is compared: entities decoded, scheme and host lower case, no last slash."""
    plain = target.strip()
    for entity, letter in _ENTITIES:
        plain = plain.replace(entity, letter)
    scheme, colon, rest = plain.partition(":")
    if colon and not rest.startswith("//") and "." not in scheme and "/" not in scheme:
        # mailto: and tel: name no page: what is asked for behind "?" (a subject) makes no other address.
        return f"{scheme.casefold()}:{rest.partition('?')[0].casefold()}"
    if "://" not in plain and (plain.casefold().startswith("www.") or _BARE.fullmatch(plain)):
        plain = f"https://{plain}"
    scheme, slashes, rest = plain.partition("://")
    host, slash, path = _HOST_AND_PATH.findall(rest)[0] if slashes else ("", "", plain)
    # RFC 3986, 6.2: the case of scheme and host and a default port make no other address.
    host = host.casefold().removesuffix(_DEFAULT_PORTS.get(scheme.casefold(), "\0"))
    secure = "https" if scheme.casefold() == "http" else scheme.casefold()  # the same page over either
    return f"{secure}://{host}{slash}{unquote(path)}".rstrip("/") if slashes else unquote(plain)


def _host(key: str) -> str:
    """The host of a normalised target without user part and port; empty where there is none."""
    try:
        return (urlsplit(key).hostname or "").casefold()
    except ValueError:  # such as an unclosed IPv6 bracket: no host then
        return ""


def show_as_code(text: str, known: KnownLinks) -> tuple[str, tuple[Repair, ...]]:
    """The text with every link that only stands in a text shown as code: it can be read there and not clicked."""
    edits = [
        Edit(link.start, link.end, _as_code(link))
        for link in links(prose(text))
        if "`" not in link.target and known.standing(link.target) == "as_code"
    ]
    return applied(text, edits), (Repair(kind="link_as_code", count=len(edits)),) if edits else ()


def _as_code(link: Link) -> str:
    """``label (`target`)``, or the target alone where the label says no more."""
    label = link.label.strip()
    same = not label or normal(label) == normal(link.target) or links(label)
    return f"`{link.target}`" if same else f"{label} (`{link.target}`)"

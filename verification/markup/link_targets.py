"""The links of an answer: find them, and decide if each may be clicked, is shown as code, or fails.

A link resolves if it is a source's url, or appears in a source's text or the question on a host of the sources' own
urls or of the allowed hosts. A link that only appears in a text is shown as code. The citation rule fails a link from
nowhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote, urlsplit

from propcache.api import cached_property

from verification.markup.edits import Edit, apply_edits, blank_spans
from verification.markup.scanner import prose
from verification.text.words import stretches_around
from verification.types import Draft, Repair

LinkStatus = Literal["resolves", "as_code", "unknown"]

_SCHEME: Final = r"(?:https?|ftp|mailto|tel|slack|file|javascript|data)"
_TOP_LEVEL: Final = (
    "(?:com|net|org|io|dev|app|ai|co|info|biz|xyz|site|online|top|link|click|me|cloud"
    "|de|fr|es|id|jp|cn|uk|eu|ru|nl|it|example|test|invalid)"
)
# Case makes no difference here, and ignoring it would take most of this module's import time.
_URL_LETTER: Final = '(?-i:[^\\s<>`|"“”«»\u3000-\u30ff\u3400-\u9fff\uff00-\uffef])'
_MAX_URL: Final = 2000
_BARE: Final = re.compile(
    rf"(?<![A-Za-z0-9_@./-])(?:(?:https?|ftp)://|www\.(?=\w)){_URL_LETTER}{{1,{_MAX_URL}}}"
    rf"|(?<![A-Za-z0-9_@./:-])(?:[a-z0-9](?:[a-z0-9-]{{0,62}})\.){{1,8}}{_TOP_LEVEL}(?::[0-9]{{1,5}})?/{_URL_LETTER}{{1,{_MAX_URL}}}",
    re.IGNORECASE,
)
_TOKEN: Final = re.compile(rf"<({_SCHEME}:[^<>|\s]+)(?:\|([^<>\n]*))?>", re.IGNORECASE)
# Compiled by ``re`` on the first text with "](": that takes as long as a check.
_MARKDOWN: Final = (
    r"!?\[((?:[^\[\]\n]|\[[^\[\]\n]{0,100}\]){0,200})\]"
    r"\(\s{0,3}<?((?:[^\s()<>]|\([^\s()<>]{0,300}\)){1,4000})>?(?:\s{1,3}[\"'(][^\n]{0,300}?[\"')])?\s{0,3}\)"
)
_TRAILING_CITATIONS: Final = re.compile(r"(?:\[[0-9][0-9, -]{0,40}\][.,;:!?]?)+$")

_IN_BARE: Final = re.compile(r"[/Ww](?:(?<=/)|[Ww]{2}\.)")
_TRAILING: Final = ".,;:!?'*_~。，、；：！？」』】）"
_PAIRS: Final = {")": "(", "]": "[", "}": "{"}
_ENTITIES: Final = (("&amp;", "&"), ("&lt;", "<"), ("&gt;", ">"))
_HOST_AND_PATH: Final = re.compile(r"([^/?#]*)(/?)(.*)", re.DOTALL)
_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}


class Link(NamedTuple):
    """A link in a text: its span, its target as written, and its label (empty without one)."""

    start: int
    end: int
    target: str
    label: str = ""


@dataclass(frozen=True)
class KnownLinks:
    """The normalised targets that an answer may use. No slots, because of the cached properties."""

    draft: Draft

    @cached_property
    def own_urls(self) -> frozenset[str]:
        """The sources' own urls, with and without the fragment."""
        own_urls = {normalise_url(source.url) for source in self.draft.sources if source.url}
        return frozenset(own_urls | {key.partition("#")[0] for key in own_urls})

    @cached_property
    def mentioned_urls(self) -> frozenset[str]:
        """The targets in the sources' texts, the question and the known text."""
        draft = self.draft
        texts = [draft.question, draft.known_text, *(source.text for source in draft.sources)]
        return frozenset[str]().union(*map(_mentioned_targets, texts))

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts that may be linked: those of the sources, and the allowed ones."""
        own_urls = {host for key in self.own_urls if (host := _host(key))}
        return frozenset(own_urls | {host.casefold() for host in self.draft.link_hosts})

    def status(self, target: str) -> LinkStatus:
        """Return whether a target resolves, is shown as code, or is unknown."""
        key = normalise_url(target)
        if key in self.own_urls:
            return "resolves"
        if key not in self.mentioned_urls:
            return "unknown"
        return "resolves" if key.startswith(("mailto:", "tel:")) or _host(key) in self.hosts else "as_code"


@lru_cache(maxsize=64)  # several steps ask for the same text
def links(masked: str) -> tuple[Link, ...]:
    """Return the links of a text without code, in order, none inside another."""
    tokens = [Link(m.start(), m.end(), m[1], m[2] or "") for m in _TOKEN.finditer(masked)] if "<" in masked else []
    rest = blank_spans(masked, [link[:2] for link in tokens])
    markdown = [Link(m.start(), m.end(), m[2], m[1]) for m in re.finditer(_MARKDOWN, rest)] if "](" in rest else []
    rest = blank_spans(rest, [link[:2] for link in markdown])
    bare = [_bare_link(m) for start, end in stretches_around(rest, _IN_BARE) for m in _BARE.finditer(rest, start, end)]
    return tuple(sorted([*tokens, *markdown, *bare], key=lambda link: link.start))


def _bare_link(match: re.Match[str]) -> Link:
    target = trim_punctuation(_TRAILING_CITATIONS.sub("", match[0]))
    return Link(match.start(), match.start() + len(target), target)


def trim_punctuation(target: str) -> str:
    """Remove the sentence's punctuation from a URL or path. A closing bracket stays if it was opened inside."""
    # GitHub's autolinks do the same with punctuation and unopened brackets.
    while target:
        last = target[-1]
        unopened = last in _PAIRS and target.count(last) > target.count(_PAIRS[last])
        if last not in _TRAILING and not unopened:
            break
        target = target[:-1]
    return target


@lru_cache(maxsize=256)
def _mentioned_targets(text: str) -> frozenset[str]:
    """The normalised targets in a text: its links, also those in code, and its mail addresses."""
    # Cached: an answer's attempts have the same sources.
    targets = [link.target for shown in links(text) for link in (shown, *links(shown.label))]
    addresses = (
        match[0] for start, end in stretches_around(text, _AT) for match in _ADDRESS.finditer(text, start, end)
    )
    return frozenset(map(normalise_url, (*targets, *(f"mailto:{address}" for address in addresses))))


_AT: Final = re.compile("@")
_ADDRESS: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,6}")


@lru_cache(maxsize=1024)
def normalise_url(target: str) -> str:
    """Return a target's spelling for comparison: entities decoded, scheme and host lower case, no last slash."""
    plain = target.strip()
    for entity, letter in _ENTITIES:
        plain = plain.replace(entity, letter)
    scheme, colon, rest = plain.partition(":")
    if colon and not rest.startswith("//") and "." not in scheme and "/" not in scheme:
        # mailto: and tel: a query such as a subject does not change the address.
        return f"{scheme.casefold()}:{rest.partition('?')[0].casefold()}"
    if "://" not in plain and (plain.casefold().startswith("www.") or _BARE.fullmatch(plain)):
        plain = f"https://{plain}"
    scheme, slashes, rest = plain.partition("://")
    host, slash, path = _HOST_AND_PATH.findall(rest)[0] if slashes else ("", "", plain)
    # RFC 3986, 6.2: case of scheme and host and a default port do not matter.
    host = host.casefold().removesuffix(_DEFAULT_PORTS.get(scheme.casefold(), "\0"))
    secure = "https" if scheme.casefold() == "http" else scheme.casefold()  # http and https lead to the same page
    return f"{secure}://{host}{slash}{unquote(path)}".rstrip("/") if slashes else unquote(plain)


def _host(key: str) -> str:
    """The host of a normalised target without user and port. Empty without a host."""
    try:
        return (urlsplit(key).hostname or "").casefold()
    except ValueError:  # such as an unclosed IPv6 bracket
        return ""


def show_as_code(text: str, known: KnownLinks) -> tuple[str, tuple[Repair, ...]]:
    """Show each link that only appears in a text as code, where it can be read and not clicked."""
    edits = [
        Edit(link.start, link.end, _as_code(link))
        for link in links(prose(text))
        if "`" not in link.target and known.status(link.target) == "as_code"
    ]
    return apply_edits(text, edits), (Repair(kind="link_as_code", count=len(edits)),) if edits else ()


def _as_code(link: Link) -> str:
    """Return ``label (`target`)``, or the target alone if the label says the same."""
    label = link.label.strip()
    same = not label or normalise_url(label) == normalise_url(link.target) or links(label)
    return f"`{link.target}`" if same else f"{label} (`{link.target}`)"

"""What an answer refers to: sources by ``[n]``, links, channels and people. Each must be known.

Citations in all spellings that models use are converted to one form. Nothing inside code or a link is a citation.
``renumber`` numbers them for readers: from 1, in the order of their first use. A growing answer keeps its numbers.

Links pass an allow-list of schemes. A link resolves if a source contains it, as its url or in its text, or if the
question contains it and its host is a source's or an allowed one. Other links from the question, and links with another
scheme, are shown as code. A link of unknown origin is an error. So is a mention of a channel, a group, or a person whom
the question did not name, also in code in which Slack would still see a token. Mentions are never repaired.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from propcache.api import cached_property

from verification.markup.lines import NO_SOURCE, cited_numbers, is_drawn
from verification.markup.links import links, mentioned_targets, normalise_url
from verification.markup.scanner import (
    SCHEMES,
    ZERO_WIDTH,
    Edit,
    apply_edits,
    blank_spans,
    fences,
    prose,
    segments,
)
from verification.types import Draft, Reading, Repair, Source, Violation

_WORD: Final = r"(?:sources?|src|refs?|references?|quellen?|fuentes?|sumber)"
_NUMBER: Final = rf"(?:{_WORD}\s{{1,3}})?\^?#?[0-9]{{1,400}}"
_JOIN: Final = r"\s{0,3}(?:[,;&、，-]|–|and|und|et|y|dan)\s{0,3}"
# 【1†source】 is how OpenAI's file search cites.
_CITATION: Final = re.compile(
    rf"\[({_NUMBER}(?:{_JOIN}{_NUMBER}){{0,40}})(?:†[^\[\]\n]{{0,60}})?\](?!\()"
    rf"|\(({_WORD}\s{{1,3}}[0-9]{{1,400}}(?:{_JOIN}{_NUMBER}){{0,40}})\)"
    rf"|[【［]({_NUMBER}(?:{_JOIN}{_NUMBER}){{0,40}})(?:†[^【】［］\n]{{0,60}})?[】］]",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"\[?([0-9]{1,6})\]?")
_CHANNEL: Final = re.compile(r"<#([A-Z0-9]{2,32})(?:\|[^<>\n]{0,80})?>", re.IGNORECASE)
_MAX_NAMED: Final = 30


class Citation(NamedTuple):
    """One bracket: its span, and the source numbers it names in order."""

    start: int
    end: int
    ids: tuple[int, ...]


def citations(text: str) -> tuple[Citation, ...]:
    """The citations of a text, outside code and links, in order."""
    return _citations_in(prose(text))


@lru_cache(maxsize=4)
def _citations_in(masked: str) -> tuple[Citation, ...]:
    """The citations of a text whose code is blanked out. Cached, since several rules need the same text."""
    # A number in a URL or a label is not a citation.
    unlinked = blank_spans(masked, [(link.start, link.end) for link in links(masked)])
    return tuple(
        Citation(m.start(), m.end(), tuple(cited_numbers(m[1] or m[2] or m[3]))) for m in _CITATION.finditer(unlinked)
    )


def normalise_citations(text: str, sources: tuple[Source, ...]) -> tuple[str, tuple[Repair, ...]]:
    """Return the text with each citation as ``[n][m]``, including those written as links to their source."""
    masked = prose(text)
    by_id = {source.id: normalise_url(source.url) for source in sources} if links(masked) else {}
    changes = [*_link_edits(masked, by_id)]
    for start, end, ids in _citations_in(masked):
        plain = "".join(f"[{number}]" for number in dict.fromkeys(ids))
        if NO_SOURCE not in ids and text[start:end] != plain:
            changes.append(Edit(start, end, plain))
    return apply_edits(text, changes), (Repair(kind="citation", count=len(changes)),) if changes else ()


def _link_edits(masked: str, by_id: dict[int, str]) -> Iterator[Edit]:
    """Yield edits of links to a source's page.

    A link labelled with its number becomes a citation. Any other link keeps its text and gets the number after it, on a
    line that cites nothing else.
    """
    pages = Counter(by_id.values())
    numbers = {page: number for number, page in by_id.items() if pages[page] == 1}
    end, cites = -1, False
    for link in links(masked):
        if link.start > end:
            first = masked.rfind("\n", 0, link.start) + 1
            end = masked.find("\n", link.end) % (len(masked) + 1)
            cites = bool(_CITATION.search(masked, first, end))
        page, label = normalise_url(link.target), _LABEL.fullmatch(link.label.strip())
        if label and by_id.get(int(label[1])) == page:
            yield Edit(link.start, link.end, f"[{int(label[1])}]")
        elif page in numbers and not cites and not label:
            yield Edit(link.end, link.end, f" [{numbers[page]}]")


LinkStatus = Literal["resolves", "as_code", "unknown"]
_CLICKABLE: Final = re.compile(rf"(?:{SCHEMES}):", re.IGNORECASE)


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
    def source_urls(self) -> frozenset[str]:
        """The sources' own urls, and the targets in their texts."""
        return self.own_urls.union(*(mentioned_targets(source.text) for source in self.draft.sources))

    @cached_property
    def asked_urls(self) -> frozenset[str]:
        """The targets in the question and the known text."""
        return mentioned_targets(self.draft.question) | mentioned_targets(self.draft.known_text)

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts that may be linked: those of the sources, and the allowed ones."""
        own_urls = {host for key in self.own_urls if (host := _host(key))}
        return frozenset(own_urls | {host.casefold() for host in self.draft.link_hosts})

    def status(self, target: str) -> LinkStatus:
        """Return whether a target resolves, is shown as code, or is unknown."""
        key = normalise_url(target)
        if key not in self.source_urls and key not in self.asked_urls:
            return "unknown"
        may_resolve = key in self.source_urls or _host(key) in self.hosts
        return "resolves" if may_resolve and _CLICKABLE.match(key) else "as_code"


def _host(key: str) -> str:
    """The host of a normalised target without user and port. Empty without a host."""
    try:
        return (urlsplit(key).hostname or "").casefold()
    except ValueError:  # such as an unclosed IPv6 bracket
        return ""


def show_as_code(text: str, known: KnownLinks) -> tuple[str, tuple[Repair, ...]]:
    """Show each link that only appears in a text as code, where it can be read and not clicked."""
    edits: list[Edit] = []
    for start, end, target, label in links(prose(text)):
        if "`" not in target and known.status(target) == "as_code":
            same = not label.strip() or normalise_url(label.strip()) == normalise_url(target) or links(label.strip())
            edits.append(Edit(start, end, f"`{target}`" if same else f"{label.strip()} (`{target}`)"))
    return apply_edits(text, edits), (Repair(kind="link_as_code", count=len(edits)),) if edits else ()


def cites_sources(reading: Reading) -> tuple[Violation, ...]:
    """Return an error for each claim without a citation, if there are sources."""
    draft = reading.draft
    if draft.own_words or draft.unsourced or not draft.sources:
        return ()
    source_list = ", ".join(f"[{number}]" for number in sorted({source.id for source in draft.sources})[:_MAX_NAMED])
    starts = [citation.start for citation in _citations_in(reading.prose)]
    return tuple(
        reading.violation(
            "cites_sources",
            (claim.start, claim.end),
            "This states something and cites no source.",
            f"End the sentence with the number of the source that says it ({source_list}), or leave it out.",
        )
        for claim in reading.claims
        if not claim.cited and bisect_left(starts, claim.start) == bisect_left(starts, claim.end)
    )


def citation_resolves(reading: Reading) -> tuple[Violation, ...]:
    """Return an error for each number without a source, for each link that does not resolve, and for channels."""
    numbers = () if reading.draft.own_words else _unknown_numbers(reading)
    return (*numbers, *_unknown_links(reading), *_unknown_channels(reading))


def _unknown_numbers(reading: Reading) -> Iterator[Violation]:
    ids = {source.id for source in reading.draft.sources}
    valid = ", ".join(f"[{number}]" for number in sorted(ids)[:_MAX_NAMED])
    remedy = f"Cite only {valid}." if valid else "Leave the number out: there are no sources to cite."
    # A table is sent as a code block, but its rows are still claims.
    rows = (each for each in reading.claims if each.cited and not reading.prose[each.start : each.end].strip())
    in_tables = [Citation(row.start, row.end, row.cited) for row in rows]
    for start, end, numbers in (*_citations_in(reading.prose), *in_tables):
        if not ids.issuperset(numbers):
            yield reading.violation("citation_resolves", (start, end), "No source has this number.", remedy)


def _unknown_links(reading: Reading) -> Iterator[Violation]:
    known = KnownLinks(reading.draft)
    # Rich text has no zero-width joins, so an address that one interrupts would be whole there.
    bare = reading.prose.replace(ZERO_WIDTH, "")
    hidden = {link.target for link in links(bare)} - {
        link.target.replace(ZERO_WIDTH, "") for link in links(reading.prose)
    }
    if any(known.status(target) != "resolves" for target in hidden):
        yield reading.violation("citation_resolves", (0, len(reading.text)), *_LINK_FAULTS["unknown"])
    for link in links(reading.prose):
        statuses = {known.status(each.target) for each in (link, *links(link.label))}
        for status, (detail, remedy) in _LINK_FAULTS.items():
            if status in statuses:
                yield reading.violation("citation_resolves", (link.start, link.end), detail, remedy)
                break


def _unknown_channels(reading: Reading) -> Iterator[Violation]:
    """Yield the channels that neither the question nor a source names."""
    draft = reading.draft
    detail, remedy = "This channel is in no source and not in the question.", "Leave the channel out."
    for match in _CHANNEL.finditer(reading.prose):
        texts = (draft.question, draft.known_text, *(text for each in draft.sources for text in (each.url, each.text)))
        if not any(match[1] in text for text in texts):
            yield reading.violation("citation_resolves", match.span(), detail, remedy)


_LINK_FAULTS: Final[dict[LinkStatus, tuple[str, str]]] = {
    "unknown": (
        "This link is in no source and not in the question.",
        "Leave the link out; cite the source by [n].",
    ),
    "as_code": ("This link leads to a host that no source is from.", "Show the address as `code`, not as a link."),
}


_MENTION: Final = re.compile(
    r"<!(?:(?:here|channel|everyone|group)(?:\|[^<>\n]{0,80})?|subteam\^[^<>\n]{0,120})>|<@([A-Z0-9]{2,32})(?:\|[^<>\n]{0,80})?>"
)
# If a text is parsed (parse=full, link_names), Slack notifies for the plain word too.
_PLAIN_MENTION: Final = re.compile(
    r"(?<![A-Za-z0-9_@/.&#+-])@(?:here|channel|everyone)(?![A-Za-z0-9_/@-]|\.[A-Za-z0-9])", re.IGNORECASE
)
_LOOSE_MENTION: Final = re.compile(
    r"<[\s\u200b]*(?:!|@)[\s\u200b]*(?:here|channel|everyone|subteam)\b[^<>\n]{0,80}>?", re.IGNORECASE
)
_MENTION_REMEDY: Final = "Leave the mention out: name the role or the channel in words."


def no_broadcast(reading: Reading) -> tuple[Violation, ...]:
    """Return an error for each mention of everyone, a group, or a person whom the question did not name."""
    spans = {match.span() for match in _MENTION.finditer(reading.text) if _is_foreign(match, reading)}
    spans |= {match.span() for match in _LOOSE_MENTION.finditer(reading.prose)}
    if "@" in reading.prose:
        spans |= {match.span() for match in _PLAIN_MENTION.finditer(reading.prose)}
    in_chunks = (match for chunk in reading.chunks for match in _MENTION.finditer(chunk))
    if not spans and (any(_is_foreign(match, reading) for match in in_chunks) or _called_in_a_table(reading)):
        spans = {(0, len(reading.text))}
    detail = "This would notify people whom the question did not name."
    return tuple(reading.violation("no_broadcast", span, detail, _MENTION_REMEDY) for span in sorted(spans))


def _called_in_a_table(reading: Reading) -> bool:
    """Find mentions in a table of the draft. Drawn as code they notify no one, but the model tried to."""
    text = reading.draft.text
    if not (reading.draft.repair and "|" in text and ("@" in text or "<" in text)):
        return False
    written = prose(text)
    foreign = any(_is_foreign(match, reading) for match in _MENTION.finditer(written))
    return foreign or bool(_LOOSE_MENTION.search(written) or _PLAIN_MENTION.search(written))


def _is_foreign(match: re.Match[str], reading: Reading) -> bool:
    return not match[1] or match[1] not in reading.draft.mentions


def cited_sources(draft: Draft, text: str) -> tuple[Source, ...]:
    """The sources that a text cites, in the draft's order."""
    ids = {number for citation in citations(text) for number in citation.ids}
    return tuple(source for source in draft.sources if source.id in ids)


_LINKED: Final = re.compile(r"\[\\\[(\d{1,9})\\\]\]\(")
_IN_CELL: Final = re.compile(r"\[(\d{1,9})\]")

Order = Mapping[int, int]  # from the id of a cited source to its new number


def citation_order(text: str, sources: Iterable[Source]) -> Order:
    """Return the order in which a verified text cites these sources."""
    known = {source.id for source in sources}
    cited = dict.fromkeys(number for _, _, numbers in _find_citations(text) for number in numbers if number in known)
    return {number: place for place, number in enumerate(cited, 1)}


def renumber(text: str, order: Order) -> str:
    """Return the text with citations renumbered in that order, including Markdown links. Code stays as it is."""
    pieces, position = [], 0
    for start, end, numbers in _find_citations(text):
        if all(number in order for number in numbers):
            new = "".join(f"[{order[number]}]" for number in numbers)
            linked = f"[\\[{order[numbers[0]]}\\]]("
            pieces += [text[position:start], linked if text.startswith("[\\[", start) else new]
            position = end
    return "".join([*pieces, text[position:]])


def _find_citations(text: str) -> list[tuple[int, int, tuple[int, ...]]]:
    """Return the start, end and numbers of each citation in order, including those in drawn tables."""
    places = [(citation.start, citation.end, citation.ids) for citation in citations(text)]
    for segment in segments(text):
        if segment.kind == "text":
            matches = _LINKED.finditer(text, segment.start, segment.end)
            places += [(link.start(), link.end(), (int(link[1]),)) for link in matches]
    for fence in fences(text):
        if is_drawn(text[fence.body : fence.body_end]):
            cells = _IN_CELL.finditer(text, fence.body, fence.body_end)
            places += [(cell.start(), cell.end(), (int(cell[1]),)) for cell in cells]
    return sorted(places)

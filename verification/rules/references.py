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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, Literal, NamedTuple
from urllib.parse import urlsplit

from propcache.api import cached_property

from verification.evidence.verbatim import find_quoted, text_as_read
from verification.markup.lines import NO_SOURCE, at_section, cited_numbers, is_drawn, source_lines
from verification.markup.links import links, mentioned_targets, normalise_url, quote_url
from verification.markup.scanner import SCHEMES, ZERO_WIDTH, Edit, apply_edits, blank_spans, fences, prose, segments
from verification.types import Claim, Draft, Reading, Repair, Source, Violation

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


@lru_cache(maxsize=4)  # several rules need the same text
def citations(text: str) -> tuple[Citation, ...]:
    """The citations of a text, outside code and links, in order."""
    masked = prose(text)
    # A number in a URL or a label is not a citation.
    unlinked = blank_spans(masked, [link[:2] for link in links(masked)])
    found = _CITATION.finditer(unlinked)
    return tuple(Citation(*match.span(), tuple(cited_numbers(match[match.lastindex or 0]))) for match in found)


def normalise_citations(text: str, sources: tuple[Source, ...]) -> tuple[str, tuple[Repair, ...]]:
    """Return the text with each citation as ``[n][m]``, including those written as links to their source.

    A link labelled with its number becomes a citation. Any other link to a source's page keeps its text and gets the
    number after it, on a line that cites nothing else.
    """
    masked = prose(text)
    by_id = {source.id: normalise_url(source.url) for source in sources} if links(masked) else {}
    pages = Counter(by_id.values())
    numbers = {page: number for number, page in by_id.items() if pages[page] == 1}
    changes: list[Edit] = []
    end, cites = -1, False
    for link in links(masked):
        if link.start > end:
            first = masked.rfind("\n", 0, link.start) + 1
            end = masked.find("\n", link.end) % (len(masked) + 1)
            cites = bool(_CITATION.search(masked, first, end))
        page, label = normalise_url(link.target), _LABEL.fullmatch(link.label.strip())
        if label and by_id.get(int(label[1])) == page:
            changes.append(Edit(link.start, link.end, f"[{int(label[1])}]"))
        elif page in numbers and not cites and not label:
            changes.append(Edit(link.end, link.end, f" [{numbers[page]}]"))
    for start, end, ids in citations(text):
        plain = "".join(f"[{number}]" for number in dict.fromkeys(ids))
        if NO_SOURCE not in ids and text[start:end] != plain:
            changes.append(Edit(start, end, plain))
    return apply_edits(text, changes), (Repair(kind="citation", count=len(changes)),) if changes else ()


LinkStatus = Literal["resolves", "as_code", "unknown"]
_CLICKABLE: Final = re.compile(rf"(?:{SCHEMES}):", re.IGNORECASE)


@dataclass(frozen=True)
class KnownLinks:
    """The normalised targets that an answer may use. No slots, because of the cached properties."""

    draft: Draft

    @cached_property
    def source_urls(self) -> frozenset[str]:
        """The sources' own urls, and the targets in their texts, with and without the fragment."""
        targets = {normalise_url(source.url) for source in self.draft.sources if source.url}
        targets.update(*(mentioned_targets(source.text) for source in self.draft.sources))
        return frozenset({*targets, *(target.partition("#")[0] for target in targets)})

    @cached_property
    def hosts(self) -> frozenset[str]:
        """The hosts that may be linked: those of the sources, and the allowed ones."""
        own_hosts = {host_of(normalise_url(source.url)) for source in self.draft.sources} - {""}
        return frozenset(own_hosts | {host.casefold() for host in self.draft.link_hosts})

    def status(self, target: str) -> LinkStatus:
        """Return whether a target resolves, is shown as code, or is unknown."""
        key = normalise_url(target)
        in_source = key in self.source_urls
        if not in_source and all(key not in mentioned_targets(t) for t in (self.draft.question, self.draft.known_text)):
            return "unknown"
        return "resolves" if (in_source or host_of(key) in self.hosts) and _CLICKABLE.match(key) else "as_code"


def host_of(key: str) -> str:
    """The host of a normalised target. Empty without one."""
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


def cites_sources(reading: Reading) -> Iterator[Violation]:
    """Yield an error for each claim without a citation, if there are sources."""
    draft = reading.draft
    if draft.own_words or draft.unsourced or not draft.sources:
        return
    named = ", ".join(f"[{number}]" for number in sorted({source.id for source in draft.sources})[:_MAX_NAMED])
    remedy = f"End the sentence with the number of the source that says it ({named}), or leave it out."
    starts = [citation.start for citation in citations(reading.text)]
    for claim in reading.claims:
        if not claim.cited and bisect_left(starts, claim.start) == bisect_left(starts, claim.end):
            detail = "This states something and cites no source."
            yield reading.violation("cites_sources", (claim.start, claim.end), detail, remedy)


def citation_resolves(reading: Reading) -> Iterator[Violation]:
    """Yield an error for each number without a source, each unknown link, and each channel that no text names."""
    draft = reading.draft
    ids = {source.id for source in draft.sources}
    valid = ", ".join(f"[{number}]" for number in sorted(ids)[:_MAX_NAMED])
    remedy = f"Cite only {valid}." if valid else "Leave the number out: there are no sources to cite."
    # A table is sent as a code block, but its rows are still claims.
    rows = (each for each in reading.claims if each.cited and not reading.prose[each.start : each.end].strip())
    in_tables = [Citation(row.start, row.end, row.cited) for row in rows]
    for start, end, numbers in () if draft.own_words else (*citations(reading.text), *in_tables):
        if not ids.issuperset(numbers):
            yield reading.violation("citation_resolves", (start, end), "No source has this number.", remedy)
    yield from _unknown_links(reading)
    texts = (draft.question, draft.known_text, *(text for each in draft.sources for text in (each.url, each.text)))
    for match in _CHANNEL.finditer(reading.prose):
        if not any(match[1] in text for text in texts):
            detail = "This channel is in no source and not in the question."
            yield reading.violation("citation_resolves", match.span(), detail, "Leave the channel out.")


def _unknown_links(reading: Reading) -> Iterator[Violation]:
    known = KnownLinks(reading.draft)
    # Rich text has no zero-width joins, so an address that one splits would be whole there.
    bare = reading.prose.replace(ZERO_WIDTH, "")
    shown = {link.target.replace(ZERO_WIDTH, "") for link in links(reading.prose)}
    if any(known.status(target) != "resolves" for target in {link.target for link in links(bare)} - shown):
        yield reading.violation("citation_resolves", (0, len(reading.text)), *_LINK_FAULTS["unknown"])
    for link in links(reading.prose):
        statuses = {known.status(each.target) for each in (link, *links(link.label))}
        if fault := next((_LINK_FAULTS[each] for each in ("unknown", "as_code") if each in statuses), None):
            yield reading.violation("citation_resolves", (link.start, link.end), *fault)


_LINK_FAULTS: Final = {
    "unknown": ("This link is in no source and not in the question.", "Leave the link out; cite the source by [n]."),
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


def no_broadcast(reading: Reading) -> Iterator[Violation]:
    """Yield an error for each mention of everyone, a group, or a person whom the question did not name."""
    # A table in the draft is shown as code and notifies no one, but a mention in it was meant to.
    draft = reading.draft
    written = prose(draft.text) if draft.repair and "|" in draft.text else ""

    def spans_in(text: str, plain: str) -> set[tuple[int, int]]:
        marked = (each for each in _MENTION.finditer(text) if not each[1] or each[1] not in draft.mentions)
        loose = (each for pattern in (_LOOSE_MENTION, _PLAIN_MENTION) for each in pattern.finditer(plain))
        return {match.span() for matches in (marked, loose) for match in matches}

    hidden = spans_in(written, written) or any(spans_in(chunk, "") for chunk in reading.chunks)
    spans = spans_in(reading.text, reading.prose) or ({(0, len(reading.text))} if hidden else set())
    detail = "This would notify people whom the question did not name."
    for span in sorted(spans):
        yield reading.violation("no_broadcast", span, detail, _MENTION_REMEDY)


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


def at_named_section(source: Source, claims: Sequence[Claim]) -> Source:
    """Return the source with the link and the title of the section of most lines that the claims name, or repeat."""
    if not source.sections:
        return source
    named = [line for claim in claims for number, line in claim.lines if number == source.id]
    if not named:
        quotes = [
            text_as_read(each.text) for each in claims if each.settled_by == "quotation" and source.id in each.cited
        ]
        lines = [text_as_read(line) for line in source_lines(source)]
        named = [line for quote in quotes for _, line in find_quoted(quote, lines)]
    sections = Counter(at_section(source, line) for line in named)
    titles = {url: title for _, url, title in source.sections}
    return max(sections, key=sections.__getitem__, default=replace(source, title=titles.get(source.url, source.title)))


def link_named_sections(markdown: str, sources: Iterable[Source], claims: Sequence[Claim]) -> str:
    """Return a block of a stream with its citations linked to the sections that its claims name."""
    for source in (each for each in sources if each.sections):
        address = quote_url(at_named_section(source, claims).url).replace("(", "%28").replace(")", "%29")
        markdown = re.sub(rf"(?<=\[\\\[{source.id}\\\]\]\()[^()\s]*(?=\))", address.replace("\\", r"\\"), markdown)
    return markdown


def _find_citations(text: str) -> list[Citation]:
    """Return each citation in order, including those in drawn tables."""
    places = [*citations(text)]
    for segment in segments(text):
        if segment.kind == "text":
            matches = _LINKED.finditer(text, segment.start, segment.end)
            places += [Citation(*link.span(), (int(link[1]),)) for link in matches]
    for fence in fences(text):
        if is_drawn(text[fence.body : fence.body_end]):
            cells = _IN_CELL.finditer(text, fence.body, fence.body_end)
            places += [Citation(*cell.span(), (int(cell[1]),)) for cell in cells]
    return sorted(places)

"""Reader of HTML: the main text as Markdown, without navigation, scripts and hidden parts."""

import re
from collections.abc import Mapping
from contextlib import suppress
from copy import deepcopy
from itertools import accumulate, islice
from typing import Any, Final

from html_to_markdown import ConversionOptions, PreprocessingOptions, convert
from html_to_markdown.exceptions import ConversionError
from lxml.etree import ParserError  # type: ignore[import-untyped]  # ships no types
from lxml.html import HTMLParser, document_fromstring, tostring  # type: ignore[import-untyped]  # ships no types

from agent.knowledge.readers.document import (
    IN_PART,
    Content,
    ReadLimits,
    clean,
    join_header_rows,
    part_note_marks,
    table_row,
    whole,
)
from agent.knowledge.readers.text import apply_raised_tags, decode, replace_closed
from agent.knowledge.types import ReadError

NEVER_SHOWN: Final = ("script", "style", "template", "noscript", "svg", "iframe", "video", "audio")
_MAX_DEPTH: Final = 400  # of elements inside each other, as old pages without closing tags have them
_OPTIONS: Final = ConversionOptions(
    extract_metadata=False,
    autolinks=False,
    skip_images=True,
    preprocessing=PreprocessingOptions(enabled=True, remove_forms=False, remove_navigation=False),
    max_depth=_MAX_DEPTH,
    highlight_style="none",
)
_DROPPED: Final = frozenset({*NEVER_SHOWN, "nav", "footer", "del", "s", "strike", "button", "select", "textarea"})
_HEADING_SIGNS: Final = frozenset({"headerlink", "anchor", "hash-link"})  # that documentation builders add
_TITLE: Final = re.compile(r"<title[^>]*>(?P<text>[^<]{1,300})</title", re.IGNORECASE)
_CHARSET: Final = re.compile(rb"<meta[^>]{0,200}?charset=[\"']?\s*([A-Za-z0-9_-]{2,20})", re.IGNORECASE)
_HIDING_STYLE: Final = re.compile(
    r"(?<![\w-])(?:(?:display\s*:\s*[\"']?none|visibility\s*:\s*[\"']?(?:hidden|collapse))\b"
    # A page that fades its text in begins with an opacity of 0 and a shift, and people read that text.
    r"|(?:font-?size|(?P<fades>opacity))\s*:\s*[\"']?(?:0+(?:\.0*)?|\.0+)(?![\d.])"
    r"(?(fades)(?!\s*;\s*trans(?:form|ition)\s*:)))",
    re.IGNORECASE,
)
_HEAD: Final = 100_000
# A longer page is cut: its tree takes up to 25 bytes of memory per character and 500 per tag.
_MAX_MARKUP: Final = 1_600_000  # maximum characters in addition to those of the text
_MAX_TAGS: Final = 70_000  # maximum tags in addition to one per ``_TAG_CHARS`` of the text
_TAG_CHARS: Final = 50
_PICTURE: Final = re.compile(r"\bdata:[^\s\"'()<>]{1000,}")
_CHIP: Final = re.compile(r"</span>(?P<chip><span class=\"selected-value)")  # values that Notion shows as chips
_EMPTY_ELEMENT: Final = re.compile(
    r"<(title|script|style|[abip]|div|span|li|t[dhr]|iframe|textarea)((?:\s[^<>]*)?)/>", re.IGNORECASE
)
# Tables that only place the parts of a page, as in old intranets: a row has one cell, or a cell headings or an article.
_LAYOUT_TABLES: Final = (
    "//table[@role='presentation' or not((tr | */tr)/th) and (not((tr | */tr)[count(td[normalize-space()]) > 1])"
    " or (tr | */tr)/td[.//h1 or .//h2 or .//h3 or string-length() > 2500])]"
)
_NUMBER: Final = re.compile(r"\s*0*([1-9][0-9]{0,4})\s*")
_MAX_STEPS: Final = 200_000  # maximum cells visited to repeat cells: some tenths of a second
_MAX_ROWS: Final = 100  # maximum rows that one cell covers
_HEADER: Final = re.compile(r"^(\|.*)\n(\|[ :|-]+\|)\n(\|.*)$", re.MULTILINE)
_CELL_END: Final = re.compile(r"(?<!\\)\|")
_FIELDS: Final = {
    **dict.fromkeys(("article:modified_time", "datemodified", "last-modified", "dcterms.modified"), "modified"),
    **dict.fromkeys(("article:published_time", "datepublished", "date", "dcterms.created"), "date"),
}


def read_html(data: bytes, limits: ReadLimits) -> Content:
    """Read a page. Its ``<title>`` and the dates of its ``<meta>`` elements are fields."""
    declared = _CHARSET.search(data[:_HEAD])
    page = decode(data, declared[1].decode("ascii") if declared else "")
    if page.lstrip().startswith("<?xml"):  # HTML has no empty elements but those of its own
        page = _EMPTY_ELEMENT.sub(r"<\1\2></\1>", page)
    title = _TITLE.search(page[:_HEAD])
    shown = page
    most, most_tags = limits.max_chars + _MAX_MARKUP, _MAX_TAGS + limits.max_chars // _TAG_CHARS
    if len(page) > most or page.count("<") > most_tags:
        shown = _PICTURE.sub("", page)
        for name in ("script", "style"):
            shown = replace_closed(re.compile(rf"<{name}\b.*?</{name}>", re.DOTALL), "", shown, f"</{name}>")
        within = "<".join(shown[:most].split("<", most_tags)[:most_tags])
        limits.cut = IN_PART if len(within) < len(shown) else ""
        shown = within
    tree = _parse(shown)
    fields: dict[str, str] = {}
    for meta in tree.iter("meta"):
        named = (meta.get(name, "").lower() for name in ("name", "property", "itemprop"))
        if field := next((_FIELDS[name] for name in named if name in _FIELDS), ""):
            fields.setdefault(field, meta.get("content", ""))
    text = part_note_marks(_to_markdown(tree))
    return Content(title=title["text"].strip() if title else "", fields=fields, parts=whole(clean(text)))


def fragment_to_markdown(fragment: str) -> str:
    """Return an HTML table, list or heading as Markdown; the fragment itself if it cannot be parsed."""
    with suppress(ReadError):
        return _to_markdown(_parse(fragment)).strip()
    return fragment


def _parse(page: str) -> Any:
    parser = HTMLParser(encoding="utf-8", remove_comments=True, huge_tree=True)  # else text below 256 elements is lost
    try:
        return document_fromstring(apply_raised_tags(page).encode("utf-8", "replace"), parser)
    except (ValueError, ParserError) as error:
        raise ReadError(reason="is HTML that cannot be parsed") from error


def _to_markdown(tree: Any) -> str:
    _resolve_attributes(tree)
    shown = _CHIP.sub(r"</span>, \g<chip>", tostring(tree, encoding="unicode"))
    try:
        return _HEADER.sub(_join_header, convert(shown, _OPTIONS).content or "")
    except (ConversionError, ValueError) as error:
        raise ReadError(reason="is HTML that cannot be parsed") from error


def _words_for(element: Any) -> str | None:
    """Return the words that replace a picture or a check box, or None."""
    kind = element.get("class", "")
    if element.tag == "img":
        described = element.get("data-emoji-fallback") or element.get("alt")
        return f" {described} " if described else ""
    if element.tag == "input" and element.get("type", "").lower() == "checkbox":
        return "☑ " if "checked" in element.attrib else "☐ "
    if kind.startswith("checkbox checkbox-"):  # in Notion's exports
        return "☑ " if kind.endswith("-on") else "☐ "
    return None


def is_hidden(name: str, attributes: Mapping[str, str]) -> bool:
    """Return whether an element's attributes hide it. A tab's text is hidden only until a reader chooses the tab."""
    if "tabpanel" in attributes.get("role", ""):
        return False
    is_field = name == "input" and "hidden" in attributes.get("type", "").lower()
    state = attributes.get("hidden", "{false}").strip("\"'").lower()
    is_marked = state not in {"{false}", "until-found"}  # the latter: a part that a search or a click opens
    return is_field or is_marked or bool(_HIDING_STYLE.search(attributes.get("style", "")))


def _join_header(found: re.Match[str]) -> str:
    first, second = ([cell.replace("\\|", "|") for cell in _CELL_END.split(row)[1:-1]] for row in found.group(1, 3))
    header = join_header_rows(first, second)
    return f"{table_row(header)}\n{found[2]}" if header else found[0]


def _is_unseen(element: Any) -> bool:
    is_sign = element.tag == "a" and not _HEADING_SIGNS.isdisjoint(element.get("class", "").split())
    is_struck = "line-through" in element.get("style", "")
    is_dropped = element.tag in _DROPPED and not (element.tag == "button" and element.getparent().tag == "a")
    return is_sign or is_struck or is_dropped or is_hidden(element.tag, element.attrib)


def _resolve_attributes(tree: Any) -> None:
    """Remove what people do not see from a page. Repeat each table cell that covers several rows in them."""
    for deep in tree.xpath(f"//*[count(ancestor::*) > {_MAX_DEPTH - 10}]"):  # the converter would drop its text
        deep.text = f" {deep.text or ''}"
        deep.drop_tag()
    for element in tree.xpath("body//*"):
        words = "" if _is_unseen(element) else _words_for(element)
        if words is not None:
            element.tail = words + (element.tail or "")
            element.drop_tree()
        elif "hidden" in element.attrib or "tabpanel" in element.get("role", ""):  # the converter would drop it
            for name in ("hidden", "style"):
                element.attrib.pop(name, None)
    for table in tree.xpath(_LAYOUT_TABLES):
        for part in (table, *table.xpath("*[self::tbody or self::tr] | tr/td | tbody/tr | tbody/tr/td")):
            part.tag = "div"
    _repeat_cells(tree)


def _repeat_cells(tree: Any) -> None:
    steps = 0
    for cell in tree.xpath("//tr/*[@rowspan > 1]"):
        count = min(_span(cell.attrib.pop("rowspan")), _MAX_ROWS) - 1
        rows = [*islice(cell.getparent().itersiblings("tr"), count)]
        steps += sum(map(len, rows), len(cell.getparent()))
        if steps > _MAX_STEPS:  # a small page can demand millions
            break
        column = sum(map(_width, cell.itersiblings(preceding=True)))
        for row in rows:
            before = accumulate(map(_width, row), initial=0)
            row.insert(sum(width < column for width in before), deepcopy(cell))


def _width(cell: Any) -> int:
    return _span(cell.get("colspan", "1"))


def _span(number: str) -> int:  # anything that is not a plausible number counts as one
    found = _NUMBER.fullmatch(number)
    return int(found[1]) if found else 1

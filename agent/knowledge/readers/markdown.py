"""Readers of Markdown, MDX and notebooks: front matter, template code, HTML, notes of site generators."""

import json
import re
from collections import defaultdict
from contextlib import suppress
from html import unescape
from typing import Final

from agent.knowledge.readers.document import Content, ReadLimits, clean, part_note_marks, refusing_damage, whole
from agent.knowledge.readers.html import NEVER_SHOWN, fragment_to_markdown, is_hidden
from agent.knowledge.readers.text import (
    CODE,
    TEMPLATE_CODE,
    apply_raised_tags,
    decode,
    outside_code,
    part_words,
    replace_closed,
)

MAX_FIELDS: Final = 100  # maximum characters of front matter
MAX_OUTPUT_CHARS: Final = 2_000  # maximum characters of one output of a notebook's cell
_FRONT_MATTER: Final = re.compile(
    r"\A\s*---[ \t]*\n(?![ \t]*\n)(?P<fields>(?:.*\n){0,200}?)(?:---|\.\.\.)[ \t]*(?:\n|\Z)"
)
_TOML_MATTER: Final = re.compile(r"\A\s*\+\+\+[ \t]*\n(?P<fields>(?:.*\n){0,200}?)\+\+\+[ \t]*(?:\n|\Z)")
_JSON_MATTER: Final = re.compile(r"\A\s*(?P<fields>\{[ \t]*\n(?:.*\n){0,200}?\})[ \t]*(?:\n|\Z)")
_FIELD: Final = re.compile(
    r"^(?P<name>[^\W\d][\w -]{0,60}?)[ \t]*[:=][ \t]*(?P<value>[>|][+-]?[ \t]*(?:\n[ \t]+.*)+|.*)$", re.MULTILINE
)
_QUOTED: Final = re.compile(r"(?P<quote>[\"'])(?P<text>.*)(?P=quote)[ \t]*(?:#.*)?")
# HTML, or code, which only looks like it.
_HTML: Final = re.compile(
    rf"{CODE.pattern}|(?P<indent>^[ \t]*)?(?:(?P<sign><!--|<\?|<!\[CDATA\[)|<(?P<slash>/?)(?P<tag>[a-z][\w:-]*)"
    r"(?P<attributes>(?:[\s/](?:=\s*(?:\"[^\"]{0,2000}\"|'[^']{0,2000}')|[^<>])*+)?)>)",
    re.MULTILINE | re.DOTALL | re.IGNORECASE,
)
_ATTRIBUTE: Final = re.compile(
    r"([^\s\"'<>/={}]+)(?:\s*=\s*(\"[^\"]*\"|'[^']*'|\{\{?[^{}]*\}?\}|[^\s\"'<>]+))?", re.IGNORECASE
)
_CLOSING_SIGNS: Final = {"<!--": "-->", "<?": "?>", "<![cdata[": "]]>"}
_VOID: Final = frozenset({"area", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"})
_NEVER_SHOWN: Final = frozenset({*NEVER_SHOWN, "head", "title"})
_CODE_INDENT: Final = 4
_BLANK_LINE: Final = re.compile(r"\n[ \t]*\n|\Z")
# Code of static site generators, which a reader of the page never sees, each with its closing characters.
# A bare ``{{ name }}`` may be in a text about templates.
# A tag that puts words on the page: ``{% slack_channel "help" %}``. Paths do not, and neither do the generators' own
# tags.
_SPOKEN_TAG: Final = (
    re.compile(
        r"(?:\{%-?|\{\{[<%])\s*(?!if|el|unless|when|case|for|include|extends|import|from|set|assign"
        r"|(?:highlight|code|codeblock|link|post_url|gist|render|layout|section|form|cache|figure|param|ref|relref|tweet|x"
        r"|instagram|vimeo|youtube|url|static|load|block|with|now|filter|macro|call)\s)[\w-]+\s+"
        r"""(?P<quote>["'])(?P<words>[^"'/{}%\n]{1,200}?)(?<!\.\w\w)(?<!\.\w\w\w)(?<!\.\w\w\w\w)(?P=quote)[^{}%\n]{0,200}(?:[>%]\}\}|-?%\})"""
    ),
    *("%}", "}}"),
)
_TEMPLATE_COMMENT: Final = (
    re.compile(r"\{%-?\s*comment\b.*?\{%-?\s*endcomment\s*-?%\}", re.DOTALL),
    *("endcomment %}", "endcomment -%}", "endcomment%}", "endcomment-%}"),
)
_MDX_CODE: Final = (
    (re.compile(r"\{/\*.*?\*/\}", re.DOTALL), "*/}"),
    (
        re.compile(
            r"^(?:import[ \t]+(?:[\w$*{},\s]{1,1000}?\bfrom[ \t]*)?[\"'][^\"'\n]*[\"'][^\n]*\n?"
            r"|export[ \t]+(?:const|let|var|function|class|async|default|\{|\*)[^\n]*"
            r"(?:(?<=[{(\[])\n(?:(?![})\]]).*\n){0,500}[})\]][^\n]*)?\n?)",
            re.MULTILINE,
        ),
        "",
    ),
    (re.compile(r"</?[A-Z][\w.]*(?:\s(?:[^<>{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)?/?>|</?>"), ""),
)
_COMPONENT: Final = re.compile(  # in Markdown of Docusaurus, React or VitePress, which is MDX in all but its name
    r"^import\s(?:[^\n]+\sfrom\s+)?[\"'][^\"'\n]+[\"'];?[ \t]*$|^export (?:const|default|function)\b"
    r"|^(?! {4}|\t)[^\n]*?(?:</[A-Z]+[a-z]\w*>|<[A-Z]+[a-z]\w*(?:\s[^<>]*)?/>|\{/\*)",  # not in indented code
    re.MULTILINE,
)
# Properties that a component shows: ``<Card title="Team plan">``.
_SHOWN: Final = re.compile(
    r"\s(?:title|label|description|summary|heading|header|caption|question|answer|text|alt)="
    r"(?:\{?([\"'`])([^\"'`{}<>\n]{1,500})\1)"
)
# Struck-out text, and Obsidian's comments.
_STRUCK: Final = (
    re.compile(
        r"~~(?=[^\s~])[^~\n]{1,500}(?<=\S)~~(?!~)|<(?P<tag>del|s|strike)\b[^<>]{0,100}>[^<]{0,500}</(?P=tag)>"
        r"|%%[^%\n]{1,2000}%%|^%%[ \t]*\n[\s\S]*?^%%[ \t]*$",
        re.IGNORECASE | re.MULTILINE,
    ),
    *("~~", "</del>", "</s>", "</strike>", "%%"),
)
# HTML in Markdown: blocks with a Markdown equivalent, and tags that only wrap what people see.
_HTML_BLOCKS: Final = frozenset({"table", "ul", "ol", "dl", "h1", "h2", "h3", "h4", "h5", "h6"})
_BLOCK_TAGS: Final = "details|summary|div|p|center|section|article|aside|figure|figcaption|hr|br"
_INLINE_TAGS: Final = (
    "span|kbd|mark|abbr|u|ins|b|strong|i|em|small|font|a|img|picture|source|samp|var|cite|q|wbr|code|label|button"
)
_HTML_TAGS: Final = (
    (re.compile(r"<summary\b[^<>]*>([^<>]*)</summary>", re.IGNORECASE), r" **\1** "),
    (re.compile(r"<a\s[^<>]*?\bhref=[\"']([^\"'<>\s]+)[\"'][^<>]*>([^<>\[\]\n]+)</a>", re.IGNORECASE), r"[\2](\1)"),
    (
        re.compile(r"<img\s[^<>]*?\balt=[\"']([^\"'<>]*)[\"'][^<>]*>", re.IGNORECASE),
        lambda found: part_words(found, found[1]),
    ),
    (re.compile(rf"</?(?:{_BLOCK_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE), " "),
    (re.compile(rf"</?(?:{_INLINE_TAGS})(?:\s[^<>]*)?/?>", re.IGNORECASE), ""),
)
# Notes and tabs of site generators: ``!!! note "Title"`` with indented lines, ``:::note Title``, ``> [!NOTE] Title``.
_INDENTED_NOTE: Final = re.compile(
    rf"{CODE.pattern}|^(?P<indent>[ \t]{{0,40}})(?:!!!|\?\?\?\+?|===[!+]?)[ \t]{{1,9}}(?P<kind>[A-Za-z][\w-]{{0,40}})?"
    r"(?:[ \t][\w \t-]{0,80}?)?(?:\"(?P<title>[^\"\n]{0,300})\")?[ \t]{0,9}\n"
    r"(?P<inside>(?:(?P=indent)(?: {4}|\t)[^\n]*(?:\n|\Z)|[ \t]*\n)+)",
    re.MULTILINE | re.DOTALL,
)
_NOTE: Final = re.compile(
    r"^(?P<before>[ \t>]{0,40})(?::{3,9}[ \t]{0,9}(?:\{?\.?(?P<kind>[A-Za-z][\w-]{0,40})\}?)?"
    r"(?:\[(?P<label>[^\]\n]{0,300})\])?(?:(?<=[\w\]])\{[^{}\n]{0,300}\})?|\[!(?P<sign>[A-Za-z][\w-]{0,40})\][+-]?)"
    r"(?:[ \t]{1,9}(?P<title>[^\s{}][^\n{}]{0,300})?(?:\{[^{}\n]{0,300}\})?)?[ \t]{0,9}$",
    re.MULTILINE,
)
_NOTE_SIGN: Final = re.compile(r"^[ \t>]{0,40}(?:!!!|\?\?\?|===[!+]?[ \t]|:::|\[!)", re.MULTILINE)
_MAX_NESTED_NOTES: Final = 4
# Of kramdown and Python-Markdown: classes, headings without a space, and a heading's id on the next line.
_GENERATORS_SIGNS: Final = (
    (re.compile(r"^(#{1,6}[ \t].*)\n(\{:[^{}\n]*#[^{}\n]*\})[ \t]*$", re.MULTILINE), r"\1 \2\n"),
    (re.compile(r"\{:[^{}\n#]*\}|(?:(?<=[\])*_])|^[ \t]*)\{ ?\.[^{}\n#]*\}", re.MULTILINE), ""),
    (re.compile(r"^(#{2,6})(?=[^#\s])", re.MULTILINE), r"\1 "),
)
_ENTITY: Final = re.compile(r"&#?\w{2,31};(?P<begins>[a-z/!?])?", re.IGNORECASE)
Unseen = tuple[re.Pattern[str], *tuple[str, ...]]


def read_markdown(data: bytes, _: ReadLimits) -> Content:
    """Read Markdown, or MDX, without front matter, comments, template code and components. Line numbers stay true."""
    text, fields = decode(data), {}
    front = next(filter(None, (form.match(text) for form in (_FRONT_MATTER, _TOML_MATTER, _JSON_MATTER))), None)
    # Without fields it is text between two rules.
    if front and ((fields := _fields_in(front["fields"])) or not front["fields"].strip()):
        text = "\n" * front[0].count("\n") + text[front.end() :]
    components = _MDX_CODE if _COMPONENT.search(CODE.sub("", text)) else ()
    shown = _visible(text, _SPOKEN_TAG, _TEMPLATE_COMMENT, *TEMPLATE_CODE, *components)
    return Content(title=fields.get("title", ""), fields=fields, parts=whole(shown))


def _elements_in(text: str) -> list[tuple[re.Match[str], int]]:
    """Return comments and opening tags outside code, each with the end of its element; -1 if that is never closed."""
    elements: list[tuple[re.Match[str], int]] = []
    open_elements: defaultdict[str, list[int]] = defaultdict(list)
    last_closing = {sign: text.rfind(closing) for sign, closing in _CLOSING_SIGNS.items()}
    at = 0
    while tag := _HTML.search(text, at):
        at = tag.end()
        name = (tag["tag"] or "").lower()
        if tag["sign"]:
            closing = _CLOSING_SIGNS[sign := tag["sign"].lower()]
            begin = tag.end() - 2 * (sign == "<!--")  # ``<!-->`` is a whole comment
            end = text.find(closing, begin) + len(closing) if begin <= last_closing[sign] else -1
            elements.append((tag, end))
            at = max(at, end)
        elif name and tag["slash"]:
            if open_elements[name]:
                opening = open_elements[name].pop()
                elements[opening] = (elements[opening][0], at)
        elif name in _VOID or (tag["attributes"] or "").endswith("/"):
            elements.append((tag, at))
        elif name and not (name in {"script", "style"} and open_elements[name]):  # they contain text, not elements
            open_elements[name].append(len(elements))
            elements.append((tag, -1))
    return elements


def without_hidden(text: str, *, may_be_code: bool = False) -> str:
    """Return Markdown without what a browser never shows: comments, scripts, hidden elements. Lines stay the same.

    In a text that ``may_be_code`` scripts, styles, templates and elements without an end stay.
    """
    pieces, at = [], 0
    for tag, closed in _elements_in(text) if "<" in text else ():
        begin, end = tag.start(), closed
        if begin < at or not _is_hidden(tag, may_be_code=may_be_code):
            continue
        is_block = tag["indent"] is not None and len(tag["indent"].expandtabs(4)) < _CODE_INDENT
        if end < 0 and may_be_code:  # a piece of a file, such as a diff
            continue
        if end < 0 and is_block and tag["tag"] not in {"p", "P"}:
            end = len(text)
        elif end < 0 and not tag["sign"] and tag["tag"].lower() not in _NEVER_SHOWN:  # the paragraph closes it
            end = next(_BLANK_LINE.finditer(text, begin)).start()
        if end > 0:
            pieces += [text[at:begin], "\n" * text.count("\n", begin, end)]
            at = end
    return "".join([*pieces, text[at:]])


def _is_hidden(tag: re.Match[str], *, may_be_code: bool) -> bool:
    if tag["sign"]:
        return not may_be_code or tag["sign"] == "<!--"
    attributes = {name.lower(): unescape(value) for name, value in _ATTRIBUTE.findall(tag["attributes"])}
    if tag["tag"].lower() in _NEVER_SHOWN:  # but a Vue template fills a slot, and <Title> is a component of MDX
        is_component = tag["tag"].istitle() and tag["tag"] not in {"Script", "Style"}
        is_slot = any(name.startswith(("#", "v-slot", "slot")) for name in attributes)
        return not (may_be_code or is_component or is_slot)
    return is_hidden(tag["tag"].lower(), attributes)


def _with_html_blocks(text: str) -> str:
    """Return Markdown with Markdown in place of its tables, lists and headings in HTML."""
    pieces, at = [], 0
    for opening, end in _elements_in(text) if "<" in text else ():
        name, begin = (opening["tag"] or "").lower(), opening.start()
        if name not in _HTML_BLOCKS or begin < at or end < 0 or opening["indent"] is None:
            continue
        block = text[begin:end]
        if name.startswith("h") and "\n\n" in block:  # their content is Markdown
            continue
        shown = fragment_to_markdown(block)
        if shown.count("\n") > block.count("\n"):
            shown = re.sub(r"\n{2,}", "\n", shown)
        if name == "table":  # a heading and a list need no blank line
            before, after = text[max(0, begin - 2) : begin], text[end : end + 2]
            shown = "\n" * (before not in {"", "\n", "\n\n"}) + shown + "\n" * (after != "\n\n")
        pieces += [text[at:begin], shown, "\n" * (block.count("\n") - shown.count("\n"))]
        at = end
    return "".join([*pieces, text[at:]])


def _with_notes(text: str) -> str:
    """Return Markdown with a bold line in place of the marks of notes and tabs. Their lines are not code."""

    def name(note: re.Match[str]) -> str:
        return note["before"] + _bold((note["label"] or note["title"] or note["kind"] or note["sign"] or "").strip())

    def dedent(note: re.Match[str]) -> str:
        if note["inside"] is None:  # code
            return note[0]
        inside = re.sub(rf"^{note['indent']}(?: {{4}}|\t)", note["indent"], note["inside"], flags=re.MULTILINE)
        return f"{note['indent']}{_bold(note['title'] or note['kind'] or '')}\n{inside}"

    if not _NOTE_SIGN.search(text):
        return text
    for _ in range(_MAX_NESTED_NOTES):
        before, text = text, _INDENTED_NOTE.sub(dedent, text)
        if text == before:
            break
    return outside_code(text, lambda prose: _NOTE.sub(name, prose))


def _bold(words: str) -> str:
    """Return a bold line with the line break that two blanks are (CommonMark, 6.7)."""
    return f"**{words[:1].upper()}{words[1:].lower() if words.isupper() else words[1:]}**  " if words else ""


def _fields_in(front: str) -> dict[str, str]:
    """Return the fields of front matter in YAML, TOML or JSON."""
    pairs: list[tuple[str, str]] = []
    if front.startswith("{"):
        with suppress(ValueError):
            pairs = [(name, value) for name, value in json.loads(front).items() if isinstance(value, str)]
    else:
        for field in _FIELD.finditer(front):  # a value is on one line, without quotes and comment
            quoted = _QUOTED.fullmatch(field["value"].strip())
            bare = " ".join(re.sub(r"^[>|][+-]?(?=\s)|\s#\s.*", "", field["value"]).split())
            pairs.append((field["name"], quoted["text"].replace('\\"', '"').strip() if quoted else bare))
    return {name.lower().replace("-", "_").replace(" ", "_"): value for name, value in pairs[:MAX_FIELDS]}


def read_notebook(data: bytes, _: ReadLimits) -> Content:
    """Read a Jupyter notebook: its text, its code and the text that the code printed."""
    blocks: list[str] = []
    with refusing_damage("Jupyter notebook"):
        notebook = json.loads(decode(data))
        language = notebook.get("metadata", {}).get("language_info", {}).get("name", "")
        for cell in notebook["cells"]:
            source = clean("".join(cell.get("source", ""))).strip("\n")
            if cell.get("cell_type") != "code":
                blocks.append(_visible(source))
                continue
            blocks.append(f"```{language}\n{source}\n```")
            for output in cell.get("outputs", ()):
                shown = output.get("data", {})
                if formatted := "".join(shown.get("text/markdown", "")).strip():
                    blocks.append(_visible(clean(formatted)[:MAX_OUTPUT_CHARS]))
                    continue
                printed = "".join(output.get("text") or shown.get("text/plain") or output.get("evalue", ""))
                if printed.strip():
                    blocks.append(f"```\n{clean(printed)[:MAX_OUTPUT_CHARS].rstrip()}\n```")
    return Content(parts=whole("\n\n".join(blocks)))


def _visible(text: str, *unseen: Unseen) -> str:
    """Return Markdown without hidden text, struck-out text and matches of ``unseen``, on the same lines."""

    def show(prose: str) -> str:
        for pattern, *closings in (_STRUCK, *unseen):
            prose = replace_closed(pattern, _remains, prose, *closings)
        for sign, shown in (*_GENERATORS_SIGNS, *(_HTML_TAGS if "<" in prose else ())):
            prose = sign.sub(shown, prose)
        prose = _ENTITY.sub(_character, prose)
        return part_note_marks(apply_raised_tags(prose)) if "</su" in prose.lower() else prose

    return outside_code(_with_notes(_with_html_blocks(without_hidden(text))), show)


def _character(entity: re.Match[str]) -> str:
    """Return the character that an HTML entity shows, escaped if Markdown would take it for a sign of its own."""
    begins = entity["begins"] or ""
    shown = clean(unescape(entity[0].removesuffix(begins))).replace("\xa0", " ")
    is_sign = shown in {*"|*_`[]#>\\"} or (shown == "<" and begins)
    return "\\" * bool(is_sign) + shown + begins


def _remains(unseen: re.Match[str]) -> str:
    """Return the words that a template tag or a component shows, and the line ends."""
    words = unseen.groupdict().get("words") or ""
    if unseen[0][:1] == "<" and unseen[0][1:2].isupper():
        words = "".join(f"{shown[2]}: " for shown in _SHOWN.finditer(unseen[0])).removesuffix(": ")
        words += " " * bool(words)
    return words + "\n" * unseen[0].count("\n")

"""Links of Markdown with addresses that a person can follow. Images are replaced by their descriptions."""

import re
from dataclasses import replace
from typing import Final
from urllib.parse import urljoin

from agent.knowledge.readers.document import ReadDocument
from agent.knowledge.readers.text import outside_code

_DEFINITION: Final = re.compile(
    r"^ {0,3}\[(?P<label>[^\[\]\n^]{1,200})\]:[ \t]*<?(?P<url>[^\s<>]{1,2000})>?(?:[ \t]+[\"'(][^\n]{0,300})?[ \t]*$",
    re.MULTILINE,
)
_LINK: Final = re.compile(
    r"(?P<image>!?)(?<!\\)\[(?P<label>(?:[^\[\]\\]|\\.|\[[^\[\]]{0,100}\]){0,500})\]"
    r"(?:\([ \t]*<?(?P<url>[^\s()<>]{0,2000}(?:\([^\s()<>]{0,200}\)[^\s()<>]{0,500})?)>?"
    r"(?:\s+[\"'][^\n]{0,300}?[\"'])?\s*\)"
    r"|[ ]?\[(?P<reference>[^\[\]\n]{0,200})\])?"
)
_ABSOLUTE: Final = re.compile(r"(?:https?://|mailto:|tel:)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\\?\[?(\d{1,4})\\?\]?")


def resolve_links(document: ReadDocument, url: str) -> ReadDocument:
    """Return a document with links to absolute addresses only. ``url`` is its own, empty if it has none."""
    if document.form != "markdown":
        return document
    definitions = {m["label"].casefold(): m["url"] for part in document.parts for m in _DEFINITION.finditer(part.text)}

    def replace_link(found: re.Match[str]) -> str:
        label, target = found["label"], found["url"]
        if target is None:
            key = (found["reference"] or label).casefold()
            target = definitions.get(key)
        number = _NUMBER.fullmatch(label)
        if number and not found["image"]:  # a number in brackets would be read as a citation
            label = f"({number[1]})"
        if target is None:
            return label if number else found[0]
        if found["image"]:
            return label
        absolute = target if _ABSOLUTE.match(target) else urljoin(url, target) if url else ""
        return f"[{label}]({absolute})" if _ABSOLUTE.match(absolute) else label

    def change(prose: str) -> str:
        return _LINK.sub(replace_link, _DEFINITION.sub("", prose))

    parts = tuple(replace(part, text=outside_code(part.text, change)) for part in document.parts)
    return replace(document, parts=parts)

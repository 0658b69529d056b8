"""Shows the documents that answers cite as cleaned pages under ``/docs/<path>``, from files in the given folders."""

import html
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from string import Template
from typing import Final

import nh3
from aiohttp import web
from markdown_it import MarkdownIt

from agent.knowledge.readers.chunking import slug
from agent.knowledge.readers.reading import format_of, suffix_of

POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_PAGE: Final = Path(__file__).parent / "static" / "document.html"
_PARSER: Final = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
_DROPPED_WHOLE: Final = {
    "script", "style", "iframe", "object", "embed", "template", "noscript", "svg", "math", "title", "textarea",
    "select",
}  # fmt: skip
_ATTRIBUTES: Final = {
    "a": {"href"},
    "img": {"alt"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan"},
    **{f"h{level}": {"id"} for level in range(1, 7)},
}
# nh3's output is regular: lower case, every attribute quoted, every tag closed.
_IMAGE: Final = re.compile(r'<img(?: alt="([^"]*)")?>')
_HEADING: Final = re.compile(r'<(h[1-6])(?: id="([^"]*)")?>(.*?)</\1>', re.DOTALL)
_TAG: Final = re.compile(r"<[^>]*>")


def find_document(roots: Sequence[Path], path: str) -> Path | None:
    """Return the file at this path in the first folder that has it, or a root that is this file; never one outside."""
    if "\0" in path or any(part.startswith(".") for part in Path(path).parts):
        return None
    for candidate, root in _candidates([root.expanduser().resolve() for root in roots], path):
        real = candidate.resolve()  # check this first: a link inside a folder must not lead out of it
        with suppress(OSError):  # a name that is too long
            if real.is_relative_to(root) and real.is_file():
                return real
    return None


def _candidates(roots: Sequence[Path], path: str) -> Iterator[tuple[Path, Path]]:
    for root in roots:
        if root.is_file() and root.name == path:
            yield root, root
        elif root.is_dir():
            yield root / path, root
    # If two folders have a file with the same path, the second folder's name is put in front.
    first, _, rest = path.partition("/")
    for root in roots:
        if root.name == first and rest:
            yield root / rest, root


async def show_document(roots: Sequence[Path], request: web.Request) -> web.StreamResponse:
    """Serve one document: as a page, unchanged (PDF), or as a download."""
    path = request.match_info["path"]
    file = find_document(roots, path)
    if file is None:
        return simple_page("Not found", "", "<p>There is no such document.</p>", status=404)
    known = format_of(file.name)
    if known and known.packed:
        way, kind = "inline" if known.name == "PDF" else "attachment", known.types[0]
        response = web.FileResponse(file, headers={"Content-Disposition": way, "X-Content-Type-Options": "nosniff"})
        response.content_type = kind
        return response
    if known is None:
        return simple_page("Not shown", path, "<p>This kind of file is not shown here.</p>", status=415)
    text = file.read_bytes().decode("utf-8", errors="replace")
    headings = (line[2:].strip() for line in text.splitlines() if line.startswith("# "))
    title = next(headings, "") or file.stem.replace("-", " ").capitalize()
    return simple_page(title, path, document_html(text, suffix_of(file.name)))


def document_html(text: str, suffix: str) -> str:
    """A document's text as safe HTML."""
    if suffix in {".html", ".htm"}:
        return safe_html(text)
    if suffix in {".md", ".markdown", ".mdx"}:
        return safe_html(_PARSER.render(_FRONT_MATTER.sub("", text)))
    lines = enumerate(text.splitlines(), start=1)
    numbered = "".join(f'<span class="row" id="L{number}">{html.escape(line)}\n</span>' for number, line in lines)
    return f'<pre class="plain">{numbered}</pre>'


def safe_html(source: str) -> str:
    """Return the body with permitted elements only. An image becomes its description, because pages load nothing."""
    clean = nh3.clean(
        source, clean_content_tags=_DROPPED_WHOLE, attributes=_ATTRIBUTES, url_schemes={"http", "https", "mailto"}
    )
    seen: Counter[str] = Counter()

    def describe(image: re.Match[str]) -> str:
        return f'<span class="image">{html.escape(html.unescape(image[1]))}</span>' if image[1] else ""

    def with_anchor(heading: re.Match[str]) -> str:
        """Render a heading with the anchor that citations use, and with its own."""
        tag, own, inside = heading.groups()
        name = slug(" ".join(html.unescape(_TAG.sub("", inside)).split()))
        anchor = f"{name}-{seen[name]}" if seen[name] else name
        seen[name] += 1
        also = f'<span id="{own}"></span>' if own and html.unescape(own) != anchor else ""
        return f'<{tag} id="{html.escape(anchor)}">{also}{inside}</{tag}>'

    return _HEADING.sub(with_anchor, _IMAGE.sub(describe, clean))


def simple_page(title: str, path: str, body: str, *, status: int = 200) -> web.Response:
    """Return a page for reading, without the workspace around it."""
    crumbs = html.escape(path.replace("/", " / "))
    text = Template(_PAGE.read_text(encoding="utf-8")).substitute(title=html.escape(title), crumbs=crumbs, body=body)
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    return web.Response(text=text, content_type="text/html", status=status, headers=headers)

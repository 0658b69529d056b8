"""Shows the documents that answers cite as pages under ``/docs/<path>``: files inside the given folders, cleaned."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Template
from typing import Final

from aiohttp import web
from markdown_it import MarkdownIt

from bot.local.sanitize import safe_html

MARKDOWN: Final = frozenset({".md", ".markdown", ".mdown"})
HTML: Final = frozenset({".html", ".htm"})
TEXT: Final = frozenset({".txt", ".text", ".rst", ".log", ".csv", ".json", ".yaml", ".yml", ".toml", ".adoc"})
AS_THEY_ARE: Final = {
    ".pdf": ("inline", "application/pdf"),
    ".docx": ("attachment", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
}
POLICY: Final = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_FRONT_MATTER: Final = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_PAGE: Final = Path(__file__).parent / "static" / "document.html"
_PARSER: Final = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DocsFolder:
    """Folders (or single files) with documents; a path is looked for in each, in order."""

    roots: tuple[Path, ...]

    def find(self, path: str) -> Path | None:
        """The file at this path inside one of the roots, symbolic links resolved; nothing outside them."""
        hidden = any(part.startswith(".") for part in Path(path).parts)
        for candidate, root in self._candidates(path):
            real = candidate.resolve()  # first: a link inside a folder must not lead out of it
            if real.is_relative_to(root) and real.is_file() and not hidden:
                return real
        return None

    def _candidates(self, path: str) -> Iterator[tuple[Path, Path]]:
        roots = [root.expanduser().resolve() for root in self.roots]
        for root in roots:
            if root.is_file() and root.name == path:
                yield root, root
            elif root.is_dir():
                yield root / path, root
        # A path that two folders share is told apart by the second folder's name in front.
        first, _, rest = path.partition("/")
        for root in roots:
            if root.name == first and rest:
                yield root / rest, root


async def show_document(docs: DocsFolder | None, request: web.Request) -> web.StreamResponse:
    """Serves one document: as a page, as it is (PDF), or as a download."""
    path = request.match_info["path"]
    file = docs.find(path) if docs else None
    if file is None:
        return simple_page("Not found", "", "<p>There is no such document.</p>", status=404)
    suffix = file.suffix.lower()
    if suffix in AS_THEY_ARE:
        way, kind = AS_THEY_ARE[suffix]
        response = web.FileResponse(file, headers={"Content-Disposition": way, "X-Content-Type-Options": "nosniff"})
        response.content_type = kind
        return response
    if suffix not in MARKDOWN | HTML | TEXT:
        return simple_page("Not shown", path, "<p>This kind of file is not shown here.</p>", status=415)
    text = file.read_bytes().decode("utf-8", errors="replace")
    return simple_page(_title(file, text), path, document_html(text, suffix))


def document_html(text: str, suffix: str) -> str:
    """A document's text as safe HTML."""
    if suffix in MARKDOWN:
        return safe_html(_PARSER.render(_FRONT_MATTER.sub("", text)))
    if suffix in HTML:
        return safe_html(text)
    lines = enumerate(text.splitlines(), start=1)
    numbered = "".join(f'<span class="row" id="L{number}">{html.escape(line)}\n</span>' for number, line in lines)
    return f'<pre class="plain">{numbered}</pre>'


def _title(file: Path, text: str) -> str:
    headings = (line[2:].strip() for line in text.splitlines() if line.startswith("# "))
    return next(headings, "") or file.stem.replace("-", " ").capitalize()


def simple_page(title: str, path: str, body: str, *, status: int = 200) -> web.Response:
    """A page to read, without the workspace around it."""
    crumbs = html.escape(path.replace("/", " / "))
    text = Template(_PAGE.read_text(encoding="utf-8")).substitute(title=html.escape(title), crumbs=crumbs, body=body)
    headers = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
    return web.Response(text=text, content_type="text/html", status=status, headers=headers)

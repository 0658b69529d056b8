from pathlib import Path

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.knowledge.readers.chunking import chunk_document
from bot.local.documents import document_html, find_document, safe_html
from bot.local.server import LocalWorkspace
from tests.support.documents import read_document
from tests.support.html_parts import HtmlParts

HANDBOOK = Path("bot/local/handbook").resolve()


def folders(tmp_path: Path) -> tuple[Path, ...]:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "a" / "one.md").write_text(
        "---\ntag: x\n---\n# One <b>bold</b>\n\n## Part\ntext <script>alert(1)</script>\n\n## Part\n"
    )
    (tmp_path / "b" / "one.md").write_text("# The other one")
    (tmp_path / "b" / "page.html").write_text(
        '<h1 id="own">Hello There</h1><p onclick="x()">hi <a href="javascript:x">bad</a></p>'
    )
    (tmp_path / "b" / "notes.txt").write_text("first <line>\nsecond")
    (tmp_path / "b" / "job.py").write_text("run()")
    (tmp_path / "b" / "slides.pdf").write_bytes(b"%PDF-1.4")
    (tmp_path / "b" / "letter.docx").write_bytes(b"PK")
    (tmp_path / "b" / "tool.exe").write_bytes(b"MZ")
    (tmp_path / "b" / ".hidden.md").write_text("secret")
    (tmp_path / "secret.md").write_text("outside")
    (tmp_path / "b" / "leak.md").symlink_to(tmp_path / "secret.md")
    return (tmp_path / "a", tmp_path / "b", tmp_path / "secret.md")


def test_only_files_inside_the_folders_are_found(tmp_path: Path) -> None:
    docs = folders(tmp_path)
    assert find_document(docs, "one.md") == tmp_path / "a" / "one.md"
    assert find_document(docs, "b/one.md") == tmp_path / "b" / "one.md"
    assert find_document(docs, "secret.md") == tmp_path / "secret.md"
    for path in ("../secret.md", "leak.md", ".hidden.md", "missing.md", "", "a", str(tmp_path / "b" / "one.md") + "x"):
        assert find_document(docs, path) is None


async def test_documents_open_as_readable_pages(tmp_path: Path) -> None:
    async with LocalWorkspace(docs=folders(tmp_path)) as workspace, aiohttp.ClientSession() as session:
        expected = {
            **dict.fromkeys(("one.md", "page.html", "notes.txt", "job.py"), (200, "text/html")),
            "slides.pdf": (200, "application/pdf"),
            "letter.docx": (200, "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
            "tool.exe": (415, "text/html"),
            **dict.fromkeys(("gone.md", "..%2Fsecret.md"), (404, "text/html")),
        }
        pages: dict[str, str] = {}
        for path, shown_as in expected.items():
            async with session.get(f"{workspace.url}/docs/{path}") as answer:
                pages[path] = await answer.text(errors="replace")
                assert (answer.status, answer.content_type) == shown_as
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
        markdown = pages["one.md"]
        assert {"one-bold", "part", "part-1"} <= HtmlParts(markdown).ids
        assert "alert(1)" not in markdown
        assert "tag: x" not in markdown
        html = HtmlParts(pages["page.html"])
        assert {"hello-there", "own"} <= html.ids
        assert "onclick" not in html.attributes
        assert '<span class="row" id="L2">second' in pages["notes.txt"]
        async with session.get(f"{workspace.url}/docs/one.md") as answer:
            assert "script-src 'self'" in answer.headers["Content-Security-Policy"]


@pytest.mark.parametrize(
    "path", sorted(HANDBOOK.rglob("*.md")) + sorted(HANDBOOK.rglob("*.html")), ids=lambda path: path.name
)
def test_every_anchor_that_a_citation_can_use_is_in_the_page(path: Path) -> None:
    anchors = {chunk.anchor for chunk in chunk_document(read_document(path)) if chunk.anchor}
    assert anchors <= HtmlParts(document_html(path.read_text(encoding="utf-8"), path.suffix)).ids


TAGS = [
    *("<script>", "</script>", "<b>", "</b>", "<p onload=x>", "<a href='javascript:x'>", '<a href="x.md">'),
    *("<img src=x onerror=y>", "<svg/onload=x>", "<iframe src=//x>", "</iframe>", "<h2>", "</h2>", "text"),
    *("<!-- c -->", "&lt;", "<style>", "</style>", "<", "<br>", "<script/>"),
]
TAG_SOUP = st.lists(st.sampled_from(TAGS), max_size=14)


@given(TAG_SOUP)
def test_no_document_can_insert_scripts_or_frames(parts: list[str]) -> None:
    found = HtmlParts(safe_html("".join(parts)))
    assert not found.tags & {"script", "style", "iframe", "svg", "img", "object"}
    assert found.attributes <= {"id", "class", "href", "rel"}
    assert not any("javascript" in link for link in found.links)


def test_only_safe_addresses_are_linked() -> None:
    safe = ["https://a.example", "mailto:a@b.example", "other.md#part", "#part"]
    unsafe = ["java\nscript:x", "JavaScript:x", "&#1;javascript:x", "data:text/html,x", "ftp://a"]
    html = "".join(f'<a href="{address}">x</a>' for address in [*safe, *unsafe])
    assert HtmlParts(safe_html(html)).links == safe


def test_a_document_is_parsed_as_in_a_browser_and_loses_forbidden_parts() -> None:
    cells = '<table><tr><td colspan="2" onclick="x()">a</td></tr></table>'
    for source, clean in (
        ("<p>a<b>b</p>c", "<p>a<b>b</b></p><b>c</b>"),
        ("a</b>", "a"),
        ("<script>x<style>y</style>z</script>after", "after"),
        ("<head><title>Name</title></head><p>text", "<p>text</p>"),
        ('<img alt="a &lt; b" src="x">', '<span class="image">a &lt; b</span>'),
        ("<blink>text</blink>", "text"),
        ('<h2 id="own">Two <b>words</b></h2><h2>Two words</h2>',
         '<h2 id="two-words"><span id="own"></span>Two <b>words</b></h2><h2 id="two-words-1">Two words</h2>'),
        (cells, '<table><tbody><tr><td colspan="2">a</td></tr></tbody></table>'),
    ):  # fmt: skip
        assert safe_html(source) == clean

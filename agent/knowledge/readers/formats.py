"""The table of document formats. A new format is one row here and one reader module."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import PurePath
from typing import Final

from agent.knowledge.readers.document import Content, Form, ReadLimits

MAX_BYTES: Final = 10_000_000
MAX_PACKED_BYTES: Final = 50_000_000  # of a PDF or an Office document: most of it is pictures

Reader = Callable[[bytes, ReadLimits], Content]
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """A document format. ``reader`` is ``module:function`` below this package, loaded for the first such file.

    ``types`` are its media types. ``packed`` formats are binary. ``name_is_title`` is for programs. ``advice`` says how
    to handle a format that is not read.
    """

    name: str
    suffixes: tuple[str, ...]
    reader: str = "text:read_text"
    form: Form = "markdown"
    types: tuple[str, ...] = ()
    packed: bool = False
    name_is_title: bool = False
    advice: str = ""

    @property
    def max_bytes(self) -> int:
        """Size limit of a file."""
        return MAX_PACKED_BYTES if self.packed else MAX_BYTES

    def load_reader(self) -> Reader:
        """Import the reader: most installations need few of them."""
        module, _, function = self.reader.partition(":")
        reader: Reader = getattr(import_module(f"agent.knowledge.readers.{module}"), function)
        return reader


# Data and settings (JSON, YAML, TOML, INI …) are not read: they contain secrets more often than answers.
FORMATS: Final = (
    Format(name="Markdown", suffixes=(".md", ".markdown"), reader="text:read_markdown",
           types=("text/markdown", "text/x-markdown")),
    Format(name="MDX", suffixes=(".mdx",), reader="text:read_mdx"),
    Format(name="HTML", suffixes=(".html", ".htm"), reader="html:read_html",
           types=("text/html", "application/xhtml+xml")),
    Format(name="Word", suffixes=(".docx",), reader="docx:read_docx", packed=True,
           types=(f"{_OFFICE}wordprocessingml.document",)),
    Format(name="PowerPoint", suffixes=(".pptx",), reader="pptx:read_pptx", packed=True,
           types=(f"{_OFFICE}presentationml.presentation",)),
    Format(name="Excel", suffixes=(".xlsx",), reader="spreadsheet:read_xlsx", packed=True,
           types=(f"{_OFFICE}spreadsheetml.sheet",)),
    Format(name="CSV", suffixes=(".csv", ".tsv"), reader="spreadsheet:read_csv", types=("text/csv",)),
    Format(name="Jupyter notebook", suffixes=(".ipynb",), reader="text:read_notebook"),
    Format(name="PDF", suffixes=(".pdf",), reader="pdf:read_pdf", form="text", packed=True, types=("application/pdf",)),
    Format(name="reStructuredText", suffixes=(".rst",), reader="text:read_rst", form="text"),
    Format(name="plain text", suffixes=(".txt", ".text", ".adoc", ".org", ".log", ".tex"), form="text",
           types=("text/plain",)),
    Format(name="program", form="text", name_is_title=True, suffixes=(
        ".py", ".pyi", ".js", ".mjs", ".ts", ".jsx", ".tsx", ".go", ".java", ".kt", ".rb", ".rs", ".c", ".h", ".cc",
        ".cpp", ".hpp", ".cs", ".php", ".swift", ".scala", ".sh", ".sql", ".proto", ".lua", ".r", ".ex", ".exs", ".vue",
    )),
    Format(name="not read", suffixes=(".odt", ".ods", ".odp"), advice="save it as .docx, .xlsx, .pptx or PDF"),
    Format(name="not read", suffixes=(".doc", ".rtf", ".pages"), advice="save it as .docx or PDF"),
    Format(name="not read", suffixes=(".ppt", ".key"), advice="save it as .pptx or PDF"),
    Format(name="not read", suffixes=(".xls", ".xlsb", ".numbers"), advice="save it as .xlsx or .csv"),
    Format(name="not read", suffixes=(".epub", ".mobi"), advice="convert it to HTML or PDF"),
)  # fmt: skip
_BY_SUFFIX: Final = {suffix: each for each in FORMATS for suffix in each.suffixes}
_BY_TYPE: Final = {kind: each for each in FORMATS for kind in each.types}
_TEMPLATES: Final = frozenset(
    {".erb", ".j2", ".jinja", ".jinja2", ".njk", ".liquid", ".tmpl", ".tpl", ".hbs", ".ejs", ".in"}
)


def is_template(name: str) -> bool:
    """Return whether a file is a template of a known format (``page.html.erb``)."""
    return PurePath(name.lower()).suffix in _TEMPLATES and suffix_of(name) in _BY_SUFFIX


def suffix_of(name: str) -> str:
    """Return the suffix that determines a file's format, in lower case: ``.html`` for ``page.html.erb``."""
    *_, before, last = ("", "", *PurePath(name.lower()).suffixes)
    return before if last in _TEMPLATES and before in _BY_SUFFIX else last


def format_of(name: str) -> Format | None:
    """Return the format of a file name; None if it is not read."""
    found = _BY_SUFFIX.get(suffix_of(name))
    return None if found is None or found.advice else found


def format_of_type(media_type: str) -> Format | None:
    """Return the format of a media type; None if it is not read."""
    return _BY_TYPE.get(media_type)


def reason_not_read(name: str) -> str:
    """Return why a file of this name is not read, and what to do."""
    suffix = suffix_of(name)
    advice = f": {advised}" if (advised := advice_for(suffix)) else ""
    return f"has a format that is not read ({suffix or 'no suffix'}){advice}"


def advice_for(suffix: str) -> str:
    """Return the advice for files of a format that is not read; empty for a suffix without advice."""
    found = _BY_SUFFIX.get(suffix)
    return found.advice if found else ""

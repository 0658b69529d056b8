"""Office packages (.docx, .pptx, .xlsx): measured before they are unpacked, and cleaned for their parsers."""

import posixpath
import re
import zipfile
from io import BytesIO
from typing import Final
from xml.etree import ElementTree as ET

from agent.knowledge.types import ReadError

MAX_ENTRIES: Final = 5_000
MAX_UNPACKED: Final = 200_000_000
MAX_XML: Final = 60_000_000  # bytes of one XML part
MAX_ELEMENTS: Final = 1_000_000  # of one XML part: each takes some 200 bytes of memory
_OLE: Final = b"\xd0\xcf\x11\xe0"  # container of encrypted packages and of formats before 2007
_ENCRYPTED_ENTRY: Final = 0x1
_STRICT: Final = re.compile(rb"http://purl\.oclc\.org/ooxml/(\w+)/")  # ISO 29500 Strict has separate namespaces
_XML: Final = (".xml", ".rels")


def open_package(data: bytes) -> BytesIO:
    """Return the package without pictures and dangling links, in transitional namespaces. Raises ``ReadError``."""
    if data.startswith(_OLE):
        raise ReadError(reason="is locked with a password, or in a format older than 2007")
    with zipfile.ZipFile(BytesIO(data)) as package:  # an entry never yields more bytes than it declares
        entries = {entry.filename: entry for entry in package.infolist()}
        _check_size([*entries.values()])
        result = BytesIO()
        with zipfile.ZipFile(result, "w") as plain:
            for name in filter(lambda name: name.endswith(_XML), entries):
                xml = package.read(name)
                if xml.count(b"<", 0, len(xml)) > 2 * MAX_ELEMENTS:  # a start and an end
                    raise ReadError(reason=f"has more than {MAX_ELEMENTS:,} elements in one part")
                xml = _STRICT.sub(rb"http://schemas.openxmlformats.org/\1/2006/", xml)
                plain.writestr(name, _existing_links(xml, name, entries) if name.endswith(".rels") else xml)
    result.seek(0)
    return result


def _check_size(entries: list[zipfile.ZipInfo]) -> None:
    if any(entry.flag_bits & _ENCRYPTED_ENTRY for entry in entries):
        raise ReadError(reason="is locked with a password")
    unpacked = sum(entry.file_size for entry in entries)
    largest = max((entry.file_size for entry in entries if entry.filename.endswith(_XML)), default=0)
    if len(entries) > MAX_ENTRIES or unpacked > MAX_UNPACKED or largest > MAX_XML:
        msg = f"would unpack to {unpacked // 1_000_000} MB in {len(entries)} files, which is more than is read"
        raise ReadError(msg)


def _existing_links(xml: bytes, name: str, entries: dict[str, zipfile.ZipInfo]) -> bytes:
    """Return the relationships whose targets are XML parts of the package or outside of it."""
    folder = posixpath.dirname(posixpath.dirname(name))
    if b"<!DOCTYPE" in xml.replace(b"\0", b""):  # of two-byte characters half are zero
        raise ReadError(reason="is a damaged package: its links declare entities")
    root = ET.fromstring(xml)  # noqa: S314 - it has no entities
    for link in list(root):
        target = posixpath.normpath(posixpath.join("/", folder, link.get("Target") or "")).lstrip("/")
        if link.get("TargetMode") != "External" and (target not in entries or not target.endswith(_XML)):
            root.remove(link)
    return bytes(ET.tostring(root))

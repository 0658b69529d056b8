"""Long JSON as Redis keeps it: compressed, in characters that every client reads."""

from __future__ import annotations

import base64
import zlib
from typing import Final

_MARK: Final = "z1:"
_WORTH_IT: Final = 400  # characters below which the compressed text is hardly shorter
# What most records have in common need not be told by each. Whoever changes this gives it another mark.
_COMMON: Final = (
    b'"cached_tokens":0,"reasoning_tokens":0,"estimated":false,"tokens":"repairs":[],"violations":[],"objected":[]}]'
    b'"rule":","severity":"warning","start":0,"end":,"words":","detail":","remedy":""settled_by":"quotation","passage":"'
    b'","marks":[["source":,"claims":[{"usage":{"model_calls":2,"tool_calls":1,"prompt_tokens":,"completion_tokens":"'
    b'timings_ms":{"queued":,"search":,"decide":,"write":,"verify":,"total":"attempts":[{"attempt":1,"draft":","passed"'
    b':true,"ms":"model":","answer":","outcome":"answered","verified":true,"question":"{"turn_id":","thread":"T'
    b'"user":"U","ts":"17,"addressed":true},{"role":"assistant","text":","user":"","ts":"","addressed":true}],"sources"'
    b':[{"id":1,"title":","url":"https://"text":"#"origin":"document","updated_at":"202-","audience":"public"}],"posted"'
    b':{"{"schema":1,"version":1,"mission":"","todolist_id":","plan":{"id":","steps":[{"description":","tool":"","input"'
    b':"","acceptance":"","status":"done","result":""}]},"history":[{"role":"user","text":"'
)


def packed(text: str) -> str:
    """The text, shorter where it is long."""
    if len(text) < _WORTH_IT:
        return text
    press = zlib.compressobj(zdict=_COMMON)
    data = press.compress(text.encode("utf-8", "replace")) + press.flush()
    return _MARK + base64.b64encode(data).decode("ascii")


def unpacked(stored: str) -> str:
    """The text again; what nobody packed as it is, and nothing where it was damaged."""
    if not stored.startswith(_MARK):
        return stored
    try:
        data = base64.b64decode(stored.removeprefix(_MARK))
        return zlib.decompressobj(zdict=_COMMON).decompress(data).decode()
    except (ValueError, zlib.error):
        return ""

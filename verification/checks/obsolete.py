"""Is something told as true today that only a page says which calls itself replaced?

Promises: an error only where all that is cited says at its head that it is obsolete or was replaced, and neither the
sentence nor the answer nor the question says that it speaks of the past. Must never judge how old a page is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from verification.evidence.evidence import Evidence, Finding

_HEAD: Final = 300
_MARK: Final = (
    r"(?:superseded|outdated|replaced by|no longer (?:valid|in force|current|applies)|not in force any ?more"
    r"|veraltet|überholt|ersetzt durch|(?:durch [^.\n]{1,40} )ersetzt|nicht mehr gültig|obsol[eè]t[oae]"
    r"|sustituid[oa] por|no está vigente|remplacée? par|plus en vigueur|périmée?|tidak berlaku|digantikan oleh)\b"
)
_PAGE: Final = (
    r"(?:page|document|policy|version|guide|guideline|runbook|procedure|process|rules?|text|article|note|plan"
    r"|seite|dokument|richtlinie|regelung|regel|fassung|anleitung|vorgabe|ordnung|página|documento|política|versión|guía"
    r"|norma|politique|règle|procédure|halaman|dokumen|kebijakan|aturan|panduan)"
)
_IS: Final = r"(?:is|was|has been|are|were|have been|ist|wurde|sind|est|a été|n['’]est|está|fue|ha sido|ya|sudah|telah)"
# Only of itself: "the old printer was replaced by …" is what a page in force may well say.
_REPLACED: Final = re.compile(
    rf"\b(?:(?:this|these|diese?[srmn]?|cette|cet?|est[ae]) (?:\w+ )?{_PAGE}|{_PAGE} ini)"
    rf" (?:{_IS} (?:(?:now|already|ya|inzwischen|seit [\w. ]{{1,20}}) )?)?{_MARK}"
    rf"|(?:^|[\n(\[])[\W_]*(?:(?:status|stand|état|estado|note|hinweis|warning|achtung)\W{{1,4}})?{_MARK}"
    r"|(?:本|この|此|该)[^。\n]{0,20}(?:廃止|失効|废止|失效)|[（(【\[](?:廃止|失効|已废止|已失效)",
    re.IGNORECASE,
)
# One of these stands in each of them: looked for first, for that is many times faster.
_OPENING: Final = (
    "obsol supersed outdated replaced longer force veraltet überholt ersetzt gültig sustituid vigente remplac"
    " vigueur périm berlaku digantikan 廃止 失効 废止 失效"
)
_PARTS: Final = tuple(_OPENING.split())
_PAST: Final = re.compile(
    r"\b(?:was|were|had|did|used to|could|until|before|old|older|former\w*|previous\w*|earlier|past|then|obsolete"
    r"|superseded|replaced|outdated|no longer|any ?more|originally|historical\w*|(?:19|20)\d{2}"
    r"|war|waren|wurden?|hatten?|konnten?|durften?|mussten?|bis|früher\w*|damals|alte[nrs]?|vorher\w*|veraltet\w*|ersetzt\w*"
    r"|era|eran|tenía\w*|había|podía\w*|fue|antes|antigu\w*|anterior\w*|obsolet\w*|sustitu\w*"
    r"|était|étaient|avai\w*|pouvai\w*|anciens?|ancienne\w*|avant|remplac\w*|dulu|sebelum\w*|lama)\b"
    r"|旧|以前|かつて|曾|此前|廃止|废止",
    re.IGNORECASE,
)


def obsolete_findings(evidence: Evidence, said: tuple[str, str]) -> Iterator[Finding]:
    """A finding against a claim that rests on replaced pages alone; ``said`` is the answer and the question."""
    words = [replaced(cited.passage.text) for cited in evidence.cited]
    if not words or not all(words) or any(_PAST.search(text) for text in (evidence.claim.text, *said)):
        return
    yield Finding(
        kind="relation",
        severity="error",
        start=0,
        end=len(evidence.claim.text),
        detail=f"{evidence.sources_named()} says of itself {words[0]!r}; the sentence tells it as true today",
        remedy="Say what the page that replaced it says, or say that this is how it was.",
    )


@lru_cache(maxsize=512)
def replaced(text: str) -> str:
    """The words with which a page says at its head that it was replaced; empty if it does not."""
    head = text[:_HEAD].casefold()
    match = _REPLACED.search(text, 0, _HEAD) if any(part in head for part in _PARTS) else None
    return match.group().strip(" \n([（【*_>") if match else ""

"""What headings, introductions, questions and offers state after all: a number of their own, or a whole sentence."""

from __future__ import annotations

import re

_FINITE = re.compile(
    r"\b(?:is|are|was|were|may|can|cannot|must|never|always|will|has|have|does|do not|don['’]t|doesn['’]t|should|shall"
    r"|needs?|costs?|expires?|applies|apply|ist|sind|war|waren|darf|dürfen|kann|können|muss|müssen|wird|werden|nie"
    r"|niemals|immer|hat|haben|gilt|gelten|kostet|est|sont|peut|peuvent|doit|doivent|jamais|toujours|coûte|son|puede"
    r"|pueden|debe|deben|nunca|siempre|está|están|cuesta|adalah|boleh|harus|tidak|dapat|bisa|selalu)\b"
    r"|(?:です|ます|ません|ました|できる|できない)[。！!*_\s]*$|可以|必须|不得|不能|无需|禁止",
    re.IGNORECASE,
)
_TOPIC = re.compile(
    r"\W*(?:how|what|when|where|who|whom|whose|which|why|whether|if|unless|before|after|while|as|things|everything"
    r"|wie|was|wann|wo|wer|welche\w*|warum|ob|wenn|falls|bevor|comment|quand|où|qui|quoi|pourquoi|quel\w*|si|lorsque"
    r"|ce qu\w*|cómo|qué|cuándo|dónde|quién\w*|cuál\w*|por qué|cuando|lo que|bagaimana|apa|kapan|di mana|siapa|mengapa"
    r"|jika|apabila|note|hinweis|nota|catatan)\b|.*\S\s(?:you|we|that|who|which)\s",
    re.IGNORECASE,
)
_CLAUSES = re.compile(r",\s+(?:and|so|und|et|y|dan)\s|;\s|[.。；]\s?")
_NO_FACT = re.compile(r"<[^<>\n]*>|https?://\S+|\[[\d\s,;–-]+\]|:[a-z0-9_+-]{2,30}:")
_LABEL = re.compile(r"^\W*(?:[^\W\d_]+\s)?\d{1,2}\b(?=\s*[.):–—-]|[\s*_]*$)[\s.):–—*_-]*")
_COUNTED = re.compile(
    r"\b\d{1,2}\s+(?:[^\W\d_]+\s){0,2}(?:documents?|sources?|options?|steps?|rules?|ways?|things?|points?|pages?|results?"
    r"|passages?|examples?|questions?|dokumente?n?|quellen?|schritte?n?|regeln|möglichkeiten|punkte|seiten|fragen|étapes"
    r"|règles|pasos|reglas|opciones|fuentes|documentos|puntos|langkah|aturan|sumber|dokumen|pilihan|poin)\b"
    r"|\d{1,2}\s?(?:つ|点|件|步|条|個|个)",
    re.IGNORECASE,
)
_DIGITS = re.compile(r"\d+")
_ANNOUNCED = re.compile(
    r"[*_~\s]*(?:(?:the |in )?(?:(?:short|brief|quick|direct) )?(?:answer|summary|overview|note|result|conclusion|short"
    r"|brief)|tl;? ?dr|(?:kurze? )?antwort|kurz(?: gesagt)?|zusammenfassung|fazit|hinweis|ergebnis|réponse(?: courte)?"
    r"|en bref|en résumé|résumé|remarque|respuesta(?: corta)?|en resumen|resumen|nota|jawaban(?: singkat)?|singkatnya"
    r"|ringkasan|catatan|回答|答案|简而言之|总结|结论|答え|要約|結論)\s?[*_~]*[:：][*_~\s]*",
    re.IGNORECASE,
)


def label_end(heading: str) -> int:
    """Where the label at the head of a heading ends: ``Step 2:``, ``1.``; 0 without one."""
    match = _LABEL.match(heading)
    return match.end() if match else 0


def announcement_end(sentence: str) -> int:
    """Where a label ends that only announces what follows ("Short answer:"); 0 without one."""
    match = _ANNOUNCED.match(sentence)
    return match.end() if match else 0


def digits(text: str) -> frozenset[str]:
    """The groups of digits in a text, those of links and citations left out."""
    return frozenset(_DIGITS.findall(_NO_FACT.sub(" ", text)))


def own_digits(text: str) -> frozenset[str]:
    """The groups of digits that state something: not those of a label ("Step 2") or a mere count ("3 documents")."""
    if not _DIGITS.search(text):
        return frozenset()
    return frozenset(_DIGITS.findall(_COUNTED.sub(" ", _LABEL.sub("", _NO_FACT.sub(" ", text)))))


def is_sentence(heading: str) -> bool:
    """True if a heading says something, as "Keys never expire" does and "How keys expire" does not."""
    bare = heading[label_end(heading) :]
    return bool(_FINITE.search(bare)) and not _TOPIC.match(bare) and not bare.rstrip("*_~ ").endswith(("?", "？"))


def opens_with_sentence(introduction: str) -> bool:
    """True if an introduction says something before it introduces: "Refunds are free, and these are the rules:"."""
    first, *rest = _CLAUSES.split(introduction, maxsplit=1)
    return bool(rest and rest[0].strip()) and is_sentence(first)

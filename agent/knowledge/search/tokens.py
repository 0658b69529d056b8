"""Words, which of them carry a subject, and their stems. For search and follow-ups; verification has its own."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

from verification.text.language import detect
from verification.text.lexicon import words as listed_words
from verification.text.words import content_stems

_TOKEN: Final = re.compile(r"[^\s\"'“”„«»‘’`()\[\]{}<>|,;!?？！。、，：…]+")
_WORD: Final = re.compile(r"[^\W_]+")
CJK: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_EDGES: Final = ".:-_/*=#~+&%$@^\\"
ASKING: Final = frozenset(
    """
    long often many much quickly soon fast far big large tell explain describe happen happens happened need needs needed
    told want wants wanted know find use uses used using way please thanks say says mean means per s t m d re ve ll u 00
    make makes made making do done go goes going take takes took taken taking get getting give gives gave given
    put try handle handles handled handling deal deals work works working come comes show let look help have
    ask asks asked asking contact talk possible able looks ok okay ones
    whats hows wheres whos whens im ive dont cant doesnt isnt
    during since via among während innerhalb pendant selama exactly actually properly usually normally really supposed
    machen macht mache gemacht tun tut gehen geht läuft laufen bekommen bekomme bekommt kriege kriegen brauche braucht
    oft hoch brauchen nutzen benutzen wollen möchte passiert passieren funktioniert funktionieren erkläre erklären
    faire fais fait faites utiliser obtenir besoin vouloir veux passe passer marche fonctionne expliquer explique dire
    hacer hago hace hacemos usar conseguir obtener necesito necesita querer quiero pasa funciona explicar explica decir
    membuat buat melakukan lakukan menggunakan pakai mendapatkan butuh perlu ingin mau terjadi cara jelaskan ceritakan
    """.split()  # noqa: SIM905 - words read better as words
)
"""Words that ask but name no subject; they count for nothing when passages are compared."""

_GROUPED: Final = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:[,.’'\u00a0\u202f]\d{3})+(?![.,]?\d)")


def words(text: str) -> list[str]:
    """All words, in lower case, in order; ``3,000`` is one word."""
    return _WORD.findall(_GROUPED.sub(lambda found: re.sub(r"\D", "", found[0]), text.lower()))


def is_function_word(word: str, language: str | None) -> bool:
    """Whether a lower-case word carries only grammar; an unknown language is taken as English."""
    listed = listed_words("function_words")
    return word in listed.get(language or "en", listed["en"])


def tokens(text: str) -> list[str]:
    """Words as written, identifiers whole (``--force``, ``v2.3``, ``FH-2002``), without punctuation at the edges."""
    return [token for raw in _TOKEN.findall(text) if (token := raw.strip(_EDGES))]


def subject_tokens(text: str) -> list[str]:
    """The tokens that carry a subject, once each."""
    language = detect(text)
    return [token for token in dict.fromkeys(tokens(text)) if not _says_nothing(token.lower(), language)]


def _says_nothing(token: str, language: str | None) -> bool:
    if CJK.search(token):
        return False
    parts = _WORD.findall(token)
    return all(is_function_word(part, language) or part in ASKING for part in parts)


def stems(text: str, language: str | None = None) -> list[str]:
    """The stems of the words with a subject, in order, with repeats; character pairs for Chinese and Japanese."""
    found: list[str] = []
    for word in words(text):
        if CJK.search(word):
            found += sorted(content_stems(word))
        elif not is_function_word(word, language) and word not in ASKING:
            found.append(stem(word, language))
    return found


@lru_cache(maxsize=50_000)
def stem(word: str, language: str | None = None) -> str:
    """One word's stem, a number's digits. Each call has a stemmer of its own: they keep state while they work."""
    if word.isdigit():
        return word.lstrip("0") or "0"
    return str(snowballstemmer.stemmer(_STEMMERS.get(language or "en", "english")).stemWord(word))


_STEMMERS: Final = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}

"""Which language a text is in, and which of its words carry a subject.

Promises: decides from scripts and function words alone, in linear time, and says ``None`` when unsure: under about
twenty letters it decides only where the script does, or where function words leave no doubt. Must never be used to
reject a text by itself: other languages than the seven are ``None``.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]  # ships no type information

from verification.function_words import CJK_FUNCTION, DECOYS, FUNCTION_WORDS, LETTERS

_ALGORITHMS: Final = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}
_NOISE: Final = re.compile(
    r"```.*?(?:```|\Z)|`[^`\n]*`|<[^<>\n]*>|https?://\S+|\bwww\.\S+|(?<![\w.+-])[\w.+-]{1,64}@\S{1,255}|:[a-z0-9_+-]+:|\[[^\[\]\n]{1,40}\]",
    re.DOTALL,
)
_KANA: Final = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\U00020000-\U0002fa1f"
_KANA_LETTER: Final = re.compile(f"[{_KANA}]")
_HAN_LETTER: Final = re.compile(f"[{_HAN}]")
_CJK_RUN: Final = re.compile(f"[{_HAN}]+|[\u30a1-\u30fa\u30fc-\u30ff]+")
_CJK_SUBJECT: Final = re.compile(f"[{_HAN}\u30a1-\u30fa\u30fc-\u30ff]+")
_LETTER: Final = re.compile(r"[^\W\d_]")
_WORD: Final = re.compile(r"[^\W_]+")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]")
_SAMPLE: Final = 20_000
_FEWEST_LETTERS: Final = 8
_FEW_LETTERS: Final = 20
_CJK_SHARE: Final = 0.3
_KANA_SHARE: Final = 0.05
_LATIN_SHARE: Final = 0.6
_MARGIN: Final = 1.25
_ALONE_SHARE: Final = 0.2


@lru_cache(maxsize=256)
def detect(text: str) -> str | None:
    """One of ``en de fr es id ja zh``, or None when it is another language or cannot be told.

    Remembered, since a source is asked about for every claim that cites it.
    """
    sample = _NOISE.sub(" ", text[:_SAMPLE])
    letters = len(_LETTER.findall(sample))
    if not letters:
        return None
    kana, han = len(_KANA_LETTER.findall(sample)), len(_HAN_LETTER.findall(sample))
    if kana + han >= _CJK_SHARE * letters:
        return "ja" if kana > _KANA_SHARE * (kana + han) else "zh"
    latin = len(_LATIN.findall(sample))
    if letters < _FEWEST_LETTERS or latin < _LATIN_SHARE * letters:
        return None
    return _by_words(sample.lower(), short=letters < _FEW_LETTERS)


def _by_words(sample: str, *, short: bool) -> str | None:
    """The language whose function words clearly lead; a decoy that leads or comes close means None.

    A short text must consist of them by half, and no other language may have half as many.
    """
    words = Counter(_WORD.findall(sample))
    scores = {name: _score(name, listed, words, sample) for name, listed in {**DECOYS, **FUNCTION_WORDS}.items()}
    ranked = sorted(scores, key=lambda name: scores[name], reverse=True)
    best, second = ranked[0], ranked[1]
    if best in DECOYS or scores[best] < max(1.0, 0.12 * words.total()):
        return None
    if short:
        clear = scores[best] >= max(2.0, words.total() / 2) and scores[second] <= scores[best] / 2
        return best if clear else None
    alone = scores[second] == 0 and scores[best] >= _ALONE_SHARE * words.total()
    return best if alone or scores[best] >= max(2.0, _MARGIN * scores[second]) else None


def _score(name: str, listed: frozenset[str], words: Counter[str], sample: str) -> float:
    """Function words seen, plus up to a fifth of the words' number for letters that speak for the language."""
    hits = sum(count for word, count in words.items() if word in listed)
    letters = sum(sample.count(letter) for letter in LETTERS.get(name, ""))
    return hits + min(letters, 0.2 * words.total())


def content_stems(text: str, language: str | None = None) -> frozenset[str]:
    """The stems of the words that carry a subject; character bigrams for Chinese and Japanese.

    ``language`` is one of the seven; None means detect, and where that is unsure every stemmer's stem counts.
    """
    cleaned = _LINKS.sub(" ", text).lower()
    known = language if language in _ALGORITHMS else detect(text)
    languages = (known,) if known in _ALGORITHMS and known else tuple(_ALGORITHMS)
    stems: set[str] = set()
    for word in set(_WORD.findall(cleaned)):
        if _CJK_SUBJECT.search(word):
            stems |= _bigrams(word)
        elif len(word) > 1 and not _KANA_LETTER.search(word) and not _is_function_word(word, languages):
            stems.update(_stem(word, name) for name in languages)
    return frozenset(stems)


_LINKS: Final = re.compile(r"https?://\S+|<[@#!][^<>\n]*>")


def _is_function_word(word: str, languages: tuple[str, ...]) -> bool:
    return any(word in FUNCTION_WORDS[name] for name in languages)


def _bigrams(word: str) -> set[str]:
    """Pairs of neighbouring Han or Katakana letters; a single letter stands for itself; grammar is left out."""
    found: set[str] = set()
    for run in _CJK_RUN.findall(word):
        pairs = [run[i : i + 2] for i in range(len(run) - 1)] or [run]
        found.update(pair for pair in pairs if not all(letter in CJK_FUNCTION for letter in pair))
    return found


@lru_cache(maxsize=20_000)
def _stem(word: str, language: str) -> str:
    """One word's stem. The stemmer keeps state while it works, so each call has its own (about a microsecond)."""
    return str(snowballstemmer.stemmer(_ALGORITHMS[language]).stemWord(word))

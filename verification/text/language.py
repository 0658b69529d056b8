"""Which language a text is in, by its script and function words, and which of its words carry a subject.

``None`` means unsure, or another language than the seven: no text is rejected for that.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import chain, repeat
from typing import Final

import snowballstemmer  # type: ignore[import-untyped]  # ships no type information

from verification.text.stopwords import CJK_FUNCTION, DECOYS, FUNCTION_WORDS, LETTERS

_ALGORITHMS: Final = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}
# Fences, code, tokens, addresses, emoji and brackets. What each begins with stands first: all else is passed over fast.
_NOISE: Final = re.compile(
    r"[`<\[:hw](?:(?<=`)(?:``.*?(?:```|\Z)|[^`\n]*`)|(?<=<)[^<>\n]*>|(?<=h)ttps?://\S+|(?<=\bw)ww\.\S+"
    r"|(?<=:)[a-z0-9_+-]+:|(?<=\[)[^\[\]\n]{1,40}\])",
    re.DOTALL,
)
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@\S{1,255}")
_KANA: Final = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_HAN: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\U00020000-\U0002fa1f"
_KANA_LETTER: Final = re.compile(f"[{_KANA}]+")
_HAN_LETTER: Final = re.compile(f"[{_HAN}]+")
_CJK_RUN: Final = re.compile(f"[{_HAN}]+|[\u30a1-\u30fa\u30fc-\u30ff]+")
_CJK_SUBJECT: Final = re.compile(f"[{_HAN}\u30a1-\u30fa\u30fc-\u30ff]+")
_NO_LETTERS: Final = re.sub(rb"[A-Za-z]", b"", bytes(range(128)))
# For the bytes of ASCII text: every sign becomes a blank.
_GAPS: Final = re.sub(rb"[^A-Za-z0-9]", b" ", bytes(range(128))).ljust(256)
_LETTER: Final = re.compile(r"[^\W\d_]+")
_WORD: Final = re.compile(r"[^\W_]+")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_SAMPLE: Final = 20_000
_FEWEST_LETTERS: Final = 8
_FEW_LETTERS: Final = 20
_CJK_SHARE: Final = 0.3
_KANA_SHARE: Final = 0.05
_LATIN_SHARE: Final = 0.6
_MARGIN: Final = 1.25
_FAR: Final = 3.0
_BEGINNING: Final = 500
_ALONE_SHARE: Final = 0.2


@lru_cache(maxsize=256)
def detect(text: str) -> str | None:
    """One of ``en de fr es id ja zh``, or None when it is another language or cannot be told.

    Remembered, since a source is asked about for every claim that cites it.
    """
    if len(text) > 2 * _BEGINNING:
        told = _told(text[:_BEGINNING], sure=True)
        if told:
            return told
    return _told(text[:_SAMPLE], sure=False)


def _told(text: str, *, sure: bool) -> str | None:
    """The language of a text; ``sure`` asks for one that leads by far, as the beginning of a longer text must."""
    sample = _NOISE.sub(" ", text)
    if "@" in sample:
        sample = _MAIL.sub(" ", sample)
    letters = len(sample.encode().translate(None, _NO_LETTERS)) if sample.isascii() else _count(_LETTER, sample)
    if not letters:
        return None
    latin = letters
    if not sample.isascii():
        kana, han = _count(_KANA_LETTER, sample), _count(_HAN_LETTER, sample)
        if kana + han >= _CJK_SHARE * letters:
            return None if sure else "ja" if kana > _KANA_SHARE * (kana + han) else "zh"
        latin = _count(_LATIN, sample)
    if letters < _FEWEST_LETTERS or latin < _LATIN_SHARE * letters:
        return None
    return _by_words(sample.lower(), short=letters < _FEW_LETTERS, margin=_FAR if sure else _MARGIN)


def _count(run: re.Pattern[str], sample: str) -> int:
    """How many letters the runs have in all."""
    return sum(map(len, run.findall(sample)))


def _speaking() -> dict[str, tuple[str, ...]]:
    """For each function word the languages that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for name, listed in _LISTED.items():
        for word in listed:
            found[word] = (*found.get(word, ()), name)
    return found


_LISTED: Final = {**DECOYS, **FUNCTION_WORDS}
_SPEAKING: Final = _speaking()


def _by_words(sample: str, *, short: bool, margin: float) -> str | None:
    """The language whose function words clearly lead; a decoy that leads or comes close means None.

    A short text must consist of them by half, and no other language may have half as many.
    """
    words = sample.encode().translate(_GAPS).decode().split() if sample.isascii() else _WORD.findall(sample)
    scores = _scores(words, sample)
    best = max(scores, key=scores.__getitem__)
    led, second = scores.pop(best), max(scores.values())
    if best in DECOYS or led < max(1.0, 0.12 * len(words)):
        return None
    if short:
        clear = led >= max(2.0, len(words) / 2) and second <= led / 2
        return best if clear else None
    alone = second == 0 and led >= _ALONE_SHARE * len(words)
    return best if alone or led >= max(2.0, margin * second) else None


def _scores(words: list[str], sample: str) -> dict[str, float]:
    """Each language's function words seen, plus up to a fifth of the words' number for letters that speak for it."""
    scores: dict[str, float] = dict.fromkeys(_LISTED, 0)
    said = list(chain.from_iterable(filter(None, map(_SPEAKING.get, words))))
    scores |= {name: said.count(name) for name in set(said)}
    if not sample.isascii():
        present = set(sample)
        for name, letters in LETTERS.items():
            scores[name] += min(sum(map(sample.count, present.intersection(letters))), 0.2 * len(words))
    return scores


def content_stems(text: str, language: str | None = None) -> frozenset[str]:
    """The stems of the words that carry a subject; character bigrams for Chinese and Japanese.

    ``language`` is one of the seven; None means detect, and where that is unsure every stemmer's stem counts.
    """
    cleaned = _LINKS.sub(" ", text).lower()
    languages = _stemmers(text, language)
    return frozenset[str]().union(*map(_content, set(_WORD.findall(cleaned)), repeat(languages)))


def shares_content(text: str, stems: frozenset[str], language: str | None) -> bool:
    """Whether the text has one of these stems: as ``content_stems`` finds them, but only until the first is found."""
    languages = _stemmers(text, language)
    words = set(_WORD.findall(_LINKS.sub(" ", text).lower()))
    likely = words & stems  # many a word is its own stem
    return any(not stems.isdisjoint(_content(word, languages)) for word in (*likely, *(words - likely)))


def _stemmers(text: str, language: str | None) -> tuple[str, ...]:
    """The language whose stems count, or all where it is not known."""
    known = language if language in _ALGORITHMS else detect(text)
    return (known,) if known in _ALGORITHMS and known else tuple(_ALGORITHMS)


@lru_cache(maxsize=20_000)
def _content(word: str, languages: tuple[str, ...]) -> tuple[str, ...]:
    """What one word, in small letters, has to do with a subject: its stems or pairs of letters; often nothing."""
    if _CJK_SUBJECT.search(word):
        return tuple(_bigrams(word))
    if len(word) < _LEAST_LETTERS or _KANA_LETTER.search(word) or _is_function_word(word, languages):
        return ()
    return tuple(_stem(word, name) for name in languages)


_LEAST_LETTERS: Final = 2
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

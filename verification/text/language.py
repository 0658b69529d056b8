"""Which language a text is in, by its script and its function words.

``None`` means unsure, or another language than the seven: no text is rejected for that.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import chain
from typing import Final

from verification.text.lexicon import entries, values, words

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
_LETTER: Final = re.compile(r"[^\W\d_]+")
_WORD: Final = re.compile(r"[^\W_]+")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_SAMPLE: Final = 20_000
_FEWEST_LETTERS: Final = 8
_FEW_LETTERS: Final = 20  # a short question: its function words must leave no doubt
_CJK_SHARE: Final = 0.3  # names and terms in Latin letters stand among them
_KANA_SHARE: Final = 0.05  # Chinese has none, but in a name
_LATIN_SHARE: Final = 0.6
_MARGIN: Final = 1.25
_FAR: Final = 3.0
_BEGINNING: Final = 500
_ALONE_SHARE: Final = 0.2


@lru_cache(maxsize=256)  # a source is asked about for every claim that cites it
def detect(text: str) -> str | None:
    """One of ``en de fr es id ja zh``, or None when it is another language or cannot be told."""
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
    letters = _count(_LETTER, sample)
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
    return sum(map(len, run.findall(sample)))


@cache
def _listed() -> dict[str, frozenset[str]]:
    """The function words of our languages, and of neighbours that must not be taken for one of them."""
    neighbours = {name: frozenset(entry["function_words"].split()) for name, entry in entries("others").items()}
    return {**neighbours, **words("function_words")}


@cache
def _letters() -> dict[str, str]:
    """Letters that speak for a language beside the words; shared ones (é, ä in Swedish) are left to the words."""
    neighbours = {name: entry["letters"] for name, entry in entries("others").items() if "letters" in entry}
    return {**neighbours, **values("letters")}


@cache
def _speaking() -> dict[str, tuple[str, ...]]:
    """For each function word the languages that have it."""
    found: dict[str, tuple[str, ...]] = {}
    for name, listed in _listed().items():
        for word in listed:
            found[word] = (*found.get(word, ()), name)
    return found


def _by_words(sample: str, *, short: bool, margin: float) -> str | None:
    """The language whose function words clearly lead; a decoy that leads or comes close means None."""
    said = _WORD.findall(sample)
    scores = _scores(said, sample)
    best = max(scores, key=scores.__getitem__)
    led, second = scores.pop(best), max(scores.values())
    if best in entries("others") or led < max(1.0, 0.12 * len(said)):
        return None
    if short:  # by half it must consist of them, and no other language may have half as many
        clear = led >= max(2.0, len(said) / 2) and second <= led / 2
        return best if clear else None
    alone = second == 0 and led >= _ALONE_SHARE * len(said)
    return best if alone or led >= max(2.0, margin * second) else None


def _scores(written: list[str], sample: str) -> dict[str, float]:
    """Each language's function words seen, plus up to a fifth of the words' number for letters that speak for it."""
    scores: dict[str, float] = dict.fromkeys(_listed(), 0)
    said = list(chain.from_iterable(filter(None, map(_speaking().get, written))))
    scores |= {name: said.count(name) for name in set(said)}
    if not sample.isascii():
        present = set(sample)
        for name, letters in _letters().items():
            scores[name] += min(sum(map(sample.count, present.intersection(letters))), 0.2 * len(written))
    return scores

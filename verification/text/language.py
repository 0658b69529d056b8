"""Detect the language of a text by its script and its function words.

``None`` means unsure, or a language other than the seven. No text is rejected for that.
"""

import re
from collections import Counter
from functools import cache, lru_cache
from typing import Final

from verification.text.lexicon import language_data, values_by_language, words_by_language

# Fences, code, tokens, addresses, emoji and brackets. The first character class skips all other text fast.
_NOISE: Final = re.compile(
    r"[`<\[:hw](?:(?<=`)(?:``.*?(?:```|\Z)|[^`\n]*`)|(?<=<)[^<>\n]*>|(?<=h)ttps?://\S+|(?<=\bw)ww\.\S+"
    r"|(?<=:)[a-z0-9_+-]+:|(?<=\[)[^\[\]\n]{1,40}\])",
    re.DOTALL,
)
_MAIL: Final = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@\S{1,255}")
_KANA_LETTERS: Final = "\u3041-\u309f\u30a1-\u30fa\u30fc-\u30ff\uff66-\uff9f"
_HAN_LETTERS: Final = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u3005\U00020000-\U0002fa1f"
_KANA: Final = re.compile(f"[{_KANA_LETTERS}]+")
_HAN: Final = re.compile(f"[{_HAN_LETTERS}]+")
_LETTER: Final = re.compile(r"[^\W\d_]+")
_WORD: Final = re.compile(r"[^\W_]+")
_LATIN: Final = re.compile("[A-Za-z\u00c0-\u024f\u1e00-\u1eff]+")
_SAMPLE: Final = 5_000
_MIN_LETTERS: Final = 8
_FEW_LETTERS: Final = 20  # a short question needs clear function words
_CJK_SHARE: Final = 0.3  # such text also has names and terms in Latin letters
_KANA_SHARE: Final = 0.05  # Chinese has kana only in names
_LATIN_SHARE: Final = 0.6
_MARGIN: Final = 1.25
_ALONE_SHARE: Final = 0.2


@lru_cache(maxsize=256)  # each claim asks for the language of its sources
def detect_language(text: str) -> str | None:
    """Return one of ``en de fr es id ja zh``, or None if it is another language or unclear."""
    sample = _MAIL.sub(" ", _NOISE.sub(" ", text[:_SAMPLE]))
    letters, kana, han, latin = (sum(map(len, run.findall(sample))) for run in (_LETTER, _KANA, _HAN, _LATIN))
    if letters and kana + han >= _CJK_SHARE * letters:
        return "ja" if kana > _KANA_SHARE * (kana + han) else "zh"
    if letters < _MIN_LETTERS or latin < _LATIN_SHARE * letters:
        return None
    return _best_by_words(sample.lower(), short=letters < _FEW_LETTERS)


@cache
def _function_words() -> dict[str, frozenset[str]]:
    """The function words of our languages, and of similar languages that must not be confused with them."""
    neighbours = {name: frozenset(entry["function_words"].split()) for name, entry in language_data("others").items()}
    return {**neighbours, **words_by_language("function_words")}


@cache
def _letters_by_language() -> dict[str, str]:
    """Letters that indicate a language in addition to its words. Shared letters (é, Swedish ä) are not listed."""
    neighbours = {name: entry["letters"] for name, entry in language_data("others").items() if "letters" in entry}
    return {**neighbours, **values_by_language("letters")}


def _best_by_words(sample: str, *, short: bool) -> str | None:
    """The language whose function words clearly lead. None if a language outside the seven leads or is close."""
    words = Counter(_WORD.findall(sample))
    count = words.total()
    scores: dict[str, float] = {
        name: sum(number for word, number in words.items() if word in listed)
        for name, listed in _function_words().items()
    }
    for name, letters in _letters_by_language().items():  # letters count for at most a fifth of all words
        scores[name] += min(sum(map(sample.count, letters)), 0.2 * count)
    best = max(scores, key=scores.__getitem__)
    best_score, second_score = scores.pop(best), max(scores.values())
    if best in language_data("others") or best_score < max(1.0, 0.12 * count):
        return None
    if short:  # half of the words, and twice as many as any other language
        clear = best_score >= max(2.0, count / 2) and second_score <= best_score / 2
        return best if clear else None
    alone = second_score == 0 and best_score >= _ALONE_SHARE * count
    return best if alone or best_score >= max(2.0, _MARGIN * second_score) else None

"""The languages: their words, the language of a text, and its words with their stems.

Chinese and Japanese give pairs of characters as words.

The rules' words and phrases are in one TOML file per language, read on first use. Words in a list are separated by
blanks or bars. A pattern is a regular expression and may span lines: ``{key}`` inserts another one, and ``’`` matches
either apostrophe.
"""

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import snowballstemmer  # type: ignore[import-untyped]  # ships no types

LANGUAGES: Final = ("en", "de", "fr", "es", "id", "ja", "zh")
WITHOUT_SPACES: Final = frozenset({"ja", "zh"})
"""Languages that put no space between words."""
_KEY: Final = re.compile(r"\{([a-z_]+)\}")  # a quantifier has digits in its braces


@cache
def language_data(language: str) -> Mapping[str, Any]:
    """Everything in the file of a language."""
    return load_table(f"{Path(__file__).parent}/languages/{language}.toml")


@cache
def load_table(module: str) -> Mapping[str, Any]:
    """Load the TOML file next to a module that has the module's name."""
    return tomllib.loads(Path(module).with_suffix(".toml").read_text(encoding="utf-8"))


@cache
def values_by_language(key: str) -> Mapping[str, Any]:
    """The value of a key for each language that has the key."""
    return {language: language_data(language)[key] for language in LANGUAGES if key in language_data(language)}


@cache
def words_by_language(key: str) -> Mapping[str, frozenset[str]]:
    """The words of a list by language."""
    listed = values_by_language(key)
    return {language: frozenset(re.split(r"[\s|]+", words.strip())) for language, words in listed.items()}


@cache
def all_words(key: str) -> frozenset[str]:
    """The words of a list in all languages."""
    return frozenset[str]().union(*words_by_language(key).values())


@cache
def compile_pattern(pattern: str) -> re.Pattern[str]:
    """Compile the pattern with each ``{key}`` replaced by the languages' values, ignoring case."""
    # Compiled on first use: together these patterns would double the import time.
    return re.compile(_fill_keys(pattern), re.IGNORECASE)


def _fill_keys(pattern: str) -> str:
    joined = pattern.replace("\n", "").replace("’", "['’]")
    return _KEY.sub(lambda match: "|".join(map(_fill_keys, values_by_language(match[1]).values())), joined)


# Fences, code, tokens, addresses, emoji and brackets. The first character class quickly skips all other text.
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


@lru_cache(maxsize=256)  # each claim needs the language of its sources
def detect_language(text: str) -> str | None:
    """Return one of ``en de fr es id ja zh``, or None if it is another language or unclear."""
    sample = _MAIL.sub(" ", _NOISE.sub(" ", text[:_SAMPLE]))
    letters, kana, han, latin = (sum(map(len, run.findall(sample))) for run in (_LETTER, _KANA, _HAN, _LATIN))
    if letters and kana + han >= _CJK_SHARE * letters:
        return "ja" if kana > _KANA_SHARE * (kana + han) else "zh"
    if letters < _MIN_LETTERS or latin < _LATIN_SHARE * letters:
        return None
    return _best_by_words(sample.lower(), short=letters < _FEW_LETTERS)


def _best_by_words(sample: str, *, short: bool) -> str | None:
    """The language whose function words clearly lead, or None if a language outside the seven leads or is close."""
    words = Counter(_WORD.findall(sample))
    count = words.total()
    # Similar languages must not be mistaken for supported ones.
    others = language_data("others")
    listed = {name: frozenset(entry["function_words"].split()) for name, entry in others.items()}
    listed |= words_by_language("function_words")
    scores: dict[str, float] = {name: sum(map(words.__getitem__, words.keys() & own)) for name, own in listed.items()}
    letters = {name: entry["letters"] for name, entry in others.items() if "letters" in entry}
    # Letters count for at most a fifth of all words. Shared ones (é, Swedish ä) are not listed.
    for name, signs in {**letters, **values_by_language("letters")}.items():
        scores[name] += min(sum(map(sample.count, signs)), 0.2 * count)
    best = max(scores, key=scores.__getitem__)
    best_score, second_score = scores.pop(best), max(scores.values())
    if best in others or best_score < max(1.0, 0.12 * count):
        return None
    if short:  # half of the words, and twice as many as any other language
        clear = best_score >= max(2.0, count / 2) and second_score <= best_score / 2
        return best if clear else None
    alone = second_score == 0 and best_score >= _ALONE_SHARE * count
    return best if alone or best_score >= max(2.0, _MARGIN * second_score) else None


_ALGORITHMS = {"en": "english", "de": "german", "fr": "french", "es": "spanish", "id": "indonesian"}
_TOKEN = re.compile(r"[^\W_]+(?:[’'][^\W\d_]+)?")
_CJK = re.compile("[\u3041-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
_SUBJECT_CJK = re.compile("[\u3400-\u9fff\uf900-\ufaff々]+|[\u30a1-\u30ff]+")
_LINKS = re.compile(r"https?://\S+|<[@#!][^<>\n]*>")
_EVEN = str.maketrans("’‘“”„«»\u00a0\u2010\u2011\u2012\u2013\u2014\u2212", '\'\'""""" ------')


class Term(NamedTuple):
    """One word. ``word`` is case-folded. ``stem`` is empty for a function word."""

    stem: str
    word: str
    start: int
    end: int
    capital: bool


def terms(text: str, language: str | None) -> tuple[Term, ...]:
    """The words of ``text`` in order. A run of Chinese or Japanese gives pairs of characters."""
    result: list[Term] = []
    for match in _TOKEN.finditer(text):
        word = match.group()
        if not word.isascii() and _CJK.search(word):
            result += _cjk_pairs(word, match.start())
        else:
            result.append(Term(stem(word, language), word.casefold(), match.start(), match.end(), word[0].isupper()))
    return tuple(result)


def _cjk_pairs(word: str, offset: int) -> Iterator[Term]:
    for run in _SUBJECT_CJK.finditer(word):
        letters = run.group()
        for index in range(max(1, len(letters) - 1)):
            pair = letters[index : index + 2]
            start = offset + run.start() + index
            yield Term(pair, pair, start, start + len(pair), capital=False)


def stems_of(words: Iterable[str], language: str | None) -> frozenset[str]:
    """The stems of case-folded words, without empty ones."""
    return frozenset([stem(word, language) for word in words]) - {""}


def folded_words(text: str) -> Iterator[str]:
    """Yield the case-folded words in order, as pairs of characters for Chinese and Japanese."""
    for word in _TOKEN.findall(text):
        if not word.isascii() and _CJK.search(word):
            yield from (term.word for term in _cjk_pairs(word, 0))
        else:
            yield word.casefold()


@lru_cache(maxsize=50_000)  # some megabytes: one answer looks up ten thousand words
def stem(word: str, language: str | None) -> str:
    """The stem of a word without accents. Empty for function words and single letters."""
    if _CJK.search(word):  # a pair of characters is its own stem
        return word
    word = word.casefold().replace("’", "'").removesuffix("'s")
    if word.isdecimal() and word.isascii():
        return word
    name = language if language in _ALGORITHMS else "en"
    if len(word) < 2 and not word.isdigit():  # noqa: PLR2004  # one letter carries no subject
        return ""
    function_words = words_by_language("function_words")[name]
    if word in function_words or word.partition("'")[0] in function_words:
        return ""
    stemmed = str(snowballstemmer.stemmer(_ALGORITHMS[name]).stemWord(word))
    if stemmed.isascii():
        return stemmed
    return "".join(letter for letter in unicodedata.normalize("NFD", stemmed) if not unicodedata.combining(letter))


def normalise_text(text: str) -> str:
    """Normalise case, typographic quotes, dashes, widths and white space, for comparing strings."""
    even = text if text.isascii() else unicodedata.normalize("NFKC", text.translate(_EVEN))
    return " ".join(even.casefold().split())


def content_stems(text: str, language: str | None = None) -> frozenset[str]:
    """The stems of the content words. If the language is unknown, the stems of every stemmer."""
    known_language = language or detect_language(text)
    words = [*folded_words(_LINKS.sub(" ", text))]
    names = [known_language] if known_language else _ALGORITHMS
    stems = frozenset[str]().union(*(stems_of(words, name) for name in names))
    return frozenset(stem for stem in stems if not all_words("function_letters").issuperset(stem))

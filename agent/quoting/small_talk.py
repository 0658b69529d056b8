"""Classifies a message before any search: small talk, a request for the list of documents, or a question.

The words, and the few lines that the engine says itself, are in ``small_talk.toml``, one table per language. The lines
make no claims: they end in a colon, greet or ask.
"""

import re
from functools import cache
from typing import Final, Literal

from agent.knowledge.search.full_text import subject_tokens
from agent.thread.conversation import ThreadMessage
from verification.text.language import load_table
from verification.text.language import words_by_language as listed_words

Line = Literal["quoted", "also", "part", "also_part", "hello", "welcome", "unclear"]

_EMOJI: Final = re.compile(r":[\w+'-]{1,60}:(?::skin-tone-\d:)?")  # Slack's form of every emoji
_PICTURE: Final = re.compile(r"[\u2190-\u2bff\U0001f000-\U0001f3fa\U0001f400-\U0001faff]")  # without skin tones
_WORD: Final = re.compile(r"[^\W_]+")
_MARKUP: Final = re.compile(r"[\[\]<>*_`|#]+")
_NOT_PROSE: Final = re.compile(r"```.*?```|`[^`\n]*`|<[^<>\n]*>|https?://\S+|^>.*$", re.DOTALL | re.MULTILINE)
# Question marks of any script. A written Japanese question ends in "か。".
_QUESTION_MARK: Final = re.compile(r"[?？¿؟;՞፧⁇⁈⁉‽]|か。?\s*$")
_REPLIES: Final[tuple[tuple[str, Line], ...]] = (("thanks", "welcome"), ("greeting", "hello"), ("reaction", "unclear"))
_MAX_WORDS: Final = 12  # maximum words of a message that may be small talk
MAX_FEW_WORDS: Final = 2  # a message with more subject words does not need an earlier question


def phrase(name: Line, language: str | None, *, title: str = "") -> str:
    """Return one line in a language, or in English if it does not exist in that language."""
    table = load_table(__file__).get(language or "en", load_table(__file__)["en"])
    return str(table[name]).format(title=" ".join(_MARKUP.sub(" ", title).split()))


def small_talk_reply(message: str) -> str:
    """Return the reply to a greeting, thanks, a reaction or a question about Orion; empty for any other message."""
    words = _words(message)
    if not words:  # a lone "?" means the question above it
        emoji = [*(one.split(":")[1] for one in _EMOJI.findall(message)), *_PICTURE.findall(message)]
        if not emoji:
            return ""
        return phrase("welcome" if _word_set("en", "thanks_emoji").issuperset(emoji) else "hello", None)
    if len(words) > _MAX_WORDS:
        return ""
    if language := asks_about_orion(message):
        return phrase("hello", language)
    for language in load_table(__file__):
        said = set(words)
        kinds = [(said & _word_set(language, kind), name) for kind, name in _REPLIES]
        if said & _word_set(language, "greeting"):  # "Hi, how are you?" has no subject word
            said -= listed_words("function_words").get(language, frozenset())
        named = next((name for found, name in kinds if found), None)
        if named and said <= _word_set(language, "filler").union(*(found for found, _ in kinds)):
            return phrase(named, language)
    return ""


def asks_about_orion(message: str) -> str:
    """Return the language of a message that only asks what Orion is and can do; an empty text for other messages."""
    words = " ".join(_words(message))
    return next((language for language, table in load_table(__file__).items() if words in table["about"]), "")


def asks_for_documents(message: str) -> bool:
    """Return True if a message only asks for the list of documents."""
    words = set(_words(message))
    for language in load_table(__file__):
        nouns = _word_set(language, "documents")
        subjects = words - listed_words("function_words").get(language, frozenset())
        if subjects & nouns and subjects <= nouns | _word_set(language, "listing"):
            return True
    return False


def is_question(message: str) -> bool:
    """Return True if a message has a question mark outside code, links and quotations."""
    return _QUESTION_MARK.search(_NOT_PROSE.sub(" ", message)) is not None


def search_query(question: str, history: tuple[ThreadMessage, ...]) -> str:
    """Return the words to search for; empty for small talk."""
    if small_talk_reply(question):
        return ""
    subjects = ", ".join(earlier_subjects(question, history))
    return f"{question.strip()} ({subjects})" if subjects else question.strip()


def earlier_subjects(question: str, history: tuple[ThreadMessage, ...], *, of_any: bool = False) -> list[str]:
    """Return the subject words of earlier questions, going back as long as a question has only few.

    A question with more words has a subject of its own and gets none, unless those ``of_any`` question are wanted.
    """
    own = {token.casefold() for token in subject_tokens(question)}
    if len(own) > MAX_FEW_WORDS and not of_any:
        return []
    asked = [m.text for m in history if m.role == "user" and m.addressed and not small_talk_reply(m.text)]
    if asked and asked[-1].strip() == question.strip():
        asked.pop()
    subjects: dict[str, str] = {}
    for text in reversed(asked):
        tokens = subject_tokens(text)
        subjects |= {token.casefold(): token for token in tokens if token.casefold() not in own | subjects.keys()}
        if len(tokens) > MAX_FEW_WORDS:
            break
    return list(subjects.values())


def _words(message: str) -> list[str]:
    return _WORD.findall(_EMOJI.sub(" ", message).casefold())


@cache
def _word_set(language: str, kind: str) -> frozenset[str]:
    return frozenset(str(load_table(__file__)[language].get(kind, "")).split())

"""The terms to look for in what a person wrote. Words without a subject are dropped unless nothing else is left."""

from __future__ import annotations

import re
from typing import Final

from agent.knowledge.search.tokens import is_function_word, subject_tokens, tokens
from verification.text.language import detect

MAX_TERMS: Final = 60
"""More terms than this come from a pasted log, not from a question; each is read from the index."""

CJK_RUN: Final = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\u0e00-\u0e7f]+")
_WORD: Final = re.compile(r"[^\W_]+")


def query_terms(query: str) -> list[str]:
    """What to look for: a word, the words of an identifier that stand together, or a pair of characters."""
    terms: dict[str, None] = {}
    for token in _worth_looking_for(query):
        runs = CJK_RUN.findall(token)
        for run in runs:
            terms.update(dict.fromkeys(_pairs(run)))
        rest = _WORD.findall(CJK_RUN.sub(" ", token))
        if rest:
            terms[" ".join(rest)] = None
        if len(rest) > 1:
            terms.update(dict.fromkeys(part for part in rest if _says_something(part)))
    return list(terms)[:MAX_TERMS]


def _worth_looking_for(query: str) -> list[str]:
    """All tokens but those that carry only grammar, once each; all of them if none says what the question is about.

    Words that only ask ("use", "get") are looked for as well: they tell little, which their frequency says by itself.
    """
    every, language = list(dict.fromkeys(tokens(query))), detect(query)
    if not subject_tokens(query):
        return every
    return [token for token in every if not is_function_word(token.lower(), language)]


def _says_something(part: str) -> bool:
    return len(part) > 1 and not is_function_word(part.lower(), "en")


def grams(*texts: str) -> str:
    """The character pairs of all Chinese, Japanese and Thai runs, for a column of their own."""
    return " ".join(pair for text in texts for run in CJK_RUN.findall(text) for pair in _pairs(run))


def _pairs(run: str) -> list[str]:
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]

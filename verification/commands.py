"""Commands of a source that a claim writes without back-ticks, as a table shows them, with another name at their head.

Promises: an error only for a name that a command of the source is a part of, or that is a part of it (``rota2``,
``vaultctl-cli``), before the very word that follows it there. Bounded work: the first commands of near sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from verification.evidence import Evidence, Finding, Hit
from verification.identifiers import code_spans
from verification.words import normalised

_MOST = 20
_SHORTEST = 3
# "A vaultctl-based rotation" names no other command.
_ADJECTIVES = frozenset({"-based", "-style", "-like", "-driven", "-managed", "-specific", "-related", "-only"})
_WORD = re.compile(r"[A-Za-z][\w.-]*")


def altered_commands(evidence: Evidence) -> Iterator[Finding]:
    """One finding for each command whose head was altered."""
    for hit, head, following in _commands(evidence):
        for match in re.finditer(
            rf"(?<![\w.`/-])([A-Za-z][\w.-]*)\s{re.escape(following)}(?![\w-])", evidence.claim.text
        ):
            word = match[1]
            if _is_altered(word, head) and not any(_has_word(passage.folded, word) for passage in evidence.passages):
                yield Finding(
                    kind="identifier",
                    severity="error",
                    start=match.start(1),
                    end=match.end(1),
                    detail=f"source [{hit.source.id}] has {head}, not {word}",
                    remedy=f"Write {head} as source [{hit.source.id}] has it, or drop the sentence.",
                )


def _commands(evidence: Evidence) -> Iterator[tuple[Hit, str, str]]:
    """The head of each command near the claim and the word behind it."""
    found = ((hit, code) for hit in evidence.hits for code in code_spans(hit.text))
    for count, (hit, code) in enumerate(found):
        if count >= _MOST:
            return
        head, _, rest = code.text.partition(" ")
        following = rest.split(maxsplit=1)[0] if rest.split() else ""
        if len(head) >= _SHORTEST and _WORD.fullmatch(head) and _WORD.fullmatch(following):
            yield hit, head, following


def _is_altered(word: str, head: str) -> bool:
    """Whether one is the other with something behind it that makes another name: ``rota`` and ``rota2``."""
    short, long = sorted((word.casefold(), head.casefold()), key=len)
    behind = long[len(short) :]
    if len(short) < _SHORTEST or not long.startswith(short) or behind in _ADJECTIVES:
        return False
    return bool(behind) and not behind[0].isalpha()


def _has_word(folded: str, word: str) -> bool:
    return bool(re.search(rf"(?<![\w-]){re.escape(normalised(word))}(?![\w-])", folded))

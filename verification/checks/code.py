"""Code blocks as claims: which of their lines are code, and whether the sources have what they would do.

Promises: a flag, a path, an address or a destructive command that no source has is an error; a placeholder of a source
may be filled in; other unknown words are a suspicion, for code is often adapted. A line of plain words inside a fence
is prose and is judged as such. Must never run anything. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

from verification.evidence.code_lines import _LINE, is_code
from verification.evidence.evidence import Evidence, Finding
from verification.types import Severity

_ADDRESS = re.compile(
    r"(?P<url>https?://[^\s<>|\"'`)\]}]+|(?<![\w.@/-])(?:[a-z0-9-]{1,63}\.){1,8}(?:com|org|net|io|dev|example|sh|xyz|ru)"
    r"(?:/[^\s\"'`)]*)?(?![\w(]))"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][\w-]*)"
    r"|(?P<path>(?<![\w/:<.~$}-])~?(?:/[\w.@*-]+){2,}/?)"
    r"|(?P<destroys>(?<![\w./-])(?:rm|dd|mkfs|shutdown|reboot|truncate|drop table|drop database|delete from|sudo|chmod"
    r"|--force)(?![\w-]))",
    re.IGNORECASE,
)
_FREE = re.compile(r"[<{\[$].*|.*(?:path/to|your[-_/]|/your|example\.(?:com|org|net)|localhost|127\.0\.0\.1).*|\.{3}|…")
_TOKEN = re.compile(r"[^\W_][\w.-]{2,}")
_COMMON = (
    "import from def return for while with print echo curl wget bash python pip npm node docker git cat grep true false"
    " none null const let var function async await class export the and"
)
_PLAIN = frozenset(_COMMON.split())
_FILLABLE = re.compile(r"<[\w .-]{1,40}>|\{[\w .-]{1,40}\}|\$\{?[A-Z][A-Z0-9_]{1,40}\}?|\[[A-Z][A-Z0-9_ -]{1,40}\]")
_SPAN = re.compile(r"`([^`\n]{3,300})`|^[ \t]*([^\n`]{3,300})$", re.MULTILINE)
_LEAST_WORDS = 3
_SHOWN = 3
_MOST = 40


def code_findings(evidence: Evidence, texts: Iterable[str], urls: frozenset[str]) -> Iterator[Finding]:
    """What a run of code has that no source (``texts``) and nobody else said."""
    known = [*texts, *(passage.text for passage in evidence.known)]
    folded = "\n".join(known).casefold()
    text = evidence.claim.text
    filled = {word for line in text.split("\n") for word in fillings(line, known)}
    where = evidence.sources_named()
    seen: set[str] = set()
    for match in _ADDRESS.finditer(text):
        said = match[0].rstrip(".,;:")
        if not (_FREE.fullmatch(said) or _stands(said, folded, urls) or said in filled or said in seen):
            seen.add(said)
            if len(seen) <= _MOST:
                yield _finding("error", match.span(), f"{said} does not stand in {where}", f"Drop {said}, or the code.")
    altered = next(_altered(text, known, filled), None)
    if altered and not seen:
        span, wrong, right = altered
        yield _finding(
            "error", span, f"the source's command is: {right}", f"Write {right} as {where} has it, not {wrong}."
        )
        return
    unknown = _unknown(text, folded, filled | seen)
    if unknown and not seen:
        named = ", ".join(unknown[:_SHOWN])
        detail = f"the code has {named}, which {where} does not show"
        yield _finding("warning", (0, len(text)), detail, f"Show the code as {where} has it.")


def _altered(text: str, known: list[str], filled: set[str]) -> Iterator[tuple[tuple[int, int], str, str]]:
    """The lines that are a command of a source but for one word that stands nowhere: span, that word, the command."""
    commands = {command: command.split() for source in known for command in _written(source)}
    whole = "\n".join(known)
    for line in _LINE.finditer(text):
        said = line[0].strip("$ \t").split()
        for command, words in commands.items():
            differing = [i for i, word in enumerate(said) if word != words[i]] if len(words) == len(said) else []
            if len(differing) != 1:
                continue
            wrong, right = said[differing[0]], words[differing[0]]
            free = _FILLABLE.search(right) or _FREE.fullmatch(wrong) or wrong in filled
            if not free and not re.search(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", whole):
                yield line.span(), wrong, command


def _written(source: str) -> Iterator[str]:
    """The commands of a source: its code spans and its lines of code."""
    for match in _SPAN.finditer(source):
        command = " ".join((match[1] or match[2]).strip("$ ").split())
        if len(command.split()) >= _LEAST_WORDS and (match[1] or is_code(command)):
            yield command


def _stands(said: str, folded: str, urls: frozenset[str]) -> bool:
    """Whether it stands somewhere as a whole word, or is the address of a source."""
    plain = said.casefold()
    if plain.rstrip("/") in urls:
        return True
    return bool(re.search(rf"(?<![\w-]){re.escape(plain.rstrip('/'))}(?![\w-])", folded))


def _unknown(text: str, folded: str, known: set[str]) -> tuple[str, ...]:
    """The words of the code that stand nowhere: not the common words of shells and languages, no placeholders."""
    found: dict[str, None] = {}
    bare = _FILLABLE.sub(" ", text)
    for match in _TOKEN.finditer(bare):
        word = match[0].rstrip(".")
        if word in known or word.casefold() in _PLAIN or word.casefold() in folded:
            continue
        found[word] = None
    return tuple(found)


def _finding(severity: Severity, span: tuple[int, int], detail: str, remedy: str) -> Finding:
    return Finding(kind="identifier", severity=severity, start=span[0], end=span[1], detail=detail, remedy=remedy)


def fillings(line: str, texts: Iterable[str]) -> frozenset[str]:
    """The words with which ``line`` fills the placeholders of a command in ``texts``; empty if it is none of them."""
    said = " ".join(line.strip("` \t$").split())
    for text in texts:
        for pattern in _commands(text):
            match = pattern.fullmatch(said)
            if match:
                return frozenset({word for group in match.groups() for word in (group, *group.split())})
    return frozenset()


@lru_cache(maxsize=64)
def _commands(text: str) -> tuple[re.Pattern[str], ...]:
    """The commands of a text that have placeholders, as patterns. Remembered: the sources of a turn stay the same."""
    found: list[re.Pattern[str]] = []
    for match in _SPAN.finditer(text) if _FILLABLE.search(text) else ():
        command = " ".join((match[1] or match[2]).strip("$ ").split())
        parts = _FILLABLE.split(command)
        if 1 < len(parts) <= _SHOWN * 3 and re.search(r"\w", parts[0]):
            found.append(re.compile(r"((?!-)[\w.@:/-]{1,80})".join(map(re.escape, parts))))
        if len(found) >= _MOST:
            break
    return tuple(found)

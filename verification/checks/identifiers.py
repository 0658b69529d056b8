"""Checks that what machines read stands in what a claim cites: flags, versions, paths, names, code, URLs.

It must stand there, or in the question, as it is written, case aside. A placeholder of a source may be filled in;
variables and comments of a code block are the writer's own. Linear in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_uppercase

from verification.evidence.evidence import MOST, Certainty, Evidence, Finding, Kind
from verification.markup.lines import WRITTEN, is_code
from verification.markup.link_targets import normal
from verification.values.identifiers import Identifier, missing_words, nearest

_CODE_DIGITS = 3  # E4012 is a code, COVID-19 a name
# How a known address or file is called with an everyday command is for the writer to say, and for a judge to see.
_EVERYDAY = re.compile(r"curl|wget|http|bash|python3?|cat|cd|ls|grep|echo|export|-[A-Za-z]")
_MACHINE_WORD = re.compile(r".*[\d_./=:-].*|--?\w.*")
# Names of the code itself may be anything; what it reaches, where it writes and what it destroys must be the source's.
_ADDRESS = re.compile(
    r"(?P<url>https?://[^\s<>|\"'`)\]}]+|(?<![\w.@/-])(?:[a-z0-9-]{1,63}\.){1,8}(?:com|org|net|io|dev|example|sh|xyz|ru)"
    r"(?:/[^\s\"'`)]*)?(?![\w(]))"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][\w-]*)"
    r"|(?P<path>(?<![\w/:<.~$}-])~?(?:/[\w.@*-]+){2,}/?)"
    r"|(?P<destroys>(?<![\w./-])(?:rm|dd|mkfs|shutdown|reboot|truncate|drop table|drop database|delete from|sudo|chmod"
    r"|--force)(?![\w-]))",
    re.IGNORECASE,
)
# Placeholders, hosts that RFC 2606 keeps for examples, and this machine stand for something else.
_FREE = re.compile(r"[<{\[$].*|.*(?:path/to|your[-_/]|/your|example\.(?:com|org|net)|localhost|127\.0\.0\.1).*|\.{3}|…")
_NUMBER = re.compile(r"(?<![\w.])\d{2,}(?![\w.])")
_TOKEN = re.compile(rf"{_NUMBER.pattern}|[^\W\d_][\w.-]{{2,}}")
_COMMENT = re.compile(r"(?:(?<=\s)|^)(?:#|//)\s.*$", re.MULTILINE)
_VARIABLE = re.compile(r"^[ \t]*(?:const |let |var |export )?([A-Za-z_]\w*)[ \t]*=(?!=)", re.MULTILINE)
_COMMON = (
    "import from def return for while with print echo curl wget bash python pip npm node docker git cat grep true false"
    " none null const let var function async await class export the and"
)
_PLAIN = frozenset(_COMMON.split())
_NN = "|".join(f"{letter}{{2,8}}" for letter in ascii_uppercase)  # kiosk-NN, YYYY-MM-DD
_FILLABLE = re.compile(
    r"<[\w .-]{1,40}>|\{[\w .-]{1,40}\}|\$\{?[A-Z][A-Z0-9_]{1,40}\}?|\[[A-Z][A-Z0-9_ -]{1,40}\]"
    rf"|(?<![^\W\d_])(?:{_NN})(?![^\W\d_])"
)
_SPAN = re.compile(r"`([^`\n]{3,300})`|^[ \t]*([^\n`]{3,300})$", re.MULTILINE)
_LEAST_WORDS = 3  # of two words nobody can tell which one was altered
_SHOWN = 3
_MOST_COMMANDS = 40  # commands and findings: a bound on the work


def identifier_findings(evidence: Evidence, urls: frozenset[str]) -> Iterator[Finding]:
    """One finding for each identifier that no cited source has. ``urls`` are links that count as known, normalised."""
    mine = evidence.claim.identifiers[:MOST]
    passages = (*(cited.passage for cited in evidence.cited), *evidence.known) if mine else ()
    texts = [passage.folded for passage in passages]
    inside_code: list[tuple[int, int]] = []
    for identifier in mine:
        if any(start <= identifier.start < end for start, end in inside_code):
            continue
        if identifier.kind == "code":
            inside_code.append((identifier.start, identifier.end))
        missing = _missing(identifier, texts, urls)
        if missing and not _is_filled_in(identifier, evidence, missing):
            yield _finding(identifier, missing, evidence)


def _is_filled_in(identifier: Identifier, evidence: Evidence, missing: tuple[str, ...]) -> bool:
    """Whether it is a command of a source with its placeholders filled in, or one of the words filled in there."""
    texts = [passage.text for passage in evidence.passages]
    codes = [each.text for each in evidence.claim.identifiers[:MOST] if each.kind == "code"]
    if identifier.kind == "code" and fillings(identifier.text, texts):
        return True
    return all(any(word in fillings(code, texts) for code in codes) for word in missing)


def _missing(identifier: Identifier, texts: list[str], urls: frozenset[str]) -> tuple[str, ...]:
    if identifier.kind == "url" and normal(identifier.text) in urls:
        return ()
    best: tuple[str, ...] | None = None
    for text in texts:
        missing = missing_words(identifier, text)
        if not missing:
            return ()
        best = missing if best is None or len(missing) < len(best) else best
    return best or ()


def _certainty(identifier: Identifier, missing: tuple[str, ...], *, near: bool) -> Certainty:
    """Anything that only a machine would write is evidence; a code span of plain words may be emphasis."""
    words = identifier.text.split()
    if identifier.kind == "code" and len(words) > 1 and all(map(_EVERYDAY.fullmatch, missing)):
        return "doubtful"
    if near or identifier.kind == "url":
        return "certain"
    if identifier.kind == "code_number":
        # COVID-19 and U-30 are names; an error code has more digits.
        return "unfounded" if sum(map(str.isdigit, identifier.text)) >= _CODE_DIGITS else "doubtful"
    plain = identifier.kind == "code" and len(words) > 1 and not any(map(_MACHINE_WORD.fullmatch, words))
    return "doubtful" if plain else "unfounded"


def _finding(identifier: Identifier, missing: tuple[str, ...], evidence: Evidence) -> Finding:
    wrong = " ".join(missing)
    known = [each for cited in evidence.cited for each in cited.passage.identifiers]
    there = nearest(wrong, known) or nearest(identifier.text, known)
    where = evidence.sources_named()
    if there:
        detail, remedy = f"{where} has {there}, not {wrong}", f"Write {there} as {where} has it, or drop the sentence."
    else:
        detail, remedy = f"{wrong} does not stand in {where}", f"Drop {wrong}, or cite the source that states it."
    kind: Kind = "url" if identifier.kind == "url" else "identifier"
    certainty = _certainty(identifier, missing, near=bool(there))
    return Finding(
        kind=kind, span=(identifier.start, identifier.end), detail=detail, remedy=remedy, certainty=certainty
    )


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
            if len(seen) <= _MOST_COMMANDS:
                detail, remedy = f"{said} does not stand in {where}", f"Drop {said}, or the code."
                yield Finding(kind="identifier", span=match.span(), detail=detail, remedy=remedy)
    altered = next(_altered(text, known, filled), None)
    if altered and not seen:
        span, wrong, right = altered
        detail, remedy = f"the source's command is: {right}", f"Write {right} as {where} has it, not {wrong}."
        yield Finding(kind="identifier", span=span, detail=detail, remedy=remedy)
        return
    unknown = _unknown(text, folded, filled | seen)
    if unknown and not seen:
        named = ", ".join(unknown[:_SHOWN])
        detail = f"the code has {named}, which {where} does not show"
        # A shell's own command or a header may be adapted; what is called, set or counted may not.
        certainty: Certainty = "unfounded" if any(_is_precise(word, text) for word in unknown) else "doubtful"
        remedy = f"Show the code as {where} has it."
        yield Finding(kind="identifier", span=(0, len(text)), detail=detail, remedy=remedy, certainty=certainty)


def _altered(text: str, known: list[str], filled: set[str]) -> Iterator[tuple[tuple[int, int], str, str]]:
    """The lines that are a command of a source but for one word that stands nowhere: span, that word, the command."""
    commands = {command: command.split() for source in known for command in _written(source)}
    whole = "\n".join(known)
    for line in WRITTEN.finditer(text):
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
    plain = re.escape(said.casefold().rstrip("/"))
    return normal(said) in urls or bool(re.search(rf"(?<![\w-]){plain}(?![\w-])", folded))


def _unknown(text: str, folded: str, known: set[str]) -> tuple[str, ...]:
    """The names and numbers of the code that stand nowhere."""
    found: dict[str, None] = {}
    own = set(_VARIABLE.findall(text))
    bare = _COMMENT.sub(lambda match: " ".join(_NUMBER.findall(match[0])), _FILLABLE.sub(" ", text))
    for match in _TOKEN.finditer(bare):
        word = match[0].rstrip(".")
        free = word in known | own or word.casefold() in _PLAIN or word.partition(".")[0] in own
        if not free and not _stands_alone(word.casefold(), folded):
            found[word] = None
    return tuple(found)


def _is_precise(word: str, text: str) -> bool:
    """Whether it is a number, has dots or underscores in it, is called or is given a value."""
    return word.isdecimal() or bool(re.search(r"\w[._]\w", word) or re.search(rf"{re.escape(word)}\s?[(=]", text))


def _stands_alone(word: str, folded: str) -> bool:
    """Whether the sources have the word; a number not as a part of another one."""
    if not word.isdecimal():
        return word in folded
    return bool(re.search(rf"(?<![\d.,]){word}(?![\d]|[.,]\d)", folded))


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
            # A flag never fills a placeholder: it would change what the command does.
            found.append(re.compile(r"((?!-)[\w.@:/-]{1,80})".join(map(re.escape, parts))))
        if len(found) >= _MOST_COMMANDS:
            break
    return tuple(found)

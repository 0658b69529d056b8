"""Check that identifiers appear in the sources of a claim: flags, versions, paths, names, code, URLs.

An identifier must appear there, or in the question, as it is written except for case. A source's placeholder may be
filled in. Variables and comments of a code block belong to the writer. Linear in the text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from string import ascii_uppercase

from verification.evidence.evidence import MAX_VALUES, Certainty, Evidence, Finding, Kind
from verification.markup.lines import NON_EMPTY_LINE, is_code
from verification.markup.link_targets import normalise_url
from verification.values.identifiers import Identifier, missing_words, most_similar

_MIN_CODE_DIGITS = 3  # E4012 is a code, COVID-19 a name
# A writer may use an everyday command on a known address or file. A judge will see it.
_EVERYDAY = re.compile(r"curl|wget|http|bash|python3?|cat|cd|ls|grep|echo|export|-[A-Za-z]")
_MACHINE_WORD = re.compile(r".*[\d_./=:-].*|--?\w.*")
# Code may use any names. Addresses, paths and destructive commands must come from the source.
_ADDRESS = re.compile(
    r"(?P<url>https?://[^\s<>|\"'`)\]}]+|(?<![\w.@/-])(?:[a-z0-9-]{1,63}\.){1,8}(?:com|org|net|io|dev|example|sh|xyz|ru)"
    r"(?:/[^\s\"'`)]*)?(?![\w(]))"
    r"|(?P<flag>(?<![\w-])--[A-Za-z][\w-]*)"
    r"|(?P<path>(?<![\w/:<.~$}-])~?(?:/[\w.@*-]+){2,}/?)"
    r"|(?P<destroys>(?<![\w./-])(?:rm|dd|mkfs|shutdown|reboot|truncate|drop table|drop database|delete from|sudo|chmod"
    r"|--force)(?![\w-]))",
    re.IGNORECASE,
)
# Placeholders, the example hosts of RFC 2606, and this machine.
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
_MIN_COMMAND_WORDS = 3  # with two words it is unclear which one was altered
_MAX_NAMED = 3
_MAX_COMMANDS = 40  # commands and findings: a bound on the work


def identifier_findings(evidence: Evidence, urls: frozenset[str]) -> Iterator[Finding]:
    """Yield a finding for each identifier that no cited source has. ``urls`` are known links, normalised."""
    claimed = evidence.claim.identifiers[:MAX_VALUES]
    passages = (*(cited.passage for cited in evidence.cited), *evidence.known) if claimed else ()
    texts = [passage.normalised_text for passage in passages]
    inside_code: list[tuple[int, int]] = []
    for identifier in claimed:
        if any(start <= identifier.start < end for start, end in inside_code):
            continue
        if identifier.kind == "code":
            inside_code.append((identifier.start, identifier.end))
        missing = _missing_words(identifier, texts, urls)
        if missing and not _is_filled_in(identifier, evidence, missing):
            yield _finding(identifier, missing, evidence)


def _is_filled_in(identifier: Identifier, evidence: Evidence, missing: tuple[str, ...]) -> bool:
    """Return True for a source's command with its placeholders filled in, or one of the words filled in there."""
    texts = [passage.text for passage in evidence.passages]
    codes = [each.text for each in evidence.claim.identifiers[:MAX_VALUES] if each.kind == "code"]
    if identifier.kind == "code" and placeholder_values(identifier.text, texts):
        return True
    return all(any(word in placeholder_values(code, texts) for code in codes) for word in missing)


def _missing_words(identifier: Identifier, texts: list[str], urls: frozenset[str]) -> tuple[str, ...]:
    if identifier.kind == "url" and normalise_url(identifier.text) in urls:
        return ()
    best: tuple[str, ...] | None = None
    for text in texts:
        missing = missing_words(identifier, text)
        if not missing:
            return ()
        best = missing if best is None or len(missing) < len(best) else best
    return best or ()


def _certainty(identifier: Identifier, missing: tuple[str, ...], *, near: bool) -> Certainty:
    """Rate a missing identifier. A code span of plain words may only be emphasis."""
    words = identifier.text.split()
    if identifier.kind == "code" and len(words) > 1 and all(map(_EVERYDAY.fullmatch, missing)):
        return "doubtful"
    if near or identifier.kind == "url":
        return "certain"
    if identifier.kind == "code_number":
        # COVID-19 and U-30 are names. An error code has more digits.
        return "unfounded" if sum(map(str.isdigit, identifier.text)) >= _MIN_CODE_DIGITS else "doubtful"
    plain = identifier.kind == "code" and len(words) > 1 and not any(map(_MACHINE_WORD.fullmatch, words))
    return "doubtful" if plain else "unfounded"


def _finding(identifier: Identifier, missing: tuple[str, ...], evidence: Evidence) -> Finding:
    wrong = " ".join(missing)
    known = [each for cited in evidence.cited for each in cited.passage.identifiers]
    there = most_similar(wrong, known) or most_similar(identifier.text, known)
    where = evidence.name_sources()
    if there:
        detail, remedy = f"{where} has {there}, not {wrong}", f"Write {there} as {where} has it, or drop the sentence."
    else:
        detail, remedy = f"{wrong} is not in {where}", f"Drop {wrong}, or cite the source that states it."
    kind: Kind = "url" if identifier.kind == "url" else "identifier"
    certainty = _certainty(identifier, missing, near=bool(there))
    # Certainly wrong only if no source of the turn has it: the citation may be the wrong one.
    elsewhere = any(not missing_words(identifier, other.normalised_text) for other in evidence.others)
    if elsewhere or (identifier.kind == "version" and _is_same_release(wrong, there)):
        certainty = "doubtful"
    span = (identifier.start, identifier.end)
    return Finding(kind=kind, span=span, detail=detail, remedy=remedy, certainty=certainty)


def _is_same_release(one: str, other: str) -> bool:
    """Return True if one version is written shorter than the other: v1.4 and 1.4.0."""
    shorter, longer = sorted((f"{version.casefold().removeprefix('v')}." for version in (one, other)), key=len)
    return longer.startswith(shorter)


def code_findings(evidence: Evidence, texts: Iterable[str], urls: frozenset[str]) -> Iterator[Finding]:
    """Yield what a run of code has that no source (``texts``) and no message of the thread has."""
    known_texts = [*texts, *(passage.text for passage in evidence.known)]
    folded = "\n".join(known_texts).casefold()
    text = evidence.claim.text
    filled = {word for line in text.split("\n") for word in placeholder_values(line, known_texts)}
    where = evidence.name_sources()
    seen: set[str] = set()
    for match in _ADDRESS.finditer(text):
        address = match[0].rstrip(".,;:")
        if not (_FREE.fullmatch(address) or address in filled | seen or _is_known_address(address, folded, urls)):
            seen.add(address)
            if len(seen) <= _MAX_COMMANDS:
                detail, remedy = f"{address} is not in {where}", f"Drop {address}, or the code."
                yield Finding(kind="identifier", span=match.span(), detail=detail, remedy=remedy)
    altered = next(_altered_commands(text, known_texts, filled), None)
    if altered and not seen:
        span, wrong, right = altered
        detail, remedy = f"the source's command is: {right}", f"Write {right} as {where} has it, not {wrong}."
        yield Finding(kind="identifier", span=span, detail=detail, remedy=remedy)
        return
    unknown = _unknown_words(text, folded, filled | seen)
    if unknown and not seen:
        named = ", ".join(unknown[:_MAX_NAMED])
        detail = f"the code has {named}, which {where} does not show"
        # A shell command or a header may be adapted. A called or assigned name or a number may not.
        certainty: Certainty = "unfounded" if any(_is_precise(word, text) for word in unknown) else "doubtful"
        remedy = f"Show the code as {where} has it."
        yield Finding(kind="identifier", span=(0, len(text)), detail=detail, remedy=remedy, certainty=certainty)


def _altered_commands(text: str, known: list[str], filled: set[str]) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Yield lines that differ from a source's command in one unknown word: span, that word, the command."""
    commands = {command: command.split() for source in known for command in _source_commands(source)}
    whole = "\n".join(known)
    for line in NON_EMPTY_LINE.finditer(text):
        words = line[0].strip("$ \t").split()
        for command, command_words in commands.items():
            differing = [pair for pair in zip(words, command_words, strict=False) if pair[0] != pair[1]]
            if len(command_words) != len(words) or len(differing) != 1:
                continue
            wrong, right = differing[0]
            free = _FILLABLE.search(right) or _FREE.fullmatch(wrong) or wrong in filled
            if not free and not re.search(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", whole):
                yield line.span(), wrong, command


def _source_commands(source: str) -> Iterator[str]:
    """Yield the commands of a source: its code spans and its lines of code."""
    for match in _SPAN.finditer(source):
        command = " ".join((match[1] or match[2]).strip("$ ").split())
        if len(command.split()) >= _MIN_COMMAND_WORDS and (match[1] or is_code(command)):
            yield command


def _is_known_address(address: str, folded: str, urls: frozenset[str]) -> bool:
    """Return True if the sources have the address as a whole word, or it is a source's own address."""
    plain = re.escape(address.casefold().rstrip("/"))
    return normalise_url(address) in urls or bool(re.search(rf"(?<![\w-]){plain}(?![\w-])", folded))


def _unknown_words(text: str, folded: str, known: set[str]) -> tuple[str, ...]:
    """The names and numbers of the code that appear in no source."""
    words: dict[str, None] = {}
    variables = set(_VARIABLE.findall(text))
    bare = _COMMENT.sub(lambda match: " ".join(_NUMBER.findall(match[0])), _FILLABLE.sub(" ", text))
    for match in _TOKEN.finditer(bare):
        word = match[0].rstrip(".")
        free = word in known | variables or word.casefold() in _PLAIN or word.partition(".")[0] in variables
        if not free and not _is_known_word(word.casefold(), folded):
            words[word] = None
    return tuple(words)


def _is_precise(word: str, text: str) -> bool:
    """Return True for a number, a dotted name, or a name that is called or assigned to."""
    return word.isdecimal() or bool(re.search(r"\w[._]\w", word) or re.search(rf"{re.escape(word)}\s?[(=]", text))


def _is_known_word(word: str, folded: str) -> bool:
    """Return True if the sources have the word. A number must not be part of another number."""
    if not word.isdecimal():
        return word in folded
    return bool(re.search(rf"(?<![\d.,]){word}(?![\d]|[.,]\d)", folded))


def placeholder_values(line: str, texts: Iterable[str]) -> frozenset[str]:
    """The words with which ``line`` fills the placeholders of a command in ``texts``. Empty without one."""
    command = " ".join(line.strip("` \t$").split())
    for text in texts:
        for pattern in _placeholder_patterns(text):
            match = pattern.fullmatch(command)
            if match:
                return frozenset({word for group in match.groups() for word in (group, *group.split())})
    return frozenset()


@lru_cache(maxsize=64)
def _placeholder_patterns(text: str) -> tuple[re.Pattern[str], ...]:
    """Patterns for the commands of a text that have placeholders. Cached: a turn keeps its sources."""
    patterns: list[re.Pattern[str]] = []
    for match in _SPAN.finditer(text) if _FILLABLE.search(text) else ():
        command = " ".join((match[1] or match[2]).strip("$ ").split())
        parts = _FILLABLE.split(command)
        if 1 < len(parts) <= _MAX_NAMED * 3 and re.search(r"\w", parts[0]):
            # A flag never fills a placeholder: it would change what the command does.
            patterns.append(re.compile(r"((?!-)[\w.@:/-]{1,80})".join(map(re.escape, parts))))
        if len(patterns) >= _MAX_COMMANDS:
            break
    return tuple(patterns)

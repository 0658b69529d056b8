"""Check that identifiers appear in the sources of a claim: flags, versions, paths, names, code, URLs.

An identifier must appear there or in the question, as it is written except for case. A source's placeholder may be
filled in. Variables and comments in a code block may be the writer's own. Linear in the text.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import islice
from string import ascii_uppercase

from verification.evidence.evidence import MAX_VALUES, Certainty, Evidence, Finding
from verification.markup.lines import NON_EMPTY_LINE, is_code
from verification.markup.links import normalise_url
from verification.values.identifiers import Identifier, missing_words, most_similar

_MIN_CODE_DIGITS = 3  # E4012 is a code, COVID-19 a name
# A writer may use an everyday command with a known address or file. A judge will check it.
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
_MIN_COMMAND_WORDS = 3  # if there are two words, it is unclear which one was altered
_MAX_NAMED = 3
_MAX_COMMANDS = 40  # maximum commands and findings, to limit the work


def identifier_findings(evidence: Evidence, urls: frozenset[str]) -> Iterator[Finding]:
    """Yield a finding for each identifier that no cited source has. ``urls`` are known links, normalised."""
    code_end, identifiers = 0, evidence.claim.identifiers[:MAX_VALUES]
    texts = [passage.text for passage in evidence.cited_and_known]
    for identifier in identifiers:
        if identifier.start < code_end or (identifier.kind == "url" and normalise_url(identifier.text) in urls):
            continue
        code_end = identifier.end if identifier.kind == "code" else code_end
        missing = min((missing_words(identifier, each.normalised_text) for each in evidence.cited_and_known), key=len)
        if not missing or (identifier.kind == "code" and placeholder_values(identifier.text, texts)):
            continue
        filled = [placeholder_values(each.text, texts) for each in identifiers if each.kind == "code"]
        if not all(any(word in values for values in filled) for word in missing):
            yield _finding(identifier, " ".join(missing), evidence)


def _finding(identifier: Identifier, wrong: str, evidence: Evidence) -> Finding:
    known = [each for cited in evidence.cited for each in cited.passage.identifiers]
    there = most_similar(wrong, known) or most_similar(identifier.text, known)
    where = evidence.name_sources()
    if there:
        detail, remedy = f"{where} has {there}, not {wrong}", f"Write {there} as {where} has it, or drop the sentence."
    else:
        detail, remedy = f"{wrong} is not in {where}", f"Drop {wrong}, or cite the source that states it."
    certainty = _certainty(identifier, wrong, near=bool(there))
    # It is certainly wrong only if no source of the turn has it, because the citation may be the wrong one.
    elsewhere = any(not missing_words(identifier, other.normalised_text) for other in evidence.others)
    # v1.4 is a short form of the release 1.4.0.
    shorter, longer = sorted((f"{version.casefold().removeprefix('v')}." for version in (wrong, there)), key=len)
    if elsewhere or (identifier.kind == "version" and longer.startswith(shorter)):
        certainty = "doubtful"
    span = (identifier.start, identifier.end)
    return Finding(span=span, detail=detail, remedy=remedy, certainty=certainty)


def _certainty(identifier: Identifier, wrong: str, *, near: bool) -> Certainty:
    """Rate a missing identifier. A code span of plain words may only be emphasis."""
    words = identifier.text.split()
    is_code = identifier.kind == "code" and len(words) > 1
    if is_code and all(map(_EVERYDAY.fullmatch, wrong.split())):
        return "doubtful"
    if near or identifier.kind == "url":
        return "certain"
    # COVID-19 and U-30 are names; error codes have more digits.
    is_name = identifier.kind == "code_number" and sum(map(str.isdigit, identifier.text)) < _MIN_CODE_DIGITS
    is_plain = is_code and not any(map(_MACHINE_WORD.fullmatch, words))
    return "doubtful" if is_name or is_plain else "unfounded"


def code_findings(evidence: Evidence, texts: Iterable[str], urls: frozenset[str]) -> Iterator[Finding]:
    """Yield the parts of a run of code that are neither in a source (``texts``) nor in a message of the thread."""
    known_texts = [*texts, *(passage.text for passage in evidence.known)]
    folded = "\n".join(known_texts).casefold()
    text = evidence.claim.text
    filled = {word for line in text.split("\n") for word in placeholder_values(line, known_texts)}
    where = evidence.name_sources()
    addresses = {match[0].rstrip(".,;:"): match.span() for match in reversed([*_ADDRESS.finditer(text)])}
    unknown = [
        address
        for address in reversed(addresses)
        if not (_FREE.fullmatch(address) or address in filled or normalise_url(address) in urls)
        and not re.search(rf"(?<![\w-]){re.escape(address.casefold().rstrip('/'))}(?![\w-])", folded)
    ]
    for address in unknown[:_MAX_COMMANDS]:
        detail, remedy = f"{address} is not in {where}", f"Drop {address}, or the code."
        yield Finding(span=addresses[address], detail=detail, remedy=remedy)
    if unknown:
        return
    if altered := next(_altered_commands(text, known_texts, filled), None):
        span, wrong, right = altered
        detail, remedy = f"the source's command is: {right}", f"Write {right} as {where} has it, not {wrong}."
        yield Finding(span=span, detail=detail, remedy=remedy)
    elif words := _unknown_words(text, folded, filled):
        detail = f"the code has {', '.join(words[:_MAX_NAMED])}, which {where} does not show"
        # A shell command or a header may be adapted, but not a number, or a dotted, called or assigned name.
        is_precise = any(word.isdecimal() or re.search(r"\w[._]\w", word) for word in words)
        is_precise = is_precise or any(re.search(rf"{re.escape(word)}\s?[(=]", text) for word in words)
        certainty: Certainty = "unfounded" if is_precise else "doubtful"
        remedy = f"Show the code as {where} has it."
        yield Finding(span=(0, len(text)), detail=detail, remedy=remedy, certainty=certainty)


def _altered_commands(text: str, known: list[str], filled: set[str]) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Yield lines that differ from a source's command in one unknown word: the span, the word, the command."""
    found = (command for source in known for command in _commands(source))
    commands = [(said, said.split()) for said, is_line in found if not is_line or is_code(said)]
    known_text = "\n".join(known)
    for line in NON_EMPTY_LINE.finditer(text):
        words = line[0].strip("$ \t").split()
        for command, command_words in commands:
            differing = [pair for pair in zip(words, command_words, strict=False) if pair[0] != pair[1]]
            if len(words) < _MIN_COMMAND_WORDS or len(command_words) != len(words) or len(differing) != 1:
                continue
            wrong, right = differing[0]
            free = _FILLABLE.search(right) or _FREE.fullmatch(wrong) or wrong in filled
            if not free and not re.search(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", known_text):
                yield line.span(), wrong, command


def _commands(source: str) -> Iterator[tuple[str, bool]]:
    """Yield the code spans and the possible command lines of a source, with True for a line."""
    for match in _SPAN.finditer(source):
        yield " ".join((match[1] or match[2]).strip("$ ").split()), not match[1]


def _unknown_words(text: str, folded: str, known: set[str]) -> tuple[str, ...]:
    variables = set(_VARIABLE.findall(text))
    bare = _COMMENT.sub(lambda match: " ".join(_NUMBER.findall(match[0])), _FILLABLE.sub(" ", text))
    words = dict.fromkeys(match.rstrip(".") for match in _TOKEN.findall(bare))
    unknown: list[str] = []
    for word in words:
        if word in known | variables or word.casefold() in _PLAIN or word.partition(".")[0] in variables:
            continue
        # A number must not be part of another number.
        number = word.isdecimal() and re.search(rf"(?<![\d.,]){word}(?![\d]|[.,]\d)", folded)
        if not (number or (not word.isdecimal() and word.casefold() in folded)):
            unknown.append(word)
    return tuple(unknown)


def placeholder_values(line: str, texts: Iterable[str]) -> frozenset[str]:
    """The words that ``line`` puts for the placeholders of a command in ``texts``; none if no command fits."""
    command = " ".join(line.strip("` \t$").split())
    matches = (pattern.fullmatch(command) for text in texts for pattern in _placeholder_patterns(text))
    groups = next((match.groups() for match in matches if match), ())
    return frozenset({word for group in groups for word in (group, *group.split())})


@lru_cache(maxsize=64)  # a turn keeps its sources
def _placeholder_patterns(text: str) -> tuple[re.Pattern[str], ...]:
    commands = (_FILLABLE.split(command) for command, _ in _commands(text)) if _FILLABLE.search(text) else ()
    fillable = (parts for parts in commands if 1 < len(parts) <= _MAX_NAMED * 3 and re.search(r"\w", parts[0]))
    # A flag never fills a placeholder: it would change what the command does.
    value = r"((?!-)[\w.@:/-]{1,80})"
    return tuple(re.compile(value.join(map(re.escape, parts))) for parts in islice(fillable, _MAX_COMMANDS))

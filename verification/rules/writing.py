"""How an answer is written: well formed, not empty, long enough, about the question, coherent.

``well_formed`` reports everything that ``mrkdwn.repair`` would repair, and also faults that are never repaired: leaked
prompt tags and JSON, and a text longer than Slack accepts. Of the rules on the whole answer only ``not_empty`` is an
error. An answer addresses a question if they share content words. Inflections count, and so do synonyms from titles and
headings of the cited sources.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from html import unescape
from typing import Final

from verification.markup.blocks import survey
from verification.markup.chunks import CHUNK_LIMITS
from verification.markup.inline import HTML_TAGS, LEAKED_NAME, LEAKED_TAG
from verification.markup.lines import ANY_CITATION
from verification.markup.mrkdwn import find_control_characters
from verification.markup.scanner import FormFault, segments
from verification.markup.serialised import is_sentence, is_serialised, unwrap
from verification.rules.references import cited_sources
from verification.text.language import compile_pattern, content_stems, detect_language, load_table, values_by_language
from verification.types import Dialect, Reading, RuleName, Violation

_RULES: dict[str, RuleName] = {"bold": "no_markdown_bold", "quote": "no_blockquotes"}
# Repair improves these, but Slack shows them well enough: they are not violations.
_POLISH = frozenset({"list", "backslash", "code", "line end"})
_MAY_LEAK = re.compile(r"<(?!https?://)|&lt;|[{◁]|\[/?think", re.IGNORECASE)
_ESCAPED_TAG = re.compile(rf"&lt;/?(?:{LEAKED_NAME})(?:\s[^<>\n]{{0,200}}?)?&gt;", re.IGNORECASE)
_JSON = re.compile(r"\{\s*\"[\w .-]{1,60}\"\s*:")
# A user may ask for JSON in a code block. There only JSON of a decision is a leak.
_MACHINE_JSON = re.compile(
    r"\{\s*\"action\"\s*:\s*\"(?:respond|complete|finish_step|ask_user|use_tool|call_tool)\""
    r"|\{\s*\"(?:tool|name)\"\s*:\s*\"[^\"\n]{1,60}\"\s*,\s*\"(?:input|arguments|parameters)\"\s*:\s*\{"
    r"|\{\s*\"(?:thought|thinking|reasoning)\"\s*:"
)
_ANY_TAG = re.compile(r"(?P<bracket>[<\[{◁])\s?(?P<slash>/?)\s?(?P<name>[^\W\d][\w:. -]{0,40})[>\]}▷](?!\()")
_OPENED_TEXT = re.compile(r"\w|\s*\n")
_MAX_LOOK = 400  # characters after a tag
_NAME_IN_TAG = re.compile(r"(?:[<\[{]|&lt;)/?([^\W\d][\w:.-]{0,40})")
_LEAKS_IN_TEXT = (("tag", LEAKED_TAG), ("tag", _ESCAPED_TAG), ("json", _JSON))
_LEAKS_IN_CODE = (("json", _MACHINE_JSON),)


def well_formed(reading: Reading) -> Iterator[Violation]:
    """Yield the formatting faults of the text and of each chunk. A fault only in a chunk is located by its words."""
    draft, limit = reading.draft, CHUNK_LIMITS[reading.draft.dialect]
    only_there = [each for chunk in reading.chunks for each in violations(chunk, draft.dialect, limit=limit)]
    unwrapped = unwrap(draft.text)[0] if draft.repair else draft.text
    unwrapped, texts = unescape(unwrapped), [draft.question, draft.known_text, *(each.text for each in draft.sources)]
    only_there += [_violation(unwrapped, fault) for fault in _wrapping_tags(unwrapped, texts)]
    if draft.repair and reading.chunks and not only_there:
        # Only the chunks are sent. In the model's own text a tag may leak that repair has hidden in a table.
        leaks = _leaks(draft.text) if "<" in draft.text and "|" in draft.text else ()
        only_there = [_violation(draft.text, fault) for fault in leaks if fault.kind == "tag"]
    else:
        in_text = violations(reading.text, draft.dialect, limit=0)
        yield from in_text
        known = {(each.rule, each.words) for each in in_text}
        only_there = [each for each in only_there if (each.rule, each.words) not in known]
    for each in only_there:
        at = reading.text.find(each.words) if each.words else -1
        yield replace(each, start=max(at, 0), end=at + len(each.words) if at >= 0 else len(reading.text))


def violations(text: str, dialect: Dialect = "mrkdwn", *, limit: int = CHUNK_LIMITS["mrkdwn"]) -> tuple[Violation, ...]:
    """Return the formatting faults in order. ``limit`` is for one chunk, in characters; 0 means no limit."""
    even = text.replace("\r\n", "\n").replace("\r", "\n")
    places: Sequence[int] = range(len(text) + 1)
    if even != text:  # the place in the text of each character
        places = [at for at in places if text[at - 1 : at + 1] != "\r\n"]
    found = (*survey(even, dialect).faults, *_leaks(even))
    faults = (FormFault(kind, places[start], places[end]) for kind, start, end in found)
    reported = [each for each in (*find_control_characters(text)[1], *faults) if each.kind not in _POLISH]
    if limit and len(text) > limit:
        reported.append(FormFault("length", limit, len(text)))
    reported.sort(key=lambda fault: (fault.start, fault.end))
    return tuple(_violation(text, fault) for fault in reported)


def _violation(text: str, fault: FormFault) -> Violation:
    what, remedy = load_table(__file__)[fault.kind]
    rule, span = _RULES.get(fault.kind, "mrkdwn"), (fault.start, fault.end)
    return Violation.found_in(text, span, rule, f"{fault.kind}: {what}", remedy)


def _leaks(text: str) -> Iterator[FormFault]:
    """Yield leaked tags and JSON outside code, and inside code only JSON that no user would ask for."""
    if is_serialised(text):
        yield FormFault("json", 0, len(text))
    if not _MAY_LEAK.search(text):
        return
    for kind, start, end in segments(text):
        for leak, pattern in _LEAKS_IN_TEXT if kind == "text" else _LEAKS_IN_CODE:
            yield from (FormFault(leak, *match.span()) for match in pattern.finditer(text, start, end))


def _wrapping_tags(text: str, texts: Iterable[str]) -> Iterator[FormFault]:
    """Yield each tag around a sentence or at the beginning, as models mark thoughts; not HTML or one of ``texts``."""
    parts = [(start, end) for kind, start, end in segments(text) if kind == "text"]
    tags = [tag for span in parts for tag in _ANY_TAG.finditer(text, *span)]
    known = HTML_TAGS | {name.lower() for page in texts for name in _NAME_IN_TAG.findall(page)} if tags else ()
    opened: dict[str, re.Match[str]] = {}
    closed = {tag["bracket"] + tag["name"] for tag in tags if tag["slash"]}
    for tag in (each for each in tags if each["name"].lower() not in known):
        name, is_angle = tag["bracket"] + tag["name"], tag["bracket"] == "<"
        if not tag["slash"]:
            opened[name] = tag
            # A placeholder may begin a sentence: "<name> is ...".
            begins = tag is tags[0] and is_angle and not text[: tag.start()].strip()
            if begins and name not in closed and _OPENED_TEXT.match(text, tag.end()):
                yield FormFault("tag", *tag.span())
        elif name in opened or is_angle:
            opening = opened.pop(name, None)
            at = opening.end() if opening else 0
            if is_sentence(_ANY_TAG.sub(" ", text[at : min(tag.start(), at + _MAX_LOOK)])):  # "<port>80</port>" is XML
                yield from (FormFault("tag", *each.span()) for each in (opening, tag) if each)


_MAX_MINIMUM: Final = 50
_VISIBLE: Final = re.compile("[^\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufffc]")
_HEADING: Final = re.compile(r"^\s{0,3}#{1,6}\s+(.{1,200})$|^\*{1,2}([^*\n]{1,120})\*{1,2}$", re.MULTILINE)
_WORD: Final = re.compile(r"[^\W_]+")
_NUMBER: Final = re.compile(r"(?<![\w.,-])([$€£¥]?)([0-9][0-9.,]{0,20}|[0-9])(?=(\s?(?:%|[^\W\d_]+))?)")
_MIN_LETTERS: Final = 20
# Case-sensitive: "Vitamin A" ends in a name.
_OPEN_END: Final = r"(?-i:(?:[,(\[{–—]|\s-|\b(?:{open_ends}))$|(?:[、，（「『]|(?:{open_ends_unparted}))$)"
_PRONOUN: Final = r"(?:{pronouns})\b|{pronouns_unparted}"
_LANGUAGE_NAMED: Final = r"\b(?:{language_names})\b|{language_names_unparted}"


def not_empty(reading: Reading) -> Iterator[Violation]:
    """Yield an error if nothing is visible, for example only white space or zero-width letters."""
    if not _VISIBLE.search(reading.text):
        yield reading.violation("not_empty", (0, len(reading.text)), "The answer is empty.", "Write the answer.")


def minimum_length(reading: Reading) -> Iterator[Violation]:
    """Yield a warning if the answer is shorter than the question, up to 50 characters."""
    least = min(len(reading.draft.question.strip()), _MAX_MINIMUM)
    if 0 < (seen := len(reading.text.strip())) < least:
        detail = f"The answer has {seen} characters, fewer than the {least} to expect."
        yield reading.warning("minimum_length", (0, len(reading.text)), detail, "Answer in a full sentence.")


def addresses_question(reading: Reading) -> Iterator[Violation]:
    """Yield a warning if neither the answer nor the titles it cites share a content word with the question."""
    draft = reading.draft
    if draft.own_words or not reading.claims:
        return
    language = detect_language(draft.question) or detect_language(reading.prose)
    asked = content_stems(draft.question, language)
    if not asked or asked & content_stems(reading.text, language):
        return
    cited = cited_sources(draft, reading.text)
    headings = (match[1] or match[2] for source in cited for match in _HEADING.finditer(source.text))
    titles = " ".join([*(source.title for source in cited), *headings])
    if not asked & content_stems(titles, detect_language(titles) or language):
        detail = "No content word of the question appears in the answer."
        remedy = "Answer the question that was asked, in its own terms."
        yield reading.warning("addresses_question", (0, len(reading.text)), detail, remedy)


def coherent(reading: Reading) -> Iterator[Violation]:
    """Yield warnings for repeated sentences, a broken-off end, contradicting numbers and another language."""
    yield from _repetitions(reading)
    prose, question = reading.prose.rstrip(), reading.draft.question
    last = prose.rsplit("\n", 1)[-1]
    plain = ANY_CITATION.sub("", last).rstrip().rstrip("*_~").rstrip()
    open_end = len(plain) > 1 and compile_pattern(_OPEN_END).search(plain[-_MIN_LETTERS:])
    if open_end and not reading.text.rstrip().endswith("`"):  # a word or sign after which more must follow
        span, remedy = (len(prose) - len(last), len(prose)), "Finish the sentence, or end before it."
        yield reading.warning("coherent", span, "The answer breaks off here.", remedy)
    asked = detect_language(question)
    # A question about languages may want another one.
    if reading.draft.own_words or asked is None or compile_pattern(_LANGUAGE_NAMED).search(question):
        return
    if (given := detect_language(reading.prose)) not in {None, asked}:
        names = values_by_language("name")
        detail = f"The question is in {names[asked]}, the answer in {names[given]}."
        yield reading.warning("coherent", (0, len(reading.text)), detail, f"Answer in {names[asked]}.")


def _repetitions(reading: Reading) -> Iterator[Violation]:
    """Yield sentences that occur twice, and those with the same words and another figure."""
    seen: set[str] = set()
    figures: dict[str, set[str]] = defaultdict(set)
    for claim in reading.claims:
        text, span = ANY_CITATION.sub("", claim.text), (claim.start, claim.end)
        words = " ".join(_WORD.findall(text.casefold()))
        if len(words) >= _MIN_LETTERS and words in seen:
            yield reading.warning("coherent", span, "This sentence has been said before.", "Say it once.")
        seen.add(words)
        subject, figure = _figure(text)
        if figure and figures[subject] - {figure}:
            detail = f"The same is said with {min(figures[subject] - {figure})} before and with {figure} here."
            remedy = "Say which figure holds, or name both sources and that they differ."
            yield reading.warning("coherent", span, detail, remedy)
        figures[subject].add(figure)


def _figure(text: str) -> tuple[str, str]:
    """The last figure and the remaining words; both empty unless the figure has a unit, percent sign or currency."""
    last = next(reversed([*_NUMBER.finditer(text)]), None)
    if last is None or not (last[1] or last[3]):
        return "", ""
    subject = " ".join(_WORD.findall(f"{text[: last.start()]} # {text[last.end() :]}".casefold()))
    enough = len(subject) >= _MIN_LETTERS / 2 and not compile_pattern(_PRONOUN).match(subject)
    return (subject, last[0].rstrip(".,")) if enough else ("", "")

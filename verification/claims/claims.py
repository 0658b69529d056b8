"""The claims of an answer: the sentences that state something, each with the citations to check.

A sentence without a citation takes those of its paragraph, list item, list or table. List items, table rows and lines
of code blocks count as sentences. Greetings, questions, offers, headings and introductions are not claims unless they
state something. Spans refer to the given text. Citations inside code do not count. Linear in the text.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice, pairwise, takewhile
from operator import attrgetter
from typing import Literal, NamedTuple

from verification.claims.small_talk import (
    digits,
    goes_on_to_state,
    is_bare_answer,
    is_interjection,
    is_sentence,
    label_end,
    opens_with_sentence,
    own_digits,
    states_nothing,
)
from verification.evidence.passages import clean_text, sentence_spans
from verification.markup.lines import CITATION, TextLine, cited_numbers, code_runs, ends_in_colon, lines
from verification.markup.lines import Kind as LineKind
from verification.text.language import compile_pattern, content_stems
from verification.types import Claim

Kind = Literal["text", "intro", "heading", "item", "lead", "row", "head"]
"""Position of a sentence: prose, prose before a colon, heading, list item, item that introduces others, row, header."""

_LISTED: frozenset[Kind] = frozenset({"item", "lead", "row", "head"})
_NO_GROUP = -1
_MAX_SECTION = 60  # maximum sentences: a longer section would make this quadratic
_VALUE = re.compile(r"[\d`\"“”„«»「」『』]|://")
_HIDDEN = re.compile(r"`[^`\n]*`|<[^<>\n]*>|https?://\S+")
# A bold line that ends like a sentence or an introduction is not a heading.
_BOLD_SENTENCE = re.compile(r"\*.*(?:[.!?。！？:：]\*{1,2}|\*:)")
_ONLY_LABEL = re.compile(
    r"(?:\W*(?:sources?|quellen?|fuentes?|sumber|see|siehe|voir|véase|lihat|出典|来源|参考))?\W*", re.IGNORECASE
)
_MARKS = re.compile(r"[*_~\s]+")
_BARE_LINK = re.compile(r"(?<![`|<\w])(?:<https?://[^\s<>|]+>|https?://[^\s<>|`]+)")
_TWO_WORDS = re.compile(r"[^\W_][\W_]+[^\W_]")
_ASKS = re.compile("[?？]")
_LEADING_CITATIONS = re.compile(r"(?:\[[\d\s,;–-]+\]\s*)+")
_CJK = re.compile("[\u3040-\u30ff\u3400-\u9fff]")
_NEXT_STEPS = r"[\s*_#]*(?:[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]\s?)?(?:{next_steps})[\s*_]*[:：]?[\s*_]*"
_TITLES: frozenset[Kind] = frozenset({"heading", "head"})
_INTRODUCING: frozenset[Kind] = frozenset({"intro", "lead"})
_APART: frozenset[Kind | None] = frozenset({"heading", "head", "row"})
_ITEMS: frozenset[Kind | None] = frozenset({"item", "lead"})
_KINDS: dict[LineKind, Kind] = {"text": "text", "heading": "heading", "item": "item", "row": "row", "head": "head"}
_NO_LINE = TextLine(0, 0, "blank", 0)


class Sentence(NamedTuple):
    """A sentence with the citations inside it."""

    start: int
    end: int
    kind: Kind
    group: int  # the same for the whole paragraph, list item or row
    indent: int  # of its line
    cited: tuple[int, ...]
    states: bool
    refers: bool  # only a citation or a link, which belongs to the text before


def claims(text: str, known: str = "", *, has_judge: bool = False) -> tuple[Claim, ...]:
    """Return the sentences of ``text`` that state something, in order, with the sources each cites or shares.

    ``known`` is text whose numbers are not new: the question, the thread. ``has_judge``: there is a judge, so it
    decides on an opening or closing without a citation.
    """
    plain = clean_text(text)
    lined = [*lines(plain)]
    places = _classify_lines(plain, lined)
    # Otherwise the order of sentences would decide whether an answer passes (docs/decisions/0034).
    sentences = _share_citations([sentence for place in places for sentence in _sentences(plain, *place)])
    own_starts = {each.end: each.start for each in sentences}  # without the words that are joined to them
    if has_judge:
        sentences = _join_answer_words(_cite_edges(sentences, plain), plain)
        sentences = _state_open_words(sentences, plain)
    sentences = _find_hidden_statements(plain, _free_next_steps(sentences, plain, has_judge=has_judge), known)
    if not any(each.states for each in sentences):  # then headings are statements, and so is a bare yes or no
        only_headings = all(each.kind in _TITLES for each in sentences)
        states = only_headings or all(is_bare_answer(plain[each.start : each.end]) for each in sentences)
        sentences = [each._replace(states=states) for each in sentences]
    heads = _heads(sentences, text)
    stated = (
        Claim(
            text=text[each.start : each.end],
            start=each.start,
            end=each.end,
            cited=each.cited,
            head=heads.get(each.start, ""),
            opening=max(0, own_starts.get(each.end, 0) - each.start),
        )
        for each in sentences
        if each.states and each.end > each.start
    )
    return tuple(sorted([*stated, *_code_claims(text, lined, sentences)], key=attrgetter("start")))


def _code_claims(text: str, lined: Sequence[TextLine], sentences: list[Sentence]) -> Iterator[Claim]:
    for line in (each for each in lined if each.kind == "fence"):
        body = text[line.content : line.end].rstrip().removesuffix("```")
        for start, end, is_code in code_runs(body, line.content):
            cited = _citations_around(sentences, start, end)
            yield Claim(text=text[start:end], start=start, end=end, cited=cited, code=is_code)


def _heads(sentences: Sequence[Sentence], text: str) -> dict[int, str]:
    """The header of its table for each row, by the row's start."""
    heads: dict[int, str] = {}
    head = ""
    for each in sentences:
        if each.kind == "row":
            heads[each.start] = head
        else:
            head = text[each.start : each.end] if each.kind == "head" else ""
    return heads


def _citations_around(sentences: list[Sentence], start: int, end: int) -> tuple[int, ...]:
    """The citations near a code block: right after it, before it, in its section, or anywhere."""
    place = bisect_left(sentences, start, key=lambda sentence: sentence.start)
    after = sentences[place : place + _MAX_SECTION]
    before = sentences[max(0, place - _MAX_SECTION) : place]
    # "Source: [2]" right below the block refers to it.
    following = next((sentence for sentence in after if sentence.start >= end), None)
    if following and following.cited and following.kind != "heading" and not following.states:
        return following.cited
    for sentence in reversed(before):
        if sentence.cited:
            return sentence.cited
        if sentence.kind == "heading":
            break
    return _all_cited((*after, *before))


def _classify_lines(text: str, lined: list[TextLine]) -> Iterator[tuple[TextLine, Kind, int]]:
    """Yield the lines that may contain sentences, each with its kind and the group with which it shares citations."""
    group = 0
    above, kind_above = _NO_LINE, None
    for line, below in pairwise([*lined, _NO_LINE]):
        written = text[line.start : line.end]
        kind = _KINDS.get(line.kind)
        if kind is None:
            group += 1
        else:
            if kind == "heading" and _BOLD_SENTENCE.fullmatch(CITATION.sub("", written).strip()):
                kind = "text"
            if kind == "text" and line.indent and (kind_above in _ITEMS or above.indent):
                kind = "item"  # a continuation line of an item
            if kind == "item" and (ends_in_colon(written) or (below.kind == "item" and below.indent > line.indent)):
                kind = "lead"
            group += line.content > line.start or kind in _APART or kind_above in _APART
            yield line, kind, group
        above, kind_above = line, kind


def _sentences(text: str, line: TextLine, kind: Kind, group: int) -> Iterator[Sentence]:
    piece = text[line.content : line.end].replace("\n", " ")
    bare = piece.strip()
    whole = (piece.find(bare), piece.find(bare) + len(bare))
    spans = [whole] if kind in {"row", "head"} else cited_sentence_spans(piece)
    for start, end in spans:
        written = piece[start:end]
        shown = CITATION.findall(_HIDDEN.sub(" ", written)) if "[" in written else ()
        cited = tuple(dict.fromkeys(number for inside in shown for number in cited_numbers(inside)))
        bare = CITATION.sub("", written) if cited else written
        introduces = end == spans[-1][1] and kind == "text" and ends_in_colon(bare)
        role: Kind = "intro" if introduces else kind
        yield Sentence(
            start=line.content + start,
            end=line.content + end,
            kind=role,
            group=group,
            indent=line.indent,
            cited=cited,
            states=_is_statement(bare, role, cited=bool(cited)),
            refers=bool(cited) and _is_only_label(_BARE_LINK.sub("", bare)),
        )


def cited_sentence_spans(line: str) -> list[tuple[int, int]]:
    """The spans of a line's sentences, each with its citations, including those after its full stop."""
    language = None if line.isascii() else "ja" if _CJK.search(line) else "de"
    spans: list[tuple[int, int]] = []
    for start, end in sentence_spans(line, language):
        head = _LEADING_CITATIONS.match(line, start, end) if spans else None
        following = line[head.end() : head.end() + 1] if head else ""
        if head is None or following.islower() or following in ",;":  # or nothing follows on the line
            spans.append((start, end))
        else:
            spans[-1] = (spans[-1][0], start + len(head.group().rstrip()))
            spans += [(head.end(), end)] if head.end() < end else []
    return spans


def _is_only_label(bare: str) -> bool:
    return not _TWO_WORDS.search(bare) and bool(_ONLY_LABEL.fullmatch(_MARKS.sub(" ", bare)))


def _is_statement(bare: str, kind: Kind, *, cited: bool) -> bool:
    if kind in _TITLES or _is_only_label(bare):
        return False
    if kind == "row":
        bare = bare.replace("?", " ").replace("？", " ")  # its cells ask nothing
    return cited or not (
        kind in _INTRODUCING or states_nothing(bare) or (kind not in _LISTED and is_interjection(bare))
    )


def _find_hidden_statements(text: str, sentences: list[Sentence], known: str) -> list[Sentence]:
    """Find sentences that state something although they do not look like it. Headings then lose their label."""
    silent = [index for index, sentence in enumerate(sentences) if not sentence.states and not sentence.refers]
    bare_texts = {i: CITATION.sub("", text[sentences[i].start : sentences[i].end]) for i in silent}
    own_numbers = {i: own_digits(words) for i, words in bare_texts.items()}
    known_numbers: frozenset[str] = frozenset()
    if any(own_numbers.values()):
        known_numbers = digits(known).union(*(digits(text[s.start : s.end]) for s in sentences if s.cited and s.states))
    for i in silent:
        start, end, kind, *_ = sentences[i]
        introduces = kind in _INTRODUCING
        says = (kind == "heading" and is_sentence(bare_texts[i])) or (introduces and opens_with_sentence(bare_texts[i]))
        # "There are 3 steps:" states nothing new above a list of three items.
        below = takewhile(lambda each: each.kind in _LISTED, islice(sentences, i + 1, None)) if introduces else ()
        lengths = {str(count) for count in Counter({each.group: each.indent for each in below}.values()).values()}
        if says or own_numbers[i] - known_numbers - lengths:
            label = label_end(text[start:end]) if kind == "heading" else 0
            sentences[i] = sentences[i]._replace(start=start + label if start + label < end else start, states=True)
    return sentences


def _share_citations(sentences: Sequence[Sentence]) -> list[Sentence]:
    """Give each sentence its citations. A heading or an introduction gets those of the text below it."""
    groups = [[*group] for _, group in groupby(sentences, key=lambda each: each.group)]
    grouped = [each for group in groups for each in _cite_by(group, group)]
    # A block is all sentences of a list, a table or a paragraph.
    parts = groupby(grouped, key=lambda each: _NO_GROUP if each.kind in _LISTED else each.group)
    blocks = [[*part] for _, part in parts]
    for index, block in enumerate(blocks):
        before = blocks[index - 1] if index else []
        after = blocks[index + 1] if index + 1 < len(blocks) else []
        if block[0].kind in _LISTED:
            blocks[index] = [*_cite_items(block, before, after)]
        elif _is_reference(after):
            blocks[index] = _cite_by(block, after)
    # Headings get the citations of their section, and introductions those of the list, table or code below.
    section: list[Sentence] = []
    for index, block in reversed([*enumerate(blocks)]):
        below = blocks[index + 1] if index + 1 < len(blocks) else []
        if block[0].kind == "heading":
            blocks[index] = _cite_by(block, section)
            section = []
        elif below and (below[0].kind in _LISTED or block[-1].kind == "intro"):
            blocks[index] = _cite_by(block, below)
        section = [*blocks[index][:_MAX_SECTION], *section][:_MAX_SECTION]
    return [sentence for block in blocks for sentence in block]


def _cite_by(block: Sequence[Sentence], others: Sequence[Sentence]) -> list[Sentence]:
    """Return the block with the citations of the others for each sentence that has none of its own."""
    cited = _all_cited(others)
    return [_with_citations(each, cited) for each in block]


def _all_cited(sentences: Iterable[Sentence]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(number for sentence in sentences for number in sentence.cited))


def _cite_edges(sentences: Sequence[Sentence], text: str) -> list[Sentence]:
    """Give an uncited first or last paragraph all citations: a judge decides whether it states anything."""
    everything = _all_cited(sentences)
    plain = [each for each in sentences if each.kind != "heading"]
    edges = {plain[0].group, plain[-1].group} if plain else set[int]()
    # A number, a quotation, code or a link certainly states something: then it gets no citation.
    edges -= {each.group for each in plain if each.kind != "text" or _VALUE.search(text, each.start, each.end)}
    return [_with_citations(each, everything) if each.group in edges else each for each in sentences]


def _join_answer_words(sentences: Sequence[Sentence], text: str) -> list[Sentence]:
    """Join words that may answer the question, such as "Yes.", to the sentence after them, which they can reverse.

    They are one or two words at the beginning of a paragraph, or a paragraph of their own at the beginning.
    """
    beginnings = {each.group: each.start for each in reversed(sentences)}
    joined = [*sentences[:1]]
    for each in sentences[1:]:
        word = joined[-1]
        bare = text[word.start : word.end]
        if word.group == each.group:
            may_answer = word.start <= beginnings[word.group] and is_interjection(bare)
        else:  # only a judge can tell a paragraph "Sure." from a greeting
            is_apart = len(joined) == 1 and each.kind == "text"
            may_answer = is_apart and (is_bare_answer(bare) or (word.kind == "text" and is_interjection(bare)))
        if may_answer and each.cited and not (word.states or word.refers):
            joined[-1] = each._replace(start=word.start)
        else:
            joined.append(each)
    return joined


def _state_open_words(sentences: Sequence[Sentence], text: str) -> list[Sentence]:
    """Make claims of cited sentences that look like an introduction, a remark, a "yes" or a "no": a judge decides."""

    def may_state(each: Sentence) -> bool:
        bare = text[each.start : each.end]
        if is_bare_answer(bare):
            return True
        is_prose = each.kind == "text" or (each.kind in _INTRODUCING and not is_interjection(bare))
        is_talk = states_nothing(bare) and not goes_on_to_state(bare)
        return is_prose and bool(content_stems(bare)) and not (is_talk or _ASKS.search(bare))

    is_open = (each.cited and not (each.states or each.refers) and may_state(each) for each in sentences)
    return [each._replace(states=True) if opens else each for each, opens in zip(sentences, is_open, strict=True)]


def _free_next_steps(sentences: list[Sentence], text: str, *, has_judge: bool) -> list[Sentence]:
    """Exempt uncited lists of next steps. With a judge they get all citations, and it decides what they state."""
    everything = _all_cited(sentences) if has_judge else ()
    freed: list[Sentence] = []
    in_list = False
    for each in sentences:
        if each.kind not in _LISTED:
            in_list = not each.cited and bool(compile_pattern(_NEXT_STEPS).fullmatch(text, each.start, each.end))
            freed.append(each._replace(states=each.states and not in_list))
        elif in_list and not each.cited and each.kind != "row":
            freed.append(_with_citations(each, everything)._replace(states=bool(everything)))
        else:
            freed.append(each)
    return freed


def _is_reference(block: Sequence[Sentence]) -> bool:
    """Return True for a line such as "Source: [7]" that closes the block above it."""
    return bool(block) and all(each.refers or (each.cited and not each.states) for each in block)


def _with_citations(sentence: Sentence, cited: tuple[int, ...]) -> Sentence:
    """Return the sentence with these citations if it has none of its own."""
    return sentence if sentence.cited or not cited else sentence._replace(cited=cited)


def _cite_items(block: Sequence[Sentence], before: Sequence[Sentence], after: Sequence[Sentence]) -> Iterator[Sentence]:
    """Give items or rows the citations of the item above, else of the head, else of the lines around the list."""
    introduction = _all_cited(before) if before and before[-1].kind != "heading" else ()
    closing = _all_cited(after) if after and after[0].kind != "heading" else ()
    round_it = (closing if _is_reference(after) else ()) or introduction or closing
    above: list[Sentence] = []
    head: tuple[int, ...] = ()
    for index, sentence in enumerate(block):
        above = [each for each in above if each.indent < sentence.indent]
        around = () if sentence.kind == "head" else round_it
        cited = _with_citations(sentence, _all_cited(above[-1:]) or head or around)
        head = cited.cited if cited.kind == "head" else head
        above.append(cited)
        if cited.kind == "head":  # the rows below it
            cited = _with_citations(cited, _all_cited(block[index + 1 : index + 1 + _MAX_SECTION]))
        elif cited.kind == "lead":  # the items indented deeper than it
            below = takewhile(
                lambda each: each.indent > sentence.indent or each.group == sentence.group,  # noqa: B023 - used at once
                block[index + 1 : index + 1 + _MAX_SECTION],
            )
            cited = _with_citations(cited, _all_cited(below))
        yield cited

"""Answers that arrive as a serialised value: JSON, literals and calls in code, YAML, TOML, an XML element.

``unwrap`` takes out the one text that such a value shows. A value with several texts, or with none, is a fault.
"""

import json
import re
from html import unescape
from textwrap import dedent
from typing import Final

from verification.markup.inline import HTML_TAGS, LEAKED_TAGS
from verification.markup.mrkdwn import remove_unsendable
from verification.markup.scanner import Edit, apply_edits, segments
from verification.types import Repair

_MAX_LENGTH: Final = 100_000  # a longer text is not parsed
_MAX_DEPTH: Final = 4
_MAX_BRACKETS: Final = 40  # one in another
_MIN_WORDS: Final = 5  # of a sentence without an end
_ANSWERS: Final = frozenset(
    {"answer", "final_answer", "final", "response", "text", "message", "summary", "question", "result", "output"}
    | {"content", "reply", "respond", "complete"}
)
_NOT_SHOWN: Final = frozenset(LEAKED_TAGS) - _ANSWERS  # reasoning, in any notation
_CONTROL: Final = frozenset({"action", "tool"})  # a message to the program is not an answer
_EMPTY: Final = frozenset({"null", "none", "nil", "undefined", "nan", "true", "false"})
_PAIRS: Final = {"{": "}", "[": "]", "(": ")"}
_PREFIXES: Final = frozenset({"b", "f", "r", "u"})
_STATEMENT: Final = frozenset({"const", "let", "var", "return"})
_CODE_TOKEN: Final = re.compile(
    r"(?P<string>(?:\b(?P<raw>[bfru]{1,2}))?(?P<quote>\"{3}|'{3}|[\"'`])(?P<inner>(?:\\.|(?!(?P=quote))[^\\])*)(?P=quote))"
    r"|(?P<word>[\w.$%+-]+)|(?P<sign>=>|[{}()\[\]:=,;])|(?P<blank>\s+)|(?P<prose>.)",
    re.DOTALL,
)
_SENTENCE_END: Final = re.compile(r"[.!?\]](?:\s|$)|[。！？]")
_ENTRY: Final = re.compile(
    r"^(?:- )?([a-z_]\w*|Thought|(?:Final )?[Aa]nswer)[ \t]*[:=](?:[ \t]*[|>][-+\d]?)?(?:(?=\s)|(?<=answer=))",
    re.MULTILINE,
)
_CITED_ITEM: Final = re.compile(r"^- .*\[\d{1,9}\][.!?]?$", re.MULTILINE)
_DOCUMENT_MARK: Final = re.compile(r"\A(?:---|\[\w+\])[ \t]*\n|\n(?:---|\.\.\.)\Z")
_OTHER_QUOTES: Final = re.compile(r"\\\"|[“”]")
_NOT_JSON: Final = re.compile(r"\\(['`])|(?<!\\)\"")
# A stream shows the beginning of a value before its end arrives.
_OPENED: Final = re.compile(
    r"(?:\w+\s*[=(]\s*)?[bfru]?\"{3}|(?:\w+(?:\s*=\s*|\()|[\[{]\s*)([\"'`])(?:(?!\1).)*$|\[\s*\{\s*[\"']", re.MULTILINE
)
_ELEMENT: Final = re.compile(
    r"(?:<\?xml[^<>]{0,100}\?>\s*)?<([A-Za-z][\w.-]{0,30})(?:[\s=][^<>\n]{0,200})?>(?:<!\[CDATA\[)?(.*?)(?:\]\]>)?</\1>",
    re.DOTALL,
)
# Allowed around one text in another notation: names for an answer, calls, verbs, punctuation and these words.
_MODIFIERS: Final = _STATEMENT | {"val", "public", "static", "new", "dim", "as", "set", "string", "list", "php"}
_VERBS: Final = frozenset({"return", "echo", "print", "puts", "say", "display", "msgbox"})
_MAX_LEAD: Final = 80  # characters before the text
_TAIL: Final = re.compile(r"(?:\.\w{1,20}\(\))*[\s)\]}>;.,?]*")
_FENCED: Final = re.compile(
    r"(`{3,}|~{3,})[ \t]*(?:json5?|ya?ml|toml|python|javascript|js|xml)?[ \t]*\n(.*)\n[ \t]*\1",
    re.DOTALL | re.IGNORECASE,
)
# An answer as Markdown source. An example of Markdown has no citation.
_FENCED_TEXT: Final = re.compile(
    r"(`{3,}|~{3,})[ \t]*(?:markdown|md|mrkdwn)[ \t]*\n((?:(?!\n[ \t]*\1).)*)\n[ \t]*\1",
    re.DOTALL | re.IGNORECASE,
)
_CITES: Final = re.compile(r"\s\[\d{1,9}\]")
_BACKSLASH: Final = re.compile(r"\\(?![nrt\"]|u[\da-fA-F]{4})")  # as in a path
_CODE: Final = re.compile(r"`[^`\n]*`")
_ESCAPED: Final = re.compile(
    r"(?<=[^\W_])(?:\\u[\da-fA-F]{4})+|(?:\\u[\da-fA-F]{4})+(?=[^\W_])|(?:\\u[\da-fA-F]{4}){2,}"
)
# "C:\new" is a path: a line end follows the end of a sentence, or a list or another line end follows it.
_LINE_END: Final = re.compile(
    r"(?:(?:\\r)?\\n){2,}|(?<![A-Za-z]:)(?<=[.!?:;,)\]*_。！？：])[ ]?(?:\\r)?\\n"
    r"|(?:\\r)?\\n(?=\s*(?:[-*•]|\d{1,3}[.)])\s)"
)


_Keyed = tuple[tuple[str, ...], str]
"""A text in a value, and the keys that lead to it."""


def is_serialised(text: str) -> bool:
    """Return True if the text as a whole is a serialised value, or begins one. A text in quotes is only a quotation."""
    text = text.strip()
    quotation = _CODE_TOKEN.fullmatch(text)
    if (quotation and (quotation["inner"] or "").strip()) or _ELEMENT.fullmatch(text):  # tags are other faults
        return False
    return _texts(text) is not None or bool(_OPENED.match(text))


def begins_value(text: str) -> bool:
    """Return True if the text may be the beginning of a serialised value whose end is missing."""
    return _read_code(text)[1] or _wrapped_text(text)[1] or bool(_ENTRY.match(_DOCUMENT_MARK.sub("", text)))


def unwrap(text: str) -> tuple[str, tuple[Repair, ...]]:
    """Return the one text of a serialised value with real line endings and letters."""
    count = 0
    for _ in range(_MAX_DEPTH):
        source = _FENCED_TEXT.fullmatch(text.strip())
        texts = [source[2]] if source and _CITES.search(source[2]) else _texts(text.strip())
        if not texts or len(texts) != 1:
            break
        text, count = texts[0], count + 1
    edits: list[Edit] = []
    for segment in segments(text):
        if segment.kind == "text":
            span = segment.start, segment.end
            edits += [Edit(*end.span(), "\n" * end[0].count("n")) for end in _LINE_END.finditer(text, *span)]
            if not _BACKSLASH.search(text, *span):
                edits += [Edit(*match.span(), _decode(match[0])) for match in _ESCAPED.finditer(text, *span)]
    count += len(edits)
    text = remove_unsendable(apply_edits(text, sorted(edits)))[0]  # escapes may hide some
    return text, (Repair(kind="serialised", count=count),) if count else ()


def _texts(text: str, *, in_fence: bool = False) -> list[str] | None:
    """Return the texts that a serialised value shows, or None for a text that is not serialised."""
    if not text or len(text) > _MAX_LENGTH or _CODE.fullmatch(text):
        return None
    if text.casefold() in _EMPTY:
        return []
    if fenced := _FENCED.fullmatch(text):  # an answer may be code, unless its one text is a sentence
        texts = _texts(fenced[2].strip(), in_fence=True)
        return texts if texts and len(texts) == 1 and is_sentence(texts[0]) else None
    plain = unescape(text) if text.lstrip("{[(").startswith("&") else text
    if element := _ELEMENT.fullmatch(plain):
        return [element[2]] if element[1].lower() not in HTML_TAGS | _NOT_SHOWN else None
    if plain[0] in "{[" and _OTHER_QUOTES.match(plain.lstrip("{[ ")):
        plain = _OTHER_QUOTES.sub('"', plain)
    strings, _ = _read_code(plain)
    strings = _entries(plain) if strings is None else strings
    if strings is not None:
        return _shown_texts(strings)
    wrapped = None if in_fence else _wrapped_text(plain)[0]
    return None if wrapped is None else [wrapped]


def _shown_texts(strings: list[_Keyed]) -> list[str]:
    """Return the texts in a value, without reasoning. An answer is the only text next to short ones."""
    if any(not _CONTROL.isdisjoint(keys) for keys, _ in strings):
        return []
    visible = [each for each in strings if each[1].strip() and _NOT_SHOWN.isdisjoint(each[0])]
    answers = [text for keys, text in visible if keys[-1] in _ANSWERS]
    others = [text for keys, text in visible if keys[-1] not in _ANSWERS]
    return answers if len(answers) == 1 and not any(map(is_sentence, others)) else [text for _, text in visible]


def _read_code(text: str) -> tuple[list[_Keyed] | None, bool]:
    """Return each string of a value in program notation, None for prose, and whether the end of a value is missing."""
    strings: list[_Keyed] = []
    tokens: list[re.Match[str]] = []
    around = [("", "")]  # the open brackets: the character that closes each, and the name before it
    key = ""
    for token in (each for each in _CODE_TOKEN.finditer(text) if not each["blank"]):
        sign, before = token["sign"], tokens[-1] if tokens else None
        if (before and _are_words(before, token)) or (sign and sign in ")]}" and sign != around[-1][0]):
            return None, False
        if token["prose"] or len(around) > _MAX_BRACKETS:
            return None, token[0] in "\"'`\\&" or (token[0] == "“" and len(around) > 1)
        if sign in {":", "=", "=>"} and before and not before["sign"]:
            key = (before["word"] or strings.pop()[1]).casefold()
        elif sign in _PAIRS:
            around.append((_PAIRS[sign], before["word"].casefold() if before and before["word"] else key))
        elif sign and sign in ")]}":
            around.pop()
        elif token["string"]:
            path = ("", *filter(None, (*(name for _, name in around), key)))
            strings.append((path, _decode(token["inner"], token["raw"] or "")))
        key = "" if sign in {*_PAIRS, ","} else key
        tokens.append(token)
    is_open = len(around) > 1
    return (strings if not is_open and _is_code(text, tokens, strings) else None), is_open


def _wrapped_text(text: str) -> tuple[str | None, bool]:
    """Return the one text of a value in any other notation, None for prose, and whether the end is missing."""
    is_named = False
    for token in _CODE_TOKEN.finditer(text):
        if is_named and token["prose"] and token[0] in "\"'`":
            return None, True
        if token.start() > _MAX_LEAD or (token["prose"] and token[0] not in "<>?@&|!#\\'"):
            break
        if token["string"] and is_sentence(token["inner"]):
            is_wrapped = is_named and _TAIL.fullmatch(text, token.end())
            return _decode(token["inner"], token["raw"] or "") if is_wrapped else None, False
        word = (token["inner"] or token["word"] or "").rpartition(".")[2].lstrip("$").casefold()
        if not any(map(str.isalnum, word)):
            continue
        is_call = token[0] in _VERBS or text.startswith(("(", "!(", "[", "{"), token.end())
        is_named = is_named or is_call or word in _ANSWERS
        if not is_call and word not in _ANSWERS | _MODIFIERS:
            break
    return None, False


def _is_code(text: str, tokens: list[re.Match[str]], strings: list[_Keyed]) -> bool:
    """Return True for a value, and False for a sentence that only quotes."""
    if len(tokens) < 2 or tokens[0][0] in _STATEMENT:  # noqa: PLR2004 - one string
        return bool(strings)
    if text[0] in _PAIRS:
        return bool(strings and text[-1] in ")]}") or not text.strip("{}[] \n") or ("{" in text and ":" in text)
    in_call = any(token["sign"] in _PAIRS for token in tokens)  # but print("hello") is code
    return any(keys[-1] in _ANSWERS or (in_call and is_sentence(string)) for keys, string in strings)


def _are_words(left: re.Match[str], right: re.Match[str]) -> bool:
    """Return True for two values without a sign between them, as in prose."""
    if (left["sign"] or ")") not in ")]}" or (right["sign"] or "(") not in _PAIRS:
        return False
    if right["prose"] and left[0] in _PREFIXES:  # the opening of a string without an end
        return False
    gap = right.string[left.end() : right.start()]
    is_call = left["word"] and right["sign"] and not gap
    is_named = gap and right["word"] and right.string.startswith("=", right.end())
    return not (is_call or is_named or "\n" in gap or (gap and left["word"] in _STATEMENT))


def _decode(inner: str, prefix: str = "") -> str:
    """Return what a string in code means. ``prefix`` is the letters before its quotation marks."""
    quoted = _NOT_JSON.sub(lambda match: match[1] or '\\"', inner)
    try:
        text: str = json.loads(f'"{quoted}"', strict=False)
    except ValueError:
        return inner
    return inner if "r" in prefix else text


def _entries(text: str) -> list[_Keyed] | None:
    """Return the entries of a YAML or TOML document that has an answer, or None for prose."""
    document = _DOCUMENT_MARK.sub("", text).strip()
    if document.startswith("{") and document.endswith("}"):
        document = document[1:-1].strip()
    before, *parts = _ENTRY.split(document)
    if before.strip() or len(_CITED_ITEM.findall(document)) > 1:  # "- text: the body [1]" describes a field
        return None
    keys = (key.casefold().removeprefix("final ") for key in parts[::2])
    values = (dedent(value.strip("\n")).strip() for value in parts[1::2])
    entries: list[_Keyed] = [((key,), value) for key, value in zip(keys, values, strict=True)]
    return entries if any(key in _ANSWERS and is_sentence(text) for (key,), text in entries) else None


def is_sentence(text: str) -> bool:
    """Return True for a text with at least five words, or with the end of a sentence."""
    return len(text.split()) >= _MIN_WORDS or bool(_SENTENCE_END.search(text))

"""Sentences that state nothing: greetings, questions, offers, announcements, admissions of not knowing.

The text after a greeting, a colon or a "but" is checked by itself. In doubt a sentence counts as a statement, because a
claim taken for small talk would not be checked. Headings, introductions, questions and offers count only if they have a
number of their own or a whole sentence.
"""

import re

from verification.text.language import compile_pattern

_MARKUP = re.compile(r"[*_~`]|:[a-z0-9_+-]{2,30}:|<@[A-Z0-9]+>|[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]")
_WORD = re.compile(r"[^\W_]+")
_EDGE = " \t-–—•\"'“”«»()"
_QUESTION = re.compile(r"[?？]['\")\]}»”’*_~\s]*$")
# The mark of a name in a sentence: "Click *Forgot password?*" asks nothing.
_MARK_OF_NAME = re.compile(
    r"(?<=\w)(\W{0,9}[*_~`\"“„«「『\[|][^*_~`\"”“»」』\]>?？]{0,200})[?？](?=[*_~`\"”“»」』\]>])"
)
# Questions that state something.
_TELLING_QUESTION = r"\b(?:{tells})\b|{tells_unparted}"
_GREETING = r"(?:{greetings}|{yes_or_no})(?:(?:です|ね|よ)(?=[。！!、,]|$))?(?![^\W_])[\s,，、.。!！;；:：–—-]*"
# Courtesies that may follow a greeting.
_COURTESY = r"(?:{courtesies}|[\s,!.。！、])*"
# An offer that also states something: "I can tell you that …", "…, which is allowed, …".
_STATING = r"\b(?:{states_that})\b|,\s*(?:{which}) "
_ADMISSION = r"(?:unfortunately,? |sorry,? |however,? |leider )*(?:{admissions})"
_TURN = (
    r"[;；]|[:：](?=\s|$|[\u3040-\u9fff])|\s[–—]\s|[,，、.]\s*(?:{turns})"
    r"|\b(?:but|although|though|whereas)\b|(?<!not )\byet (?!in\b|on\b|about\b|that\b|for\b|to\b)(?=\w)|ただし|が[、,]"
)
_ADVICE = r"(?:so |therefore |maybe |perhaps )*(?:{advice})(?:\w+ )?(?:{advised})\w*"
_ONLY_ANSWER = r"\W*(?:(?:{yes_or_no})\W*)+"
_FINITE = r"\b(?:{finite})\b|{finite_unparted}"
_TOPIC = r"\W*(?:{topics})\b|.*\S\s(?:you|we|that|who|which)\s"
_CLAUSES = re.compile(r",\s+(?:and|so|und|et|y|dan)\s|;\s|[.。；]\s?")
_LINKS_AND_CITATIONS = re.compile(r"<[^<>\n]*>|https?://\S+|\[[\d\s,;–-]+\]|:[a-z0-9_+-]{2,30}:")
_LABEL = re.compile(r"^\W*(?:[^\W\d_]+\s)?\d{1,2}\b(?=\s*[.):–—-]|[\s*_]*$)[\s.):–—*_-]*")
_COUNTED = r"\b\d{1,2}\s+(?:[^\W\d_]+\s){0,2}(?:{counted})\b|\d{1,2}\s?(?:つ|点|件|步|条|個|个)"
_MAX_NAME_WORDS = 2
_DIGITS = re.compile(r"\d+")


def states_nothing(sentence: str) -> bool:
    """Return True if the sentence (without citations) has nothing that a source could support or contradict."""
    plain = _MARKUP.sub(" ", _MARK_OF_NAME.sub(r"\1", sentence)).strip(_EDGE)
    if not _WORD.search(plain):
        return True
    if _QUESTION.search(plain):
        return not compile_pattern(_TELLING_QUESTION).search(plain)
    head, *rest = (part.strip(_EDGE) for part in compile_pattern(_TURN).split(plain))
    if _is_empty_talk(head):  # a fact after a courtesy is checked by itself
        return all(compile_pattern(_ADVICE).match(part) or states_nothing(part) for part in rest)
    greeted = 0
    while match := compile_pattern(_GREETING).match(plain, greeted):
        greeted = match.end()
    following = plain[greeted:]
    if not greeted or compile_pattern(_COURTESY).fullmatch(following) or states_nothing(following):
        return greeted > 0
    words = following.rstrip(" .!,").split()
    is_name = len(words) <= _MAX_NAME_WORDS and all(word[:1].isupper() for word in words)
    return is_name and bool(compile_pattern("{salutations}").match(plain))


def goes_on_to_state(courtesy: str) -> bool:
    """Return True if a courtesy has another part: "Hope that helps, and remember that renewal is free!"."""
    return any(not states_nothing(part) for part in _CLAUSES.split(courtesy)[1:])


def is_bare_answer(sentence: str) -> bool:
    """Return True for a bare "Yes." or "No.". Next to a statement it adds nothing, but alone it is a statement."""
    return bool(compile_pattern(_ONLY_ANSWER).fullmatch(_MARKUP.sub(" ", sentence)))


def _is_empty_talk(plain: str) -> bool:
    if compile_pattern("{offers}").match(plain) or (
        compile_pattern("{conditions}").match(plain) and compile_pattern("{conditional_offers}").search(plain)
    ):
        return not compile_pattern(_STATING).search(plain)
    if compile_pattern("{announcements}").match(plain):
        return not any(letter.isdigit() for letter in plain)
    return bool(compile_pattern(_ADMISSION).match(plain))


def is_interjection(sentence: str) -> bool:
    """Return True for one or two words without a digit ("Great!", "Kurz gesagt")."""
    plain = _MARKUP.sub(" ", sentence)
    words = _WORD.findall(plain)
    if any(letter.isdigit() for letter in plain):
        return False
    if len(words) == 2 and is_bare_answer(words[0]):  # noqa: PLR2004  # "Yes, allowed."
        return states_nothing(sentence)
    return len(words) <= 2 and all(word.isascii() or len(word) <= 3 for word in words)  # noqa: PLR2004  # two words


def label_end(heading: str) -> int:
    """The end position of a heading's label (``Step 2:``, ``1.``), or 0 without one."""
    match = _LABEL.match(heading)
    return match.end() if match else 0


def digits(text: str) -> frozenset[str]:
    """The groups of digits in a text, without those of links and citations."""
    return frozenset(_DIGITS.findall(_LINKS_AND_CITATIONS.sub(" ", text)))


def own_digits(text: str) -> frozenset[str]:
    """The groups of digits that state something, without labels ("Step 2") and mere counts ("3 documents")."""
    if not _DIGITS.search(text):
        return frozenset()
    unlabelled = _LABEL.sub("", _LINKS_AND_CITATIONS.sub(" ", text))
    return frozenset(_DIGITS.findall(compile_pattern(_COUNTED).sub(" ", unlabelled)))


def is_sentence(heading: str) -> bool:
    """Return True if a heading says something: "Keys never expire", not "How keys expire"."""
    bare = heading[label_end(heading) :]
    asks = bare.rstrip("*_~ ").endswith(("?", "？"))
    return not asks and bool(compile_pattern(_FINITE).search(bare)) and not compile_pattern(_TOPIC).match(bare)


def opens_with_sentence(introduction: str) -> bool:
    """Return True if an introduction states something first: "Refunds are free, and these are the rules:"."""
    first, *rest = _CLAUSES.split(introduction, maxsplit=1)
    return bool(rest and rest[0].strip()) and is_sentence(first)

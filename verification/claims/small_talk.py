"""Sentences that state nothing: greetings, questions, offers, announcements, admissions of not knowing.

What stands behind a greeting, a colon or a "but" is looked at by itself. In doubt a sentence states something: a claim
taken for small talk would escape the check. So headings, introductions, questions and offers are asked for a number of
their own, or a whole sentence.
"""

from __future__ import annotations

import re

from verification.text.lexicon import compiled

_MARKUP = re.compile(r"[*_~`]|:[a-z0-9_+-]{2,30}:|<@[A-Z0-9]+>|[\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]")
_WORD = re.compile(r"[^\W_]+")
_EDGE = " \t-–—•\"'“”«»()"
_QUESTION = re.compile(r"[?？]['\")\]}»”’*_~\s]*$")
# Questions that tell instead of asking.
_TELLS = r"\b(?:{tells})\b|{tells_unparted}"
_GREETING = r"(?:{greetings}|{yes_or_no})(?:(?:です|ね|よ)(?=[。！!、,]|$))?(?![^\W_])[\s,，、.。!！;；:：–—-]*"
_SALUTATION = r"{salutations}"
# What may stand behind a greeting and is none of it a statement.
_COURTESY = r"(?:{courtesies}|[\s,!.。！、])*"
_OFFER = r"{offers}"
# An offer that states all the same: "I can tell you that …", "…, which is allowed, …".
_STATING = r"\b(?:{states_that})\b|,\s*(?:{which}) "
_CONDITION = r"{conditions}"
_CONDITION_OFFER = r"{conditional_offers}"
_ANNOUNCEMENT = r"{announcements}"
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
_NO_FACT = re.compile(r"<[^<>\n]*>|https?://\S+|\[[\d\s,;–-]+\]|:[a-z0-9_+-]{2,30}:")
_LABEL = re.compile(r"^\W*(?:[^\W\d_]+\s)?\d{1,2}\b(?=\s*[.):–—-]|[\s*_]*$)[\s.):–—*_-]*")
_COUNTED = r"\b\d{1,2}\s+(?:[^\W\d_]+\s){0,2}(?:{counted})\b|\d{1,2}\s?(?:つ|点|件|步|条|個|个)"
_DIGITS = re.compile(r"\d+")
_ANNOUNCED = r"[*_~\s]*(?:{announced})\s?[*_~]*[:：][*_~\s]*"


def states_nothing(sentence: str) -> bool:
    """True if the sentence (without citations) has nothing that a source could support or contradict."""
    plain = _MARKUP.sub(" ", sentence).strip(_EDGE)
    if not _WORD.search(plain):
        return True
    if _QUESTION.search(plain):
        return not compiled(_TELLS).search(plain)
    head, *rest = (part.strip(_EDGE) for part in compiled(_TURN).split(plain))
    if _is_empty_talk(head):  # a courtesy must carry no fact past the check: what follows is asked for itself
        return all(compiled(_ADVICE).match(part) or states_nothing(part) for part in rest)
    greeted = _greeted(plain)
    return greeted > 0 and _is_only_polite(plain, plain[greeted:])


def _greeted(plain: str) -> int:
    """Where the greetings at the head of a sentence end."""
    end = 0
    while match := compiled(_GREETING).match(plain, end):
        end = match.end()
    return end


def is_bare_answer(sentence: str) -> bool:
    """True for a mere "Yes." or "No.": beside a statement it adds nothing, alone it is the statement."""
    return bool(compiled(_ONLY_ANSWER).fullmatch(_MARKUP.sub(" ", sentence)))


def _is_empty_talk(plain: str) -> bool:
    """True for an offer, an announcement or an admission of not knowing."""
    if compiled(_OFFER).match(plain) or (
        compiled(_CONDITION).match(plain) and compiled(_CONDITION_OFFER).search(plain)
    ):
        return not compiled(_STATING).search(plain)
    if compiled(_ANNOUNCEMENT).match(plain):
        return not any(letter.isdigit() for letter in plain)
    return bool(compiled(_ADMISSION).match(plain))


def _is_only_polite(plain: str, rest: str) -> bool:
    """True if nothing stands behind a greeting but more of the like, a name behind "Hello", or empty talk."""
    if compiled(_COURTESY).fullmatch(rest) or states_nothing(rest):
        return True
    words = rest.rstrip(" .!,").split()
    return bool(compiled(_SALUTATION).match(plain)) and len(words) <= 2 and all(word[:1].isupper() for word in words)  # noqa: PLR2004  # a name


def is_interjection(sentence: str) -> bool:
    """True for one or two words without a digit ("Great!", "Kurz gesagt"): no statement of their own."""
    plain = _MARKUP.sub(" ", sentence)
    words = _WORD.findall(plain)
    if any(letter.isdigit() for letter in plain):
        return False
    if len(words) == 2 and is_bare_answer(words[0]):  # noqa: PLR2004  # "Yes, allowed."
        return states_nothing(sentence)
    return len(words) <= 2 and all(word.isascii() or len(word) <= 3 for word in words)  # noqa: PLR2004  # two words


def label_end(heading: str) -> int:
    """Where the label at the head of a heading ends: ``Step 2:``, ``1.``; 0 without one."""
    match = _LABEL.match(heading)
    return match.end() if match else 0


def announcement_end(sentence: str) -> int:
    """Where a label ends that only announces what follows ("Short answer:"); 0 without one."""
    match = compiled(_ANNOUNCED).match(sentence)
    return match.end() if match else 0


def digits(text: str) -> frozenset[str]:
    """The groups of digits in a text, those of links and citations left out."""
    return frozenset(_DIGITS.findall(_NO_FACT.sub(" ", text)))


def own_digits(text: str) -> frozenset[str]:
    """The groups of digits that state something: not those of a label ("Step 2") or a mere count ("3 documents")."""
    if not _DIGITS.search(text):
        return frozenset()
    return frozenset(_DIGITS.findall(compiled(_COUNTED).sub(" ", _LABEL.sub("", _NO_FACT.sub(" ", text)))))


def is_sentence(heading: str) -> bool:
    """True if a heading says something, as "Keys never expire" does and "How keys expire" does not."""
    bare = heading[label_end(heading) :]
    return (
        bool(compiled(_FINITE).search(bare))
        and not compiled(_TOPIC).match(bare)
        and not bare.rstrip("*_~ ").endswith(("?", "？"))
    )


def opens_with_sentence(introduction: str) -> bool:
    """True if an introduction says something before it introduces: "Refunds are free, and these are the rules:"."""
    first, *rest = _CLAUSES.split(introduction, maxsplit=1)
    return bool(rest and rest[0].strip()) and is_sentence(first)

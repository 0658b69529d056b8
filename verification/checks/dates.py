"""Check that the dates and times of a claim appear in its sources, in any spelling."""

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from itertools import pairwise

from verification.checks.derived import CHRISTMAS, is_derivable_moment, unexplained_words
from verification.evidence.evidence import MAX_VALUES, Certainty, Evidence, Finding, Hit
from verification.text.language import WITHOUT_SPACES, compile_pattern, values_by_language
from verification.values.dates import Moment, agrees
from verification.values.quantity_words import UNITS

_SEASON = re.compile(r"\b(\d{4})\s?[-–/]\s?$")
_PERIOD = re.compile(
    r"(?<![\w-])(?:(?P<before>20\d\d)(?:-?W(?P<week>[0-5]\d)|[- /]?Q(?P<quarter>[1-4]))\b"
    r"|(?:Q(?P<number>[1-4])|[QT](?P<with>[1-4])(?=[ /-]20))\b(?:[ /-](?P<after>20\d\d)\b)?"
    r"|(?P<fiscal>FY|[1-4]Q)[ '’/-]?(?:20)?(?P<short>\d\d)\b)"
)
_UNTIL = re.compile(
    r"\s?(?:-|–|—|~|〜|～|to|through|until|till|bis|à|au|al?|hasta|jusqu[’']à|hingga|sampai|至|到|から)"
    r"(?: the| zum| el| la)?\s?(?:l[’'])?",
    re.IGNORECASE,
)
_SEASON_OF_FEAST = {5: 1, 6: 4}  # Easter is in spring, Christmas in winter
_MAX_SENTENCES = 3  # sentences
_HOUR = UNITS["h"]


def date_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each date or time of the claim that the cited sources do not support."""
    claimed = evidence.claim.moments[:MAX_VALUES]
    seen: set[tuple[int, int]] = set()
    for moment in claimed:
        span = (moment.start, moment.end)
        readings = [other for other in claimed if (other.start, other.end) == span]
        # For 03/04/2021 one of the two readings must fit; for "3-5 March" both days must.
        ambiguous = len({reading.month for reading in readings}) > 1
        fits = any(_is_known(reading, evidence) for reading in (readings if ambiguous else [moment]))
        # In "1904-1905" the first year is checked.
        season = _SEASON.search(evidence.claim.text, max(0, moment.start - 7), moment.start) if moment.is_year else None
        if not (fits or span in seen or (season and int(season[1]) + 1 == moment.year)):
            seen.add(span)
            yield _finding(moment, evidence)
    periods = _periods(evidence.claim.text)
    spans = [span for span, name, year in periods if name not in _known_periods(year, evidence)]
    spans += [span for span in unexplained_words(evidence) if not evidence.denies(span[0])]
    yield from (evidence.not_found(span, "unfounded") for span in spans)
    yield from _season_findings(evidence)


def _season_findings(evidence: Evidence) -> Iterator[Finding]:
    """Yield a finding for each season or holiday in the claim, if a nearby sentence has another one and no date."""
    claimed = dict(_find_words("seasons", evidence.claim.text))
    texts = [passage.text for passage in evidence.cited_and_known] if claimed else []
    known = {name for text in texts for name in _seasons_of(text)}
    for span, name in claimed.items():
        word = evidence.claim.text[slice(*span)].casefold()  # "Sommer" is in "Sommerferien", too
        if name in known or evidence.denies(span[0]) or any(word in text.casefold() for text in texts):
            continue
        for hit in evidence.hits[:_MAX_SENTENCES]:
            others = (span for span, other in _find_words("seasons", hit.text) if other not in claimed.values())
            if not hit.passage.moments and (other := next(others, None)):
                yield evidence.replaced_by(span, hit, hit.text[slice(*other)], evidence.certainty(hit))
                break


def _seasons_of(text: str) -> Iterator[int]:
    """Yield the seasons and holidays in the text, the seasons between two of them, and the seasons of its holidays."""
    named = [*_find_words("seasons", text)]
    for _, name in named:
        yield from (name, _SEASON_OF_FEAST.get(name, name))
    for (low, first), (high, last) in pairwise(named):
        if _UNTIL.fullmatch(text, low[1], high[0]):
            yield from ((first + distance - 1) % 4 + 1 for distance in range((last - first) % 4))


def _periods(text: str) -> Iterator[tuple[tuple[int, int], str, int]]:
    """Yield the quarters, ISO weeks and fiscal years in the text: place, name, and year or 0."""
    for match in _PERIOD.finditer(text):
        if match["week"]:
            name = f"W{match['week']}"
        elif match["fiscal"] == "FY":
            name = f"FY{match['short']}"
        else:
            name = f"Q{match['quarter'] or match['number'] or match['with'] or match['fiscal'][0]}"
        year = f"20{match['short']}" if match["short"] else match["before"] or match["after"] or 0
        yield match.span(), name, int(year)
    # Not "the first quarterly review".
    yield from ((span, f"Q{name}", 0) for span, name in _find_words("quarters", text))


def _find_words(key: str, text: str) -> Iterator[tuple[tuple[int, int], int]]:
    """Yield the place and the number of each quarter, or of each season and holiday, that the text names."""
    by_language = (
        listed if language in WITHOUT_SPACES else [rf"\b(?:{words})\b" for words in listed]
        for language, listed in values_by_language(key).items()
    )
    names = ["|".join(words) for words in zip(*by_language, strict=True)]
    names += [CHRISTMAS] if key == "seasons" else []
    for match in compile_pattern("|".join(f"({words})" for words in names)).finditer(text):
        yield match.span(), match.lastindex or 0


def _known_periods(year: int, evidence: Evidence) -> Iterator[str]:
    """Yield the periods that known text names, and the quarters and ISO weeks of its dates in the year."""
    for passage in evidence.cited_and_known:
        yield from (name for _, name, _ in _periods(passage.text))
        for moment in (each for each in passage.moments if each.year in {None, year or each.year}):
            if moment.month:
                yield f"Q{(moment.month + 2) // 3}"
            with suppress(ValueError, TypeError):
                yield f"W{date(moment.year or year, moment.month, moment.day).isocalendar().week:02}"  # type: ignore[arg-type]  # TypeError


def _is_known(moment: Moment, evidence: Evidence) -> bool:
    # "Morning" or "evening" may be outside the matched words.
    if moment.hour is None and evidence.is_written_near(moment.start, moment.end):
        return True
    passages = evidence.cited_and_known
    # A year in Chinese numerals is read as a number.
    if moment.is_year and any(moment.year in q.readings for passage in passages for q in passage.quantities):
        return True
    # A date without a year matches only if the year appears somewhere.
    known = [other for passage in passages for other in passage.moments]
    year_is_named = moment.year in {None, *(other.year for other in known)}
    return any(agrees(moment, other) and (year_is_named or other.year is not None) for other in known)


def _finding(moment: Moment, evidence: Evidence) -> Finding:
    span, claimed = (moment.start, moment.end), evidence.claim.moments[:MAX_VALUES]
    near = ((hit, other) for hit in evidence.hits[:_MAX_SENTENCES] for other in hit.passage.moments)
    alike = (each for each in near if _kind(each[1]) == _kind(moment))
    replacement = next((each for each in alike if not any(agrees(mine, each[1]) for mine in claimed)), None)
    certainty = _certainty(moment, evidence, replacement)
    if replacement is None or certainty == "doubtful":
        return evidence.not_found(span, certainty)
    hit, other = replacement
    return evidence.replaced_by(span, hit, hit.text[other.start : other.end].strip(), certainty)


def _certainty(moment: Moment, evidence: Evidence, replacement: tuple[Hit, Moment] | None) -> Certainty:
    # A weekday may follow from the days in the source, and so does a denied month or weekday.
    precise = moment.day is not None or moment.year is not None or moment.hour is not None
    if moment.month and not precise and _is_other_word(evidence.claim.text[moment.start : moment.end], evidence):
        return "doubtful"
    sources = (*evidence.cited_and_known, *evidence.others)
    is_weekend = sum(other.start == moment.start for other in evidence.claim.moments) > 1  # "every day" is one word too
    has_days = is_weekend or any(source.names_weekdays for source in sources)
    is_vague = replacement is None and moment.weekday and has_days
    if not precise and (is_vague or evidence.denies(moment.start)):
        return "doubtful"
    # Today's date alone explains only dates that are counted from it in words.
    said = [
        passage
        for passage in evidence.conversation
        if "".join(passage.text[each.start : each.end] for each in passage.moments) != "".join(passage.text.split())
    ]
    others = (other for passage in said for other in passage.moments)
    if any(agrees(moment, other) and (moment.year is None or other.year is not None) for other in others):
        return "doubtful"
    if _is_written_otherwise(moment, evidence) or is_derivable_moment(moment, evidence):
        return "doubtful"
    elsewhere = any(agrees(moment, other) for passage in evidence.others for other in passage.moments)
    return evidence.certainty(replacement[0] if replacement and not elsewhere else None)


def _is_other_word(word: str, evidence: Evidence) -> bool:
    """Return True for "mayo" if the source has mayonnaise, unless it is a month in the claim's language."""
    months = values_by_language("months").get(evidence.claim.language or "")
    is_month = months is None or word in " ".join(months).split()
    return word.islower() and not is_month and any(each.startswith(word) for each in evidence.words)


def _is_written_otherwise(moment: Moment, evidence: Evidence) -> bool:
    """Recognise 4 December in a passage with 04/12, and 12:00 in one with "at 12" or "12 h"."""
    if moment.day is None or moment.month is None:
        numbers = (each for passage in evidence.cited_and_known for each in passage.quantities)
        hours = (each.readings[0] for each in numbers if each.unit in {None, _HOUR})
        return not moment.minute and not {moment.hour, (moment.hour or 0) % 12 or None}.isdisjoint(hours)
    day, month = moment.day, moment.month
    pattern = rf"(?<![\d/.-])(?:0?{day}[/.-]0?{month}|0?{month}[/.-]0?{day})(?![\d/-])"
    return any(re.search(pattern, passage.text) for passage in evidence.cited_and_known)


def _kind(moment: Moment) -> str:
    if moment.weekday is not None:
        return "weekday"
    if moment.hour is not None and moment.month is None:
        return "time"
    return "year" if moment.is_year else "date"

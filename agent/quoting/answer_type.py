"""Which kind of thing a question asks for (an amount, a time, a person, money …), and whether a unit has one.

Promises: pure; what a question asks for is told by its form alone, in each of the seven languages where the form is
fixed. A unit without the kind asked for may still be about the subject: it only counts for less. Must never judge
whether what a unit says is true.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import takewhile
from typing import Final

from agent.knowledge.search.tokens import is_function_word, stem, words

_NUMBER_ASKED: Final = re.compile(
    r"\bhow (?:many|much|long|often|soon|quickly|fast|far|old|big|large|high|late|early|heavy|wide|tall|deep)\b"
    r"|\bwhat time\b"
    r"|(?:^\W*|[.?!,;:]\s+|\b(?:and|or|since|until|from|by|to) )when\b"
    r"|\b(?:wie ?viele?|wie (?:lange?|oft|hoch|schnell|groß)|wann|combien|quand|à quelle heure|cuánt[oa]s?"
    r"|cuándo|a qué hora"
    r"|berapa|kapan)\b"
    r"|何[日時分人回歳台円文]|いくら|いつ|ど[のれ][くぐ]らい|多[少久长大高远]|几|何时|什么时候",
    re.IGNORECASE,
)
_NUMBER_NAMED: Final = re.compile(
    r"\b(?:(?:what|which) (?:sum|age|percentage|share|rate|size|length|year|days?|weight|temperature)"
    r"|times|hours|dates|limit|amount|maximum|minimum|deadline|price|cost|budget|number)\b",
    re.IGNORECASE,
)
_COURSE_ASKED: Final = re.compile(
    r"^\W*(?:what (?:happens|should|do|if|now)|how (?:do|can|to|should|must)|who|where|why"
    r"|is|are|was|were|does|did|do|can|may|must|should|will|has|have)\b",
    re.IGNORECASE,
)
"""What is to be done or by whom, or a yes or no: a limit that is mentioned is not asked for."""
_AMOUNT: Final = re.compile(
    r"\d|[一二三四五六七八九十百]|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|once|twice|every"
    r"|each|daily|weekly"
    r"|monthly|yearly|never|always|free|none|nothing|until|before|after|during|unlimited|half|jede[rsn]?|täglich"
    r"|wöchentlich|monatlich|nie|bis|ein(?:e|en|er|mal)?|zwei|drei|chaque|jamais|un|une|deux|trois|cada|nunca"
    r"|una|dos|tres|setiap"
    r"|satu|dua|tiga|毎日|毎週|毎月)\b",
    re.IGNORECASE,
)
_SPAN: Final = (
    r"(?:seconds?|minutes?|hours?|days?|weeks?|months?|quarters?|years?|nights?|sekunden?|minuten?|stunden?"
    r"|tage?n?|wochen?"
    r"|monate?n?|jahre?n?|secondes?|heures?|jours?|semaines?|mois|ans?|années?|segundos?|minutos?|horas?|días?"
    r"|semanas?|mes(?:es)?|años?|detik|menit|jam|hari|minggu|bulan|tahun)\b|\d\s?(?:秒|分|時間|日|週|[ヶかケ]?月|年|天|小时|周|个月|分钟)"
)
LENGTH_ASKED: Final = re.compile(
    r"\bhow long\b.*\b(?:takes?|last|lasts|until|need|needs)\b|\bdauer\w*\b", re.IGNORECASE
)
TAKES: Final = re.compile(r"\b(?:takes?|took|lasts?|within|dauer[nt])\b", re.IGNORECASE)
_MONEY: Final = re.compile(
    r"[€$£¥₹]|\b(?:euros?|eur|dollars?|usd|cents?|pounds?|gbp|francs?|chf|rupiah|rp|yen|per ?cent|free|nothing"
    r"|paid for"
    r"|kostenlos|gratuit\w*|gratis)\b|%|円|元|無料|免费|the company pays",
    re.IGNORECASE,
)
_DATE: Final = re.compile(
    r"\b(?:19|20)\d\d\b|\b(?:January|February|March|April|May|June|July|August|September|October|November|December|ago"
    r"|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday|Sunday|[Yy]esterday|Januar|Februar|März|Mai|Juni|Juli|Oktober"
    r"|Dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|enero|febrero|marzo"
    r"|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre)\b|\d\s?[年月日]"
)
_CLOCK: Final = re.compile(
    r"\b\d{1,2}[:.h]\d\d\b|\b\d{1,2} ?(?:a\.?m|p\.?m|uhr|h)\b|\b(?:noon|midnight)\b|\d\s?[時点]", re.IGNORECASE
)
_NAME: Final = re.compile(
    r"(?<![.!?:;•\-] )(?<!^)\b[A-Z][a-zà-ÿ]+ (?:[A-Z]\. )?[A-Z][a-zà-ÿ]+\b|@\w|\b(?:Mr|Ms"
    r"|Mrs|Dr)\b"
)
_NAME_OF: Final = r"\bwhat(?: is|['’]s| are) the names? of "
_CALLED: Final = re.compile(rf"{_NAME.pattern}|[`\"“#]\w|[a-z][A-Z]|\bcalled\b")
_PERSON: Final = re.compile(
    r"\b(?:leads?|staff|colleagues?|clients?|desk|counsel|head|chief|boards?|committee|primary|secondary|buddy"
    r"|on-call|nobody"
    r"|no one|everyone|everybody|anyone|anybody|somebody|someone|each|all|you|your|we|our|he|she|they|people"
    r"|persons?|groups?|whoever|those who|associations?|organi[sz]ations?|clubs?|agents?|analysts?|clerks?|deput\w+"
    r"|nurses?|pilots?|presidents?|representatives?|scribes?|students?|residents?|hosts?|coach\w*|chairs?"
    r"|departments?|support|finance|hr|legal|captain|company|guests?|assistants?|accountants?|consultants?"
    r"|interns?|boss"
    r"|secretary|by itself|partners?)\b"
    r"|\b(?!projector|monitor|elevator|sensor|generator|indicator|factor|colou?r|major|minor|prior|motor|mirror|layer|answer|timer"
    r"|scanner|sticker|filter|adapter|charger|browser|newsletter|flyer|banner|meter|chapter|matter|dinner|weather|corner|border|tender|order|number|server|after|over|under|other|either|never|per|error|offer|letter|paper|later|whether"
    r"|water|power"
    r"|computer|counter|header|folder|register|trigger|floor|door|for|nor|or|quarter|september|october|november"
    r"|december"
    r"|summer|winter|center|cluster|container|master|buffer|pointer|router|printer|ever|higher|lower|longer"
    r"|larger|newer"
    r"|older|earlier|shorter|greater|smaller|faster|her)\w+(?:er|or|ist|ian|ee)s?\b"
    r"|(?-i:[A-Z][a-z]+ [A-Z][a-z]+|^(?!(?:It|This|That|These|There|The|A|An|Each|Every)\b)[A-Z][a-zà-ÿ]+ (?!is|was"
    r"|has|does)[a-z]+s\b)|@|team",
    re.IGNORECASE,
)
_PHONE: Final = re.compile(r"\+?\d[\d ()/-]{2,}\d")
_COLOUR: Final = re.compile(
    r"\b(?:red|green|blue|yellow|orange|white|black|grey|gray|brown|pink|purple|violet|colou?r\w*|rot|grün|blau"
    r"|gelb|weiß"
    r"|schwarz|rouge|vert|bleu|jaune|blanc|noir|rojo|verde|azul|amarillo|blanco|negro|merah|hijau|biru"
    r"|kuning)\b|[赤青白黒黄緑红蓝绿黑]",
    re.IGNORECASE,
)
_OFTEN: Final = re.compile(
    r"\b(?:(?<!at )once|twice|never|always|times|daily|weekly|monthly|quarterly|yearly|annually|jede\w*|nie"
    r"|chaque|jamais|par|cada|nunca|setiap)\b|毎|每"
    r"|\b(?:an?|per|every|each) (?:[\w-]+ ){0,2}(?:second|minute|hour|shift|day|night|morning|evening|week"
    r"|month|quarter|year"
    r"|season|weekday|weekend|monday|tuesday|wednesday|thursday|friday|saturday|sunday)s?\b"
    r"|\b(?:after|before|with|on|at|for|in) (?:every|each)\b",
    re.IGNORECASE,
)
_LONG: Final = re.compile(
    rf"{_SPAN}|\b(?:characters?|letters?|zeichen|caract\w+|karakter|pages?|words|lines|met(?:re|er)s?|km|kilomet\w+"
    r"|inch\w*|until|forever|permanently|indefinitely|overnight|never|always|bis|jusqu\w*|hasta|hingga|sampai)\b"
    r"|文字|字符",
    re.IGNORECASE,
)
_TIME: Final = re.compile(
    r"\d|\b(?:before|after|until|till|during|while|when|whenever|if|once|as soon as|as long as|daily|weekly"
    r"|monthly|quarterly"
    r"|yearly|noon|midnight|mornings?|afternoons?|evenings?|nights?|overnight|week|weekends?|weekdays?|year|today|tomorrow"
    r"|immediately|at once|always|never|anytime|any time|only|start|end|beginning|monday|tuesday|wednesday"
    r"|thursday|friday"
    r"|saturday|sunday|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|sundays"
    r"|january|february|march|april|may|june"
    r"|july|august|september|october|november|december|spring|summer|autumn|fall|winter|(?:every|each|working|same|next|first"
    r"|last|two|three|four|five|six|seven|eight|nine|ten) (?:second|minute|hour|day|week|month|quarter|year)s?)\b",
    re.IGNORECASE,
)
_PLACE: Final = re.compile(
    r"[#/]\w|\b(?:in|at|on|into|onto|to|from|beside|besides|behind|under|near|nearby|next to|inside|outside|via|through"
    r"|over|where|above|below|around|between|opposite|back|home|here|there|portal|floor|room|building|office|nowhere|anywhere"
    r"|everywhere|by|with)\b",
    re.IGNORECASE,
)
_SIZED: Final = re.compile(
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|half|once|immediately|instantly|unlimited"
    r"|no limit|same|next|straight away|right away)\b",
    re.IGNORECASE,
)
_AT: Final = re.compile("@")
_CHANNEL: Final = re.compile(r"#\w")
_TYPED: Final = re.compile("`")


def _any(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_MEASURES: Final = (
    (
        _any(
            r"\b(?:how long|within (?:what|which) time)\b",
            r"\bwie lange\b",
            r"\bcombien de temps\b",
            r"\bcuánto tiempo\b",
            r"\bberapa lama\b",
        ),
        _LONG,
    ),
    (_any(r"^\W*(?:and |so |but )?where\b"), _PLACE),
    (_any(r"\bhow (?:fast|quick|quickly|soon|big|large|heavy|wide|tall|deep|thick)\b"), _SIZED),
    (_any(r"\bhow (?:often|frequently)\b", r"\bwie oft\b", r"\bfréquence\b", r"\bfrecuencia\b"), _OFTEN),
    (
        _any(
            r"\b(?:how (?:much|expensive)|what)\b.*\b(?:costs?|pay|paid|spend|charged?|earn|reimbursed?|worth)\b",
            r"\b(?:salary|wages?)\b",
            r"\b(?:price|cost) of\b",
            r"\bhow much money\b",
            r"\b(?:kostet|co[uû]te|cuesta|cuánto se paga)\b",
            "いくら",
            "多少钱",
        ),
        _MONEY,
    ),
    (_any(r"^\W*(?:and |so |but )?when\b"), _TIME),
    (_any(r"\bwhen (?:was|were|did)\b", r"\bwann (?:war|wurde)\b"), _DATE),
    (
        _any(
            r"(?<!within )\b(?:what|which) time\b",
            r"\b(?:um wie ?viel uhr|quelle heure|qué hora|jam berapa)\b",
            "何時(?!間)",
            "几点",
        ),
        _CLOCK,
    ),
    (
        _any(
            r"^\W*(?:and )?who(?: is|['’]s| was| are) (?:the|our|my) (?:\w+ ?){1,3}\W*$",
            r"^\W*what(?: is|['’]s) (?:\w+['’]s|his|her|their) name\b",
        ),
        _NAME,
    ),
    (_any(rf"{_NAME_OF}(?=(?:[\w-]+ ){{0,3}}?(?:{_PERSON.pattern})\W*$)"), _NAME),
    (_any(rf"{_NAME_OF}(?!(?:[\w-]+ ){{0,3}}?(?:{_PERSON.pattern})\W*$)"), _CALLED),
    (_any(r"^\W*(?:and |so |but )?who\b(?! is|['’]s| are| was)"), _PERSON),
    (_any(r"\b(?:tele)?phone numbers?\b", r"\btelefonnummer\b", "電話番号", "电话号码"), _PHONE),
    (_any(r"\b(?:what|which) (?:slack )?channel\b"), _CHANNEL),
    (_any(r"\b(?:what|which) (?:shell )?commands?\b"), _TYPED),
    (_any(r"\be-?mail address(?:es)?\b", r"\be-?mail-?adresse\b"), _AT),
    (
        _any(r"\b(?:what|which) colou?rs?\b", r"\b(?:welche farbe|quelle couleur|qué color)\b", "何色", "什么颜色"),
        _COLOUR,
    ),
    (
        _any(
            r"^(?!.*\b(?:do|can|may|must|should|could) (?:i|we|you)\b)"
            r"(?!.*\b(?:it|deadline|limit|allowance|rule|policy|threshold)\b)"
            r".*\b(?:today|tonight|tomorrow)\b",
            r"\byesterday\b",
            r"\bthis (?:morning|afternoon|week|month|year)\b",
            r"\blast (?:night|week|month|quarter|year)\b",
            r"\b(?:heute|gestern|aujourd['’]hui|hier|hoy|ayer|hari ini|kemarin)\b",
            "今日",
            "昨日",
            "今天",
            "昨天",
        ),
        _DATE,
    ),
)
"""How a question asks for a kind of thing, and what a text has that has it."""

_OUTER: Final = re.compile(
    r"(\W*(?:which|who(?:m|se)?|where|why)\b(?:(?!\band\b|[,;.?]).)+?)\bhow (?:many|much|long|often|soon"
    r"|far|big|large)\b",
    re.IGNORECASE,
)
_WHENEVER: Final = re.compile(
    r"(?<=^and )when(?= (?:i|we|you|they|he|she|it|one|someone|somebody|people)"
    r" (?!(?:is|am|are|was|were|can|may|must|should|will|would|has|have)\b))",
    re.IGNORECASE,
)
"""A subject and what it does is a case that is put, no question for a time: "and *when* I fly?"."""
_COLUMNS: Final = re.compile(r"^\W*(?:and )?(where|who|when|why|how (?:often|long|many|much))\b", re.IGNORECASE)
_COUNTED: Final = re.compile(r"\bhow many ((?:[^\W_]+[ -]?){1,3})", re.IGNORECASE)
_COUNTS: Final = frozenset(
    "no one two three four five six seven eight nine ten eleven twelve single both several half dozen".split()  # noqa: SIM905 - words read better as words
)
_ENDS: Final = frozenset("and or for at per until is are was were".split())  # noqa: SIM905 - words read better as words
"""Where what a number counts is over: "21 days and films"."""
_SEASONS: Final = frozenset("spring summer autumn fall winter weekend night morning afternoon evening".split())  # noqa: SIM905 - words read better as words
_REACH: Final = 4
"""How many words after a number may be what it counts."""


@lru_cache(maxsize=512)
def wants_number(question: str) -> bool:
    """Whether it asks for an amount, a length or a time."""
    question = _asked_for(question)
    if _NUMBER_ASKED.search(question):
        return True
    return _NUMBER_NAMED.search(question) is not None and not _COURSE_ASKED.search(question)


def has_measure(question: str, text: str, heading: str = "") -> bool:
    """Whether a text has what a question asks for: an amount, a length of time, a frequency, a date.

    ``heading`` may say of which colours or days the text below it is.
    """
    if wants_number(question) and not _AMOUNT.search(text) and not _DATE.search(f"{heading} {text}"):
        return False
    return all(
        held.search(_besides(question, text) if held is _TIME else text)
        or (held in (_DATE, _TIME, _COLOUR) and held.search(heading))
        or (held in (_NAME, _CALLED) and _is_labelled(question, text))
        for held in _held(question)
    )


def _besides(question: str, text: str) -> str:
    """A text without the words that are asked about: the summer concert says of no time that it is in summer."""
    asked = _SEASONS.intersection(words(question))
    return re.sub(r"[^\W_]+", lambda word: "" if word[0].lower() in asked else word[0], text)


def _is_labelled(question: str, text: str) -> bool:
    """Whether a text is a line such as ``Owner: …`` for a question that asks for the owner."""
    label, colon, _ = text.partition(":")
    return bool(colon) and set(words(label)) <= set(words(question))


def has_column(question: str, row: str) -> bool:
    """Whether a row has a cell under the question's own word: "Where: …" for "where is …?"."""
    asked = _COLUMNS.match(question)
    return asked is not None and re.search(rf"(?:^|; ){asked[1]}\b[^:;]*: ", row, re.IGNORECASE) is not None


@lru_cache(maxsize=512)
def _held(question: str) -> tuple[re.Pattern[str], ...]:
    """What a text must have."""
    question = _asked_for(question)
    return tuple(held for wanted, held in _MEASURES if wanted.search(question))


def _asked_for(question: str) -> str:
    """A question without another inside it: "which header says *how long to wait*?" asks for a header."""
    outer = _OUTER.match(question)
    return _WHENEVER.sub("if", outer[1] if outer else question)


def counted(question: str) -> tuple[str, ...]:
    """The words that follow "how many": what is to be counted; no names such as ``SEV1``."""
    found = _COUNTED.search(question)
    said = takewhile(lambda word: not is_function_word(word, "en"), words(found[1]) if found else [])
    return tuple(word for word in said if not any(map(str.isdigit, word)))


def counts(text: str, keys: frozenset[str]) -> bool:
    """Whether a number in a text is followed by one of these stems, or stands behind it in a table or a field."""
    for part in re.split(r"[;:.,]\s", text):
        said = words(part)
        for at, word in enumerate(said):
            behind = takewhile(lambda each: each not in _ENDS, said[at + 1 : at + 1 + _REACH])
            near = list(behind) if word.isdigit() or word in _COUNTS else []
            if any(stem(each) in keys for each in near):
                return True
    return any(stem(name) in keys for field in re.findall(r"([^:;]+): [^;`]*\d", text) for name in words(field))

"""The values of verification: drafts, sources, and results.

Offsets are character positions in ``Verdict.text`` (after repair), half open.
"""

from dataclasses import dataclass, replace
from typing import Final, Literal, Self

_MAX_WORDS: Final = 200

Dialect = Literal["mrkdwn", "markdown"]
Severity = Literal["error", "warning"]

RuleName = Literal[
    "not_empty",
    "no_secrets",
    "no_broadcast",
    "no_injection",
    "citation_resolves",
    "claim_supported",
    "cites_sources",
    "no_markdown_bold",
    "no_blockquotes",
    "mrkdwn",
    "addresses_question",
    "coherent",
    "minimum_length",
]
"""The rules, in the order in which a model is told about violations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One numbered piece of evidence: the exact text the model saw.

    ``id`` is the n of ``[n]``. ``url`` is empty when there is nothing to link to. ``origin`` names its kind
    (``document``, ``thread``, ``file``, ``tool:<name>``). ``updated_at`` is an ISO 8601 date or timestamp, or empty.
    ``audience`` is ``public`` or a comma-separated list of the channel and user ids that may see it. ``sections`` are
    the offset, the link and the title of each section of the text, if it has several.
    """

    id: int
    title: str
    url: str = ""
    text: str = ""
    origin: str = "document"
    updated_at: str = ""
    audience: str = "public"
    sections: tuple[tuple[int, str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A text to check, with everything that the check depends on.

    ``known_text`` is further text whose numbers, names and links count as known (the thread so far, the user's
    answers). ``context`` proves nothing, but can explain a date or a calculation: today, and earlier answers.
    ``mentions`` are the user ids that the question named: only they may be mentioned. ``own_words`` exempts from
    grounding a text made of the person's own words. ``unsourced`` marks a general answer that is sent under a label.
    ``left_out`` are phrases that replace a dropped step or row; they state nothing. ``has_judge``: a judge will be
    asked about claims that the rules leave open. ``private_texts`` must not be repeated (the system prompt). With
    ``repair`` off each formatting fault is a violation.
    """

    text: str
    question: str = ""
    sources: tuple[Source, ...] = ()
    dialect: Dialect = "mrkdwn"
    known_text: str = ""
    context: str = ""
    mentions: frozenset[str] = frozenset()
    link_hosts: frozenset[str] = frozenset()
    private_texts: tuple[str, ...] = ()
    own_words: bool = False
    unsourced: bool = False
    left_out: tuple[str, ...] = ()
    has_judge: bool = False
    repair: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A kind of formatting that was repaired, with the number of repairs. ``kind`` is a short name such as ``bold``."""

    kind: str
    count: int = 1

    @property
    def is_fault(self) -> bool:
        """True unless standard Markdown, which models are asked for, was rendered for Slack."""
        return self.kind in {
            "citation", "citation_source", "control", "footnote", "html", "image", "line end", "link_as_code", "quote",
            "serialised",
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One broken rule. ``words`` is the text in question, ``remedy`` tells the model in English how to fix it."""

    rule: RuleName
    severity: Severity
    start: int = 0
    end: int = 0
    words: str = ""
    detail: str = ""
    remedy: str = ""

    @classmethod
    def found_in(cls, text: str, span: tuple[int, int], rule: RuleName, detail: str, remedy: str) -> Self:
        """Return an error at ``span`` of the text. Its words are truncated to 200 characters."""
        start, end = span
        words = text[start : min(end, start + _MAX_WORDS)]
        return cls(rule=rule, severity="error", start=start, end=end, words=words, detail=detail, remedy=remedy)


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """A sentence of the answer that states something, with its citations.

    ``supported`` and ``settled_by`` say how it was decided and by what: a quotation proves itself, a rule fails the
    claim, a judge can do either. All other claims are ``open``. ``score`` is between 0 and 1, high means supported.
    ``code`` marks lines of a code block, which cite what the text around the block cites. ``lines`` are those that the
    judge named: a source's number, and a line of it as ``judgement`` counts them. ``head`` is the header above a row
    of a table, which says little without it. ``opening`` is the length of a "yes" or "no" before the sentence, on which
    only a judge can decide. ``absent``: the judge finds that rightly no source mentions it.
    """

    text: str
    start: int
    end: int
    cited: tuple[int, ...] = ()
    supported: Literal["yes", "no", "open"] = "open"
    settled_by: Literal["quotation", "rule", "judge", "nobody"] = "nobody"
    score: float = 1.0
    code: bool = False
    lines: tuple[tuple[int, int], ...] = ()
    head: str = ""
    opening: int = 0
    absent: bool = False

    def surrounds(self, violation: Violation) -> bool:
        """Return True if the violation is in this claim."""
        return self.start <= violation.start and violation.end <= self.end

    def violation(self, span: tuple[int, int], detail: str, remedy: str) -> Violation:
        """Return a ``claim_supported`` error at ``span`` of the claim's own text."""
        found = Violation.found_in(self.text, span, "claim_supported", detail, remedy)
        return replace(found, start=found.start + self.start, end=found.end + self.start)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The view of a draft that every rule gets: repaired text, Slack's chunks, prose and claims."""

    draft: Draft
    text: str
    chunks: tuple[str, ...]
    prose: str  # code is blanked out, so that offsets stay
    claims: tuple[Claim, ...]

    def violation(self, rule: RuleName, span: tuple[int, int], detail: str, remedy: str) -> Violation:
        """Return an error of ``rule`` at ``span`` of the text."""
        return Violation.found_in(self.text, span, rule, detail, remedy)

    def warning(self, rule: RuleName, span: tuple[int, int], detail: str, remedy: str) -> Violation:
        """Return a warning; otherwise like ``violation``."""
        return replace(self.violation(rule, span, detail, remedy), severity="warning")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The result of ``check`` and of a judge. ``text`` is the repaired text with ``[n]``; Slack gets ``chunks``."""

    passed: bool
    text: str
    chunks: tuple[str, ...] = ()
    violations: tuple[Violation, ...] = ()
    repairs: tuple[Repair, ...] = ()
    claims: tuple[Claim, ...] = ()
    no_answer: bool = False  # True if the judge finds that it only says that the sources lack the answer
    in_part: bool = False  # True if the judge finds that it answers only part of the question

    @property
    def errors(self) -> tuple[Violation, ...]:
        """The violations that fail the answer."""
        return tuple(v for v in self.violations if v.severity == "error")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A text that may be shown: it passed, or it is one of Orion's own messages.

    ``text`` is mrkdwn with ``[n]``, ``chunks`` are what Slack gets, ``sources`` are those the text cites (or the
    nearest ones for a refusal). ``claims`` are its own, each with the way it was settled. ``rules_only``: without a
    judge some claim stayed open. ``in_part``: the judge finds that it answers only part of the question. ``label`` is a
    line shown above the text, such as the "not verified" one.
    """

    text: str
    chunks: tuple[str, ...]
    sources: tuple[Source, ...] = ()
    verified: bool = False
    rules_only: bool = False
    in_part: bool = False
    attempts: int = 0
    repairs: tuple[Repair, ...] = ()
    violations: tuple[Violation, ...] = ()
    claims: tuple[Claim, ...] = ()
    label: str = ""

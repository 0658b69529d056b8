"""A model that knows the handbook and errs the way real ones do: seeded, so that the same question errs the same way.

It writes right answers in its own words, with planted faults; told of one, it mostly mends it, sometimes not, and now
and then makes another. What it planted is kept, so that a test can look for it in what was shown.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Literal

from agent.actions import Respond
from agent.budget import Usage
from agent.model.judge import JudgeContext, Opinion
from agent.model.protocol import DecideContext, Decision, WriteContext, WriteStream
from verification.judgement import Judgement
from verification.types import Source

KNOWN: dict[str, tuple[tuple[str, str], ...]] = {
    "How quickly must the primary acknowledge a page?": (
        ("The primary has to acknowledge a page within 5 minutes", "acknowledges a page within 5 minutes"),
        ("After 10 minutes it goes to the secondary", "goes to the secondary after 10 minutes"),
    ),
    "When does the on-call rotation change?": (
        ("The on-call rotation changes every Tuesday at 10:00 UTC", "every Tuesday at 10:00 UTC"),
    ),
    "How many requests per minute may an API key make?": (
        ("An API key may make 600 requests a minute", "may make 600 requests a minute"),
        ("On the partner plan it may make 3,000 requests a minute", "partner plan may make 3,000"),
    ),
    "What does error FH-2002 mean?": (
        ("FH-2002 means that the order was changed meanwhile", "The order was changed meanwhile"),
    ),
    "How long do we keep audit logs?": (("Audit logs are kept for 400 days", "Audit logs | 400 days"),),
    "When is staging rebuilt?": (
        ("Staging is rebuilt every Sunday at 02:00 UTC", "every Sunday at 02:00 UTC"),
        ("Staging is switched off between 20:00 and 06:00 UTC", "between 20:00 and 06:00 UTC"),
    ),
    "What is the RPO for orders?": (("The RPO for orders is 5 minutes", "It is 5 minutes for orders"),),
    "How often is the vault backed up?": (
        ("The vault is backed up every 6 hours", "Every 6 hours"),
        ("The orders database is backed up in full every night at 01:30 UTC", "Every night at 01:30 UTC"),
    ),
    "I lost my laptop, what now?": (
        ("Report a lost laptop within one hour to the IT desk", "within one hour"),
        ("You get a replacement within 2 working days", "replacement within 2 working days"),
    ),
    "How much learning budget does each employee get?": (
        ("Each employee has a learning budget of 1,200 euros and 5 days a year", "learning budget of 1,200 euros"),
    ),
    "How much may a hotel cost per night?": (
        ("A hotel may cost up to 140 euros a night", "up to 140 euros a night"),
        ("In capitals a hotel may cost up to 190 euros", "in capitals up to 190 euros"),
    ),
    "How do I roll back a service?": (
        ("Roll back with `shipit rollback --service <name> --to previous`", "shipit rollback --service"),
        ("A rollback needs no approval", "A rollback needs no approval"),
    ),
    "Who updates the status page during an incident?": (
        ("The communications lead updates the status page", "communications lead updates the status page"),
    ),
    "What does the --force flag of pgctl-fern promote do?": (
        ("The `--force` flag skips the lag check and may lose data", "skips the lag check"),
    ),
    "How long may an alert be silenced?": (("An alert may be silenced for at most 4 hours", "for at most 4 hours"),),
    "What is the on-call pay for the secondary?": (
        ("The secondary gets 175 euros a week", "175 euros for the secondary"),
        ("The primary gets 350 euros a week", "350 euros a week for the primary"),
    ),
    "How do I renew a certificate by hand?": (
        ("Run `certbot-fern renew --name <certificate> --dns`", "certbot-fern renew --name"),
        ("Wait 5 minutes between zones when you reload the proxies", "Wait 5 minutes between zones"),
    ),
    "When does version 2 of the API end?": (("Version 2 of the API ends on 2027-02-28", "ends on 2027-02-28"),),
    "How long are application logs kept?": (("Application logs are kept for 30 days", "Application logs | 30 days"),),
    "From when to when is the audit week freeze?": (
        ("The audit week freeze lasts from 2027-05-10 to 2027-05-14", "2027-05-10 | 2027-05-14"),
        ("The spring sale freeze lasts from 2027-03-22 to 2027-03-29", "2027-03-29"),
    ),
    "How soon must the first update of a SEV2 be posted?": (
        ("The first update of a SEV2 is due within 30 minutes", "30 minutes"),
    ),
    "Do deploys to production need an approval?": (
        ("Deploys to production need a green build and one approval", "a green build and one approval"),
    ),
    "How long is the probation period?": (("The probation period is 6 months", "probation period is 6 months"),),
    "What is a shadow shift?": (
        ("A shadow shift is an on-call week spent beside the primary", "spent beside the primary"),
    ),
    "How long must a password be?": (("A password must have at least 16 characters", "at least 16 characters"),),
    "Is business class allowed on flights?": (
        ("Business class is allowed on flights of more than 9 hours", "flights of more than 9 hours"),
    ),
    "How much is paid per kilometre for a private car?": (
        ("A private car is reimbursed with 0.32 euros a kilometre", "0.32 euros a kilometre"),
    ),
    "What should I do if a secret was committed to a repository?": (
        ("Rotate the secret with `vaultctl rotate <path>` first", "vaultctl rotate"),
    ),
    "How do I wake the staging environment early?": (("Use `envctl wake staging`", "envctl wake staging"),),
    "Who must agree to an exception during a freeze?": (
        ("The release captain and the incident lead must agree in writing", "release captain and the incident lead"),
    ),
    "What is the error budget?": (("The error budget is 43 minutes a month", "43 minutes a month"),),
    "What is the RTO?": (("The RTO for orders is 60 minutes", "It is 60 minutes for orders"),),
    "When do alerts go to the engineering manager?": (
        ("An unacknowledged page goes to the engineering manager after 20 minutes", "after 20 minutes"),
    ),
    "How do I swap an on-call shift?": (
        ("Use the scheduler: `rota swap --week 2026-W48 --with <role>`", "rota swap --week"),
        ("Enter the swap 24 hours ahead", "24 hours ahead"),
    ),
    "How many operations fit into a batch call?": (("A batch call takes up to 25 operations", "up to 25 operations"),),
    "How long is an idempotency key remembered?": (
        ("The same idempotency key returns the first result for 24 hours", "first result for 24 hours"),
    ),
    "What does FH-5000 mean?": (
        ("FH-5000 stands for maintenance or overload", "Maintenance or overload"),
        ("Retry after 60 seconds", "Retry after 60 seconds"),
    ),
    "How often are API keys rotated?": (("API keys are rotated every 180 days", "rotated every 180 days"),),
    "How long is a support ticket kept?": (
        ("A support ticket is kept for 3 years after closing", "3 years after closing"),
    ),
    "What should I do when the deploy queue is stuck?": (
        ("Find the holder of the lock with `deployq lock show --service <name>`", "deployq lock show"),
    ),
    "Is first class allowed on trains?": (
        ("First class is allowed on train rides of more than 4 hours", "rides of more than 4 hours"),
    ),
    "How many key holders are needed to read a backup?": (
        ("Two of the three key holders are needed to read a backup", "three key holders"),
    ),
    "How long does a full restore take?": (("A full restore takes about 50 minutes", "takes about 50 minutes"),),
    "When does a release go to everybody?": (
        ("A release goes to 5 % of the traffic first", "goes to 5 % of the traffic"),
        ("It goes to 50 % after 30 minutes", "to 50 % after 30 minutes"),
        ("Services are released between 08:00 and 15:00 UTC", "between 08:00 and 15:00 UTC"),
    ),
    "Within how many days is a claim submitted?": (
        ("Submit the claim within 30 days", "submit the claim within 30 days"),
    ),
    "How long is access to production data granted?": (
        ("Access to production data is granted for 8 hours at a time", "granted for 8 hours at a time"),
    ),
    "How long are public certificates valid?": (
        ("Public certificates are valid for 90 days", "certificates are valid for 90 days"),
    ),
    "When does a deploy queue count as stuck?": (
        ("The deploy queue counts as stuck when its head has not moved for 20 minutes", "not moved for 20 minutes"),
    ),
    "How many times is a webhook tried?": (
        ("A webhook is tried 8 times over 24 hours", "tried 8 times over 24 hours"),
    ),
    "How much memory does local development need?": (
        ("Local development needs 16 GB of memory and Docker 27 or newer", "16 GB of memory"),
    ),
}
"""Questions, each with its right sentences and the words of the handbook that bear each of them out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One right sentence; ``shown`` is how it is written now, faults and citation included."""

    right: str
    evidence: str
    source: int
    shown: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Slip:
    """A planted fault: its kind, the sentence it is in, and that sentence before and after it."""

    kind: str
    at: int
    before: str
    after: str


Maker = Callable[[Sentence, tuple[Source, ...], Random], str | None]


def _swap(pattern: str, change: Callable[[re.Match[str], Random], str], text: str, rng: Random) -> str | None:
    found = [match for match in re.finditer(pattern, text) if not text[: match.start()].endswith("[")]
    if not found:
        return None
    match = rng.choice(found)
    return text[: match.start()] + change(match, rng) + text[match.end() :]


def _number(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    if re.search(r"`|\d:\d|\d{4}-\d|FH-", sentence.shown):
        return None
    pattern = r"(?<![\d.,])\d+(?![\d.,]*\d)"
    return _swap(pattern, lambda m, r: str(int(m[0]) * 7 + r.randint(1, 6)), sentence.shown, rng)


def _date(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    days = {"Tuesday": "Friday", "Sunday": "Monday"}
    by_day = _swap("|".join(days), lambda m, _: days[m[0]], sentence.shown, rng)
    return by_day or _swap(
        r"(?<=2027-\d\d-)\d\d", lambda m, r: f"{(int(m[0]) + r.randint(2, 9)) % 27 + 1:02}", sentence.shown, rng
    )


def _time(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return _swap(r"\d\d(?=:\d\d)", lambda m, r: f"{(int(m[0]) + r.randint(3, 9)) % 24:02}", sentence.shown, rng)


def _unit(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    other = {"minutes": "hours", "hours": "days", "days": "weeks", "euros": "dollars", "months": "weeks"}
    other |= {"years": "months", "seconds": "minutes"}
    return _swap(r"(?<=\d )(?:" + "|".join(other) + r")\b", lambda m, _: other[m[0]], sentence.shown, rng)


def _identifier(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return _swap(r"(?<=`)[a-z-]{4,}", lambda m, r: m[0] + r.choice(("-ng", "-cli", "2")), sentence.shown, rng)


def _missing(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return re.sub(r"\s*\[\d+\]", "", sentence.shown) if "[" in sentence.shown else None


def _wrong(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    others = [source.id for source in sources if sentence.evidence not in source.text]
    return re.sub(r"\[\d+\]", f"[{rng.choice(others)}]", sentence.shown) if others else None


def _unknown(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return re.sub(r"\[\d+\]", f"[{rng.randint(40, 99)}]", sentence.shown)


def _link(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    page = f"https://wiki.fernhill.example/{rng.choice(('runbook', 'policy', 'faq'))}/{rng.randint(100, 999)}"
    return re.sub(r" \[", f" (see [here]({page})) [", sentence.shown, count=1)


def _negation(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return _swap(r"\b(?:may|is|are|must)\b", lambda m, _: f"{m[0]} not", sentence.shown, rng)


def _invention(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    made_up = (
        "The works council agreed after a long debate",
        "Nobody has complained so far",
        "Managers tend to like it",
    )
    return f"{sentence.shown} {rng.choice(made_up)} [{sentence.source}]."


def _language(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return f"{sentence.shown} Das gilt so für alle Teams und steht im Handbuch [{sentence.source}]."


def _broadcast(sentence: Sentence, sources: tuple[Source, ...], rng: Random) -> str | None:
    return f"{rng.choice(('<!here>', '<!channel>'))} {sentence.shown}"


MAKERS: dict[str, tuple[Maker, int]] = {
    "number": (_number, 6),
    "date": (_date, 40),
    "time": (_time, 40),
    "unit": (_unit, 4),
    "identifier": (_identifier, 25),
    "missing citation": (_missing, 5),
    "wrong citation": (_wrong, 5),
    "unknown citation": (_unknown, 2),
    "invented link": (_link, 3),
    "negation": (_negation, 6),
    "invention": (_invention, 3),
    "other language": (_language, 1),
    "broadcast": (_broadcast, 1),
}
"""Each kind of fault with its weight among them."""


@dataclass(slots=True, kw_only=True)
class Stores:
    """What the model has in mind for one question: its sentences, and the slips it made and did not mend."""

    rng: Random
    sentences: list[Sentence]
    slips: list[Slip] = field(default_factory=list)
    made: list[Slip] = field(default_factory=list)


class ErringModel:
    """Decides at once and writes with faults; ``memories`` holds by question what it planted."""

    name = "erring"
    quotes_only = False

    def __init__(self, seed: str) -> None:
        self._seed = seed
        self.memories: dict[str, Stores] = {}

    async def decide(self, context: DecideContext) -> Decision:  # noqa: ARG002 - the seam's signature
        return Decision(action=Respond(), usage=Usage(model_calls=1))

    async def generate(self, prompt: str, *, max_tokens: int, temperature: float) -> tuple[str, Usage]:
        raise NotImplementedError

    def write(self, context: WriteContext) -> WriteStream:
        question = context.question.text
        if not context.feedback:
            self.memories[question] = _first(question, context.sources, Random(f"{self._seed} {question}"))
        else:
            _mend(self.memories[question], context.feedback, context.sources)
        stream = WriteStream(pieces=_pieces(_draft(self.memories[question])))
        stream.usage = Usage(model_calls=1)
        return stream


def _first(question: str, sources: tuple[Source, ...], rng: Random) -> Stores:
    sentences = []
    for right, evidence in KNOWN[question]:
        holder = next((source.id for source in sources if evidence in source.text), 0)
        if holder:
            sentences.append(Sentence(right=right, evidence=evidence, source=holder, shown=f"{right} [{holder}]."))
    stores = Stores(rng=rng, sentences=sentences)
    for _ in range(rng.choices((0, 1, 2, 3), (35, 40, 20, 5))[0] if sentences else 0):
        _slip(stores, sources)
    return stores


def _slip(stores: Stores, sources: tuple[Source, ...]) -> None:
    """Plant one fault in a sentence that has none yet."""
    kinds, weights = [*MAKERS], [weight for _, weight in MAKERS.values()]
    spoilt = {slip.at for slip in stores.slips}
    free = [at for at in range(len(stores.sentences)) if at not in spoilt]
    for _ in range(20 if free else 0):
        kind = stores.rng.choices(kinds, weights)[0]
        at = stores.rng.choice(free)
        sentence = stores.sentences[at]
        after = MAKERS[kind][0](sentence, sources, stores.rng)
        if after is not None and after.strip() != sentence.shown:
            slip = Slip(kind=kind, at=at, before=sentence.shown, after=after.strip())
            stores.slips.append(slip)
            stores.made.append(slip)
            stores.sentences[at] = replace(sentence, shown=slip.after)
            return


def _mend(stores: Stores, feedback: str, sources: tuple[Source, ...]) -> None:
    """Mend most of what the feedback names; what it does not name stays, and sometimes another slip comes."""
    for slip in list(stores.slips):
        words = re.sub(r"\W+", " ", slip.after)
        named = any(
            part and part in re.sub(r"\W+", " ", feedback) for part in (words[:60].strip(), words[-60:].strip())
        )
        if named and stores.rng.random() < 0.75:
            stores.slips.remove(slip)
            stores.sentences[slip.at] = replace(stores.sentences[slip.at], shown=slip.before)
    if stores.rng.random() < 0.1:
        _slip(stores, sources)


Style = Literal["plain", "bold", "bullets", "heading", "quote", "table", "label"]
STYLES: tuple[Style, ...] = ("plain", "plain", "bold", "bullets", "heading", "quote", "table", "label")


def _draft(stores: Stores) -> str:
    """The sentences in the form that this model happens to like, sometimes without its tags."""
    if not stores.sentences:
        return "<answer>NOT_IN_SOURCES</answer>"
    text = _styled([sentence.shown for sentence in stores.sentences], stores.rng.choice(STYLES))
    if stores.rng.random() < 0.08:
        return text
    return f"<thinking>Let me look at the sources.</thinking>\n<answer>\n{text}\n</answer>"


def _styled(shown: list[str], style: Style) -> str:
    plain = " ".join(shown)
    styled = {
        "bold": re.sub(r"(?<![\[\d`/.,:-])(\d+ (?:minutes|euros|days|hours))", r"**\1**", plain),
        "bullets": "\n".join(f"* {sentence}" for sentence in shown),
        "heading": f"## Answer\n\n{plain}",
        "quote": "\n".join(f"> {sentence}" for sentence in shown),
        "table": "| what |\n|---|\n" + "\n".join(f"| {sentence} |" for sentence in shown),
        "label": f"__Short answer:__{plain}",
    }
    return styled.get(style, plain)


async def _pieces(text: str) -> AsyncIterator[tuple[Literal["content", "reasoning"], str]]:
    for start in range(0, len(text), 11):
        yield "content", text[start : start + 11]


class KnowingJudge:
    """A judge that knows which sentences are right, and is wrong about one in ten."""

    name = "knowing"

    def __init__(self, seed: str) -> None:
        self._seed = seed
        known = (pair for pairs in KNOWN.values() for pair in pairs)
        self._lines = {right.replace("`", ""): evidence for right, evidence in known}

    async def judge(self, context: JudgeContext) -> Opinion:
        judgements = []
        for number, claim in enumerate(context.claims, 1):
            bare = re.sub(r"[*_•`]|Short answer:|\s*\[\d+\]|\.$", "", claim.text).strip()
            right = bare in self._lines
            if Random(f"{self._seed} {claim.text}").random() < 0.1:
                right = not right
            line = self._lines.get(bare, "some line or other")
            judgements.append(
                Judgement(claim=number, supported=right, evidence=line if right else "", reason="" if right else "No.")
            )
        return Opinion(judgements=tuple(judgements), usage=Usage(model_calls=1))

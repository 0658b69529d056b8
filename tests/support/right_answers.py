"""Right statements over the sample handbook and over other prose, and the answers that are put together from them.

Promises: every statement stands in the page it names, in its own words or nearly so; an answer cites each of its
statements by the number of that page, among pages that say other things. Seeded: the same seed gives the same answers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from random import Random
from typing import Literal

from agent.knowledge.readers.chunking import chunk_document
from agent.knowledge.readers.reading import read_document
from tests.support.paths import ROOT
from verification.types import Draft, Source

HANDBOOK = ROOT / "bot/local/handbook"
Shape = Literal["sentence", "paragraph", "list", "steps", "table", "code"]
SHAPES: tuple[Shape, ...] = ("sentence", "sentence", "paragraph", "paragraph", "list", "steps", "table", "code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A statement without its citation, and the page it stands in (``file#heading``)."""

    page: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RightAnswer:
    """An answer as its parts: statements with the number each cites, the way they are laid out, what may be cited."""

    shape: Shape
    facts: tuple[Fact, ...]
    cited: tuple[int, ...]
    sources: tuple[Source, ...]
    frame: str = field(default="")

    @property
    def lines(self) -> tuple[str, ...]:
        """The statements with their citations."""
        return tuple(cited(fact.text, number) for fact, number in zip(self.facts, self.cited, strict=True))

    def laid_out(self, lines: tuple[str, ...]) -> str:
        """``lines``, which stand for the statements, as an answer of this shape."""
        if self.shape == "sentence":
            return lines[0]
        if self.shape == "paragraph":
            return " ".join(lines)
        marks = [f"{i}. " for i in range(1, len(lines) + 1)] if self.shape == "steps" else ["• "] * len(lines)
        if self.shape in {"list", "steps"}:
            return "\n".join(["Here is what the pages say:", *map("".join, zip(marks, lines, strict=True))])
        return self.frame.format("\n".join(lines))

    def draft(self, text: str) -> Draft:
        """``text`` as an answer to be judged over the same sources, to the same question."""
        return Draft(text=text, question=question(self.facts[0]), sources=self.sources)


def cited(text: str, number: int) -> str:
    """A statement with its citation: before the full stop, in the last cell of a row, below a block of code."""
    if text.startswith("|"):
        return f"{text.removesuffix(' |')} [{number}] |"
    if text.startswith("```"):
        return f"{text}\nThis stands in [{number}]."
    return f"{text} [{number}]."


def question(fact: Fact) -> str:
    """A question that the statement answers, in the statement's language."""
    heading = fact.page.partition("#")[2] or fact.page
    return f"Was gilt bei: {heading}?" if fact.page in GERMAN else f"What do we know about {heading.lower()}?"


OTHER_PROSE: dict[str, str] = {
    "kiln#Kiln schedule": (
        "The kiln heats up for 9 hours and cools down for 14 hours. The first firing reaches 980 °C. "
        "Glazed ware is fired on Tuesday at 18:45. The kiln was overhauled on 12 April 2022. "
        "At least 40 pieces are needed before a firing starts. The door must not be opened above 95 °C. "
        'The manual says: "Keep the vent open until the cones have fallen." '
        "Start it with `kilnctl run --slow-cool` on the controller. The controller runs firmware v3.8.2. "
        "Settings are read from /etc/kiln/profile.toml. Error K2071 means a broken thermocouple."
    ),
    "harbour#Harbour rules": (
        "Boats longer than 24 metres need a pilot. The fee is 315 euros a night, and 20 % less in winter. "
        "The lock opens at 06:15 and closes at 21:30. Captain Moreau signs every permit in Brest. "
        "Permits are valid until 30 September 2026. Anchoring is forbidden inside the basin. "
        "All crews report to the harbour office within 3 days. Fuel is sold by Kerlann in the eastern basin. "
        "The radio call sign is set in HARBOUR_CALLSIGN. Requests go to https://harbour.example/permits. "
        'A sign at the gate reads: "No vessel may leave without clearance."'
    ),
    "bibliothek#Bibliothek": (
        "Die Ausleihe dauert 28 Tage. Die Mahngebühr beträgt 1,50 Euro pro Woche. "
        "Das Magazin öffnet um 10 Uhr und schließt um 19 Uhr. Der Lesesaal wurde am 7. Juni 2019 eröffnet. "
        "Höchstens 6 Bände dürfen mitgenommen werden. Taschen sind im Lesesaal nicht erlaubt. "
        "Die Sammlung umfasst 84.300 Bände."
    ),
    "orchard#Orchard notes": (
        "Each row holds 52 trees. Pruning takes 11 weeks and begins on 8 January 2025. "
        "The pump delivers 640 litres an hour. Frost fans always run below 2 °C. "
        'Pickers always wear gloves. Rainer leads the night shift. The owner wrote: "We never spray during bloom."'
    ),
    "observatory#Observatory log": (
        "The mirror measures 2.4 metres and weighs 830 kilograms. Astronomers from Leiden booked 17 nights. "
        "The dome closes by itself when the wind exceeds 65 km/h. Data are written to /data/raw/night.fits "
        "and are copied every 45 minutes. The camera driver is libcam 5.2.1. Set SKY_EXPOSURE before a run. "
        "The archive is at https://archive.sky.example/nights. Ms Okafor approves all guest programmes. "
        "The first light was on 3 November 1998. Visitors may only enter by day."
    ),
}
GERMAN = frozenset({"bibliothek#Bibliothek"})

STATEMENTS = """
on-call#Rotation | The rotation changes every Tuesday at 10:00 UTC
on-call#Rotation | Each week has one primary and one secondary engineer
on-call#Response times | The primary must acknowledge a page within 5 minutes
on-call#Response times | An unacknowledged page goes to the secondary after 10 minutes
on-call#Response times | After 20 minutes the page goes to the engineering manager
on-call#Handover | The handover is a call of 15 minutes
on-call#Pay and rest | On-call pay is 350 euros a week for the primary
on-call#Swapping a shift | Swap a shift with `rota swap --week 2026-W48 --with <role>`
on-call#Swapping a shift | A swap must be entered 24 hours ahead
on-call#Silencing an alert | An alert may be silenced for at most 4 hours
releases#Release train | Services are released from Monday to Thursday between 08:00 and 15:00 UTC
releases#Release train | A release goes to 5 % of the traffic first
releases#Release train | It rolls back by itself when the error rate rises above 2 %
releases#Releasing a service | Start the release with `shipit start --service <name>`
releases#Releasing a service | Ask for one approval in #releases
releases#Freeze windows | The year end freeze runs from 2026-12-18 to 2027-01-04
releases#Freeze windows | The audit week freeze begins on 10 May 2027
releases#Rolling back | A rollback needs no approval
releases#Rolling back | Roll back with `shipit rollback --service <name> --to previous`
releases#Rolling back | Database migrations are not rolled back
releases#Feature flags | A flag that is fully on for 60 days is removed from the code
releases#Version numbers | Services use calendar versions such as 2026.11.2
start-here#Start here | The page says: "a page that nobody reads is a page that is wrong"
start-here#How to use it | Every change needs one review from another team member
expenses#Meals | The daily limit for meals on business trips is 60 euros
expenses#Handing in | Submit the claim within 30 days
expenses#Handing in | Claims that arrive later than 90 days after the expense are not paid
expenses#Approval | Expenses above 400 euros need the approval of your manager
expenses#Approval | Software subscriptions always need the approval of the security lead
expenses#Home office | Each employee gets 500 euros once for the equipment of a home office
expenses-2024#Meals | In 2024 the daily limit for meals was 45 euros
expenses-2024#Meals | Alcohol is not reimbursed
security-access#Signing in | Passwords have at least 16 characters
security-access#Signing in | Text messages are not accepted as a second factor
security-access#Getting access | Access to production data is granted for 8 hours at a time
security-access#Leaving | All accounts are closed by 18:00 on the last working day
security-access#Lost devices | Report a lost laptop within one hour in #ask-security
security-access#Secrets | Rotate a leaked secret with `vaultctl rotate <path>` first
security-access#Secrets | API keys are rotated every 180 days
travel#Booking | Book flights through the travel portal at least 14 days ahead
travel#Classes | First class is allowed on rides of more than 4 hours
travel#Hotels | A hotel may cost up to 140 euros a night
travel#Private car | A private car is reimbursed with 0.32 euros a kilometre
travel#Abroad | Tell the office manager 10 days before a trip outside the European Union
data-retention#Data retention | Audit logs are kept for 400 days
data-retention#Data retention | Order records are kept for 10 years
data-retention#Requests for erasure | A customer who asks for erasure gets an answer within 30 days
data-retention#Legal hold | Data under legal hold is not deleted until the legal counsel lifts the hold
limits-and-errors#Rate limits | Each API key may make 600 requests a minute
limits-and-errors#Rate limits | The API answers with status 429 and the header `Retry-After`
limits-and-errors#Sizes | A request body may be 2 MB at most
limits-and-errors#Sizes | Requests time out after 30 seconds
limits-and-errors#Error codes | FH-2002 means that the order was changed meanwhile
limits-and-errors#Error codes | Send a valid key in `X-Fern-Key`
limits-and-errors#Idempotency | The same key returns the first result for 24 hours
limits-and-errors#Versions and deprecation | Version 2 ends on 2027-02-28
limits-and-errors#Versions and deprecation | The version stands in the path: `/v3/orders`
limits-and-errors#Webhooks | A webhook is tried 8 times over 24 hours
backups#Schedule | The vault is backed up every 6 hours
backups#Restore a database | A full restore of the orders database takes about 50 minutes
backups#Restore a database | Swap the clusters with `poolctl switch orders orders-restore`
backups#Backups and restore | The page says: "A backup that was never restored is a hope, not a backup"
backups#Encryption | Backups are encrypted with AES-256
environments#Production | Production runs in three zones in the region `eu-central`
environments#Staging | Staging is rebuilt every Sunday at 02:00 UTC
environments#Staging | Deploys to staging need no approval
environments#Preview | A preview environment is deleted 72 hours after the last push
environments#Local development | It needs 16 GB of memory and Docker 27 or newer
incident-severity#Incident severity | The first update of a SEV1 is due after 15 minutes
incident-severity#Declaring an incident | Type `/incident open` in any channel
incident-severity#Reviews | Every SEV1 and SEV2 gets a written review within 5 working days
incident-severity#Roles during an incident | The incident lead does not debug
onboarding#Learning | Every employee has a learning budget of 1,200 euros and 5 days a year
onboarding#First 90 days | The probation period is 6 months
onboarding#First day | Fetch your laptop and your hardware key from the IT desk at 09:30
certificate-renewal#Certificate renewal | Public certificates are valid for 90 days
certificate-renewal#Renew by hand | Run `certbot-fern renew --name <certificate> --dns`
certificate-renewal#Renew by hand | Internal certificates are valid for 12 hours
database-failover#Database fail-over | The alert `OrdersPrimaryDown` pages the primary on-call engineer first
database-failover#Before you start | A replica that lags by more than 30 seconds must not be promoted
database-failover#Before you start | Fail-over takes about 90 seconds
database-failover#Failing over | Promote the healthiest replica with `pgctl-fern promote --cluster orders --wait 120`
database-failover#After the fail-over | Only the database lead may use the `--force` flag
stuck-deploy-queue#Symptoms | The alert `DeployQueueStalled` fires
stuck-deploy-queue#Fix | Never delete rows of the queue table by hand
stuck-deploy-queue#Cause | The lease is renewed every 60 seconds
office-guide# | The office is open from 07:00 to 21:00 on working days
office-guide# | There are 18 parking spaces
kiln#Kiln schedule | The kiln heats up for 9 hours and cools down for 14 hours
kiln#Kiln schedule | The first firing reaches 980 °C
kiln#Kiln schedule | Glazed ware is fired on Tuesday at 18:45
kiln#Kiln schedule | The kiln was overhauled on 12 April 2022
kiln#Kiln schedule | At least 40 pieces are needed before a firing starts
kiln#Kiln schedule | The manual says: "Keep the vent open until the cones have fallen."
kiln#Kiln schedule | Start it with `kilnctl run --slow-cool` on the controller
kiln#Kiln schedule | The controller runs firmware v3.8.2
kiln#Kiln schedule | Settings are read from /etc/kiln/profile.toml
kiln#Kiln schedule | Error K2071 means a broken thermocouple
harbour#Harbour rules | Boats longer than 24 metres need a pilot
harbour#Harbour rules | The fee is 315 euros a night, and 20 % less in winter
harbour#Harbour rules | The lock opens at 06:15 and closes at 21:30
harbour#Harbour rules | Captain Moreau signs every permit in Brest
harbour#Harbour rules | Permits are valid until 30 September 2026
harbour#Harbour rules | Anchoring is forbidden inside the basin
harbour#Harbour rules | All crews report to the harbour office within 3 days
harbour#Harbour rules | Fuel is sold by Kerlann in the eastern basin
harbour#Harbour rules | The radio call sign is set in HARBOUR_CALLSIGN
harbour#Harbour rules | Requests go to https://harbour.example/permits
harbour#Harbour rules | A sign at the gate reads: "No vessel may leave without clearance."
bibliothek#Bibliothek | Die Ausleihe dauert 28 Tage
bibliothek#Bibliothek | Die Mahngebühr beträgt 1,50 Euro pro Woche
bibliothek#Bibliothek | Das Magazin öffnet um 10 Uhr und schließt um 19 Uhr
bibliothek#Bibliothek | Der Lesesaal wurde am 7. Juni 2019 eröffnet
bibliothek#Bibliothek | Höchstens 6 Bände dürfen mitgenommen werden
bibliothek#Bibliothek | Taschen sind im Lesesaal nicht erlaubt
orchard#Orchard notes | Each row holds 52 trees
orchard#Orchard notes | Pruning takes 11 weeks and begins on 8 January 2025
orchard#Orchard notes | The pump delivers 640 litres an hour
orchard#Orchard notes | Pickers always wear gloves
orchard#Orchard notes | Rainer leads the night shift
orchard#Orchard notes | The owner wrote: "We never spray during bloom."
observatory#Observatory log | The mirror measures 2.4 metres and weighs 830 kilograms
observatory#Observatory log | Astronomers from Leiden booked 17 nights
observatory#Observatory log | The dome closes by itself when the wind exceeds 65 km/h
observatory#Observatory log | The camera driver is libcam 5.2.1
observatory#Observatory log | Set SKY_EXPOSURE before a run
observatory#Observatory log | The archive is at https://archive.sky.example/nights
observatory#Observatory log | Ms Okafor approves all guest programmes
observatory#Observatory log | The first light was on 3 November 1998
observatory#Observatory log | Visitors may only enter by day
"""
FACTS = tuple(
    Fact(page=page.strip(), text=text)
    for page, text in (line.split(" | ", 1) for line in STATEMENTS.strip().splitlines())
)

TABLES: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    (
        "incident-severity#Incident severity",
        "| Severity | First update | Who is paged |\n|---|---|---|\n{}",
        (
            "| SEV1 | 15 minutes | Primary, secondary and incident lead |",
            "| SEV2 | 30 minutes | Primary and incident lead |",
            "| SEV3 | 4 hours | Primary |",
        ),
    ),
    (
        "releases#Freeze windows",
        "| Window | From | To |\n|---|---|---|\n{}",
        (
            "| Year end | 2026-12-18 | 2027-01-04 |",
            "| Spring sale | 2027-03-22 | 2027-03-29 |",
            "| Audit week | 2027-05-10 | 2027-05-14 |",
        ),
    ),
    (
        "data-retention#Data retention",
        "| Data | Kept for |\n|---|---|\n{}",
        ("| Application logs | 30 days |", "| Audit logs | 400 days |", "| Database backups | 35 days |"),
    ),
)
BLOCKS: tuple[tuple[str, str], ...] = (
    ("database-failover#Before you start", "```\npgctl-fern status --cluster orders\n```"),
    ("database-failover#Failing over", "```\npgctl-fern probe --cluster orders --writes 10\n```"),
    ("stuck-deploy-queue#Fix", "```\nkubectl rollout restart deploy/deployq-worker -n delivery\n```"),
    ("certificate-renewal#Renew by hand", "```\ncertbot-fern renew --name <certificate> --dns\n```"),
    ("kiln#Kiln schedule", "```\nkilnctl run --slow-cool\n```"),
)


@cache
def pages() -> dict[str, Source]:
    """Every page by its key, numbered 0: the sections of the handbook as they are searched, and the other prose."""
    found: dict[str, Source] = {}
    for path in sorted(path for path in HANDBOOK.rglob("*") if path.is_file()):
        document = read_document(path)
        place = path.relative_to(HANDBOOK).with_suffix("").as_posix()
        for chunk in chunk_document(document):
            key, url = f"{path.stem}#{chunk.heading}", f"https://docs.fernhill.example/{place}"
            title = f"{document.title} › {chunk.heading}" if chunk.heading else document.title
            # The two pages of the office guide have no headings: they are one source here.
            text = f"{found[key].text}\n{chunk.text}" if key in found else chunk.text
            found[key] = Source(id=0, title=title, url=f"{url}#{len(found)}", text=text)
    for key, text in OTHER_PROSE.items():
        name, _, title = key.partition("#")
        found[key] = Source(id=0, title=title, url=f"https://{name}.example/page", text=text)
    return found


def right_answer(rng: Random) -> RightAnswer:
    """A right answer of a drawn shape: statements of at most four pages, among two to four pages that say nothing."""
    shape = rng.choice(SHAPES)
    if shape == "table":
        page, frame, rows = rng.choice(TABLES)
        return _among(rng, RightAnswer(shape=shape, facts=_all_of(page, rows), cited=(), sources=(), frame=frame))
    if shape == "code":
        page, block = rng.choice(BLOCKS)
        told = rng.choice([fact for fact in FACTS if fact.page == page])
        facts = (told, Fact(page=page, text=block))
        return _among(rng, RightAnswer(shape=shape, facts=facts, cited=(), sources=(), frame="{}"))
    first = rng.choice(FACTS)
    others = [fact for fact in FACTS if (fact.page in GERMAN) == (first.page in GERMAN) and fact != first]
    drawn = (first, *rng.sample(others, 0 if shape == "sentence" else rng.randint(1, 3)))
    if first.page in GERMAN and shape in {"list", "steps"}:
        shape = "paragraph"
    return _among(rng, RightAnswer(shape=shape, facts=drawn, cited=(), sources=()))


def _all_of(page: str, texts: tuple[str, ...]) -> tuple[Fact, ...]:
    return tuple(Fact(page=page, text=text) for text in texts)


def _among(rng: Random, answer: RightAnswer) -> RightAnswer:
    """The answer with its pages numbered, in any order, among others."""
    own = list(dict.fromkeys(fact.page for fact in answer.facts))
    keys = [*own, *rng.sample([key for key in pages() if key not in own], rng.randint(2, 4))]
    rng.shuffle(keys)
    sources = tuple(replace(pages()[key], id=number) for number, key in enumerate(keys, start=1))
    return replace(answer, cited=tuple(keys.index(fact.page) + 1 for fact in answer.facts), sources=sources)

"""Sixty right paraphrases written by hand: other spellings, reckoned numbers, seven languages. At most two may fail.

A paraphrase fails if ``ground`` finds an error in it; a suspicion is allowed: it costs a judge's glance and no answer.
"""

from __future__ import annotations

from verification.claims.claims import claims
from verification.grounding import check_claims, read_basis
from verification.types import Draft, Source

PARAPHRASES: tuple[tuple[str, str], ...] = (
    # numbers in other spellings
    ("The archive holds 1,200 tickets.", "There are 1.2k tickets in the archive [1]."),
    ("The archive holds 1,200 tickets.", "The archive contains 1200 tickets [1]."),
    ("Das Archiv umfasst 1.200 Tickets.", "Im Archiv liegen 1 200 Tickets [1]."),
    ("Half of the seats are reserved for visitors.", "50 % of the seats are kept for visitors [1]."),
    ("50 % of the seats are reserved for visitors.", "Half of the seats are set aside for visitors [1]."),
    ("The budget is $2.5 million a year.", "Each year the budget is 2,500,000 dollars [1]."),
    ("The team has twelve members.", "The team consists of 12 members [1]."),
    ("Three reviewers must agree.", "All 3 reviewers need to agree [1]."),
    ("Logs rotate after 90 minutes.", "Logs are rotated after 1.5 hours [1]."),
    ("The trial lasts two weeks.", "The trial runs for 14 days [1]."),
    ("Uploads are limited to 1 GB.", "You can upload up to 1,000 MB [1]."),
    ("The warranty is 24 months.", "The warranty lasts 2 years [1]."),
    ("Attendance grew to 10,432 visitors.", "Attendance rose to about 10,000 visitors [1]."),
    ("The room seats 45 people.", "More than 40 people fit into the room [1]."),
    ("Each pallet carries 3 to 5 crates.", "A pallet carries 3–5 crates [1]."),
    # reckoned numbers
    ("Review takes 2 days and rollout takes 3 days.", "Review and rollout take 5 days in total [1]."),
    ("Of 200 applicants, 50 were accepted.", "25 % of the applicants were accepted [1]."),
    ("Berlin has 300 desks and Paris has 900 desks.", "Together Berlin and Paris have 1,200 desks [1]."),
    ("The fee was 80 euros and is now 100 euros.", "The fee went up by 25 % to 100 euros [1]."),
    ("The fee was 80 euros and is now 100 euros.", "The fee has increased by 20 euros [1]."),
    ("Supported browsers are Firefox, Chrome, Safari and Edge.", "Four browsers are supported [1]."),
    ("Steps:\n- unplug it\n- wait\n- plug it in", "The procedure has 3 steps [1]."),
    ("20 % of the 500 licences are unused.", "100 of the 500 licences are unused [1]."),
    ("The bridge was built in 1990 and closed in 2015.", "The bridge was in use for 25 years, from 1990 to 2015 [1]."),
    # dates and times
    ("The office moved on 5 March 2021.", "On 2021-03-05 the office moved [1]."),
    ("The office moved on 5 March 2021.", "The office moved in March 2021 [1]."),
    ("The office moved on March 5th, 2021.", "The office moved on 05/03/2021 [1]."),
    ("The desk is staffed from 9 am to 5 pm.", "Someone is at the desk from 09:00 to 17:00 [1]."),
    ("The job starts at 14:30.", "The job begins at 2:30 pm [1]."),
    ("The window closes at noon on Friday.", "On Fridays the window closes at 12:00 [1]."),
    ("Das Büro zog am 3. Mai 2021 um.", "Der Umzug des Büros war am 03.05.2021 [1]."),
    ("Le bureau ouvre à 14h30.", "Le bureau est ouvert dès 14:30 [1]."),
    # identifiers, quotes, links, versions
    ("Run `orion index --force` after each import.", "After an import, run `orion index --force` [1]."),
    ("Version v2.4.1 fixed the leak.", "The leak was fixed in 2.4.1 [1]."),
    ("Set ORION_HOME to /srv/orion before the start.", "Before starting, point `ORION_HOME` to `/srv/orion` [1]."),
    ('The policy says: "Never share a password with anyone."', "The policy demands: “never share a password” [1]."),
    ("Details stand at https://docs.example/leave.", "See https://docs.example/leave for the details [1]."),
    ("Error E4012 means that the disk is full.", "If you see E4012, the disk is full [1]."),
    # polarity said another way
    ("Smoking is not allowed in the hall.", "Smoking is forbidden in the hall [1]."),
    ("The feature is disabled by default.", "By default the feature is not enabled [1]."),
    ("At least 2 approvals are required.", "A minimum of 2 approvals is required [1]."),
    ("Requests must be sent within 30 days.", "You have up to 30 days to send a request [1]."),
    # German
    ("Die Kündigungsfrist beträgt zwölf Wochen.", "Die Frist für eine Kündigung liegt bei 12 Wochen [1]."),
    ("Der Zuschuss beträgt 1.250,50 Euro.", "Es gibt einen Zuschuss von 1250,50 € [1]."),
    ("Höchstens fünf Personen dürfen hinein.", "Maximal 5 Personen dürfen in den Raum [1]."),
    ("Die Werkstatt öffnet um 8 Uhr.", "Ab 08:00 ist die Werkstatt offen [1]."),
    # French
    ("Le délai est de trente jours.", "Vous disposez de 30 jours [1]."),
    ("Le prix est de 1 500 euros.", "Il faut compter 1500 € [1]."),
    ("Environ la moitié des salariés télétravaillent.", "Environ 50 % des salariés télétravaillent [1]."),
    # Spanish
    ("El plazo es de veintidós días.", "Hay 22 días de plazo [1]."),
    ("La reunión es el 5 de marzo de 2024 a las 9:30.", "La reunión se celebra el 05/03/2024 a las 9:30 [1]."),
    ("El 20 por ciento de los gastos se reembolsa.", "Se reembolsa el 20 % de los gastos [1]."),
    # Indonesian
    ("Cuti tahunan adalah dua belas hari.", "Karyawan mendapat 12 hari cuti tahunan [1]."),
    ("Anggaran sebesar Rp 5 juta per bulan.", "Anggarannya 5.000.000 rupiah per bulan [1]."),
    ("Rapat dimulai pukul 09.30 pada hari Senin.", "Rapat hari Senin mulai jam 09:30 [1]."),
    # Japanese
    ("申請は三十日以内に行ってください。", "申請の期限は30日以内です[1]。"),
    ("会議は2024年3月5日午後2時に始まります。", "会議は3月5日の14:00に始まります[1]。"),
    # Chinese
    ("年假为十五天。", "员工每年有15天年假[1]。"),
    ("预算是三千五百元。", "预算为3500元[1]。"),
    # across languages: numbers, dates and identifiers still count, words do not
    ("Backups are kept for 30 days and run at 02:00.", "Sicherungen laufen um 2 Uhr und bleiben dreißig Tage [1]."),
)


def accused(source: str, paraphrase: str) -> list[str]:
    draft = Draft(text=paraphrase, sources=(Source(id=1, title="", text=source),))
    _, violations = check_claims(read_basis(draft, paraphrase), claims(paraphrase))
    return [violation.detail for violation in violations if violation.severity == "error"]


def test_at_most_two_of_sixty_right_paraphrases_fail() -> None:
    assert len(PARAPHRASES) == 60
    failed = {paraphrase: details for source, paraphrase in PARAPHRASES if (details := accused(source, paraphrase))}
    assert len(failed) <= 2, failed


def test_each_paraphrase_is_a_claim_with_its_citation() -> None:
    for _, paraphrase in PARAPHRASES:
        assert [claim.cited for claim in claims(paraphrase)] == [(1,)]

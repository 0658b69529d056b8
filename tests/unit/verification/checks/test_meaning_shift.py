"""Suspicions about small shifts: denials, relations, duties, ranks, exchanged roles; and what is said another way."""

from __future__ import annotations

import pytest

from verification.claims.claims import claims
from verification.grounding.examine import grounds
from verification.grounding.ground import ground
from verification.types import Draft, Source, Violation


def found(source: str, claim: str) -> tuple[Violation, ...]:
    text = f"{claim} [1]"
    draft = Draft(text=text, sources=(Source(id=1, title="", text=source),))
    return ground(grounds(draft, text), claims(text))[1]


@pytest.mark.parametrize(
    ("source", "claim", "words"),
    [
        ("Backups are encrypted.", "Backups are hardly encrypted.", "hardly"),
        (
            "Workers get suitable contracts from the manager.",
            "Workers get unsuitable contracts from the manager.",
            "un",
        ),
        ("Unpaid invoices go to the finance team.", "Paid invoices go to the finance team.", "Paid"),
        (
            "Sign the form unless you are a contractor.",
            "Sign the form if you are a contractor.",
            "if you are a contractor",
        ),
        ("Customers in the EU are exempt.", "Customers outside the EU are exempt.", "outside the EU"),
        ("The price is 5 euros excluding VAT.", "The price is 5 euros including VAT.", "including VAT"),
        ("The meeting is on the second Monday.", "The meeting is on the 3rd Monday.", "3rd Monday"),
        ("Drop the index before the import.", "Drop the index after the import.", "after the import"),
        ("Requests go from Paris to Berlin.", "Requests go from Berlin to Paris.", "from Berlin"),
        ("An alert may be silenced for 4 hours.", "An alert must be silenced for 4 hours.", "must be silenced"),
        ("Alice reports to Bob.", "Bob reports to Alice.", "Bob reports to Alice"),
        (
            "The incident lead informs the security lead.",
            "The security lead informs the incident lead.",
            "security lead",
        ),
        ("Der Antrag geht vor der Prüfung ein.", "Der Antrag geht nach der Prüfung ein.", "nach der Prüfung"),
        ("El precio es de 5 euros con impuestos.", "El precio es de 5 euros sin impuestos.", "sin impuestos"),
        ("Le prix est de 5 euros avec taxes.", "Le prix est de 5 euros sans taxes.", "sans taxes"),
        ("The report goes to Ann. Send mail to a list.", "The report hardly goes by mail.", "hardly"),
        (
            "Drop the index before the import of tables. Before the import, drop other things.",
            "Drop the index after the import of tables.",
            "after the import",
        ),
        ("Kirim formulir sebelum audit tahunan.", "Kirim formulir setelah audit tahunan.", "setelah audit"),
    ],
)
def test_f6_a_small_shift_is_at_least_suspected(source: str, claim: str, words: str) -> None:
    shown = found(source, claim)
    assert any(words in violation.words for violation in shown), shown
    assert not found(source, source)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("Bob is led by Alice and the team.", "Alice and the team lead Bob."),
        ("Backups stay in the archive for 30 days.", "For 30 days, backups stay in the archive."),
        ("The office is closed on public holidays.", "The office isn't open on public holidays."),
        ("At most three people may enter the hall.", "No more than three people may enter the hall."),
        ("The ticket is open from 9 am.", "The ticket is not open until 9 am."),
        ("Only the captain may approve a release.", "Nobody but the captain may approve a release."),
        ("Acknowledge a page at once; unacknowledged pages go on.", "A page must be acknowledged at once."),
        ("Prices with VAT are for guests, prices without VAT for firms.", "Prices with VAT are for guests."),
        ("Alice informs Bob.", "Bob is informed by Alice."),
        ("Requests go to the box at the desk.", "Requests go to the inbox at the desk."),
        ("It is cleaned by the crew.", "The unit is cleaned by the crew."),
        ("経費は30日以内に精算されます。", "経費は30日以内に精算されます。"),
    ],
)
def test_f1_the_same_said_another_way_is_no_shift(source: str, claim: str) -> None:
    assert not [v for v in found(source, claim) if "where the answer" in v.detail or "order" in v.detail]
    assert not [v for v in found(source, claim) if "nowhere" in v.detail]


def test_f6_a_shift_is_never_an_error() -> None:
    shown = found("The price is 5 euros excluding VAT.", "The price is 5 euros including VAT.")
    assert [violation.severity for violation in shown] == ["warning"]
    assert "'excluding VAT' where the answer says 'including VAT'" in shown[0].detail


def test_f1_unless_is_not_the_contrary_of_less() -> None:
    assert found("Sign the form unless you are a contractor.", "Sign the form, less so as a contractor.") == ()

"""Claims that turn their source round: negation, opposites, quantifiers, bounds; and turns that cancel out."""

from __future__ import annotations

from verification.claims.claims import claims
from verification.grounding.examine import grounds
from verification.grounding.ground import ground
from verification.types import Draft, Source, Violation


def found(source: str, claim: str) -> tuple[Violation, ...]:
    text = f"{claim} [1]"
    draft = Draft(text=text, sources=(Source(id=1, title="", text=source),))
    return ground(grounds(draft, text), claims(text))[1]


def test_f9_a_turned_sentence_is_an_error() -> None:
    for source, claim in [
        ("Deploys are allowed on Friday.", "Deploys are not allowed on Friday."),
        ("The door must not be opened by visitors.", "The door must be opened by visitors."),
        ("The service doesn't restart by itself.", "The service does restart by itself."),
        ("The feature is enabled in the cloud.", "The feature is disabled in the cloud."),
        ("Most requests are answered the same day.", "All requests are answered the same day."),
        ("At least 5 people must sign the form.", "At most 5 people must sign the form."),
        ("Der Zugang ist am Sonntag erlaubt und kostenlos.", "Der Zugang ist am Sonntag verboten und kostenlos."),
        ("Der Zugang ist am Sonntag erlaubt und kostenlos.", "Der Zugang ist am Sonntag nicht erlaubt und kostenlos."),
        ("L'accès au dépôt est autorisé pour les équipes.", "L'accès au dépôt est interdit pour les équipes."),
        (
            "El acceso a la sala está permitido para los equipos.",
            "El acceso a la sala está prohibido para los equipos.",
        ),
        ("Fitur ini selalu aktif untuk semua pengguna baru.", "Fitur ini selalu nonaktif untuk semua pengguna baru."),
        ("Guests may park; staff may not park.", "Guests may not park; staff may park."),
        ("The pumps mightn't start by themselves.", "The pumps might start by themselves."),
        ("Parking is permitted for visitors today.", "Parking is forbidden for visitors today."),
        ("Das Parken ist Gästen gestattet und kostenlos.", "Das Parken ist Gästen untersagt und kostenlos."),
        ("Access allowed for teams of visitors.", "Access forbidden to teams of visitors."),
        ("この機能は既定で有効です。", "この機能は既定で無効です。"),
        ("該当する機能は自動で更新されます。", "該当する機能は自動で更新されません。"),
        ("该功能默认启用。", "该功能默认禁用。"),
        ("员工可以申请年假。", "员工不可以申请年假。"),
        # the turned word is one the two do not share: another sentence may hold as many words
        ("Backups run every 6 hours. Backups are encrypted.", "Backups are unencrypted."),
        # another part of the sentence may be longer than the one that is turned
        (
            "A replica that lags must not be promoted; page the database lead instead and wait for the answer.",
            "A replica that lags must be promoted.",
        ),
        # both negate, but not the same
        (
            "Managers may read the reports; contractors must not read the reports.",
            "Contractors may read the reports; managers must not read the reports.",
        ),
        (
            "Guests may enter the hall; they may not stay overnight.",
            "Guests may not enter the hall; they may not stay overnight.",
        ),
        # what is denied is an amount, and the verb stands in the head of the table or nowhere
        ("| Application logs | 30 days | Log platform |", "Application logs are not kept for 30 days."),
        ("- **RTO**: the longest outage. It is 60 minutes for orders.", "The RTO for orders is not 60 minutes."),
        # "without" denies something that the claim does not name
        (
            "Shadow shift: a week spent beside the primary, without the pager.",
            "A shadow shift is not a week spent beside the primary.",
        ),
    ]:
        assert [v.severity for v in found(source, claim)][:1] == ["error"]
        assert not [v for v in found(source, source) if v.severity == "error"]


def test_f1_the_same_said_another_way_is_none() -> None:
    for source, claim in [
        ("Smoking is not allowed in the hall.", "Smoking is forbidden in the hall."),
        ("The feature is disabled in the cloud.", "The feature is not enabled in the cloud."),
        ("Pets are welcome in the garden.", "No, sorry; pets are welcome in the garden."),
        ("The hall is open. Nobody may smoke there.", "The hall is open."),
        ("All requests are answered the same day.", "Each request is answered the same day."),
        ("Guests may not park; staff may park here.", "Staff may park here; guests may not park."),
        ("Guests may not park, and may not camp.", "Guests may not camp, and may not park."),
        (
            "On Sunday the hall is open. The hall of the museum is not open on Sunday.",
            "The hall is open on Sunday.",
        ),
        ("Entry within 5 days is free of charge.", "Entry is free of charge."),
        ("Application logs are kept for 30 days, not for 60.", "Application logs are not kept for 60 days."),
        ("A deploy without a ticket is refused.", "A deploy is not accepted without a ticket."),
    ]:
        assert not [v for v in found(source, claim) if v.severity == "error"]


def test_f1_a_turn_in_a_loosely_matching_sentence_is_only_a_suspicion() -> None:
    source = "The harbour office of the old town is never closed to crews, whatever the weather may be like outside."
    assert "error" not in {v.severity for v in found(source, "The harbour office in town has lovely weather.")}


def test_f1_what_is_denied_of_others_only_is_a_suspicion() -> None:
    source = "Allowed only while its status is pending or paid; shipped orders cannot be cancelled."
    assert "error" not in {v.severity for v in found(source, "You can cancel an order while it is pending or paid.")}
    assert "error" in {v.severity for v in found(source, "Shipped orders can be cancelled.")}


def test_f1_the_rest_of_a_number_may_be_denied() -> None:
    source = "Of the 400 days of logs 90 days of logs are searchable at once."
    assert "error" not in {v.severity for v in found(source, "310 days of logs are not searchable at once.")}
    assert "error" in {v.severity for v in found(source, "90 days of logs are not searchable at once.")}


def test_f1_a_turn_names_what_the_source_says_and_the_part_that_turns_it() -> None:
    source = "Managers may read the reports; contractors must not read the reports."
    (violation,) = found(source, "Contractors may read the reports; managers must not read the reports.")
    assert "says 'not read' where the answer says 'read'" in violation.detail
    (violation,) = found("The feature is enabled in the cloud.", "The feature is disabled in the cloud.")
    assert "says 'enabled' where the answer says 'disabled'" in violation.detail

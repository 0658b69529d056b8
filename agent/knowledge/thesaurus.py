"""Different words for one thing at work: ``maximum`` and ``limit``, ``ship`` and ``release``, ``Urlaub`` and ``leave``.

Promises: pure data and look-ups; a phrase counts as one word. A group is a hint for finding and ranking, never a
statement that its words mean the same: what is quoted stays as it stands. Must stay small: words of any workplace only.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from agent.knowledge.terms import stem, words

_GROUPS: Final = tuple(
    tuple(part.strip() for part in line.split(","))
    for line in """
    limit, maximum, max, cap, ceiling, at most, up to, obergrenze, höchstens, maximal
    reimburse, refund, pay back, erstatten, erstattung
    pay, money, compensation, vergütung, bezahlung, geld
    suspicious, weird, strange, odd, verdächtig, komisch
    annual leave, paid leave, days of leave, leave days, holiday, vacation, time off, days off, pto, urlaub, ferien
    release, deploy, deployment, ship, roll out, rollout, go live, ausrollen, veröffentlichen
    rollback, roll back, revert, undo, zurückrollen
    incident, outage, downtime, disruption, störung, ausfall, vorfall
    phone, mobile, smartphone, handy, telefon
    page, call, alert, alarm, notify, ring, warning, warnung, anrufen, alarmieren
    on call, oncall, on-call, standby, rufbereitschaft, bereitschaft
    shift, duty, schicht, dienst
    production, prod, produktion
    database, db, datenbank
    environment, env, umgebung
    failover, fail over, switch over, switchover
    lose, steal, theft, missing, verloren, gestohlen
    repository, repo
    approve, approval, agree, consent, sign off, permission, authorise, genehmigen, genehmigt, genehmigung, freigabe
    allow, permit, erlaubt, erlauben
    submit, hand in, turn in, einreichen, abgeben
    cost, price, fee, charge, kosten, preis
    trip, travel, journey, reise, dienstreise, reisen
    hotel, accommodation, lodging, unterkunft
    night, nacht, nuit, noche, malam
    retry, try, attempt, wiederholen, réessayer, reintentar
    meal, meals, dinner, lunch, food, essen, mahlzeit, mahlzeiten, verpflegung
    laptop, computer, notebook, rechner
    password, passphrase, passwort, kennwort
    sign in, signing in, log in, login, sign on, anmelden, einloggen
    second factor, mfa, 2fa, two factor, zweiter faktor
    error, failure, fault, fehler
    stuck, hang, jammed, hängen, hängt
    fix, repair, solve, resolve, beheben, reparieren
    delete, remove, erase, erasure, purge, löschen
    keep, retain, retention, store, aufbewahren, aufbewahrt, conserver, conservé, conservés, conservées, conservar
    expense, expenses, spesen, auslagen
    end, finish, expire, expiry, enden, ablaufen
    renew, renewal, erneuern, verlängern
    certificate, cert, tls, ssl, zertifikat
    onboarding, newcomer, new hire, new joiner, new starter, einarbeitung
    probation, probation period, trial period, probezeit
    office, building, büro, gebäude
    visitor, guest, besucher, gast, gäste
    development, dev, developing, entwicklung
    space, spot, slot, platz
    bicycle, bike, cycle, fahrrad
    open, opening, opening hours, offen, geöffnet, öffnungszeiten
    train, rail, railway, zug, bahn
    backup, back up, backups, sicherung, datensicherung
    restore, recover, recovery, wiederherstellen
    review, postmortem, post mortem, retrospective, nachbesprechung
    owner, own, responsible, in charge, accountable, zuständig, verantwortlich
    manager, boss, supervisor, chef, vorgesetzter, vorgesetzte
    silence, mute, snooze, stummschalten
    learning, training, education, course, weiterbildung, schulung
    employee, staff, colleague, mitarbeiter, mitarbeiterin, kollege
    book, reserve, buchen, reservieren
    size, how big, how large, grösse, größe
    acknowledge, ack, respond, response, react, reagieren
    home office, homeoffice, remote work, work from home, wfh
    """.strip().splitlines()
)
_LONGEST: Final = 3


def phrases(text: str) -> Iterator[tuple[str, ...]]:
    """The words of a text in order; words that stand together as a phrase of a group come together."""
    found = words(text)
    known = _members(None)
    at = 0
    while at < len(found):
        size = next((n for n in range(_LONGEST, 1, -1) if _key(found[at : at + n], None) in known), 1)
        yield tuple(found[at : at + size])
        at += size


@lru_cache(maxsize=20_000)
def same_thing(phrase: tuple[str, ...], language: str | None) -> frozenset[str]:
    """The keys of the other words for a word or phrase; empty where no group has it."""
    known = _members(language)
    return known.get(key(phrase, language), frozenset()) | known.get(" ".join(phrase), frozenset())


def key(phrase: tuple[str, ...], language: str | None) -> str:
    """What a word or phrase is compared by: its stems."""
    return _key(list(phrase), language)


def other_words(text: str) -> list[str]:
    """What else the things in a text may be called, without what it says itself."""
    said = {" ".join(phrase) for phrase in phrases(text)}
    keys = {key(phrase, None) for phrase in phrases(text)}
    groups = (group for group in _GROUPS if any(_key(words(term), None) in keys or term in said for term in group))
    terms = (term for group in groups for term in group)
    return [term for term in dict.fromkeys(terms) if term not in said]


@lru_cache(maxsize=8)
def _members(language: str | None) -> dict[str, frozenset[str]]:
    """Every word of every group, by its stems in one language, with the others of its groups."""
    found: dict[str, frozenset[str]] = {}
    for group in _GROUPS:
        keys = frozenset(_key(words(term), language) for term in group)
        for each in keys:
            found[each] = found.get(each, frozenset()) | keys - {each}
    return found


def _key(found: list[str], language: str | None) -> str:
    return " ".join(stem(word, language) for word in found)

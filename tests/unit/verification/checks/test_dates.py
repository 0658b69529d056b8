"""Dates of claims against those of the sources: spans of years, missing years, and the date named instead."""

from verification.check import check
from verification.types import Draft, Source, Violation


def errors(source: str, text: str, question: str = "") -> list[Violation]:
    pages = (Source(id=1, title="", text=source),)
    verdict = check(Draft(text=f"{text} [1].", sources=pages, question=question))
    return [each for each in verdict.errors if each.rule == "claim_supported"]


def test_the_feedback_names_a_date_of_the_same_kind() -> None:
    for source, text, detail in [
        ("In 2018 the office opened and a year later it moved.", "The office opened at 10:00", "10:00 is not in"),
        ("On 5 March 2024 the office opens at 09:00.", "The office opens at 10:00", "says 09:00, not 10:00"),
        ("The desk opens at 09:00 since 2021.", "The desk is open since 2023", "says 2021, not 2023"),
        ("The audit is on 5 March.", "The audit is on 5 March 2024", "5 March 2024 is not in"),
        ("5 March 2024 is the day of the audit.", "6 March 2024 is the day of the audit", "says 5 March 2024"),
    ]:
        (only,) = errors(source, text)
        assert detail in only.detail


SENTENCES = {
    "The shop closes {}": ["at Easter", "at Christmas", "in spring", "in summer", "in the fall", "in winter"],
    "Der Laden schließt {}": ["an Ostern", "an Weihnachten", "im Frühjahr", "im Sommer", "im Herbst", "im Winter"],
    "Le magasin ferme {}": ["à Pâques", "à Noël", "au printemps", "en été", "en automne", "en hiver"],
    "La tienda cierra en {}": ["Semana Santa", "Navidad", "primavera", "verano", "otoño", "invierno"],
    "Toko tutup pada {}": ["Paskah", "Natal", "musim semi", "musim panas", "musim gugur", "musim dingin"],
    "店は{}に閉まります": ["復活祭", "クリスマス", "春", "夏", "秋", "冬"],
    "商店在{}关门": ["复活节", "圣诞节", "春天", "夏季", "秋天", "冬季"],
}


def test_another_season_or_feast_in_the_place_of_the_sources_fails() -> None:
    for sentence, times in SENTENCES.items():
        for written, other in zip(times, (*times[1:], times[0]), strict=True):
            source = sentence.format(other)
            assert errors(source, sentence.format(written)), (written, source)
            assert errors(source, source) == []


def test_a_word_that_is_also_a_season_or_a_month_fails_nothing() -> None:
    for source, text in [
        ("Le bureau sera fermé en hiver.", "Le bureau a été fermé"),
        ("Prices drop in the first year, in summer.", "Prices fall in the first year"),
        ("Prices rise in March and fall in summer.", "Prices rise in spring"),
        ("The spring in the pump is replaced every summer.", "The spring in the pump is replaced"),
        ("The sandwich has mayonnaise, and the menu changes in June.", "The sandwich has mayo"),
        ("Traffic fell sharply in the summer months.", "The fall in traffic was sharp"),
        ("Prices dropped in summer and it hit us hard.", "The fall in prices hit us hard"),
        ("Die Liste erscheint montags und nennt jeden.", "In der Liste finde ich jeden"),
    ]:
        assert errors(source, text) == [], text
    for shop in ("La tienda", "La tienda mayor", "El consejo de los mayores"):
        assert errors(f"{shop} abre en junio.", f"{shop} abre en mayo"), shop


def test_a_season_that_the_source_says_in_other_words_fails_nothing() -> None:
    for source, text in [
        ("Open from spring to autumn.", "It is open in summer"),
        ("Open from autumn until spring.", "It is open in winter"),
        ("Ouvert du printemps à l'automne.", "C'est ouvert en été"),
        ("Der Garten ist von Frühjahr bis Herbst offen.", "Der Garten ist im Sommer offen"),
        ("Abre de primavera a otoño.", "Abre en verano"),
        ("Toko buka dari musim semi hingga musim gugur.", "Toko buka pada musim panas"),
        ("プールは春から秋まで開いています。", "プールは夏に開いています"),
        ("游泳池春季到秋季开放。", "游泳池夏季开放"),
        ("The Christmas break is two weeks.", "The winter break is two weeks"),
        ("Die Osterferien dauern nach dem Winter zwei Wochen.", "Die Ferien an Ostern dauern zwei Wochen"),
        ("Die Sommerpause beginnt nach dem Frühjahr.", "Die Pause im Sommer beginnt bald"),
        ("Les vacances estivales suivent le printemps.", "Les vacances d’été suivent le printemps"),
        ("夏休みは三週間で、冬は一週間です。", "休みは夏に三週間です"),
    ]:
        assert errors(source, text) == [], text
    for source, text in [
        ("It is open in spring and autumn.", "It is open in summer"),
        ("It is open from spring to autumn.", "It is open in winter"),
        ("The party is in winter.", "The party is at Christmas"),
        ("The party is at Christmas.", "The party is in spring"),
    ]:
        assert errors(source, text), text


def test_the_weekend_is_saturday_and_sunday() -> None:
    for weekend, days, others in [
        ("The shop is open at the weekend", "The shop is open on Saturday and Sunday", "The shop is open on Monday"),
        (
            "Der Laden ist am Wochenende offen",
            "Der Laden ist samstags und sonntags offen",
            "Der Laden ist Montag offen",
        ),
        (
            "Le magasin est ouvert le week-end",
            "Le magasin est ouvert samedi et dimanche",
            "Le magasin est ouvert lundi",
        ),
        ("La tienda abre los fines de semana", "La tienda abre sábados y domingos", "La tienda abre los lunes"),
        ("Toko buka pada akhir pekan", "", "Toko buka pada hari Senin"),
        ("店は週末に開きます", "店は土曜日と日曜日に開きます", "店は月曜日に開きます"),
        ("商店周末开门", "商店星期六和星期日开门", "商店星期一开门"),
    ]:
        assert errors(days or weekend, weekend) == errors(weekend, days or weekend) == [], weekend
        assert errors(others, weekend), weekend
        assert errors(weekend, others), others
    assert errors("The shop is open every day.", "The shop is open on weekends") == []
    for days in ("Monday to Sunday", "Monday through Sunday", "Saturday through Monday"):
        assert errors(f"The shop is open {days}.", "The shop is open on weekends") == []
    assert errors("Le magasin est ouvert du lundi au dimanche.", "Le magasin est ouvert le week-end") == []

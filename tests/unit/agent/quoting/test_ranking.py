"""Ranking: rare words, places, forms, neighbours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from agent.quoting.excerpt import THRESHOLD
from agent.quoting.ranking import Asked, Ranked, rank
from agent.quoting.units import units_of
from verification.types import Source

HANDBOOK = (
    Source(id=1, title="Travel › Hotels", text="A hotel may cost 140 euros. Breakfast is included."),
    Source(
        id=2, title="Onboarding", text="## First day\n\n- Fetch your laptop.\n\n## Later\n\nThe next day is first come."
    ),
    Source(id=3, title="Deploys", text="Releases stop on Fridays.\n\n1. Run `ship stop`.\n2. Wait."),
)


def ranked(question: str, *sources: Source, completed: str = "") -> tuple[Ranked, ...]:
    units = [unit for source in sources or HANDBOOK for unit in units_of(source)]
    return rank(Asked(text=question, completed=completed), units)


def best(question: str, *sources: Source, completed: str = "") -> str:
    return ranked(question, *sources, completed=completed)[0].unit.text


def test_b_the_unit_with_the_words_is_first() -> None:
    assert best("What does a hotel cost?") == "A hotel may cost 140 euros."
    assert ranked("What does a hotel cost?")[0].covered == 1.0


def test_b_a_heading_counts_and_neighbouring_words_count_more() -> None:
    assert best("What happens on the first day?") == "Fetch your laptop."


def test_b_a_question_for_a_number_prefers_one() -> None:
    sources = (Source(id=1, title="", text="The wait depends. The wait is 5 minutes."),)
    assert best("How long is the wait?", *sources) == "The wait is 5 minutes."
    assert best("Is there a wait?", *sources) == "The wait depends."


def test_b_a_question_for_a_procedure_prefers_steps() -> None:
    assert best("How do I stop?", HANDBOOK[2]) == "Run `ship stop`."


def test_b_irregular_forms_and_longer_forms_are_the_same_word() -> None:
    sources = (Source(id=1, title="", text="Logs are kept here. The Passwortlänge is 16."),)
    assert best("Do we keep it?", *sources) == "Logs are kept here."
    assert best("Passwort?", *sources) == "The Passwortlänge is 16."


def test_b_a_question_for_a_meaning_prefers_what_opens_with_the_word() -> None:
    sources = (Source(id=1, title="", text="You need two shadow shifts. **Shadow shift**: a week beside the primary."),)
    assert best("What is a shadow shift?", *sources) == "**Shadow shift**: a week beside the primary."
    assert best("When is a shadow shift?", *sources) == "You need two shadow shifts."


def test_b_who_asks_how_often_or_how_long_gets_that_measure() -> None:
    sources = (Source(id=1, title="", text="A restore takes 50 minutes. We restore every month."),)
    assert best("How often do we restore?", *sources) == "We restore every month."
    assert best("How long does a restore take?", *sources) == "A restore takes 50 minutes."


def test_b_a_name_alone_prefers_the_row_that_has_it_first() -> None:
    sources = (
        Source(id=1, title="", text="SEV1 needs a review.\n\n| Severity | Meaning |\n|---|---|\n| SEV1 | Bad |\n"),
    )
    assert best("sev 1", *sources) == "Severity: SEV1; Meaning: Bad"


def test_b_an_amount_of_something_that_only_the_heading_names_is_none() -> None:
    source = Source(id=1, title="Onboarding", text="# Onboarding\n\nYour start.")
    assert ranked("How long is onboarding?", source)[0].covered < ranked("What is onboarding?", source)[0].covered


def test_b_a_pasted_text_costs_no_more_than_a_long_question() -> None:
    pasted = " ".join(f"word{n}" for n in range(20_000))
    assert ranked(f"hotel {pasted}")[0].unit.text == "A hotel may cost 140 euros."


def test_b_words_of_earlier_questions_weigh_less() -> None:
    sources = (Source(id=1, title="", text="Production needs approval. Staging needs none."),)
    completed = "What about staging? production"
    assert best("What about staging?", *sources, completed=completed) == "Staging needs none."


def test_b_nothing_to_compare_is_no_ranking() -> None:
    assert rank(Asked(text="hotel"), ()) == ()
    assert ranked("?") == ()
    assert ranked("Why is it so?") == ()


def test_f9_a_question_too_short_to_tell_takes_the_sources_language() -> None:
    german = Source(
        id=1, title="Urlaub", text="Alle Mitarbeiter haben 30 Tage Urlaub im Jahr. Der Rest verfällt im März."
    )
    assert best("Urlaubstage?", german) == "Alle Mitarbeiter haben 30 Tage Urlaub im Jahr."


@given(st.text(max_size=200), st.text(max_size=200))
def test_b_any_text_ranks_within_bounds(question: str, text: str) -> None:
    for found in ranked(question, Source(id=1, title="T", text=text)):
        assert 0.0 <= found.covered <= 1.0001


def test_d2_a_question_for_the_newest_prefers_the_newest_document() -> None:
    old = Source(id=1, title="A", text="The price is 5 euros.", updated_at="2020-01-01")
    new = Source(id=2, title="B", text="The price is 6 euros.", updated_at="2026-01-01")
    assert best("What is the price?", old, new) == "The price is 5 euros."
    assert best("What is the current price?", old, new) == "The price is 6 euros."


def test_b_a_thing_that_is_asked_for_and_named_nowhere_near_counts_against() -> None:
    text = (Source(id=1, title="API", text="The rate limit of the public API is 600 requests a minute."),)
    assert ranked("What is the rate limit of the public API?", *text)[0].covered > THRESHOLD
    assert ranked("What is the rate limit of the sandbox?", *text)[0].covered < THRESHOLD
    assert ranked("How many partners does the public API have?", *text)[0].covered < THRESHOLD


def test_b_what_stands_in_another_row_is_said_of_something_else() -> None:
    table = "| Machine | Cost |\n|---|---|\n| Lathe | 5 euros |\n| Mill | 6 euros |"
    found = ranked("What does the lathe with the mill cost?", Source(id=1, title="Shop", text=table))[0]
    assert found.lacks


def test_b_a_verb_that_is_not_said_counts_less_against_a_sentence_than_a_noun() -> None:
    text = Source(id=1, title="Reviews", text="Action items are done within 30 days.")
    verb, noun = (
        ranked(question, text)[0].covered
        for question in ("When must I complete action items?", "When are the action items of the auditor done?")
    )
    assert noun < verb < 1.0


def test_b_a_follow_up_that_only_points_is_about_what_was_asked_before() -> None:
    sources = (
        Source(id=1, title="A", text="A certificate gets a new one every 6 hours."),
        Source(id=2, title="B", text="For a lost hardware key you get a replacement within 2 days."),
    )
    completed = "When do I get a new one? lost hardware key"
    assert best("When do I get a new one?", *sources, completed=completed).startswith("For a lost hardware key")


def test_b_how_long_something_takes_is_what_it_takes() -> None:
    text = "Move the queue when it stands for 3 minutes. Moving the queue takes 90 seconds."
    assert best("How long does it take to move the queue?", Source(id=1, title="Queue", text=text)).endswith(
        "90 seconds."
    )


def test_b_a_row_with_a_column_of_the_question_word_is_preferred() -> None:
    table = "The vault is heavy.\n\n| What | Where |\n|---|---|\n| Vault | The safe |\n"
    assert best("Where is the vault?", Source(id=1, title="Backup", text=table)) == "What: Vault; Where: The safe"


def test_b_a_fact_is_no_procedure_whatever_else_is_said() -> None:
    assert not Asked(text="How long do I wait before the runbook?").wants_procedure
    assert Asked(text="Is there a runbook?").wants_procedure


def test_b_a_heading_that_says_after_the_move_is_meant_by_after_the_move() -> None:
    text = "## Moving\n\nMove the desk. Mind the door.\n\n## After the move\n\nClean the old room."
    assert best("What do I do after a move?", Source(id=1, title="Desks", text=text)) == "Clean the old room."


def test_b_the_own_name_of_the_house_need_not_be_said() -> None:
    sources = (
        Source(id=1, title="Start", text="Your first weeks at Acme."),
        Source(id=2, title="Flags", text="The flags are named by colour."),
    )
    assert ranked("How are Acme's flags named?", *sources)[0].covered > THRESHOLD
    assert ranked("How are Berlin's flags named?", *sources)[0].covered < THRESHOLD


def test_b_who_asks_why_is_told_a_reason() -> None:
    page = Source(id=1, title="Queue", text="The queue stalls at night.\n\n## Cause\n\nIt stalls when a runner dies.")
    assert best("Why does the queue stall?", page) == "It stalls when a runner dies."
    assert best("When does the queue stall?", page) == "The queue stalls at night."


def test_b_how_long_something_takes_is_told_by_what_it_takes() -> None:
    pages = (
        Source(
            id=1, title="Database fail-over", text="Use this if the orders database is down for more than 3 minutes."
        ),
        Source(id=2, title="Database fail-over › Before", text="## Before\n\nFail-over takes about 90 seconds."),
    )
    assert best("How long does a fail-over of the orders database take?", *pages) == "Fail-over takes about 90 seconds."


def test_b_what_names_nothing_of_what_was_told_covers_half() -> None:
    page = Source(id=1, title="Mail", text="Forward suspicious mail.")
    (unit,) = units_of(page)
    (told,) = rank(Asked(text="Whom do I forward it to?", told="I got a parcel."), [unit])
    (bare,) = rank(Asked(text="Whom do I forward it to?"), [unit])
    assert told.covered < bare.covered / 2


def test_b_what_is_told_before_a_question_helps_and_is_not_insisted_on() -> None:
    pages = (
        Source(id=1, title="Swapping a shift", text="Swap in the scheduler, not by message."),
        Source(id=2, title="Desks", text="Swap desks in the planner."),
    )
    units = [unit for source in pages for unit in units_of(source)]
    told = "I cannot do my shift in November."
    first, *_ = rank(Asked(text="How do I swap it?", told=told), units)
    assert (first.unit.source.id, first.covered >= THRESHOLD) == (1, True)
    insisted, *_ = rank(Asked(text="How do I swap it in November?", completed=told), units)
    assert insisted.covered < THRESHOLD

"""Attached files as sources, and what is said of those that were not read."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.files import MAX_PARTS, MAX_WHOLE_CHARS, add_unread_notes, file_sources
from agent.outcome import Answered, Refused
from agent.texts.catalogue import LANGUAGES, own_message, say
from agent.thread.conversation import AttachedFile, Question, ThreadMessage, asks_for_file
from tests.support.documents import attached_file
from tests.support.fakes import ScriptedModel, question, take_turn

NOTES = AttachedFile(
    name="notes.md", text="# Launch\n\nThe launch is on 3 March. Ann leads it.\n\n# Costs\n\nIt costs 400 euros.\n"
)


def ask(text: str, *files: AttachedFile) -> Question:
    return replace(question(text), files=files)


def long_file(name: str = "log.txt") -> AttachedFile:
    lines = [f"Step {number} copies the records of region {number}.\n" for number in range(400)]
    lines[311] = "The walrus backup failed with error 7731.\n"
    return attached_file(name, "\n".join(lines))


def test_a_short_file_is_one_source_for_this_place_only() -> None:
    (source,) = file_sources(ask("when?", replace(NOTES, url="https://team.slack.example/files/F1")))
    assert (source.title, source.text, source.origin, source.audience) == ("notes.md", NOTES.text, "file", "C1")
    assert source.url == "https://team.slack.example/files/F1"


def test_the_parts_of_a_long_file_nearest_to_the_question_are_sources() -> None:
    found = file_sources(ask("Why did the walrus backup fail?", long_file()))
    assert len(found) == MAX_PARTS
    plan = "".join(f"# Part {n}\n\n{'The region has records. ' * 40}\n\n" for n in range(20))
    named = file_sources(ask("What of Part 7?", attached_file("plan.md", plan)))
    assert "plan.md › Part 7" in [source.title for source in named]
    assert sum("7731" in source.text for source in found) == 1
    assert all(source.text in long_file().text for source in found)
    assert [source.title for source in found] == sorted(
        (source.title for source in found), key=lambda title: int(title.rpartition(" ")[2])
    )


@given(st.text(max_size=400), st.integers(0, 40))
def test_sources_never_contain_more_than_the_file(text: str, times: int) -> None:
    file = attached_file("a.txt", text * times)
    found = file_sources(ask("what is the deadline?", file))
    assert sum(len(source.text) for source in found) <= len(file.text)
    assert bool(found) == bool(file.text.strip())


def test_each_file_that_was_not_read_is_named_above_the_answer() -> None:
    files = (NOTES, AttachedFile(name="a`<b>&.zip", trouble="form"), long_file("big.txt"))
    refused = Refused(answer=replace(own_message("No."), label="Label."), reason="x")
    told = add_unread_notes(refused, ask("what is it?", *files))
    assert isinstance(told, Refused)
    assert told.answer.label.split("\n") == [
        "Label.",
        say("file_form", "en", name="a'&lt;b&gt;&amp;.zip"),
        say("file_long", "en", name="big.txt"),
    ]
    assert add_unread_notes(refused, ask("what is it?", NOTES)) is refused


def test_unread_files_are_named_in_the_channels_or_the_questions_language() -> None:
    asked = ask("Was steht in dieser Datei?", AttachedFile(name="a.zip", trouble="form"))
    for question_, language in ((asked, "de"), (replace(asked, language="fr"), "fr")):
        outcome = add_unread_notes(Answered(answer=own_message("Ja.")), question_)
        assert isinstance(outcome, Answered)
        assert outcome.answer.label == say("file_form", language, name="a.zip")


def test_only_the_first_answer_in_a_thread_names_its_unread_files() -> None:
    refused = Refused(answer=own_message("No."), reason="x")
    top = replace(long_file("big.txt"), opening=True), AttachedFile(name="a.zip", trouble="form", opening=True)
    earlier = (ThreadMessage(role="user", text="Look.", addressed=False),)
    first = add_unread_notes(refused, ask("why?", *top), earlier)
    assert isinstance(first, Refused)
    assert first.answer.label.count("\n") == 1
    answered = (*earlier, ThreadMessage(role="assistant", text="Because."))
    assert add_unread_notes(refused, ask("why?", *top), answered) is refused
    own = replace(top[1], opening=False)
    for file in (own, AttachedFile(name="a.log", trouble="away", opening=True)):
        told = add_unread_notes(refused, ask("why?", *top, file), answered)
        assert isinstance(told, Refused)
        assert told.answer.label == say(f"file_{file.trouble}", "en", name=file.name)


WHOLE = [
    "What does this log say?", "what's in the log", "What is this trace about?", "Was steht in diesem Log?",
    "Que dit ce journal ?", "¿Qué dice este registro?", "Apa isi log ini?", "このログは何ですか", "这份日志说了什么？",
]  # fmt: skip


@pytest.mark.parametrize("text", WHOLE)
def test_a_log_can_be_summarised_as_a_whole(text: str) -> None:
    assert asks_for_file(ask(text, NOTES))
    assert not asks_for_file(ask("What does the log say about the disk quota of the backup?", NOTES))


@pytest.mark.parametrize("language", LANGUAGES)
def test_text_for_a_bare_file_asks_for_the_file(language: str) -> None:
    assert asks_for_file(ask(say("file_summarise", language), NOTES))
    assert not asks_for_file(ask(say("file_summarise", language)))


async def test_the_model_sees_a_file_as_a_fenced_source_and_the_answer_names_unread_ones() -> None:
    model = ScriptedModel(["<answer>The launch is on 3 March [1].</answer>"])
    files = (NOTES, AttachedFile(name="photo.png", trouble="form"))
    outcome, _ = await take_turn(model, ask("When is the launch?", *files), tools=())
    assert isinstance(outcome, Answered)
    assert [source.title for source in model.written[0].sources] == ["notes.md"]
    assert outcome.answer.label == say("file_form", "en", name="photo.png")
    assert len(NOTES.text) < MAX_WHOLE_CHARS

"""The turn loop with a scripted model: what is decided, written, verified, and how each turn ends."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from agent.actions import AskUser, Complete, FinishStep, NoReply, Respond, Step, ToolCall, ToolCalls
from agent.budget import Budget
from agent.model.protocol import DecideContext, Decision, ModelError
from agent.outcome import SILENT, Answered, Asked, Failed, OutOfBudget, Partial, Refused, TurnOutcome, Unsourced
from agent.thread.conversation import AttachedFile, Question, ThreadMessage
from agent.thread.state import Plan, StateNotSaved, ThreadState, state_before_last_question
from agent.tools.tool import Tool
from agent.turn.events import Emit, StateUpdated, Verification
from agent.turn.loop import FOLLOW_UP_LIMIT
from agent.turn.progress import Policy, Save
from tests.support.fakes import LIMITS, REFUNDS, BrokenTool, Listener, PassageTool, ScriptedModel, question, take_turn

GOOD = "<thinking>The limits page says it.</thinking><answer>Each key may send 120 requests a minute [1].</answer>"
WRONG = "<answer>Each key may send 500 requests a minute [1].</answer>"


class Story:
    """One turn after the other in one thread."""

    def __init__(self, model: ScriptedModel, *tools: Tool, state: ThreadState | None = None) -> None:
        self.model = model
        self.tools: Sequence[Tool] = tools or (PassageTool(LIMITS),)
        self.state = state or ThreadState()
        self.listener = Listener()
        self.emit: Emit = self.listener
        self.save: Save | None = None
        self.budget = Budget()
        self.policy = Policy()

    async def ask(self, asked: Question | str = "How many requests may a key send a minute?") -> TurnOutcome:
        parts = {"budget": self.budget, "policy": self.policy, "save": self.save}
        outcome, self.state = await take_turn(
            self.model, asked, tools=self.tools, state=self.state, emit=self.emit, **parts
        )
        return outcome

    @property
    def verdicts(self) -> list[bool]:
        return [e.verdict.passed for e in self.listener.events if isinstance(e, Verification)]


async def test_an_easy_question_costs_one_decision_and_one_write() -> None:
    model = ScriptedModel([GOOD])
    story = Story(model)
    outcome = await story.ask()
    assert isinstance(outcome, Answered)
    answer = outcome.answer
    assert (answer.text, answer.verified) == ("Each key may send 120 requests a minute [1].", True)
    assert [source.title for source in answer.sources] == ["API › Limits"]
    assert (len(model.decided), len(model.written), answer.attempts) == (1, 1, 1)


async def test_a_follow_up_is_searched_alone_and_with_the_subject_of_the_last_question() -> None:
    tool = PassageTool(LIMITS)
    story = Story(ScriptedModel([GOOD]), tool)
    first, long = "How many requests may a key send?", "ok good. and who approves a raise in the end, just my manager?"
    for text in (first, long, "And users?", "thanks"):
        await story.ask(text)
    assert tool.asked == [
        {"query": first},
        {"query": long, "limit": FOLLOW_UP_LIMIT},
        {"query": f"{long} (requests, key, send)", "limit": FOLLOW_UP_LIMIT},
        {"query": "And users? (good, approves, raise, end, manager)"},
    ]


async def test_events_of_a_turn_come_in_order() -> None:
    story = Story(ScriptedModel([GOOD]))
    await story.ask()
    assert story.listener.kinds() == [
        "ToolStart", "ToolEnd", "ModelStart", "ModelEnd", "StateUpdated", "ModelStart", "Thinking", "Token",
        "ModelEnd", "Verification", "StateUpdated", "Done",
    ]  # fmt: skip


async def test_bold_and_table_are_repaired_without_a_second_call() -> None:
    draft = "<answer>**Limits** [1]\n\n| what | how many |\n|---|---|\n| requests a minute | 120 [1] |\n</answer>"
    model = ScriptedModel([draft])
    outcome = await Story(model).ask()
    assert isinstance(outcome, Answered)
    assert "**" not in outcome.answer.text
    assert {repair.kind for repair in outcome.answer.repairs} >= {"bold", "table"}
    assert len(model.written) == 1


async def test_a_wrong_number_is_rewritten_after_feedback_that_names_it() -> None:
    model = ScriptedModel([WRONG, GOOD])
    story = Story(model)
    outcome = await story.ask()
    assert isinstance(outcome, Answered)
    assert outcome.answer.attempts == 2
    assert story.verdicts == [False, True]
    assert model.written[0].feedback == ""
    assert "500" in model.written[1].feedback
    assert model.written[1].previous_draft == "Each key may send 500 requests a minute [1]."


async def test_three_bad_drafts_end_in_a_polite_message_without_the_draft() -> None:
    model = ScriptedModel([WRONG])
    outcome = await Story(model).ask()
    assert isinstance(outcome, Failed)
    assert (outcome.reason, len(model.written)) == ("verification", 3)
    assert "500" not in outcome.answer.text
    assert "<https://docs.example/api#limits|API › Limits>" in outcome.answer.text
    assert (bool(outcome.answer.violations), outcome.answer.verified) == (True, False)


async def test_the_verified_part_is_kept_as_a_partial_answer() -> None:
    draft = "<answer>Each key may send 120 requests a minute [1]. Above 700 requests the key is deleted [1].</answer>"
    outcome = await Story(ScriptedModel([draft])).ask()
    assert isinstance(outcome, Partial)
    assert outcome.answer.text == "Each key may send 120 requests a minute [1]."
    assert outcome.answer.label


async def test_the_summary_of_complete_is_verified_as_the_first_attempt() -> None:
    model = ScriptedModel([GOOD], decisions=[Complete(summary="Each key may send 900 requests a minute [1].")])
    outcome = await Story(model).ask()
    assert isinstance(outcome, Answered)
    assert outcome.answer.attempts == 2
    assert "900" in model.written[0].feedback


async def test_a_failing_writer_ends_in_an_apology() -> None:
    outcome = await Story(ScriptedModel([ModelError("LLMError", "connection reset at 10.0.0.1")])).ask()
    assert isinstance(outcome, Failed)
    assert outcome.reason == "LLMError"
    assert ("ask again" in outcome.answer.text, "10.0.0.1" in outcome.answer.text) == (True, False)


@pytest.mark.parametrize(
    "reply", ["NOT_IN_SOURCES", "_NOT_IN_SOURCES_", '{"answer": "NOT_IN_SOURCES"}', "Sorry. NOT\\_IN\\_SOURCES"]
)
async def test_not_in_sources_refuses_in_the_language_of_the_question_and_names_the_nearest_documents(
    reply: str,
) -> None:
    asked = "Wie viele Anfragen darf ein Schlüssel in der Minute schicken, und was passiert danach?"
    outcome = await Story(ScriptedModel([f"<answer>{reply}</answer>"])).ask(asked)
    assert isinstance(outcome, Refused)
    assert "keine Antwort gefunden" in outcome.answer.text
    assert "API › Limits" in outcome.answer.text


async def test_own_words_are_exempt_and_labelled() -> None:
    model = ScriptedModel(["<answer>Das Treffen beginnt um 9 Uhr im großen Saal.</answer>"])
    outcome = await Story(model).ask("Translate into German: the meeting starts at 9 in the big hall")
    assert isinstance(outcome, Answered)
    assert "this conversation" in outcome.answer.label


@pytest.mark.parametrize("form", ["[1]", "【1】", "[source 1]"])
async def test_a_draft_that_cites_a_source_is_checked_even_if_words_of_the_person_seem_to_be_asked_for(
    form: str,
) -> None:
    asked = "Summarize: what does the policy say about the limits of a key?"
    wrong = f"<answer>A key may send 9,000 requests a day {form}.</answer>"
    assert isinstance(await Story(ScriptedModel([wrong] * 3)).ask(asked), Failed)
    right = await Story(ScriptedModel([wrong, GOOD])).ask(asked)
    assert isinstance(right, Answered)
    assert (right.answer.label, right.answer.attempts) == ("", 2)


async def test_a_clarifying_question_ends_the_turn_and_the_reply_continues_the_mission() -> None:
    asks = AskUser(question="Which environment do you mean?", key="environment")
    model = ScriptedModel([GOOD], decisions=[asks, Respond()])
    story = Story(model)
    asked = await story.ask()
    assert isinstance(asked, Asked)
    assert asked.answer.text == "Which environment do you mean?"
    assert story.state.pending_question is not None
    assert story.state.plan is not None
    assert not story.state.plan.is_finished
    first_mission = story.state.mission

    outcome = await story.ask(replace(question("production"), addressed=False))  # the reply is for Orion
    assert isinstance(outcome, Answered)
    assert story.state.answers == {"environment": "production"}
    assert story.state.pending_question is None
    assert story.state.mission == first_mission
    assert model.decided[1].answers == {"environment": "production"}


async def test_a_bystander_does_not_answer_the_pending_question() -> None:
    asks = AskUser(question="Which environment?", key="environment")
    story = Story(ScriptedModel([GOOD], decisions=[asks, Respond()]))
    await story.ask()
    await story.ask(question("How many requests may a key send a minute?", user="U2"))
    assert story.state.answers == {}
    assert story.state.pending_question is not None


async def test_a_malformed_decision_is_returned_once_and_then_counts_as_a_failed_step() -> None:
    error = ModelError("MalformedControlError", "no action named 'dance'")
    model = ScriptedModel([GOOD], decisions=[error, error, Respond()])
    outcome = await Story(model).ask()
    assert isinstance(outcome, Answered)
    assert [context.objection for context in model.decided] == ["", "no action named 'dance'"]


async def test_tools_of_one_step_run_and_a_broken_one_gives_a_result() -> None:
    search = ToolCall(call_id="b", tool="search", input={"query": "meals"})
    calls = (ToolCall(call_id="a", tool="broken"), search, ToolCall(call_id="c", tool="unheard_of"))
    model = ScriptedModel([GOOD], decisions=[ToolCalls(calls=calls), Respond()])
    outcome = await Story(model, PassageTool(LIMITS), BrokenTool()).ask()
    assert isinstance(outcome, Answered)
    results = model.decided[1].results
    assert [(result.tool, result.ok) for result in results] == [
        ("search", True),
        ("broken", False),
        ("search", True),
        ("unheard_of", False),
    ]
    assert "bug with" not in results[1].error


async def test_sources_are_numbered_once_and_files_and_thread_are_sources() -> None:
    said = ThreadMessage(role="user", text="The limit was raised last week.", user="U9", addressed=False)
    asked = replace(question(), files=(AttachedFile(name="notes.txt", text="Ask for 300 requests."),))
    model = ScriptedModel([GOOD])
    story = Story(
        model,
        PassageTool(LIMITS, REFUNDS, replace(LIMITS, url=f"{LIMITS.url}#burst")),
        state=ThreadState(history=(said,), sources=(replace(LIMITS, origin="thread"),)),
    )
    await story.ask(asked)
    assert [(source.id, source.origin) for source in model.written[0].sources] == [
        (1, "document"),
        (2, "document"),
        (3, "thread"),
        (4, "file"),
    ]


async def test_using_all_tool_calls_without_a_result_ends_in_a_message() -> None:
    searches = [ToolCalls(calls=(ToolCall(call_id="x", tool="search", input={"query": f"x{n}"}),)) for n in range(4)]
    story = Story(ScriptedModel([GOOD], decisions=searches), PassageTool())
    story.budget = Budget(tool_calls=4)
    outcome = await story.ask()
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reason == "tool_calls"


async def test_reaching_the_deadline_ends_in_a_message() -> None:
    story = Story(ScriptedModel([GOOD]))
    story.budget = Budget(deadline_s=0)
    outcome = await story.ask()
    assert isinstance(outcome, OutOfBudget)
    assert outcome.reason == "deadline"


async def test_a_new_message_after_all_steps_are_done_resets_the_mission() -> None:
    story = Story(ScriptedModel([GOOD]))
    await story.ask()
    first = story.state
    story.listener.events.clear()
    await story.ask("How many requests in an hour?")
    resets = [e.changes for e in story.listener.events if isinstance(e, StateUpdated) and "mission_reset" in e.changes]
    assert resets == [
        {"mission_reset": True, "reason": "completed_todolist_detected", "previous_todolist_id": first.todolist_id}
    ]
    assert story.state.mission == "How many requests in an hour?"
    assert story.state.todolist_id not in (None, first.todolist_id)
    assert [message.text for message in story.state.history][:2] == [m.text for m in first.history]


@pytest.mark.parametrize(
    "state",
    [
        ThreadState(mission="old", todolist_id="t", plan=Plan(id="t", steps=(Step(description="x"),))),
        ThreadState(mission="old", todolist_id="gone"),
        ThreadState(mission="old"),
    ],
    ids=["steps open", "todo list not found", "no todo list"],
)
async def test_no_reset_without_a_finished_todo_list(state: ThreadState) -> None:
    story = Story(ScriptedModel([GOOD]), state=state)
    await story.ask()
    assert not [e for e in story.listener.events if isinstance(e, StateUpdated) and "mission_reset" in e.changes]


async def test_a_failing_listener_never_stops_the_turn() -> None:
    def failing(_: object) -> None:
        raise RuntimeError("listener")

    story = Story(ScriptedModel([GOOD]))
    story.emit = failing
    assert isinstance(await story.ask(), Answered)


@pytest.mark.parametrize("general", ["label", "refuse"])
async def test_a_part_kept_without_sources_is_never_marked_as_verified(general: str) -> None:
    draft = "<answer>Paris is the capital of France, on the river Seine. It has many bridges [1].</answer>"
    story = Story(ScriptedModel([draft]), PassageTool())
    story.policy = Policy(general=general)
    outcome = await story.ask("What is the capital of France?")
    assert isinstance(outcome, Unsourced if general == "label" else Refused)
    assert ("not verified" in outcome.answer.label) is (general == "label")
    assert not outcome.answer.verified


async def test_a_document_from_an_earlier_turn_is_not_evidence() -> None:
    changed = replace(LIMITS, text="Each key may send 300 requests a minute.")
    story = Story(ScriptedModel([GOOD]))
    await story.ask()
    story.tools = [PassageTool(changed)]
    outcome = await story.ask("How many requests may a key send a minute today?")
    assert isinstance(outcome, Failed)
    assert [source.text for source in story.model.written[-1].sources] == [changed.text]


async def test_long_clarifying_question_is_sent_in_chunks_that_fit() -> None:
    text = "Which environment do you mean?\n\n" + "\n\n".join(["Production or staging?"] * 200)
    outcome = await Story(ScriptedModel([GOOD], decisions=[AskUser(question=text, key="k")])).ask()
    assert isinstance(outcome, Asked)
    assert len(outcome.answer.chunks) > 1
    assert max(map(len, outcome.answer.chunks)) <= 3000


async def test_an_edit_starts_from_the_state_before_its_question() -> None:
    story = Story(ScriptedModel([GOOD], decisions=[AskUser(question="Which one?", key="which"), Respond()]))
    await story.ask(question("first question about keys", ts="1.0"))
    restored = state_before_last_question(story.state, "1.0")
    assert restored == ThreadState(version=story.state.version)
    assert state_before_last_question(story.state, "0.5") is None


async def test_an_endless_draft_is_not_read_to_its_end() -> None:
    endless = "<answer>" + "Each key may send 120 requests a minute [1]. " * 20_000 + "</answer>"
    model = ScriptedModel([endless], pieces=400)
    outcome = await Story(model).ask()
    assert isinstance(outcome, Failed)
    assert outcome.reason == "TokenLimitError"
    assert "smaller question" in outcome.answer.text
    assert len(model.written) == 1


NOT_FOR_ORION = replace(question("nice, see you at lunch Jonas"), addressed=False)


async def test_no_reply_posts_nothing_and_keeps_the_conversation_as_it_was() -> None:
    story = Story(ScriptedModel([GOOD], decisions=[Respond(), NoReply()]))
    await story.ask()
    before = story.state
    outcome = await story.ask(NOT_FOR_ORION)
    assert (outcome, outcome.name, outcome.answer.text) == (SILENT, "no_reply", "")
    assert len(story.model.written) == 1  # no draft was begun next to the decision
    assert story.model.decided[-1].sources == ()  # nothing was searched
    overheard = ThreadMessage(role="user", text=NOT_FOR_ORION.text, user="U1", ts=NOT_FOR_ORION.ts, addressed=False)
    assert story.state == replace(before, history=(*before.history, overheard))


async def test_without_a_usable_decision_a_message_among_people_gets_no_reply() -> None:
    story = Story(ScriptedModel([GOOD], decisions=[ModelError("MalformedControlError", "prose")] * 2))
    assert await story.ask(NOT_FOR_ORION) == SILENT
    story = Story(ScriptedModel([GOOD]))
    story.budget = Budget(model_calls=3)  # all of them are for the drafts
    assert await story.ask(NOT_FOR_ORION) == SILENT
    assert story.model.written == []


async def test_a_message_for_orion_always_gets_a_reply() -> None:
    story = Story(ScriptedModel([GOOD], decisions=[NoReply(), Respond()]))
    assert isinstance(await story.ask(), Answered)
    assert "no_reply" in story.model.decided[1].objection


async def test_a_clarifying_question_with_a_broadcast_is_refused_and_returned_to_the_model() -> None:
    story = Story(ScriptedModel([GOOD], decisions=[AskUser(question="<!channel> which?", key="k"), Respond()]))
    assert isinstance(await story.ask(), Answered)
    assert story.model.decided[1].objection.startswith("This would notify people whom the question did not name: ")


async def test_a_message_not_addressed_to_orion_gets_an_answer_or_nothing() -> None:
    answered = await Story(ScriptedModel([GOOD])).ask(replace(question("How many requests a minute?"), addressed=False))
    assert isinstance(answered, Answered)
    refused = await Story(ScriptedModel(["<answer>NOT_IN_SOURCES</answer>"])).ask(NOT_FOR_ORION)
    failed = await Story(ScriptedModel([WRONG])).ask(NOT_FOR_ORION)
    lost = await Story(ScriptedModel([ModelError("AuthenticationError", "no")])).ask(NOT_FOR_ORION)
    assert refused == failed == lost == SILENT
    away = await Story(ScriptedModel([ModelError("RateLimitError", "busy")])).ask(NOT_FOR_ORION)
    assert isinstance(away, Failed)  # the bot tries again later


async def test_no_two_requests_of_a_turn_are_equal() -> None:
    other = "<answer>Each key may send 700 requests a minute [1], and 900 on Sundays [1].</answer>"
    for drafts in ([WRONG], [WRONG, other, GOOD], [WRONG, WRONG, GOOD]):
        model = ScriptedModel([*drafts])
        await Story(model).ask()
        asked = [(each.feedback, each.previous_draft, each.kept) for each in model.written]
        assert len(set(asked)) == len(asked) == 3


async def test_feedback_is_about_the_last_draft_even_if_an_earlier_one_was_better() -> None:
    worse = "<answer>Each key may send 700 requests a minute [1].\n\nIt is 900 on Sundays [1].</answer>"
    model = ScriptedModel([WRONG, worse, GOOD])
    await Story(model).ask()
    assert "900" in model.written[2].feedback
    assert "900" in model.written[2].previous_draft


@pytest.mark.parametrize("failure", [OSError, StateNotSaved])
async def test_failure_to_save_is_logged_and_the_turn_continues(failure: type[Exception]) -> None:
    async def save(state: ThreadState) -> ThreadState:
        raise failure(state.mission)

    plan = Plan(id="t", steps=(Step(description="x", status="done"),))  # lost its id: it is reset like any other
    story = Story(ScriptedModel([GOOD]), state=ThreadState(mission="old", plan=plan))
    story.save = save
    with capture_logs() as logs:
        assert isinstance(await story.ask(), Answered)
    assert story.state.mission == "How many requests may a key send a minute?"
    events = {line["event"]: line for line in logs}
    assert events["state_save_failed"]["reason"] == failure.__name__
    assert {"todolist_not_found", "mission_reset_complete"} <= set(events)
    assert events["attempt_verified"] == {
        "event": "attempt_verified", "log_level": "info", "thread": "T1:C1:1.0", "attempt": 1, "passed": True,
        "violations": 0, "rules": [], "repairs": 0, "draft_length": 44,
    }  # fmt: skip


async def test_an_unrelated_time_out_does_not_count_as_the_turns_deadline() -> None:
    class Model(ScriptedModel):
        async def decide(self, context: DecideContext) -> Decision:
            raise TimeoutError(context.mission)

    with pytest.raises(TimeoutError):
        await Story(Model([GOOD])).ask()


async def test_a_step_without_effect_is_refused_before_the_answer_is_written() -> None:
    again = ToolCalls(calls=(ToolCall(call_id="x", tool="search", input={"query": "x"}),))
    model = ScriptedModel([GOOD], decisions=[again])
    tool = PassageTool(LIMITS)
    assert isinstance(await Story(model, tool).ask(), Answered)
    assert (len(model.decided), len(tool.asked)) == (3, 2)  # the first search, once more, and no third time
    assert "repeats the last step" in model.decided[2].objection
    model = ScriptedModel([GOOD], decisions=[FinishStep(step=1, result="done")])
    assert isinstance(await Story(model).ask(), Answered)
    assert len(model.decided) == 3
    model = ScriptedModel([GOOD], decisions=[ToolCalls(calls=(ToolCall(call_id="x", tool="broken"),))])
    await Story(model, PassageTool(LIMITS), BrokenTool()).ask()
    assert [len(context.results) for context in model.decided] == [1, 2, 3, 3], "a failed call may be tried twice"


@pytest.mark.parametrize("text", ["Set <thought> to see it [1].", "[THINK] begins it, [/THINK] ends it [1]."])
@pytest.mark.parametrize("form", ["<answer>{}</answer>", "{}"])
async def test_an_answer_about_a_mark_of_thinking_loses_no_words(text: str, form: str) -> None:
    whole = f"Each key may send 120 requests a minute [1]. {text} Then wait a minute [1]."
    story = Story(ScriptedModel([form.format(whole), GOOD]))
    outcome = await story.ask()
    assert isinstance(outcome, Answered)
    assert story.model.written[1].previous_draft == whole  # people get no part of it
    assert outcome.answer.attempts == 2

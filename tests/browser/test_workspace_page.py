import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, expect

from tests.support.local_echo import CHAT, HELP, MENTION, YOU, call, modal
from tests.support.staged_page import Stage, open_stage

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def test_a_click_asks_an_example_question_and_it_is_answered_there(browser: Browser) -> None:
    async with open_stage(browser) as stage:
        page = await stage.open()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Orion")
        await page.get_by_role("button", name="How long does it take?").press("Enter")
        await expect(page.locator("#channel-composer")).to_be_focused()
        await expect(page.locator("#timeline .message")).to_have_count(2)
        await expect(page.locator(".welcome")).to_have_count(0)
        assert stage.echo.events[0]["tab"] == "messages"
    async with open_stage(browser) as stage:
        await stage.open()
        prompts = [{"title": "Try this", "message": "What is new?"}, {"title": "Again", "message": "Who decides?"}]
        call(stage.workspace.workspace, "assistant.threads.setSuggestedPrompts", channel_id=CHAT, prompts=prompts)
        await expect(stage.page.get_by_role("group", name="Suggested by Orion").get_by_role("button")).to_have_count(1)
        await stage.page.get_by_role("button", name="Try this").click()
        await expect(stage.page.locator("#timeline .message").nth(1)).to_contain_text("You said: What is new?")


async def test_a_modal_opens_shows_its_errors_and_closes_with_escape(stage: Stage) -> None:
    stage.workspace.post(YOU, CHAT, "hello")
    page = await stage.open()
    button = page.get_by_role("button", name="Details")
    await button.click()
    dialog = page.get_by_role("dialog", name="Details")
    await expect(dialog.locator("strong")).to_have_text("Why")
    await page.keyboard.press("Escape")
    await expect(dialog).to_have_count(0)
    await stage.workspace.wait_for(lambda: not stage.workspace.workspace.views.open)
    await button.click()
    await dialog.get_by_label("Name").fill(" ")
    await dialog.get_by_label("Name").fill("Ada")
    await dialog.get_by_role("button", name="Save").click()
    await expect(dialog).to_have_count(0)
    assert stage.echo.names == ["Ada"]


async def test_every_input_of_a_dialog_is_filled_in_and_sent_as_slack_sends_it(browser: Browser) -> None:
    def input_block(name: str, kind: str, **more: Any) -> dict[str, Any]:
        element = {"type": kind, "action_id": "value", **more}
        return {"type": "input", "block_id": name, "label": {"type": "plain_text", "text": name}, "element": element}

    modes = [{"text": {"type": "plain_text", "text": mode}, "value": mode} for mode in ("mention", "listen")]
    blocks = [
        input_block("name", "plain_text_input", initial_value="Ada"),
        input_block("text", "plain_text_input", multiline=True, initial_value="Two\nlines"),
        input_block("mode", "static_select", options=modes, initial_option=modes[1]),
        input_block("owner", "users_select", initial_user="U0ONCALL"),
        input_block("place", "conversations_select", initial_conversation=HELP),
        input_block("review", "datepicker", initial_date="2027-05-26"),
    ]
    async with open_stage(browser) as stage:
        page, workspace = await stage.open(), stage.workspace.workspace
        view = {**modal(), "blocks": blocks}
        call(workspace, "views.open", trigger_id=workspace.views.new_trigger(YOU), view=view)
        await page.get_by_role("dialog").get_by_role("button", name="Save").click()
        await stage.workspace.wait_for(lambda: stage.echo.names)
    values = {name: next(iter(sent.values())) for name, sent in stage.echo.bodies[0]["view"]["state"]["values"].items()}
    assert values["mode"]["selected_option"]["value"] == "listen"
    assert [values[name]["value"] for name in ("name", "text")] == ["Ada", "Two\nlines"]
    chosen = {"owner": "selected_user", "place": "selected_conversation", "review": "selected_date"}
    assert [values[name][field] for name, field in chosen.items()] == ["U0ONCALL", HELP, "2027-05-26"]


async def test_the_inspector_shows_how_an_answer_was_made(stage: Stage) -> None:
    ts = stage.workspace.post(YOU, HELP, f"{MENTION} hello")
    page = await stage.open("/#/C0HELP")
    await page.get_by_role("button", name="1 reply").click()
    await page.locator("#thread").get_by_role("button", name="Inspect").click()
    inspector = page.locator("#inspector")
    for text in (
        "Answered",
        "Verified",
        "2 attempts",
        "repaired bold",
        "claim_supported",
        "12 minutes",
        "Source 1 says 4 minutes.",
        "1.24 s",
        "2,412",
    ):
        await expect(inspector).to_contain_text(text)
    await expect(inspector.get_by_role("link", name="Fail-over")).to_have_attribute("href", "/docs/guide.md#steps")
    await page.keyboard.press("Escape")
    await expect(page.locator("#thread")).to_be_visible()
    await expect(page.locator("#thread .inspect")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.locator("#pane")).to_be_hidden()
    assert page.url.endswith("#/C0HELP")
    assert stage.workspace.messages(HELP, ts)[1]["metadata"]["event_payload"]["turn_id"] == "turn-1"


async def test_an_interrupted_connection_loses_no_message(stage: Stage) -> None:
    page = await stage.open("/#/C0GENERAL")
    feed = stage.workspace.workspace.feed
    feed.close()
    await stage.workspace.wait_for(lambda: not feed._watchers)
    for number in range(3):
        stage.workspace.post("U0RELEASE", "C0GENERAL", f"news {number}")
    stage.workspace.post("U0RELEASE", HELP, "elsewhere")
    await expect(page.locator("#timeline .message")).to_have_count(3)
    await expect(page.locator("[data-channel=C0HELP]")).to_have_class(re.compile("unread"))
    await expect(page.locator("#connection")).to_be_hidden()


async def test_a_message_that_arrives_during_a_click_does_not_undo_the_click(stage: Stage) -> None:
    page = await stage.open("/#/C0GENERAL")
    await page.locator(f"[data-channel={HELP}]").hover()
    await page.mouse.down()
    stage.workspace.post("U0RELEASE", HELP, "meanwhile")
    await expect(page.locator(f"[data-channel={HELP}]")).to_have_class(re.compile("unread"))
    await page.mouse.up()
    await expect(page.locator("#timeline .message")).to_contain_text("meanwhile")


async def test_a_restarted_workspace_is_reloaded_by_the_page(stage: Stage) -> None:
    stage.workspace.post(YOU, "C0GENERAL", "before")
    page = await stage.open("/#/C0GENERAL")
    await expect(page.locator("#timeline .message")).to_have_count(1)
    stage.workspace.workspace.feed.run = "another"
    stage.workspace.workspace.log._channels.clear()
    stage.workspace.workspace.feed.close()
    await expect(page.locator("#timeline .message")).to_have_count(0)


async def test_a_hostile_message_is_shown_as_text(stage: Stage) -> None:
    hostile = '<img src=x onerror="window.hurt=1"> <script>window.hurt=1</script> <javascript:alert(1)|click> <b>'
    call(stage.workspace.workspace, "chat.postMessage", channel=HELP, text=hostile)
    call(stage.workspace.workspace, "chat.postMessage", channel=HELP, markdown_text=hostile)
    page = await stage.open("/#/C0HELP")
    await expect(page.locator("#timeline .message")).to_have_count(2)
    await expect(page.locator("#timeline .rich").first).to_contain_text("onerror")
    assert await page.evaluate("window.hurt") is None
    assert await page.locator("#timeline img[src=x], #timeline script, #timeline .rich a").count() == 0


async def test_the_page_works_with_the_keyboard_alone(stage: Stage) -> None:
    root = stage.workspace.post("U0RELEASE", HELP, "one")
    stage.workspace.post("U0ONCALL", HELP, "reply", root)
    stage.workspace.post(YOU, HELP, "two")
    page = await stage.open("/#/C0HELP")
    await expect(page.locator("#channel-composer")).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_label("Edit message")).to_have_value("two")
    await page.keyboard.press("Escape")
    await page.keyboard.press("Shift+Tab")
    for _ in range(12):
        if await page.evaluate("document.activeElement.id") == "timeline":
            break
        await page.keyboard.press("Shift+Tab")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator("#timeline .message").first).to_be_focused()
    await page.keyboard.press("j")
    await page.keyboard.press("k")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("button", name="1 reply")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#thread-composer")).to_be_focused()
    await page.keyboard.type("mine")
    await page.keyboard.press("Enter")
    await expect(page.locator("#thread .message")).to_have_count(3)
    await page.keyboard.press("ArrowUp")
    await expect(page.get_by_label("Edit message")).to_have_value("mine")
    await page.keyboard.press("Escape")
    await expect(page.locator("#thread-composer")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("button", name="2 replies")).to_be_focused()
    nameless = "b => !b.textContent.trim() && !b.ariaLabel"
    assert await page.evaluate(f"[...document.querySelectorAll('button')].filter({nameless}).length") == 0


async def test_own_messages_are_edited_and_deleted(stage: Stage) -> None:
    stage.workspace.post(YOU, HELP, f"{MENTION} &lt;old&gt;")
    page = await stage.open("/#/C0HELP")
    message = page.locator("#timeline .message").first
    await message.hover()
    await message.get_by_role("button", name="Edit").click()
    await expect(page.get_by_label("Edit message")).to_have_value("@Orion <old>")
    await page.get_by_label("Edit message").fill("@Orion new")
    await page.keyboard.press("Enter")
    await expect(message).to_contain_text("(edited)")
    assert stage.workspace.messages(HELP)[0]["text"] == f"{MENTION} new"
    await message.hover()
    await message.get_by_role("button", name="Delete").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    await expect(message).to_contain_text("This message was deleted.")


async def test_light_and_dark_follow_the_system_and_the_toggle(browser: Browser) -> None:
    async with open_stage(browser, scheme="dark") as stage:
        page = await stage.open()
        background = "getComputedStyle(document.body.querySelector('.main')).backgroundColor"
        dark = await page.evaluate(background)
        await page.get_by_role("button", name="Switch between light and dark").click()
        assert await page.evaluate(background) == "rgb(255, 255, 255)" != dark
        await page.reload()
        assert await page.evaluate(background) == "rgb(255, 255, 255)"


async def test_a_source_opens_at_the_cited_section(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "guide.md").write_text(
        "# Guide\n\nintro\n\n## Steps\n\nfirst\n\nsecond\n\n## After\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    (tmp_path / "plain.txt").write_text("one\ntwo\nthree\n")
    async with open_stage(browser, tmp_path) as stage:
        await stage.page.goto(f"{stage.workspace.url}/docs/guide.md#steps")
        await expect(stage.page.locator(".cited")).to_have_text(re.compile(r"^\s*Steps\s*first\s*second\s*$"))
        await expect(stage.page.get_by_role("region", name="Table")).to_have_attribute("tabindex", "0")
        await stage.page.goto(f"{stage.workspace.url}/docs/plain.txt#L2-L3")
        await expect(stage.page.locator(".cited")).to_have_text("two\nthree\n")


async def test_a_stream_is_shown_with_its_tasks_and_announced_when_complete(stage: Stage) -> None:
    ts = stage.workspace.post("U0RELEASE", HELP, "question")
    page = await stage.open(f"/#/C0HELP/{ts}")
    task = {"type": "task_update", "id": "1", "title": "Look it up", "status": "in_progress"}
    who = {"recipient_team_id": "T0LOCAL", "recipient_user_id": YOU}
    inside = stage.workspace.workspace
    stream = call(inside, "chat.startStream", channel=HELP, thread_ts=ts, chunks=[task], **who)["ts"]
    body = page.locator("#thread .message").nth(1).locator(".body")
    await expect(body).to_have_attribute("aria-busy", "true")
    await expect(body.locator(".task.in_progress")).to_have_text("Look it up (in progress)")
    done = {**task, "status": "complete"}
    text = {"type": "markdown_text", "text": "It takes **four** [minutes](https://docs.example/a)."}
    call(inside, "chat.appendStream", channel=HELP, ts=stream, chunks=[done, text])
    await expect(body.locator(".task.complete")).to_be_visible()
    assert await page.locator("#announce").text_content() == ""
    call(inside, "chat.stopStream", channel=HELP, ts=stream)
    await expect(page.locator("#announce")).to_have_text("Orion: It takes four minutes.")


async def test_stop_is_offered_while_a_session_runs(stage: Stage) -> None:
    ts = stage.workspace.post("U0RELEASE", HELP, "question")
    where = {"channel_id": HELP, "thread_ts": ts}
    call(stage.workspace.workspace, "assistant.threads.setStatus", **where, status="is working")
    call(stage.workspace.workspace, "agents.sessions.setStatus", **where, status="processing")
    page = await stage.open("/#/C0HELP")
    await page.get_by_role("button", name="Stop").click()
    await stage.workspace.wait_for(lambda: [one for one in stage.echo.events if one["type"] == "agent_session_stopped"])

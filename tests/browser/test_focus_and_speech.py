"""The page without a mouse, without sight, or enlarged: the place of the focus, and the words announced."""

import re

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.local_echo import CHAT, HELP, YOU, call
from tests.support.staged_page import Stage, open_stage

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LONG = "\n".join(f"• Step {number} is to look at the gauge and to write it down." for number in range(12))
BUTTON = {"type": "button", "action_id": "vote", "text": {"type": "plain_text", "text": "Helpful"}}


def mrkdwn(text: str) -> dict[str, str]:
    return {"type": "mrkdwn", "text": text}


def post(stage: Stage, text: str, foot: str, method: str = "chat.postMessage", **more: str) -> str:
    blocks = [
        {"type": "section", "text": mrkdwn(text)},
        {"type": "context", "elements": [mrkdwn(foot)]},
        {"type": "actions", "elements": [BUTTON]},
    ]
    return str(call(stage.workspace.workspace, method, channel=HELP, text=text, blocks=blocks, **more)["ts"])


async def focus_is_kept(page: Page) -> None:
    await expect(page.locator("body > *").locator(":focus")).to_have_count(1)


def show_status(stage: Stage, thread: str, *steps: str) -> None:
    where = {"channel_id": HELP, "thread_ts": thread}
    inside = stage.workspace.workspace
    call(inside, "assistant.threads.setStatus", **where, status="is working", loading_messages=list(steps))


async def test_a_whole_answer_is_announced_and_announced_again_when_it_changes(stage: Stage) -> None:
    page = await stage.open("/#/C0HELP")
    said = page.locator("#announce")
    ts = post(stage, f"{LONG}\nKept for *35 days*.", "I couldn't read plan.png")
    await expect(said).to_have_text(re.compile(r"Step 11 is .* Kept for 35 days\. I couldn't read plan\.png$"))
    post(stage, "Kept for *40 days*.", "Checked", "chat.update", ts=ts)
    await expect(said).to_have_text("Orion: Kept for 40 days. Checked")
    await page.locator("input[type=file]").first.set_input_files(
        {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# Notes"}
    )
    await expect(said).to_have_text("notes.md is attached")


async def test_each_message_link_and_stop_button_says_which_one_it_is(stage: Stage) -> None:
    first = stage.workspace.post("U0RELEASE", HELP, "How long are backups kept?")
    source = "https://docs.example/backups#kept"
    post(stage, f"For 35 days <{source}|[1]>.", f"<{source}|[1] Backups › Kept> · today")
    page = await stage.open("/#/C0HELP")
    show_status(stage, first)
    await expect(page.get_by_role("link", name="[1] Backups › Kept", exact=True)).to_have_text(
        ["[1]", "[1] Backups › Kept"]
    )
    await expect(page.get_by_role("button", name="How long are backups kept?")).to_have_text("Stop")
    question = page.locator("#timeline .message").first
    await expect(question).to_have_accessible_description(re.compile(r"^How long are backups kept\?"))
    await question.focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#thread-composer")).to_be_focused()


@pytest.mark.parametrize("width", [680, 780])
async def test_the_focus_is_in_a_pane_that_covers_the_conversation(browser: Browser, width: int) -> None:
    async with open_stage(browser, width=width, height=430) as stage:
        page = await stage.open("/#/D0ORION")
        root = stage.workspace.post(YOU, CHAT, "hello there")
        call(stage.workspace.workspace, "chat.postMessage", channel=CHAT, text="An answer", thread_ts=root)
        await expect(page.locator("#thread .message").nth(1)).to_be_visible()
        await expect(page.locator("#pane-title")).to_be_focused()
        await expect(page.locator("#channel-composer")).to_be_hidden()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("button", name=re.compile("repl(y|ies)"))).to_be_focused()


async def test_the_drawer_takes_the_focus_and_returns_it(browser: Browser) -> None:
    async with open_stage(browser, width=680, height=430) as stage:
        page = await stage.open("/#/C0HELP")
        sign = page.get_by_role("button", name="Show channels")
        await sign.press("Enter")
        await expect(page.locator("[data-channel=C0HELP]")).to_be_focused()
        for _ in range(12):
            await page.keyboard.press("Tab")
            assert await page.locator("#main :focus").count() == 0
        await page.keyboard.press("Escape")
        await expect(sign).to_be_focused()


async def test_the_focus_never_falls_off_the_page(stage: Stage) -> None:
    root = stage.workspace.post(YOU, HELP, "one")
    stage.workspace.post(YOU, HELP, "two")
    page = await stage.open("/#/C0HELP")
    await page.locator("#try-panel summary").click()
    await page.get_by_role("button", name="Take the tour").press("Enter")
    await page.keyboard.press("Escape")
    await expect(page.locator("#tour")).to_be_hidden()
    await expect(page.get_by_role("button", name="Take the tour")).to_be_focused()
    await page.locator("#timeline .message").nth(1).get_by_role("button", name="Delete").press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Delete").press("Enter")
    await expect(page.locator("#timeline .message")).to_have_count(1)
    await focus_is_kept(page)
    show_status(stage, root, "Looking…", "Checking…")
    await page.get_by_role("button", name="Stop").focus()
    stage.workspace.post("U0RELEASE", HELP, "meanwhile")
    await expect(page.get_by_role("button", name="Stop")).to_be_focused()
    call(stage.workspace.workspace, "assistant.threads.setStatus", channel_id=HELP, thread_ts=root, status="")
    await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
    await focus_is_kept(page)


async def test_escape_closes_the_dialog_before_the_thread_behind_it(stage: Stage) -> None:
    root = stage.workspace.post(YOU, HELP, "one")
    stage.workspace.post(YOU, HELP, "two", root)
    page = await stage.open(f"/#/C0HELP/{root}")
    delete = page.locator("#thread .message").nth(1).get_by_role("button", name="Delete")
    await delete.press("Enter")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(delete).to_be_focused()


async def test_the_edited_message_is_fully_visible(browser: Browser) -> None:
    async with open_stage(browser, width=680, height=430) as stage:
        for number in range(9):
            stage.workspace.post(YOU, HELP, f"message {number}")
        page = await stage.open("/#/C0HELP")
        await page.locator("#channel-composer").press("ArrowUp")
        await expect(page.get_by_label("Edit message")).to_be_focused()
        below = await page.get_by_role("button", name="Save").bounding_box()
        box = await page.locator("#timeline").bounding_box()
        assert below is not None
        assert box is not None
        assert below["y"] + below["height"] <= box["y"] + box["height"]


async def test_an_unreachable_workspace_is_reported_once(stage: Stage) -> None:
    page = await stage.open("/#/C0HELP")
    await page.evaluate(
        "window.told = 0; for (const id of ['connection', 'presence'])"
        " new MutationObserver(() => (window.told += 1)).observe(document.getElementById(id), {childList: true})"
    )
    await page.context.set_offline(True)
    stage.workspace.workspace.feed.close()
    await expect(page.locator("#presence")).to_have_text("Offline")
    await page.wait_for_timeout(1_500)
    assert await page.evaluate("window.told") == 2


async def test_messages_that_are_sent_faster_than_they_go_are_not_merged(stage: Stage) -> None:
    page = await stage.open("/#/C0GENERAL")
    for number in range(6):
        await page.keyboard.insert_text(f"message {number}")
        await page.keyboard.press("Enter")
    await expect(page.locator("#timeline .message .body")).to_have_text([f"message {n}" for n in range(6)])

"""A person at the page, the real Orion behind it: ask, follow up, open the source, watch a draft fail and be mended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import repeat
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from tests.support.openai_server import RESPOND, ScriptedOpenAI, calls, says
from tests.support.orion_running import CHANNEL, Setting, running, settings_in

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

GOOD = "<answer>Each API key may make **600** requests a minute [1].</answer>"


@asynccontextmanager
async def page_of(browser: Browser, setting: Setting, path: str) -> AsyncIterator[Page]:
    page = await browser.new_page(viewport={"width": 1280, "height": 800})
    await page.goto(setting.workspace.url + path)
    await page.wait_for_selector("body[data-ready]")
    yield page
    await page.close()


async def ask(page: Page, box: str, text: str) -> None:
    await page.locator(box).fill(text)
    await page.keyboard.press("Enter")


async def test_mention_follow_up_and_source_at_the_page(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with AsyncExitStack() as stack:
        setting = await stack.enter_async_context(running(settings_in(tmp_path, redis_url)))
        page = await stack.enter_async_context(page_of(browser, setting, f"/#/{CHANNEL}"))
        await page.keyboard.type("@or")
        await page.keyboard.press("Enter")
        await page.keyboard.type("how many requests per minute may an API key make?")
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="1 reply").click()
        answer = page.locator("#thread .message").nth(1)
        await expect(answer.locator(".body")).to_contain_text("600 requests a minute")
        await expect(answer).to_contain_text("Quoted from your documents")
        await answer.get_by_role("button", name="Inspect").click()
        inspector = page.locator("#inspector")
        await expect(inspector.locator(".verdict")).to_have_text("AnsweredQuoted")
        await expect(inspector).to_contain_text("none: passages are quoted")
        await page.keyboard.press("Escape")

        await ask(page, "#thread-composer", "And what does error FH-3001 mean?")
        second = page.locator("#thread .message").nth(3)
        await expect(second.locator(".body")).to_contain_text("Too many requests")

        link = answer.get_by_role("link").first
        target = await link.get_attribute("href")
        assert target is not None
        assert "/docs/api/limits-and-errors.md#" in target
        await page.goto(target)
        await expect(page.get_by_role("heading", name="Rate limits")).to_be_visible()


async def test_the_steps_of_a_plan_are_seen_and_then_the_answer_under_them(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    gate = asyncio.Event()
    steps = [{"description": "Find the limit of a key"}, {"description": "Compare it <!here>"}]
    plan = calls(("finish_step", {"step": 1, "result": "600", "plan": steps}))
    draft = says(before_end=gate, after=(GOOD,))
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ScriptedOpenAI(decisions=[plan, RESPOND], drafts=repeat(draft)))
        settings = settings_in(tmp_path, redis_url, streams=True, **server.settings)
        setting = await stack.enter_async_context(running(settings))
        stack.callback(gate.set)
        page = await stack.enter_async_context(page_of(browser, setting, f"/#/{CHANNEL}"))
        await ask(page, "#channel-composer", "@Orion how many requests per minute may an API key make?")
        await page.get_by_role("button", name="1 reply").click()
        answer = page.locator("#thread .message").nth(1)
        await expect(answer.locator(".task")).to_have_text(
            ["Find the limit of a key (complete)", "Step 2 (in progress)"]
        )
        gate.set()
        await expect(answer.locator(".body")).to_contain_text("600 requests a minute")
        await expect(answer.locator(".task")).to_have_text(["Find the limit of a key (complete)", "Step 2 (complete)"])
        await expect(answer).to_contain_text("Verified")
        await expect(page.locator("#thread .message")).to_have_count(2)


async def test_ask_a_human_is_confirmed_first(browser: Browser, tmp_path: Path, redis_url: str) -> None:
    async with AsyncExitStack() as stack:
        setting = await stack.enter_async_context(running(settings_in(tmp_path, redis_url, handoff="#help")))
        page = await stack.enter_async_context(page_of(browser, setting, "/"))
        await ask(page, "#channel-composer", "Who is the king of Spain?")
        await page.get_by_role("button", name="Ask a human").click()
        dialog = page.get_by_role("dialog", name="Ask a human")
        await dialog.get_by_role("button").first.click()
        await expect(dialog).to_have_count(0)
        assert not setting.workspace.messages("C0HELP")
        await page.get_by_role("button", name="Ask a human").click()
        await dialog.get_by_role("button").last.click()
        await expect(page.get_by_role("button", name="Sent to a human")).to_be_visible()


async def test_a_message_is_asked_privately_and_the_answer_is_shared(
    browser: Browser, tmp_path: Path, redis_url: str
) -> None:
    async with AsyncExitStack() as stack:
        setting = await stack.enter_async_context(running(settings_in(tmp_path, redis_url)))
        page = await stack.enter_async_context(page_of(browser, setting, f"/#/{CHANNEL}"))
        await ask(page, "#channel-composer", "How many requests per minute may an API key make?")
        message = page.locator("#timeline .message").first
        await message.hover()
        await message.get_by_text("More", exact=True).click()
        await message.get_by_role("button", name="Ask Orion privately").click()
        await page.locator("#direct-list button").first.click()
        await page.get_by_role("button", name="1 reply").click()
        await page.get_by_role("button", name="Share in thread").click()
        await page.locator(f"[data-channel={CHANNEL}]").click()
        await page.get_by_role("button", name="1 reply").click()
        await expect(page.locator("#thread .message").nth(1)).to_contain_text("600 requests a minute")

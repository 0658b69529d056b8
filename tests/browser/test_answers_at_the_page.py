"""Answers as a person sees and uses them at the page (axe, keyboard, narrow, enlarged).

One browser, one workspace and one Orion for all tests of this module; each opens a page of its own.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from axe_playwright_python.async_playwright import Axe  # type: ignore[import-untyped]  # ships no types
from playwright.async_api import Browser, Page, expect

from bot.local.model.roster import ADMIN
from tests.support.openai_server import RESPOND, Scripted, ScriptedOpenAI, says
from tests.support.orion_running import Setting, running, settings_in

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]

LIMIT = "How many requests may one API key make a minute?"
CODES = "Which error codes does the API have?"
PART = "How many requests may a key make, and what does that cost?"
HELLO = "Good morning!"
SLOWLY = "How many requests a minute, told slowly?"
FIRST = "Each API key may make 600 requests a minute [1]."
DRAFTS = {
    LIMIT: FIRST,
    CODES: "The codes:\n\n| Code | Meaning |\n|---|---|\n| FH-3001 | Too many requests [1] |\n\nAll of them [1].",
    PART: f"{FIRST}\n\nKeys on the partner plan may make 4,000 requests a minute [1].",
    HELLO: "Good morning! What would you like to know?",
    SLOWLY: f"{FIRST}\n\nBursts of up to 50 requests a second are accepted [1].\n\n",
}


@dataclass(slots=True, kw_only=True)
class Place:
    """The workspace with Orion in it, and the browser that looks at it."""

    setting: Setting
    browser: Browser
    gate: asyncio.Event = field(default_factory=asyncio.Event)

    @asynccontextmanager
    async def page(self, path: str = "/#/D0ORION", *, user: str = "", **context: Any) -> AsyncIterator[Page]:
        """A page of a newcomer."""
        opened = await self.browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **context})
        await opened.add_init_script(f"sessionStorage.setItem('user', '{user}')")
        page = await opened.new_page()
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        await page.goto(self.setting.workspace.url + path)
        await page.wait_for_selector("body[data-ready]")
        yield page
        await opened.close()
        assert errors == []


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def place(browser: Browser, redis_socket: Path, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Place]:
    gate = asyncio.Event()

    def draft(body: Mapping[str, Any]) -> Scripted:
        asked = str(body["messages"])
        question = max(DRAFTS, key=asked.rfind)
        text = f"<answer>{DRAFTS[question]}</answer>"
        if question != SLOWLY:
            return says(text)
        return says(text.removesuffix("</answer>"), before_end=gate, after=("</answer>",))

    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(ScriptedOpenAI(decisions=lambda _: RESPOND, drafts=draft))
        settings = settings_in(
            tmp_path_factory.mktemp("home"), f"unix://{redis_socket}", handoff="#help", admins=frozenset({ADMIN}),
            streams=True, **server.settings,
        )  # fmt: skip
        setting = await stack.enter_async_context(running(settings, prefix="answers-at-the-page"))
        yield Place(setting=setting, browser=browser, gate=gate)
        gate.set()


async def ask(page: Page, text: str, box: str = "#channel-composer") -> None:
    await page.locator(box).fill(text)
    await page.keyboard.press("Enter")


async def barriers(page: Page) -> list[str]:
    """All violations that axe finds, even minor ones."""
    found = await Axe().run(page)
    return [f"{one['impact']} {one['id']}: {one['nodes'][0]['html'][:160]}" for one in found.response["violations"]]


async def test_the_first_answer_opens_by_itself_with_one_line_and_one_row(place: Place) -> None:
    async with place.page() as page:
        assert await barriers(page) == []
        await ask(page, LIMIT)
        answer = page.locator("#thread .message").nth(1)
        await expect(answer).to_contain_text("600 requests a minute")
        await expect(answer.get_by_role("link", name="[1]", exact=True)).to_have_count(0)
        await expect(answer.locator(".block-actions")).to_have_count(1)
        await expect(answer.locator(".block-actions button")).to_have_text(
            ["Helpful", "Not helpful", "Why trust this?", "Inspect"]
        )
        await expect(answer.locator(".block-context")).to_have_text(re.compile(r"✓ Verified\s+·\s+\[1\] .*ago"))
        assert await barriers(page) == []
        await ask(page, HELLO, "#thread-composer")
        greeting = page.locator("#thread .message").nth(3)
        await expect(greeting).to_contain_text("What would you like to know?")
        await expect(greeting.locator(".block-context, .block-actions button:not(.inspect)")).to_have_count(0)


async def test_why_trust_this_shows_the_claim_in_its_source(place: Place) -> None:
    async with place.page() as page:
        await ask(page, LIMIT)
        await page.get_by_role("button", name="Why trust this?").click()
        dialog = page.get_by_role("dialog", name="Why trust this?")
        await expect(dialog.locator("blockquote").last).to_contain_text("600 requests")
        assert await dialog.get_by_text("600 requests").count() == 2, "a passage is below its claim"
        await expect(dialog).to_contain_text("Word for word in the source")
        assert await barriers(page) == []


async def test_not_helpful_asks_what_was_wrong_and_the_admin_sees_it(place: Place) -> None:
    async with place.page() as page:
        await ask(page, LIMIT)
        await page.get_by_role("button", name="Not helpful").click()
        dialog = page.get_by_role("dialog", name="What was wrong?")
        await dialog.get_by_label("It is out of date").check()
        await dialog.get_by_label("What should it have said?").fill("The limit is 700.")
        assert await barriers(page) == []
        await dialog.get_by_role("button", name="Send").click()
        await expect(page.locator("#thread .message.private")).to_contain_text("Thank you")
    chat = place.setting.workspace.channel(ADMIN).id
    async with place.page(f"/#/{chat}?home", user=ADMIN) as page:
        home = page.locator("#home")
        await expect(home).to_contain_text("verified, but not helpful")
        await expect(home).to_contain_text("It is out of date")
        assert "700" not in await home.inner_text()


async def test_home_offers_questions_that_the_documents_answer(place: Place) -> None:
    async with place.page("/#/D0ORION?home") as page:
        home = page.locator("#home")
        await expect(home.get_by_role("link").first).to_be_visible()
        await expect(home).not_to_contain_text("For admins")
        questions = home.locator(".block-actions button")
        await expect(questions).to_have_count(3)
        assert "say about" in await questions.first.inner_text()
        assert await barriers(page) == []
        await questions.first.click()
        await expect(page.locator("#tab-messages")).to_have_attribute("data-news", " (new)")
        await page.get_by_role("tab", name="Messages").click()
        await expect(page.locator("#tab-messages")).not_to_have_attribute("data-news", " (new)")


async def test_a_table_is_read_in_the_thread_pane(place: Place) -> None:
    async with place.page() as page:
        await ask(page, CODES)
        table = page.locator("#thread table")
        await expect(table.get_by_role("columnheader")).to_have_text(["Code", "Meaning"])
        await expect(table.get_by_role("cell").nth(1)).to_have_text("Too many requests [1]")
        assert await barriers(page) == []


async def test_a_partial_answer_says_what_was_left_out(place: Place) -> None:
    async with place.page() as page:
        await ask(page, PART)
        answer = page.locator("#thread .message").nth(1)
        await expect(answer).to_contain_text("Partly verified")
        assert "4,000" not in await answer.inner_text()
        await answer.get_by_role("button", name="Why trust this?").click()
        dialog = page.get_by_role("dialog", name="Why trust this?")
        await expect(dialog.locator("s")).to_contain_text("4,000 requests")
        await expect(dialog).to_contain_text("isn't in the documents I cited")


async def test_the_page_does_not_jump_while_an_answer_grows(place: Place) -> None:
    async with place.page("/#/C0HELP") as page:
        await ask(page, f"@Orion {SLOWLY}")
        answer = page.locator("#thread .message").nth(1)
        await expect(answer).to_contain_text("600 requests")
        before = await answer.locator(".rich").first.bounding_box()
        place.gate.set()
        await expect(answer).to_contain_text("Verified")
        after = await answer.locator(".rich").first.bounding_box()
        assert before is not None
        assert after is not None
        assert (before["x"], before["y"], before["width"]) == (after["x"], after["y"], after["width"])


@pytest.mark.parametrize(
    "context",
    [
        {"viewport": {"width": 375, "height": 720}, "color_scheme": "dark"},
        {"viewport": {"width": 640, "height": 400}, "device_scale_factor": 2},
    ],
    ids=["375 pixels in the dark", "200 percent"],
)
async def test_the_page_works_narrow_enlarged_and_in_the_dark(place: Place, context: dict[str, Any]) -> None:
    async with place.page(**context) as page:
        await ask(page, LIMIT)
        await expect(page.locator("#thread .message").nth(1)).to_contain_text("600 requests")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await barriers(page) == []
        await page.get_by_role("button", name="Why trust this?").click()
        await expect(page.get_by_role("dialog", name="Why trust this?")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await barriers(page) == []
        await page.keyboard.press("Escape")
        await page.locator("#thread").get_by_role("button", name="Inspect").click()
        await expect(page.locator("#inspector")).to_contain_text("1 attempt")
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert await barriers(page) == []


async def test_the_keyboard_alone_asks_deletes_and_takes_the_tour(place: Place) -> None:
    async with place.page("/#/C0GENERAL") as page:
        await page.keyboard.type("Nothing")
        await page.keyboard.press("Enter")
        message = page.locator("#timeline .message").last
        await message.focus()
        await message.get_by_role("button", name="Delete").focus()
        await page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Delete message")
        await expect(dialog.get_by_role("button", name="Keep")).to_be_focused()
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(page.locator("#timeline .message")).to_have_count(0)
        await page.locator("#try-panel summary").focus()
        await page.keyboard.press("Enter")
        await page.get_by_role("button", name="Take the tour").focus()
        await page.keyboard.press("Enter")
        for step in range(1, 5):
            await expect(page.locator("#tour")).to_contain_text(f"Step {step} of 4")
            assert await barriers(page) == []
            await page.locator("#tour").get_by_role("button").last.press("Enter")
        await expect(page.locator("#tour")).to_be_hidden()


async def test_a_new_message_does_not_move_the_focus(place: Place) -> None:
    async with place.page() as page:
        await ask(page, LIMIT)
        button = page.get_by_role("button", name="Why trust this?")
        await button.focus()
        await page.keyboard.press("Enter")
        await expect(page.locator("#modal-form")).to_be_focused()
        place.setting.workspace.post("U0RELEASE", "C0ENGINEERING", "meanwhile")
        await page.keyboard.press("Escape")
        await expect(button).to_be_focused()
        await page.get_by_role("button", name="Not helpful").click()
        await expect(page.get_by_label("Something in it is wrong")).to_be_focused()
        await page.keyboard.press("Escape")
        await page.locator("#try-panel summary").click()
        await page.locator("#who").focus()
        for person in ("Release manager", "On-call engineer"):
            await page.keyboard.press("ArrowDown")
            await expect(page.locator("#who option:checked")).to_have_text(person)
            await page.wait_for_function("() => document.activeElement.id === 'who'")


async def test_a_guest_is_refused_and_orion_waits_for_a_busy_slack(place: Place) -> None:
    async with place.page("/#/C0HELP", user="U0GUEST") as page:
        await ask(page, f"@Orion {LIMIT}")
        await expect(page.locator(".message.private")).to_contain_text("full members")
    async with place.page() as page:
        place.setting.workspace.faults.rate_limit("chat.postMessage", times=3)
        await page.locator("input[type=file]").first.set_input_files(
            {"name": "notes.md", "mimeType": "text/markdown", "buffer": b"# Notes\n\nNothing.\n"}
        )
        await expect(page.locator(".attached").first).to_contain_text("notes.md")
        await ask(page, LIMIT)
        await expect(page.locator("#timeline .file").last).to_contain_text("notes.md")
        await expect(page.locator("#thread .message").nth(1)).to_contain_text("600 requests")

"""The page on a telephone: a tap moves nothing, Back leads one step back, and nothing covers the rest."""

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.support.local_echo import HELP, YOU
from tests.support.staged_page import Stage, open_stage

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session")]


async def height(node: Locator) -> float:
    box = await node.bounding_box()
    assert box is not None
    return box["y"]


async def test_a_tap_keeps_the_scroll_position_and_back_goes_one_step_back(browser: Browser) -> None:
    async with open_stage(browser, width=375, touch=True) as stage:
        for number in range(14):
            root = stage.workspace.post(YOU, HELP, f"question {number}")
            stage.workspace.post("U0RELEASE", HELP, f"answer {number}", root)
        page = await stage.open("/#/C0HELP")
        replies = page.get_by_role("button", name="1 reply").last
        before = await height(replies)
        await page.locator("#timeline .message").last.focus()
        assert await height(replies) == before
        message = page.locator("#timeline .message").nth(-2)
        box = await message.bounding_box()
        assert box is not None
        await page.touchscreen.tap(box["x"] + box["width"] - 40, box["y"] + 12)  # where its tools appear
        await expect(message.get_by_role("button", name="Delete")).to_be_visible()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await replies.tap()
        await expect(page.locator("#thread .message")).to_have_count(2)
        await page.go_back()
        await expect(page.locator("#pane")).to_be_hidden()
        await expect(page.locator("#timeline")).to_be_visible()
        await page.go_forward()
        await expect(page.locator("#thread .message")).to_have_count(2)


async def test_back_in_the_inspector_returns_to_its_thread(browser: Browser) -> None:
    async with open_stage(browser, width=375) as stage:
        root = stage.workspace.post(YOU, HELP, "<@U0ORION> hello")
        # An answer that comes later would open by itself, in place of the button.
        await stage.workspace.wait_for(lambda: stage.workspace.messages(HELP, root)[1:])
        page = await stage.open("/#/C0HELP")
        await page.get_by_role("button", name="1 reply").click()
        await page.locator("#thread").get_by_role("button", name="Inspect").click()
        await expect(page.locator("#inspector")).to_contain_text("2 attempts")
        await page.go_back()
        await expect(page.locator("#thread .message")).to_have_count(2)
        await page.go_forward()
        await expect(page.locator("#inspector")).to_contain_text("2 attempts")


async def test_the_drawer_scrolls_and_the_tour_covers_nothing(browser: Browser) -> None:
    async with open_stage(browser, width=667, height=375) as stage:
        page = await stage.open("/#/C0HELP")
        await page.get_by_role("button", name="Show channels").click()
        await page.locator("#try-panel summary").click()
        await page.get_by_role("button", name="Take the tour").click()
        await expect(page.locator("#sidebar")).to_be_hidden()
        composer, tour = page.locator("#channel-composer"), page.locator("#tour")
        box = await composer.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= await height(tour)


async def test_a_long_answer_is_read_from_its_first_line(stage: Stage) -> None:
    root = stage.workspace.post(YOU, HELP, "one")
    page = await stage.open(f"/#/C0HELP/{root}")
    stage.workspace.post("U0RELEASE", HELP, "\n".join(f"line {number}" for number in range(90)), root)
    answer = page.locator("#thread .message").nth(1)
    await expect(answer).to_contain_text("line 89")
    await expect(answer.get_by_text("line 0", exact=True)).to_be_in_viewport()

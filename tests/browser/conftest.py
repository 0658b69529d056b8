"""The browser that the tests of one module share."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio
from playwright.async_api import Browser, async_playwright

from tests.support.browser import ARGUMENTS, browser_path
from tests.support.staged_page import Stage, staged


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """The Chromium of this machine; without one there is nothing to show."""
    path = browser_path()
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="module")
async def stage(browser: Browser) -> AsyncIterator[Stage]:
    """The local workspace with the echo app, and its page on a desktop."""
    async with staged(browser) as opened:
        yield opened

"""The browser that all tests of the page share."""

import shutil
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect

from tests.support.staged_page import Stage, open_stage

expect.set_options(timeout=30_000)
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome", "headless_shell")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """The Chromium of this machine; without one the tests are skipped with the reason."""
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        pytest.skip(f"no browser found on PATH (looked for {', '.join(BROWSERS)})")
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield launched
        await launched.close()


@pytest_asyncio.fixture(loop_scope="session")
async def stage(browser: Browser) -> AsyncIterator[Stage]:
    """The local workspace with the echo app, and its page on a desktop."""
    async with open_stage(browser) as opened:
        yield opened

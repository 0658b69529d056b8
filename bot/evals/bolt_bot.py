"""The smallest useful Slack bot: Bolt and the openai SDK, one model call a mention. `orion bench` compares with it.

It keeps nothing, searches nothing and checks nothing.
"""

from __future__ import annotations

import asyncio
from typing import Any

from openai import AsyncOpenAI
from pydantic import Field
from pydantic_settings import BaseSettings
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp, AsyncSay
from slack_sdk.web.async_client import AsyncWebClient


class _Settings(BaseSettings):
    slack_bot_token: str = Field(default="")
    slack_app_token: str = Field(default="")
    slack_api_url: str = Field(default="")
    openai_base_url: str = Field(default="")


async def main() -> None:
    """Answer mentions until killed."""
    settings = _Settings()
    client = AsyncWebClient(token=settings.slack_bot_token, base_url=settings.slack_api_url)
    app = AsyncApp(client=client, token=settings.slack_bot_token)
    model = AsyncOpenAI(base_url=settings.openai_base_url, api_key="none")

    @app.event("app_mention")
    async def answer(event: dict[str, Any], say: AsyncSay) -> None:
        reply = await model.chat.completions.create(
            model="m", messages=[{"role": "system", "content": "Answer."}, {"role": "user", "content": event["text"]}]
        )
        await say(text=reply.choices[0].message.content or "", thread_ts=event["ts"])

    @app.event("message")
    async def pass_over() -> None:
        """A mention comes as a message too."""

    await AsyncSocketModeHandler(app, settings.slack_app_token).start_async()  # type: ignore[no-untyped-call]  # Bolt's own


if __name__ == "__main__":
    asyncio.run(main())

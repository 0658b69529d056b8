"""The smallest useful Slack bot: Bolt and the openai SDK, one model call a mention. `orion bench` compares with it.

It keeps nothing, searches nothing and checks nothing.
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from openai import AsyncOpenAI
from slack_bolt.adapter.socket_mode.aiohttp import AsyncSocketModeHandler
from slack_bolt.async_app import AsyncApp, AsyncSay
from slack_sdk.web.async_client import AsyncWebClient


async def main() -> None:
    """Answer mentions until killed."""
    app = AsyncApp(client=AsyncWebClient(os.environ["SLACK_BOT_TOKEN"], base_url=os.environ["SLACK_API_URL"]))
    model = AsyncOpenAI(base_url=os.environ["OPENAI_BASE_URL"], api_key="none")

    @app.event("app_mention")
    async def answer(event: dict[str, Any], say: AsyncSay) -> None:
        messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": event["text"]}]
        reply = await model.chat.completions.create(model="m", messages=messages)
        await say(text=reply.choices[0].message.content or "", thread_ts=event["ts"])

    @app.event("message")
    async def pass_over() -> None:
        """A mention comes as a message too."""

    await AsyncSocketModeHandler(app, os.environ["SLACK_APP_TOKEN"]).start_async()


if __name__ == "__main__":
    asyncio.run(main())

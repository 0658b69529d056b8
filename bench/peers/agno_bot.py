"""Agno's Slack interface as its documentation starts it: one agent, no tools, answers posted whole.

Agno knows no other address of Slack than slack.com, so its clients are told the local one here.
"""

from __future__ import annotations

import os
from functools import partial

import agno.tools.slack as slack_tools
import uvicorn
from agno.agent import Agent
from agno.models.openai.like import OpenAILike
from agno.os import AgentOS
from agno.os.interfaces.slack import Slack, event_handler

event_handler.AsyncWebClient = partial(event_handler.AsyncWebClient, base_url=os.environ["SLACK_API_URL"])
slack_tools.WebClient = partial(slack_tools.WebClient, base_url=os.environ["SLACK_API_URL"])

model = OpenAILike(id="m", base_url=os.environ["OPENAI_BASE_URL"], api_key="none")
agent = Agent(name="bench", model=model, instructions="Answer.", telemetry=False)
slack = Slack(
    agent=agent,
    token=os.environ["SLACK_BOT_TOKEN"],
    signing_secret=os.environ["SLACK_SIGNING_SECRET"],
    streaming=False,  # posted whole, as the others post
)
app = AgentOS(agents=[agent], interfaces=[slack], telemetry=False).get_app()

if __name__ == "__main__":
    uvicorn.run(app, host="127.0.0.1", port=int(os.environ["PORT"]), log_level="warning")

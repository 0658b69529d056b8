"""The collaborators of a turn over a local workspace: people cannot be asked, and nothing is searched in Slack."""

from __future__ import annotations

from pathlib import Path

from redis.asyncio import Redis

from agent.knowledge.index.index import KnowledgeIndex
from bot.channel_settings import ChannelFile
from bot.slack.files import Attachments
from bot.slack.hand_off_place import HandOffPlace
from bot.slack.memberships import Memberships
from bot.slack.names import Names
from bot.slack.search import SlackSearch
from bot.slack.users import People
from bot.turn.lookups import WorkspaceLookups
from bot.turn.visibility import Visibility
from tests.support.local_slack import Slack


def lookups_in(slack: Slack, redis: Redis, index: KnowledgeIndex) -> WorkspaceLookups:
    people = People(slack.workspace, redis)
    return WorkspaceLookups(
        people=people,
        names=Names(people),
        handoff=HandOffPlace("", slack.calls, people),
        attachments=Attachments(slack.client, slack.calls, slack.reader),
        search=SlackSearch(slack.client, slack.calls),
        visibility=Visibility(index),
        memberships=Memberships(slack.calls, people, index),
        channels=ChannelFile(Path("absent")),
    )

"""The team, its members and its channels, as Slack describes them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from bot.local.model.errors import ApiError

Json = dict[str, Any]
ChannelKind = Literal["channel", "group", "im", "mpim"]

TEAM_ID: Final = "T0LOCAL"
TEAM_NAME: Final = "Local workspace"
APP_ID: Final = "A0ORION"
BOT_ID: Final = "B0ORION"
BOT_USER: Final = "U0ORION"
VISITOR: Final = "U0YOU"
ADMIN: Final = "U0ADMIN"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A person or a bot."""

    id: str
    name: str  # shown on the page
    title: str = ""
    is_bot: bool = False
    is_admin: bool = False
    is_restricted: bool = False  # a guest
    is_ultra_restricted: bool = False
    team: str = TEAM_ID  # differs for people of another organisation
    enterprise: str = ""  # an organisation of several workspaces
    is_stranger: bool = False  # from another organisation, and in no channel that the app sees
    locale: str = "en-US"  # their language in Slack
    email: str = ""

    @property
    def handle(self) -> str:
        """The name without spaces, as in ``@releasemanager``."""
        return "".join(self.name.lower().split())

    def payload(self) -> Json:
        """The user object of ``users.info``."""
        profile = {"title": self.title, "email": self.email, "real_name": self.name, "display_name": self.name}
        return {
            "id": self.id,
            "team_id": self.team,
            "name": self.handle,
            "real_name": self.name,
            "tz": "Etc/UTC",
            "profile": profile | ({"api_app_id": APP_ID, "bot_id": BOT_ID} if self.is_bot else {}),
            **{name: getattr(self, name) for name in ("is_admin", "is_restricted", "is_ultra_restricted", "is_bot")},
            "deleted": False,
            "is_stranger": self.is_stranger,
            **(
                {"enterprise_user": {"enterprise_id": self.enterprise, "teams": [self.team]}} if self.enterprise else {}
            ),
        }


@dataclass(slots=True, kw_only=True)
class Channel:
    """A channel, private channel (``group``) or one of direct messages (``im``, ``mpim``)."""

    id: str
    name: str
    kind: ChannelKind = "channel"
    topic: str = ""
    members: set[str] = field(default_factory=set)
    is_ext_shared: bool = False
    is_archived: bool = False

    def payload(self) -> Json:
        """The conversation object of ``conversations.info``, as the bot sees it."""
        shared = {"id": self.id, "is_archived": self.is_archived, "is_org_shared": False}
        if self.kind == "im":
            return {**shared, "is_im": True, "user": min(self.members - {BOT_USER}, default=BOT_USER)}
        return {
            **shared,
            "name": self.name,
            "is_channel": self.kind == "channel",
            "is_im": False,
            "is_mpim": self.kind == "mpim",
            "is_private": self.kind != "channel",
            "is_shared": self.is_ext_shared,
            "is_ext_shared": self.is_ext_shared,
            "is_member": BOT_USER in self.members,
            "topic": {"value": self.topic},
        }


class Roster:
    """All members, channels and user groups of one team; more may be added while the workspace runs."""

    def __init__(self, members: Iterable[Member], channels: Iterable[Channel]) -> None:
        self.members = {member.id: member for member in members}
        self.channels = {channel.id: channel for channel in channels}
        self.groups = {"S0HELPERS": "helpers"}  # handles of user groups, by id
        self.group_members: dict[str, set[str]] = {"S0HELPERS": {"U0ONCALL"}}

    def member(self, user: str) -> Member:
        """A member of the team. Raises ``ApiError``: ``user_not_found``."""
        if found := self.members.get(user):
            return found
        raise ApiError(error="user_not_found")

    def channel(self, reference: str) -> Channel:
        """The channel with this id or ``#name``; a user's id means the direct messages with that user."""
        if found := self.channels.get(reference):
            return found
        if reference in self.members:
            return self.direct_message(reference)
        wanted = reference.removeprefix("#")
        for channel in self.channels.values():
            if channel.name == wanted and channel.kind != "im":
                return channel
        raise ApiError(error="channel_not_found")

    def direct_message(self, user: str) -> Channel:
        """Return the channel of direct messages between the app and this user; create it if needed."""
        pair = {user, BOT_USER}
        for channel in self.channels.values():
            if channel.kind == "im" and channel.members == pair:
                return channel
        made = Channel(id=f"D0{user.removeprefix('U0')}", name="", kind="im", members=pair)
        self.channels[made.id] = made
        return made

    def names(self) -> dict[str, str]:
        """Display names by id, of members and channels."""
        shown = {member.id: member.name for member in self.members.values()}
        return shown | {channel.id: channel.name for channel in self.channels.values() if channel.name}


def sample_roster() -> Roster:
    """The sample workspace: people by role, a guest, a partner, an admin, Orion, three channels."""
    people = [
        Member(id=VISITOR, name="You"),
        Member(id="U0RELEASE", name="Release manager", title="Ships on Tuesdays"),
        Member(id="U0ONCALL", name="On-call engineer", title="Holds the pager"),
        Member(id="U0PEOPLE", name="People partner", title="Onboarding and expenses"),
        Member(id=ADMIN, name="Workspace admin", title="Runs Orion", is_admin=True),
        Member(id="U0GUEST", name="Guest", title="A guest of this workspace", is_restricted=True),
        Member(id="U0PARTNER", name="Partner", title="From another organisation", team="T0PARTNER"),
        Member(id=BOT_USER, name="Orion", title="Answers from your documents", is_bot=True),
    ]
    everyone = {member.id for member in people}
    channels = [
        Channel(id="C0GENERAL", name="general", topic="News for everybody", members=set(everyone)),
        Channel(id="C0HELP", name="help", topic="Ask anything about how we work", members=set(everyone)),
        Channel(id="C0ENGINEERING", name="engineering", topic="Builds, releases, incidents", members=set(everyone)),
        Channel(id="D0ORION", name="", kind="im", members={VISITOR, BOT_USER}),
    ]
    return Roster(people, channels)

"""Statuses that Slack was asked to show."""

from tests.support.local_slack import Slack


def shown(slack: Slack) -> list[str]:
    return [
        call.arguments["status"]
        for call in slack.server.calls
        if call.method == "assistant.threads.setStatus" and call.done and "status" in call.arguments
    ]


def cleared(slack: Slack) -> bool:
    """Whether no status shows, and no Stop button."""
    threads = slack.server.workspace.threads
    return not threads.status_payloads() and {one.status for one in threads.sessions.values()} == {"active"}

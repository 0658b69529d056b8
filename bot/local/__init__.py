"""The local workspace: a Slack-compatible server and the page it serves."""

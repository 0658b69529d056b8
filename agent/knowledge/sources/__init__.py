"""Where documents come from: folders, git, web pages, a Slack export."""

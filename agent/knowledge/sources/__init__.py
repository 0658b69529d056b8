"""Sources of documents: folders, git, web pages, a Slack export."""

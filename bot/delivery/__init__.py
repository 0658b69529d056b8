"""Posts, streams and views: how an answer reaches Slack."""

"""Posts, streams and views that carry an answer to Slack."""

"""Posts, streams and views that show an answer in Slack."""

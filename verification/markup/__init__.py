"""Slack mrkdwn: scanner, repair and chunks."""

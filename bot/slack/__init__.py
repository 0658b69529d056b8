"""Slack payloads and Web API calls."""

"""Decides what to say. Knows nothing of Slack: questions come in and outcomes go out as plain values."""

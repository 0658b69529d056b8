"""Decides what to say. It does not depend on Slack: questions come in and outcomes go out as plain values."""

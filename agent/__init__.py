"""Decides what to say. It does not depend on Slack: questions and outcomes are plain values."""

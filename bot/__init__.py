"""Slack's side: the only package that speaks to Slack."""

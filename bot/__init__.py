"""The Slack side: the only package that talks to Slack."""

"""Events from Slack: parsed once, stored, acknowledged."""

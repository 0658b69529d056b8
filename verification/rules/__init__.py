"""The rules other than grounding."""

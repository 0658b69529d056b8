"""Abilities of the agent. A failed tool is a result that the model reads, never a crash."""

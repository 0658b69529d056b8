"""What the agent can do. A failed tool is a result the model reads, never a crash."""

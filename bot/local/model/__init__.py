"""The content of the local workspace: people, channels, messages, limits."""

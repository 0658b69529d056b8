"""What the local workspace holds: people, channels, messages, limits."""

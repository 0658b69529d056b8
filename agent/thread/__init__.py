"""The conversation of one thread: its state, plan and storage."""

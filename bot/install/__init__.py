"""Workspaces: OAuth installs and their tokens."""

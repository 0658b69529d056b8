"""Checks of a claim against the passages it cites."""

"""The checks of a claim against the passages it cites."""

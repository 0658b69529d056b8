"""Whether every claim stands in what it cites."""

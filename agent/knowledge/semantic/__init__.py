"""Search by meaning: sentence vectors of passages, their storage and their ranking."""

"""Answers that people save: their files, what waits for approval, and what may not be saved."""

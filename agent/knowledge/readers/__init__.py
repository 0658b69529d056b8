"""File formats: a reader turns a file into text, and chunking cuts text into passages."""

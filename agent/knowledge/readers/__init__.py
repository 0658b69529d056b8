"""File formats: each reader turns a file into text, and chunking cuts text into passages."""

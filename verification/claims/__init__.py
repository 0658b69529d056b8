"""The sentences of an answer that are claims."""

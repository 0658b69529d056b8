"""Which sentences of an answer are claims."""

"""Knowledge: documents are read, cut into passages, indexed and found again."""

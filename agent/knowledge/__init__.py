"""Knowledge: read documents, cut them into passages, index and search them."""

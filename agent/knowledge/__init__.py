"""Knowledge: reads documents, cuts them into passages, indexes and searches them."""

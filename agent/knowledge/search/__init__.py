"""Full-text search: tokens, query terms and ranking."""

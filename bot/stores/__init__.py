"""Small records in Redis."""

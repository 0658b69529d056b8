"""The document index: built from sources, kept in SQLite or PostgreSQL."""

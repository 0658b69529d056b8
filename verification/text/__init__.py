"""Words, stop words and languages."""

"""All texts that people read, in seven languages."""

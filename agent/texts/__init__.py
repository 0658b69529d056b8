"""Every text that a person reads, in seven languages."""

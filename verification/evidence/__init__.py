"""The passages that a claim is compared with."""

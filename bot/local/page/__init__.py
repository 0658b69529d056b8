"""The web page of the local workspace."""

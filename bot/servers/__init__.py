"""Servers that receive events: HTTP and Socket Mode."""

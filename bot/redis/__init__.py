"""Connections to Redis: embedded, single, Sentinel or cluster."""

"""Handles a queued job, from the gates to the delivered answer."""

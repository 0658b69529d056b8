"""A queued job, from the gates to the delivered answer."""

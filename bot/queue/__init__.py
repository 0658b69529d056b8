"""The durable per-thread queue in Redis and the worker that empties it."""

"""The document index as the bot uses it: opens it, syncs it, gets its figures."""

"""The bot's use of the document index: opening it, syncing it, reporting its figures."""

"""The document index as the bot uses it: opening, syncing, figures."""

"""The engine without a language model: it shows the passages that match a question best."""

"""The engine without a language model: it shows the passages that fit a question best, and does not read them."""

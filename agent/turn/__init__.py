"""One turn: from a question to a verified answer."""

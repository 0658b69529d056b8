"""Answers made of quotations: sources are taken apart, ranked against the question and put together again."""

"""The language model: the protocol, the OpenAI client, prompts, and the parsers of replies."""

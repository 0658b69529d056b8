"""`orion doctor`: checks of tokens, servers and documents."""

"""`python -m bot` is `orion`."""

from bot.cli import main

if __name__ == "__main__":
    main()

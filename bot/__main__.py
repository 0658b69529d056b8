"""`orion` and `python -m bot`."""

import sys


def main() -> None:
    """Run a command, or name the package that is missing."""
    try:
        from bot.cli.main import main as run_command  # noqa: PLC0415 - it imports packages

        run_command()
    except ModuleNotFoundError as error:
        sys.exit(
            f"The package {error.name} is missing from {sys.prefix}. In Orion's folder, `rm -rf .venv` and "
            "then `make run` install all packages again. What Orion stored is kept."
        )


if __name__ == "__main__":
    main()

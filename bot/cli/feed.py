"""`orion feed`: prints the pages of Confluence or Notion for ORION_FEEDS, or lists the pages it would read."""

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from bot.errors import WrongUse

app = typer.Typer()


class System(StrEnum):
    """A system whose pages Orion can read as a feed."""

    CONFLUENCE = "confluence"
    NOTION = "notion"


@app.command()
def feed(
    system: Annotated[System, typer.Argument(help="Where the pages are.")],
    config: Annotated[Path, typer.Argument(help="TOML file with address, token and audiences (docs/knowledge.md).")],
    *,
    dry_run: Annotated[bool, typer.Option("--list", help="List the pages and who may see them; read no text.")] = False,
) -> None:
    """Print pages with their audiences, one JSON object per line. Name it in ORION_FEEDS."""
    from agent.knowledge.feeds import confluence, notion
    from agent.knowledge.feeds.lines import FeedError, Printer, read_config, read_known

    try:
        known = {} if dry_run or sys.stdin.isatty() else read_known(sys.stdin.buffer)
        printer = Printer(known=known, dry_run=dry_run)
        read = confluence.print_pages if system is System.CONFLUENCE else notion.print_pages
        read(read_config(config), printer)
    except FeedError as error:
        raise WrongUse(str(error)) from None

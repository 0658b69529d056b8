"""Runs the workspace alone, as a test server for any Slack app: ``python -m bot.local``."""

from __future__ import annotations

import argparse
import asyncio
import sys

from bot.local.server import LocalWorkspace


async def serve(host: str, port: int, events_url: str) -> None:
    """Run until interrupted. Raises ``OSError`` if the port cannot be opened."""
    workspace = LocalWorkspace()
    workspace.http.url = events_url
    await workspace.start(host, port)
    sys.stdout.write(
        f"page={workspace.url}\nSLACK_API_URL={workspace.api_url}\nSLACK_BOT_TOKEN={workspace.bot_token}\n"
        f"SLACK_APP_TOKEN={workspace.app_token}\nSLACK_SIGNING_SECRET={workspace.signing_secret}\n"
    )
    sys.stdout.flush()
    try:
        await asyncio.Event().wait()
    finally:
        await workspace.stop()


def main() -> None:
    """Read the command line and serve."""
    parser = argparse.ArgumentParser(prog="python -m bot.local", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8766)
    parser.add_argument("--events-url", default="", help="your app's URL for HTTP events; without it, Socket Mode")
    chosen = parser.parse_args()
    try:
        asyncio.run(serve(chosen.host, chosen.port, chosen.events_url))
    except KeyboardInterrupt:
        sys.exit(0)
    except OSError as error:
        sys.exit(f"Port {chosen.port} cannot be opened ({error.strerror}). Choose another with --port.")


if __name__ == "__main__":
    main()

"""An MCP server that misbehaves in the way that its argument names.

``mute`` never says anything, ``gone`` ends at once, ``nonsense`` prints other text than messages, ``flood`` a line
without end, ``chatter`` messages without end; ``stubborn`` does not end when it is asked to.
"""

import signal
import sys

MESSAGE = '{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}\n'
SAID = {"nonsense": "hello\n", "flood": "x" * 10_000, "chatter": MESSAGE * 100}

if __name__ == "__main__":
    how = sys.argv[1]
    if how == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while how in SAID:
        sys.stdout.write(SAID[how])
    while how == "stubborn":
        signal.pause()
    if how == "mute":
        sys.stdin.read()

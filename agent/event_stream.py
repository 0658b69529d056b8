"""Server-sent events, sans I/O: bytes in, the data of each complete event out.

The SDK's own reader builds a validated object for every token, about ten times the cost of what is needed here, and
hides the end mark by which a whole stream is told from a broken one. Promises: linear time, ``MAX_EVENT`` bytes held.
"""

from __future__ import annotations

MAX_EVENT = 1 << 20


class EventStream:
    """``feed`` what arrives. Raises ``ValueError`` when one event grows beyond ``MAX_EVENT``."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The data of the events that ``chunk`` completes. A server's ``error:`` line counts as data."""
        events: list[bytes] = []
        self._rest += chunk
        if b"\n" in chunk:
            *lines, self._rest = self._rest.split(b"\n")
            for line in lines:
                self._line(bytes(line), events)
        if len(self._rest) + self._size > MAX_EVENT:
            fault = "an event is too long"
            raise ValueError(fault)
        return events

    def close(self) -> list[bytes]:
        """An event whose closing empty line never came."""
        events: list[bytes] = []
        self._line(bytes(self._rest), events)
        self._line(b"", events)
        self._rest = bytearray()
        return events

    def _line(self, line: bytes, events: list[bytes]) -> None:
        line = line.removesuffix(b"\r")
        if not line:
            if self._data:
                events.append(b"\n".join(self._data))
            self._data, self._size = [], 0
            return
        field, _, value = line.partition(b":")
        if field in {b"data", b"error"}:
            self._data.append(value.removeprefix(b" "))
            self._size += len(value)

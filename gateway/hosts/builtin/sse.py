"""Server-sent events, read from bytes as they come."""

_LONGEST_LINE = 1 << 26


class EventParser:
    """Turns chunks of a response body into the `data` of each event.

    Lines end at line feeds only: a text's own U+2028, at which a line reader for text would
    cut, stays in it. Comments, event names and ids are skipped.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._data: list[str] = []

    def feed(self, chunk: bytes) -> list[str]:
        """Return the events that this chunk completes; raises ValueError past 64 MiB a line."""
        self._buffer += chunk
        if b"\n" not in chunk:
            if len(self._buffer) > _LONGEST_LINE:
                raise ValueError("a line of the stream is too long")
            return []
        *lines, rest = bytes(self._buffer).split(b"\n")
        self._buffer = bytearray(rest)
        events = (self._take(line.removesuffix(b"\r")) for line in lines)
        return [event for event in events if event is not None]

    def end(self) -> list[str]:
        """Return what an unfinished last event holds; many servers leave out the blank line."""
        last = self.feed(b"\n\n") if self._buffer or self._data else []
        self._data.clear()
        return last

    def _take(self, line: bytes) -> str | None:
        if not line:
            event = "\n".join(self._data)
            self._data.clear()
            return event or None
        field, _, value = line.partition(b":")
        if field == b"data":
            self._data.append(value.removeprefix(b" ").decode("utf-8", "replace"))
        return None

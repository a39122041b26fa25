"""Reading server-sent events (WHATWG HTML, section 9.2): the part of the format that the change feed uses."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import AnswerError


@dataclass
class Event:
    """An event of a stream."""

    name: str = ""
    id: str | None = None
    data: str = ""


class EventReader:
    """Assembles events from pieces of any length."""

    def __init__(self, max_bytes: int) -> None:
        """Accept events up to this length."""
        self.retry: float | None = None
        """The last `retry` of the stream, in seconds."""
        self._max_bytes = max_bytes
        self._line = bytearray()
        self._event = Event()
        self._has_fields = False

    def take(self, piece: bytes) -> list[Event]:
        """Take the next piece, and return the events that it completes."""
        events: list[Event] = []
        *lines, rest = piece.split(b"\n")
        for line in lines:
            if self._line:
                line = bytes(self._line) + line
                self._line.clear()
            line = line.removesuffix(b"\r")
            if line:
                self._field(line.decode(errors="replace"))
            elif self._has_fields:
                events.append(self._event)
                self._event, self._has_fields = Event(), False
            self._check_length()
        self._line += rest
        self._check_length()
        return events

    @property
    def is_within_event(self) -> bool:
        """Whether the last piece ended within a field of an event, such as long data, and not within a comment."""
        return bool(self._line) and not self._line.startswith(b":")

    def _check_length(self) -> None:
        if len(self._line) + len(self._event.data) > self._max_bytes:
            raise AnswerError("an event is longer than the client accepts")

    def _field(self, line: str) -> None:
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            self._event.name = value
        elif name == "id":
            self._event.id = value
        elif name == "data":
            self._event.data += f"\n{value}" if self._event.data else value
        elif name == "retry":
            if value.isdecimal():
                self.retry = int(value) / 1000
            return
        else:
            return  # a comment or an unknown field
        self._has_fields = True

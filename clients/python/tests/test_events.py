"""Reading server-sent events."""

from __future__ import annotations

import pytest

from agentcfg._events import Event, EventReader
from agentcfg.errors import AnswerError

STREAM = (
    b": hello\nretry: 1500\nevent: bookmark\nid: c1\ndata: {}\n\nevent:change\r\nid: c2\r\n"
    b'data: {"a":\ndata:  "\xc3\xa9"}\r\n\r\n\n\nretry: soon\n\n'
)


@pytest.mark.parametrize("length", range(1, len(STREAM) + 1))
def test_events_are_the_same_however_the_stream_is_cut(length: int) -> None:
    reader = EventReader(100)
    found = [event for at in range(0, len(STREAM), length) for event in reader.take(STREAM[at : at + length])]
    assert found == [Event("bookmark", "c1", "{}"), Event("change", "c2", '{"a":\n "é"}')]
    assert reader.retry == 1.5


def test_an_event_that_is_too_long_is_refused_before_its_end() -> None:
    with pytest.raises(AnswerError, match="longer"):
        EventReader(100).take(b"x" * 101)
    reader = EventReader(100)
    line = b"data: " + b"x" * 60 + b"\n"
    assert reader.take(line) == []
    with pytest.raises(AnswerError, match="longer"):
        reader.take(line)

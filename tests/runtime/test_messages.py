"""Tests of the messages between a worker process and its parent."""

from __future__ import annotations

import io

import pytest

from anonymip.runtime.messages import Interrupt, Ready, Returned, read_message, write_message


def test_messages_come_in_order_and_whole() -> None:
    """What is written is what is read, until the stream ends."""
    sent = [Ready(), Interrupt(3), Returned(3, b"\x00" * 100_000)]
    stream = io.BytesIO()
    for message in sent:
        write_message(stream, message)
    stream.seek(0)
    assert [read_message(stream) for _ in sent] == sent
    with pytest.raises(EOFError):
        read_message(stream)


@pytest.mark.parametrize("kept", [1, 8, 20])
def test_message_cut_short_is_the_end(kept: int) -> None:
    """A process that dies while writing has said nothing."""
    stream = io.BytesIO()
    write_message(stream, Returned(1, "a long answer"))
    with pytest.raises(EOFError):
        read_message(io.BytesIO(stream.getvalue()[:kept]))

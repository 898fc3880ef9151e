"""A response is sent in one system call, streams are sent at once, and no data are lost or reordered."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from stele.server.connection_limits import ConnectionLimits
from stele.server.connections import CONNECTIONS, BoundedProtocol, ConnectionTable
from stele.server.joined_writes import JoinedWriteTransport


class RecordingTransport(asyncio.Transport):
    """Records the data of each call."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.calls: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Record one system call."""
        assert not self.is_closed
        self.calls.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """Record one system call with several parts."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Record that the transport is closed."""
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        """Return whether the transport is closed."""
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        """Return 0: all data are sent at once."""
        return 0


Transports = tuple[JoinedWriteTransport, RecordingTransport]


@pytest.fixture
async def transports() -> Transports:
    """Return a joining transport, and the one that it wraps."""
    beneath = RecordingTransport()
    return JoinedWriteTransport(beneath, asyncio.get_running_loop()), beneath


async def test_two_writes_of_one_turn_are_one(transports: Transports) -> None:
    """The second write sends the first one with it, and nothing is written again in the next iteration of the loop."""
    transport, beneath = transports
    transport.write(b"head")
    assert (beneath.calls, transport.get_write_buffer_size()) == ([], 4)
    transport.write(b"body")
    assert (beneath.calls, transport.get_write_buffer_size()) == ([b"headbody"], 0)
    await asyncio.sleep(0)
    assert beneath.calls == [b"headbody"]


async def test_a_single_write_waits_for_one_turn(transports: Transports) -> None:
    """A single write is sent in the next iteration, so the head of an idle stream reaches its client."""
    transport, beneath = transports
    transport.write(b"head")
    await asyncio.sleep(0)
    assert (beneath.calls, transport.get_write_buffer_size()) == ([b"head"], 0)


async def test_much_is_written_at_once(transports: Transports) -> None:
    """Large parts are neither held back nor copied, and are sent after held ones."""
    transport, beneath = transports
    transport.write(b"a" * 100_000)
    transport.write(b"head")
    transport.write(b"b" * 100_000)
    assert beneath.calls == [b"a" * 100_000, b"head", b"b" * 100_000]


async def test_what_is_written_now_comes_after_what_was_held(transports: Transports) -> None:
    """`write_now` sends its data after held data."""
    transport, beneath = transports
    transport.write(b"first")
    transport.write_now(b"second")
    assert b"".join(beneath.calls) == b"firstsecond"


@pytest.mark.parametrize(("end", "calls"), [("close", [b"end"]), ("abort", [])])
async def test_a_close_writes_what_was_held(transports: Transports, end: str, calls: list[bytes]) -> None:
    """Closing sends held data, aborting drops them; nothing is written afterwards."""
    transport, beneath = transports
    transport.write(b"end")
    getattr(transport, end)()
    await asyncio.sleep(0)
    assert (beneath.calls, transport.is_closing()) == (calls, True)


async def test_nothing_is_written_to_a_client_that_left(transports: Transports) -> None:
    """Held data are dropped if the connection ends before the next iteration."""
    transport, beneath = transports
    transport.write(b"head")
    beneath.close()
    await asyncio.sleep(0)
    assert beneath.calls == []


async def _answer(scope: Any, receive: Any, send: Any) -> None:
    length = b"5" if scope["path"] == "/whole" else b"10"
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", length)]})
    if scope["path"] == "/parts":
        await asyncio.sleep(0)
        await send({"type": "http.response.body", "body": b"parts", "more_body": True})
        await asyncio.sleep(0)
    await send({"type": "http.response.body", "body": b"whole"})


@pytest.mark.parametrize(("path", "bodies"), [("whole", [b"whole"]), ("parts", [b"", b"parts", b"whole"])])
async def test_an_answer_is_one_write(path: str, bodies: list[bytes]) -> None:
    """Head and body are sent together; each part of a streamed response is sent when the application sends it."""
    config = uvicorn.Config(_answer, ws="none", lifespan="off", log_config=None)
    config.load()
    table, beneath = ConnectionTable(ConnectionLimits(), lambda reason: None), RecordingTransport()
    connection = BoundedProtocol(config=config, server_state=ServerState(), app_state={CONNECTIONS: table})
    connection.connection_made(beneath)
    connection.data_received(b"GET /%b HTTP/1.1\r\nhost: here\r\n\r\n" % path.encode())
    for _ in range(10):
        await asyncio.sleep(0)
    head, _, rest = beneath.calls[0].partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK")
    assert [rest, *beneath.calls[1:]] == bodies
    connection.shutdown()
    assert beneath.is_closed
    connection.connection_lost(None)

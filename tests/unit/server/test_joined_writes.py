"""An answer leaves in one call of the system; what streams leaves at once; nothing is lost or changes its place."""

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
    """Keeps what each call wrote."""

    def __init__(self) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.calls: list[bytes] = []
        self.is_closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """One call of the system."""
        assert not self.is_closed
        self.calls.append(bytes(data))

    def writelines(self, list_of_data: Any) -> None:
        """One call of the system, too."""
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """Note that it is closed."""
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        """Whether it is closed."""
        return self.is_closed

    def get_write_buffer_size(self) -> int:
        """All is sent at once."""
        return 0


Transports = tuple[JoinedWriteTransport, RecordingTransport]


@pytest.fixture
async def transports() -> Transports:
    """A transport, and the one beneath it."""
    beneath = RecordingTransport()
    return JoinedWriteTransport(beneath, asyncio.get_running_loop()), beneath


async def test_two_writes_of_one_turn_are_one(transports: Transports) -> None:
    """The second write takes the first with it, and nothing is written again in the next turn."""
    transport, beneath = transports
    transport.write(b"head")
    assert (beneath.calls, transport.get_write_buffer_size()) == ([], 4)
    transport.write(b"body")
    assert (beneath.calls, transport.get_write_buffer_size()) == ([b"headbody"], 0)
    await asyncio.sleep(0)
    assert beneath.calls == [b"headbody"]


async def test_a_single_write_waits_for_one_turn(transports: Transports) -> None:
    """The head of a stream that has nothing to say yet reaches its client."""
    transport, beneath = transports
    transport.write(b"head")
    await asyncio.sleep(0)
    assert (beneath.calls, transport.get_write_buffer_size()) == ([b"head"], 0)


async def test_much_is_written_at_once(transports: Transports) -> None:
    """Large parts are neither held back nor copied, and come after what was held."""
    transport, beneath = transports
    transport.write(b"a" * 100_000)
    transport.write(b"head")
    transport.write(b"b" * 100_000)
    assert beneath.calls == [b"a" * 100_000, b"head", b"b" * 100_000]


async def test_what_is_written_now_comes_after_what_was_held(transports: Transports) -> None:
    """The order stays."""
    transport, beneath = transports
    transport.write(b"first")
    transport.write_now(b"second")
    assert b"".join(beneath.calls) == b"firstsecond"


@pytest.mark.parametrize(("end", "calls"), [("close", [b"end"]), ("abort", [])])
async def test_a_close_writes_what_was_held(transports: Transports, end: str, calls: list[bytes]) -> None:
    """A connection that is closed loses nothing, one that is aborted what it held; nothing is written afterwards."""
    transport, beneath = transports
    transport.write(b"end")
    getattr(transport, end)()
    await asyncio.sleep(0)
    assert (beneath.calls, transport.is_closing()) == (calls, True)


async def test_nothing_is_written_to_a_client_that_left(transports: Transports) -> None:
    """The connection may end between a write and the next turn."""
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
    """Head and body leave together; of an answer in parts each one leaves when the application sends it."""
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

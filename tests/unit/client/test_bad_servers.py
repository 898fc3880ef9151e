"""Servers that answer endlessly, slowly, wrongly or not at all: each call ends in time with an error of Stele."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

from stele.client import AsyncSchemaRegistryClient, ResponseError, Retry, SchemaRegistryClient
from stele.errors import NotFound, RegistryUnreachable, SteleError
from stele.migrate import registry_reader
from stele.migrate.progress import report_nothing

Behaviour = Callable[[socket.socket], None]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LIMIT = 1 << 20
DEADLINE = 0.6
PATIENCE = 60
"""Seconds within which even a busy machine must detect the deadline or the invalid answer."""
OPTIONS: dict[str, Any] = {"max_response_bytes": LIMIT, "retry": Retry(rounds=2, base=0.01)}


def choose_deadline(kind: type[SteleError]) -> float:
    """Return a short deadline if nothing else ends the call, else a longer one for busy machines."""
    return {RegistryUnreachable: DEADLINE, SteleError: 5 * DEADLINE}.get(kind, PATIENCE)


def list_blocking(url: str, deadline: float) -> list[str]:
    """Send a request with a blocking client."""
    with SchemaRegistryClient(url, deadline=deadline, **OPTIONS) as client:
        return client.subjects()


def list_awaited(url: str, deadline: float) -> list[str]:
    """Send a request with an async client."""

    async def ask() -> list[str]:
        async with AsyncSchemaRegistryClient(url, deadline=deadline, **OPTIONS) as client:
            return await client.subjects()

    return asyncio.run(ask())


@contextmanager
def bad_server(behave: Behaviour) -> Iterator[str]:
    """Run a server on its own port that reads the head of each request, and then calls `behave`."""
    listener = socket.create_server(("127.0.0.1", 0))
    is_over = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(2 * PATIENCE)
            while not is_over.is_set() and connection.recv(65536):
                behave(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        is_over.set()
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def answer(body: bytes, head: bytes = HEAD) -> Behaviour:
    """Return a behaviour that sends one answer."""
    return lambda connection: connection.sendall(head + b"Content-Length: %d\r\n\r\n" % len(body) + body)


def hang_up(data: bytes) -> Behaviour:
    """Return a behaviour that sends data and closes the connection."""

    def behave(connection: socket.socket) -> None:
        connection.sendall(data)
        connection.close()

    return behave


def send_forever(connection: socket.socket, first: bytes, again: bytes, pause: float = 0) -> None:
    """Send the same data until the client closes the connection."""
    connection.sendall(first)
    while True:
        connection.sendall(again)
        time.sleep(pause)


def chunked_head(encoding: bytes = b"") -> bytes:
    """Return the head of a chunked answer."""
    return HEAD + encoding + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return data as one chunk of an answer."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def make_bomb() -> bytes:
    """Return 100 KiB of gzip that expand to a list of 100 MiB: one compressed block, repeated, without end mark."""
    deflated = zlib.compressobj(wbits=31)
    head = deflated.compress(b"[") + deflated.flush(zlib.Z_FULL_FLUSH)
    return head + (deflated.compress(b"0," * (1 << 20)) + deflated.flush(zlib.Z_FULL_FLUSH)) * 50


BOMB = make_bomb()
REFUSAL = b"HTTP/1.1 404 Not Found\r\nContent-Type: application/json\r\n"
REDIRECT = b"HTTP/1.1 302 Found\r\nLocation: /subjects\r\n"
ZSTD = b"Content-Encoding: zstd\r\n"

TOO_LONG = "longer than"
LATE = "deadline"
BEHAVIOURS: dict[str, tuple[Behaviour, type[SteleError], str]] = {
    "answer without end": (
        lambda connection: send_forever(connection, chunked_head(), chunk(b"0," * 30000)),
        ResponseError,
        TOO_LONG,
    ),
    "announced as too long": (answer(b"0" * (LIMIT + 1)), ResponseError, TOO_LONG),
    "refusal without end": (
        lambda connection: send_forever(connection, REFUSAL + b"\r\n", b"x" * 30000),
        NotFound,
        "404",
    ),
    "compressed bomb": (answer(BOMB, HEAD + b"Content-Encoding: gzip\r\n"), ResponseError, TOO_LONG),
    "broken compression": (answer(b"no gzip", HEAD + b"Content-Encoding: gzip\r\n"), ResponseError, "broken"),
    "compression cut off": (answer(BOMB[:100], HEAD + b"Content-Encoding: gzip\r\n"), ResponseError, "cut off"),
    "compression nobody asked for": (answer(b"[]", HEAD + ZSTD), ResponseError, "zstd"),
    "dripping body": (
        lambda connection: send_forever(connection, chunked_head(), chunk(b" "), 0.05),
        RegistryUnreachable,
        LATE,
    ),
    "dripping head": (lambda connection: send_forever(connection, HEAD, b"x: y\r\n", 0.05), RegistryUnreachable, ""),
    "head without end": (lambda connection: send_forever(connection, HEAD, b"x: y\r\n" * 100), RegistryUnreachable, ""),
    "patience without end": (
        lambda connection: send_forever(connection, b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        RegistryUnreachable,
        "",
    ),
    "silence": (lambda connection: time.sleep(2), RegistryUnreachable, ""),
    "deep lists": (answer(b"[" * 500_000), ResponseError, "API"),
    "deep refusal": (answer(b"[" * 500_000, REFUSAL), NotFound, "404"),
    "redirect to itself": (answer(b"", REDIRECT), ResponseError, "302"),
    "a page": (answer(b"<html>sorry</html>", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"), ResponseError, "API"),
    "another shape": (answer(b'{"a": 1}'), ResponseError, "API"),
    "no text": (answer(b'["\xff\xfe"]'), ResponseError, "API"),
    "closed half-way": (
        hang_up(HEAD + b"Content-Length: 100\r\n\r\n[1"),
        RegistryUnreachable,
        "",
    ),
    "closed at once": (lambda connection: connection.close(), RegistryUnreachable, ""),
    "no HTTP": (
        hang_up(b"\x15\x03\x01\x00\x02\x02"),
        RegistryUnreachable,
        "",
    ),
    "wait for ever": (
        answer(b"{}", b"HTTP/1.1 503 Sorry\r\nRetry-After: " + b"9" * 500 + b"\r\n"),
        SteleError,
        "503",
    ),
}


@pytest.mark.parametrize("ask", [list_blocking, list_awaited])
@pytest.mark.parametrize("name", BEHAVIOURS)
def test_calls_end(name: str, ask: Callable[[str, float], object]) -> None:
    """Each call ends soon after its deadline, with an error that describes the server's fault."""
    behave, kind, why = BEHAVIOURS[name]
    with bad_server(behave) as url:
        started = time.monotonic()
        with pytest.raises(kind) as caught:
            ask(url, choose_deadline(kind))
        assert time.monotonic() - started < PATIENCE
    assert why in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_deep_objects() -> None:
    """An answer that is nested too deeply for the parser is reported as an invalid answer."""
    with (
        bad_server(answer(b'{"mode": ' + b"[" * 500_000)) as url,
        SchemaRegistryClient(url) as client,
        pytest.raises(ResponseError, match="nested too deeply"),
    ):
        client.mode()


def test_bombs_are_not_unpacked() -> None:
    """A compressed answer of 100 KB that expands to 100 MB takes no more memory than the limit allows."""
    with (
        bad_server(answer(BOMB, HEAD + b"Content-Encoding: gzip\r\n")) as url,
        SchemaRegistryClient(url, max_response_bytes=LIMIT, retry=Retry(rounds=1)) as client,
    ):
        tracemalloc.start()
        try:
            with pytest.raises(ResponseError):
                client.subjects()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    assert peak < 8 * LIMIT


def test_good_answers_arrive() -> None:
    """Compressed, plain, chunked and slow answers within the deadline are read."""
    body = b'["a","b"]'
    deflated = zlib.compressobj(wbits=31)
    packed = deflated.compress(body) + deflated.flush()
    gzipped = HEAD + b"Content-Encoding: gzip\r\n"

    def drip(connection: socket.socket) -> None:
        connection.sendall(chunked_head(b"Content-Encoding: gzip\r\n"))
        for at in range(len(packed)):
            connection.sendall(chunk(packed[at : at + 1]))
            time.sleep(0.002)
        connection.sendall(b"0\r\n\r\n")

    for behave in (answer(body), answer(packed, gzipped), drip):
        with bad_server(behave) as url, SchemaRegistryClient(url, max_response_bytes=len(body)) as client:
            assert client.subjects() == ["a", "b"]
            assert client.subjects(deleted=True) == ["a", "b"]


def test_another_server_has_its_chance() -> None:
    """A slow server gets half of the deadline, and the next server the rest."""
    with (
        bad_server(lambda connection: send_forever(connection, HEAD, b"x: y\r\n", 0.05)) as slow,
        bad_server(answer(b'["a"]')) as good,
        SchemaRegistryClient([slow, good], deadline=10 * DEADLINE) as client,
    ):
        assert client.subjects() == ["a"]


def test_outcome_of_a_deletion_that_was_too_slow_is_unknown() -> None:
    """A deletion that exceeds the deadline is not sent again, because the server may have performed it."""
    connections = []

    def drip(connection: socket.socket) -> None:
        connections.append(connection)
        send_forever(connection, HEAD, b"x: y\r\n", 0.05)

    with (
        bad_server(drip) as url,
        SchemaRegistryClient(url, deadline=10 * DEADLINE) as client,
        pytest.raises(RegistryUnreachable, match="whether it was deleted is unknown"),
    ):
        client.delete_subject("s")
    assert len(connections) == 1


@pytest.mark.parametrize("name", ["answer without end", "compressed bomb", "dripping body", "deep lists"])
def test_migrations_end(name: str) -> None:
    """Reading a whole registry from a faulty server ends with the same errors."""
    behave, kind, _ = BEHAVIOURS[name]
    with (
        bad_server(behave) as url,
        SchemaRegistryClient(
            url, deadline=choose_deadline(kind), max_response_bytes=LIMIT, retry=Retry(rounds=1)
        ) as client,
        pytest.raises(kind),
    ):
        registry_reader.read_registry(client)


def test_a_list_without_end_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listing stops with an error when a registry always returns another page."""
    monkeypatch.setattr(registry_reader, "PAGE", 1)
    monkeypatch.setattr(registry_reader, "MAX_VERSIONS", 20)
    numbers = iter(range(1, 1000))

    def show_page(connection: socket.socket) -> None:
        answer(b'[{"subject": "s", "version": %d, "id": 1, "schema": "\\"int\\""}]' % next(numbers))(connection)

    with (
        bad_server(show_page) as url,
        SchemaRegistryClient(url, retry=Retry(rounds=1)) as client,
        pytest.raises(SteleError, match="more than 20"),
    ):
        registry_reader._list_versions(client, deleted=True, progress=report_nothing)

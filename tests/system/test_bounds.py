"""Limits of a server for untrusted clients: other clients are served while one exceeds them."""

from __future__ import annotations

import json
import re
import resource
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.canary import watch_answers
from tests.support.examples import PROFILE
from tests.support.fork_server import start_process
from tests.support.server_process import Running, call, free_port, serving, wait_ready
from tests.support.time_limit import limit_time

SCHEMA = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
BOUNDS = {
    "STELE_HEADER_SECONDS": "3",
    "STELE_BODY_SECONDS": "6",
    "STELE_IDLE_SECONDS": "3",
    "STELE_SHUTDOWN_SECONDS": "2",
}
STALL = 5.0
"""Longest time of an answer, in seconds."""
SHARE = 0.5 if PROFILE == "everyday" else 1.0
"""Fraction of its time for which an attack runs."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server with short limits and one schema."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("bounds"), environ=BOUNDS) as running:
        assert call(f"{running.url}/subjects/s/versions", "POST", SCHEMA).status == 200
        yield running


def connect(server: Running) -> socket.socket:
    """Return a connection to the server."""
    port = int(server.url.rpartition(":")[2])
    return socket.create_connection(("127.0.0.1", port), timeout=120)


def read_answer(connection: socket.socket) -> tuple[bytes, bytes]:
    """Return head and body of one answer with a Content-Length. They may arrive in several pieces."""
    with connection.makefile("rb") as stream:
        head = b""
        while line := stream.readline().strip():
            head += line + b"\r\n"
        length = next(line for line in head.splitlines() if line.lower().startswith(b"content-length:"))
        return head, stream.read(int(length.partition(b":")[2]))


def read_all(connection: socket.socket) -> bytes:
    """Return all data until the server closes the connection."""
    data = b""
    with suppress(ConnectionResetError):
        while chunk := connection.recv(65536):
            data += chunk
    return data


def memory_of(server: Running) -> int:
    """Return the resident bytes of the server process."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def count_closed_connections(server: Running, reason: str) -> float:
    """Return how many connections the server closed for a reason."""
    text = call(f"{server.url}/metrics").body
    lines = [
        line for line in text.splitlines() if line.startswith(f'stele_connections_closed_total{{reason="{reason}"')
    ]
    return float(lines[0].split()[-1]) if lines else 0.0


@pytest.mark.parametrize(
    "head",
    [
        [b"X-Long: " + b"x" * 100_000_000],
        [b"X-%d: 1\r\n" % number for number in range(200)] + [b"\r\n"],
        [b"X-%d: 1\r\n" % number for number in range(100_000)],
        [b"Transfer-Encoding: chunked\r\n\r\n0\r\n", b"X: " + b"x" * 100_000_000],
    ],
    ids=["one long header", "too many headers", "headers without end", "a long trailer"],
)
def test_a_long_head_is_refused(server: Running, head: list[bytes]) -> None:
    """Header bytes and header fields beyond the bounds get 431 and a closed connection, and take no memory."""
    before, closed = memory_of(server), count_closed_connections(server, "header_size")
    sent = b"POST /subjects/s HTTP/1.1\r\nHost: x\r\n" + b"".join(head)  # a connection has three seconds for its head
    with watch_answers(server), connect(server) as connection:
        with suppress(ConnectionResetError, BrokenPipeError):
            connection.sendall(sent)
        assert read_all(connection)[:12] in (b"HTTP/1.1 431", b"")
    assert memory_of(server) - before < 100_000_000
    assert count_closed_connections(server, "header_size") == closed + 1


@pytest.mark.parametrize(
    ("sent", "status", "reason"),
    [
        (b"", b"", "header_time"),
        (b"GET /subjects HTTP/1.1\r\nHost: x\r\n", b"HTTP/1.1 408", "header_time"),
        (b"POST /subjects/s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{", b"HTTP/1.1 408", "body_time"),
    ],
    ids=["nothing", "half a head", "half a body"],
)
def test_half_sent_requests_end(server: Running, sent: bytes, status: bytes, reason: str) -> None:
    """A connection without a complete request is closed after its time limit, even if bytes keep arriving."""
    closed = count_closed_connections(server, reason)
    with connect(server) as connection:
        connection.sendall(sent)
        began = time.monotonic()
        dripping = sent.endswith(b"{")
        connection.settimeout(0.2 if dripping else 120)
        data = b""
        with limit_time(STALL + 6, time.monotonic):
            while time.monotonic() - began < 120:
                try:
                    data = connection.recv(65536)
                    break
                except TimeoutError:
                    with suppress(ConnectionResetError, BrokenPipeError):  # the answer has arrived meanwhile
                        connection.sendall(b" ")
        assert data[:12] == status
    assert count_closed_connections(server, reason) == closed + 1


def test_an_idle_connection_ends(server: Running) -> None:
    """A connection is closed `idle_seconds` after an answer, and serves another request before that."""
    with connect(server) as connection:
        for _ in range(2):
            connection.sendall(b"GET /schemas/ids/1 HTTP/1.1\r\nHost: x\r\n\r\n")
            assert read_answer(connection)[0].startswith(b"HTTP/1.1 200")
        with limit_time(STALL + 2, time.monotonic):
            assert read_all(connection) == b""


def test_connections_that_send_nothing_shut_nobody_out(tmp_path: Path) -> None:
    """With 256 file descriptors and 500 connections without a whole request, other clients are served."""
    port = free_port()
    limit = "import resource, sys; resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256)); "
    code = limit + "sys.argv[0] = 'stele'; from stele.cli import main; main()"
    command = ["-c", code, "serve", "--port", str(port), "--store", "memory:", "--log-level", "warning"]
    process = start_process(command, tmp_path)
    running = Running(f"http://127.0.0.1:{port}", process)
    connections: list[socket.socket] = []
    try:
        wait_ready(running.url, process)
        call(f"{running.url}/subjects/s/versions", "POST", SCHEMA)
        with watch_answers(running):
            for number in range(500):
                connection = connect(running)
                connections.append(connection)
                if number % 2:
                    connection.sendall(b"POST /subjects/s HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
        assert count_closed_connections(running, "made_room") > 200
    finally:
        for connection in connections:
            connection.close()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@cache
def slow_check(fields: int) -> bytes:
    """Return the body of a slow check: 1,000 schemas to compare with, of `fields` fields each."""

    def record(number: int) -> str:
        names = [{"name": f"field_{number}_{place}", "type": ["null", "string"]} for place in range(fields)]
        return json.dumps({"type": "record", "name": f"R{number}", "fields": names})

    rows = [{"schema": record(number)} for number in range(1000)]
    return json.dumps({"format": "avro", "policy": "FULL_TRANSITIVE", "schema": record(0), "against": rows}).encode()


def start_request(server: Running, path: str, body: bytes) -> socket.socket:
    """Send a request and return its connection."""
    connection = connect(server)
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    connection.sendall(head.encode() + body)
    return connection


def test_checks_do_not_keep_writes_waiting(server: Running) -> None:
    """While more checks run than there are threads, schemas are registered and reads answered."""
    body = slow_check(50)
    attacks = [start_request(server, "/api/check", body) for _ in range(7)]
    with watch_answers(server):
        for number in range(10):
            name = {"schema": json.dumps({"type": "fixed", "name": f"F{number}", "size": 1})}
            with limit_time(STALL, time.monotonic):
                assert call(f"{server.url}/subjects/f{number}/versions", "POST", name).status == 200
    for attack in attacks:
        attack.close()


def test_work_ends_with_its_client(server: Running) -> None:
    """When clients disconnect, the threads of their requests become free."""
    for attack in [start_request(server, "/api/check", slow_check(200)) for _ in range(4)]:
        time.sleep(0.1)
        attack.close()
    until = time.monotonic() + 20
    while "stele_stateless_running 0.0" not in call(f"{server.url}/metrics").body:
        assert time.monotonic() < until
        time.sleep(0.1)


def start_checking(server: Running) -> bool:
    """Make the server start its process for checks. Returns False if every answer was given up while it started."""
    for _ in range(3):
        with start_request(server, "/api/check", slow_check(1)) as connection:
            if read_answer(connection)[0].startswith(b"HTTP/1.1 200"):
                return True
    return False


def test_a_request_that_takes_too_long_is_given_up(tmp_path: Path) -> None:
    """After `request_seconds` the answer is 503 in the words of the dialect, with `Retry-After`."""
    seconds, comparisons, planned = 4, 0, 0
    error: dict[str, Any] = {}
    for _ in range(8):
        environ = {"STELE_REQUEST_SECONDS": str(seconds)}
        with serving("--store", "memory:", folder=tmp_path, environ=environ) as server:
            if not start_checking(server):  # the server gave up the request and the process
                seconds *= 2
                continue
            with start_request(server, "/api/check", slow_check(200)) as connection:
                connection.settimeout(240)
                head, body = read_answer(connection)
        if head.startswith(b"HTTP/1.1 200"):  # a fast machine has finished all comparisons
            seconds = max(1, seconds // 2)
            continue
        assert head.startswith(b"HTTP/1.1 503")
        assert b"retry-after: 1" in head
        error = json.loads(body)["error"]
        assert error["kind"] == "time_limit_reached"
        counted = re.search(r"; (\d+) of (\d+) comparisons were made$", error["message"])
        comparisons, planned = map(int, counted.groups()) if counted else (0, 0)
        if comparisons:
            break
        seconds *= 2  # a slow machine was still reading the body
    assert 0 < comparisons < planned == 1000
    assert "NAME_MISMATCH" in {row["rule"] for row in error["findings"]}
    assert 1000 - comparisons <= min(row["against"] for row in error["findings"])


def test_a_stop_stops(tmp_path: Path) -> None:
    """SIGTERM ends the process within `shutdown_seconds` and a margin, even during checks."""
    with serving("--store", "memory:", folder=tmp_path, environ=BOUNDS) as server:
        attacks = [start_request(server, "/api/check", slow_check(200)) for _ in range(3)]
        time.sleep(1)
        server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        server.process.wait(40)
        assert time.monotonic() - began < 20
        for attack in attacks:
            attack.close()


def test_a_stop_waits_for_no_page_that_follows_the_journal(tmp_path: Path) -> None:
    """A stop ends an open journal stream at once, and then the process."""
    environ = {"STELE_SHUTDOWN_SECONDS": "60"}  # longer than the stream, so that only the stop can end it
    with serving("--store", "memory:", folder=tmp_path, environ=environ) as server, connect(server) as page:
        page.sendall(b"GET /ui/journal/feed HTTP/1.1\r\nHost: x\r\n\r\n")
        response = b""
        while b"entries follow" not in response:  # head and entries may arrive in several pieces
            response += (piece := page.recv(65_536))
            assert piece, response
        server.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        server.process.wait(40)
        assert time.monotonic() - began < 40
        while page.recv(65_536):
            pass


NAMES = [
    "a/b",
    "a\ue000b",
    "..",
    ".",
    "a\x00b",
    " ",
    "%2F",
    "ü" * 200,
    ":.:",
    ":*:",
    "\u202e",
    "a" * 5000,
    "'\"><script>",
    "__GLOBAL",
]


def _pattern_check(pattern: str, more: str) -> bytes:
    """Return the body of a check of an XSD type with a pattern against one with almost the same pattern."""

    def restricted_text(text: str) -> str:
        inner = f'<xs:restriction base="xs:string"><xs:pattern value="{text}"/></xs:restriction>'
        simple = f'<xs:element name="r" type="s"/><xs:simpleType name="s">{inner}</xs:simpleType>'
        return f'<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{simple}</xs:schema>'

    against = [{"schema": restricted_text(pattern)}]
    return json.dumps({"format": "xsd", "schema": restricted_text(pattern + more), "against": against}).encode()


ATTACKS: list[tuple[str, bytes]] = [
    ("/api/check", _pattern_check(r"[\w-[aeiou]]{1,20000}", "x?")),
    ("/api/check", _pattern_check("(a|b|c|d|e)*" * 1_500, "x?")),
    (
        "/subjects/s/versions",
        json.dumps({"schema": '"int"', "references": [{"name": "r", "subject": "s", "version": 1}] * 20_000}).encode(),
    ),
    (
        "/api/check",
        json.dumps(
            {
                "format": "json",
                "policy": "FULL",
                "schema": json.dumps({"patternProperties": {rf"^\p{{L}}{{50}}N{n}$": {} for n in range(600)}}),
                "against": [
                    {"schema": json.dumps({"patternProperties": {rf"^\p{{L}}{{50}}M{n}$": {} for n in range(9)}})}
                ],
            }
        ).encode(),
    ),
    ("/api/infer", b'{"to":"avro","samples":[' + b",".join([b"[]"] * 4_000_000) + b"]}"),
    ("/associations", b'{"associations":[' + b",".join([b'{"subject":"a"}'] * 140_000) + b"]}"),
    (
        "/subjects/s/versions",
        b'{"metadata":{"properties":{' + b",".join(b'"k%d":"v"' % n for n in range(290_000)) + b"}}}",
    ),
]
"""Bodies that blocked the server or took all its memory before there were limits."""


@pytest.mark.parametrize(("path", "body"), ATTACKS, ids=range(len(ATTACKS)))
def test_an_attack_holds_up_nobody(server: Running, path: str, body: bytes) -> None:
    """While each attack runs twice at once, 99 of 100 answers come within 250 ms and memory stays bounded."""
    before = memory_of(server)
    with watch_answers(server):
        attacks = [threading.Thread(target=_send, args=(server, path, body, 2)) for _ in range(2)]
        for attack in attacks:
            attack.start()
        for attack in attacks:
            attack.join(20)
    assert memory_of(server) - before < 600 * 2**20


def test_all_attacks_at_once_stop_nobody(tmp_path: Path) -> None:
    """While all attacks run twice with slow checks and hostile names, others are answered and memory stays bounded."""
    with serving("--store", "memory:", folder=tmp_path, environ=BOUNDS) as server:
        assert call(f"{server.url}/subjects/s/versions", "POST", SCHEMA).status == 200
        before = memory_of(server)
        with watch_answers(server, 2.0):
            bodies = [*ATTACKS, *ATTACKS, ("/api/check", slow_check(50))]
            attacks = [threading.Thread(target=_send, args=(server, path, body, 6)) for path, body in bodies]
            for attack in attacks:
                attack.start()
            for name in NAMES:
                for path in ("/subjects/{}/versions", "/v1/groups/{}", "/schemagroups/{}", "/avro1124/schemas/{}"):
                    assert call(server.url + path.format(quote(name, safe=""))).status < 500
            for attack in attacks:
                attack.join(20)
        assert memory_of(server) - before < 600 * 2**20


def _send(server: Running, path: str, body: bytes, seconds: float) -> None:
    """Send a request, and wait a limited time for the first bytes of its answer."""
    with start_request(server, path, body) as connection, suppress(OSError):
        connection.settimeout(seconds * SHARE)
        connection.recv(65536)

"""The audit trail of a server: refusals, receivers, and delivery after a receiver was unavailable."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx
import pytest
from tests.support.server_process import free_port
from typer.testing import CliRunner

from stele.cli.app import app
from stele.core.access import AccessRules
from stele.core.audit_chain import AuditEntry, read_entry, read_line
from stele.errors import InvalidRequest
from stele.server.audit_forwarding import AuditForwarder, DeliveryFailed, SyslogReceiver, WebhookReceiver
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import ServerSettings, load_settings
from stele.service.access import AccessControl
from stele.service.audit_file import AuditFile, find_files


class Collector:
    """A receiver in this process that can be unavailable."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.is_away = False

    async def send_lines(self, lines: Sequence[bytes]) -> None:
        """Store the lines, or raise `DeliveryFailed`."""
        if self.is_away:
            raise DeliveryFailed("away")
        self.lines.extend(lines)


def append(path: Path, first: int, last: int, **limits: int) -> None:
    """Append entries with these numbers to a trail."""
    file = AuditFile(path, **limits)
    for number in range(first, last + 1):
        file.append([AuditEntry(number, "refused")], 0, None)
    file.close()


def numbers_of(lines: Sequence[bytes]) -> list[int]:
    """Return the numbers of lines."""
    return [read_line(line).number for line in lines]


def test_refusals_and_changes_of_a_server_are_in_its_trail(tmp_path: Path) -> None:
    """Refused requests are recorded with address and path, without the query; changes are in the file and the API."""
    path = tmp_path / "audit.jsonl"
    server = InProcessServer(ServerSettings(store="memory:", audit_file=str(path)))
    try:
        with httpx.Client(transport=InProcessTransport(server), base_url="http://stele") as client:
            body = {"schema": '"string"'}
            assert client.post("/subjects/a/versions", json=body, headers={"user-agent": "t/1"}).status_code == 200
            (change,) = [row for row in client.get("/api/audit").json()["entries"] if row["kind"] == "registered"]
            assert (change["via"], change["agent"], change["subject"]) == ("confluent", "t/1", "a")
            server.registry.access = AccessControl(AccessRules((), default_allow=False))
            assert client.delete("/subjects/a?secret=s3cret").status_code in {401, 403}
            assert client.get("/api/audit").status_code in {401, 403}
    finally:
        server.stop()
    entries = [read_entry(read_line(line)) for line in path.read_bytes().splitlines()]
    assert [row.subject for row in entries if row.kind == "registered"] == ["a"]
    refused = [row for row in entries if row.kind == "refused"]
    assert [row.details["path"] for row in refused] == ["/subjects/a", "/api/audit"]
    assert refused[0].details["method"] == "DELETE"
    assert refused[0].request_id
    assert b"s3cret" not in path.read_bytes()
    assert CliRunner().invoke(app, ["audit", "verify", str(path)]).exit_code == 0
    result = CliRunner().invoke(app, ["audit", "show", str(path), "--kind", "refused", "-o", "json"])
    assert [row["details"]["path"] for row in json.loads(result.stdout)] == ["/subjects/a", "/api/audit"]


def test_the_command_names_the_first_broken_line(tmp_path: Path) -> None:
    """`audit verify` exits with 1 and the broken line, also if a file does not continue the one before."""
    path = tmp_path / "audit.jsonl"
    append(path, 1, 40, max_bytes=2000, most_files=2)
    files = [str(file) for file in find_files(path)]
    assert CliRunner().invoke(app, ["audit", "verify", *files]).exit_code == 0
    assert CliRunner().invoke(app, ["audit", "verify", files[0], files[2]]).exit_code == 1
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:1], lines[1].replace(b"refused", b"allowed"), *lines[2:], b""]))
    broken = CliRunner().invoke(app, ["audit", "verify", str(path), "-o", "json"])
    assert broken.exit_code == 1
    assert json.loads(broken.stdout)["line"] == 2


async def test_a_receiver_gets_every_line_also_after_a_restart(tmp_path: Path) -> None:
    """Lines written while the receiver or the forwarder was down are delivered later, in order and only once."""
    path, receiver = tmp_path / "audit.jsonl", Collector()
    append(path, 1, 3)
    forwarder = AuditForwarder(path, "webhook", receiver)
    assert forwarder.is_owner()
    assert await forwarder.deliver()
    receiver.is_away = True
    append(path, 4, 5)
    with pytest.raises(DeliveryFailed):
        await forwarder.deliver()
    forwarder.close()
    receiver.is_away = False
    append(path, 6, 6)
    again = AuditForwarder(path, "webhook", receiver)
    assert again.is_owner()
    rival = AuditForwarder(path, "webhook", receiver)
    assert not rival.is_owner(), "one process delivers"
    while await again.deliver():
        pass
    assert numbers_of(receiver.lines) == [1, 2, 3, 4, 5, 6]
    assert again.dropped == 0
    again.close()


async def test_lines_of_deleted_files_are_counted(tmp_path: Path) -> None:
    """A receiver that was unavailable for too long misses deleted lines, and their number is reported."""
    path, receiver = tmp_path / "audit.jsonl", Collector()
    append(path, 1, 60, max_bytes=2000, most_files=2)
    forwarder = AuditForwarder(path, "webhook", receiver)
    assert forwarder.is_owner()
    while await forwarder.deliver():
        pass
    got = numbers_of(receiver.lines)
    assert got == list(range(got[0], 61))
    assert forwarder.dropped == got[0] - 1 > 0
    forwarder.close()


async def test_syslog_messages_arrive(tmp_path: Path) -> None:
    """Messages arrive by UDP as datagrams and by TCP with octet counting, in the form of RFC 5424."""
    path = tmp_path / "audit.jsonl"
    append(path, 1, 2)
    lines = path.read_bytes().splitlines()
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.create_server(("127.0.0.1", free_port())) as tcp,
    ):
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(60)
        await SyslogReceiver("127.0.0.1", udp.getsockname()[1], is_tcp=False).send_lines(lines)
        datagrams = [udp.recv(65536) for _ in lines]
        port = tcp.getsockname()[1]
        await SyslogReceiver("127.0.0.1", port, is_tcp=True).send_lines(lines)
        connection, _ = tcp.accept()
        with connection, connection.makefile("rb") as stream:
            data = stream.read()
    for line, datagram in zip(lines, datagrams, strict=True):
        assert datagram.startswith(b"<110>1 1970-01-01T00:00:00.00")
        assert datagram.endswith(b" refused - " + line)
        assert b"%d %b" % (len(datagram), datagram) in data
    with pytest.raises(DeliveryFailed):
        await SyslogReceiver("127.0.0.1", port, is_tcp=True).send_lines(lines)


@contextmanager
def webhook(statuses: list[int], bodies: list[bytes], done: threading.Semaphore) -> Iterator[str]:
    """Run a server that answers with these statuses in turn, stores the bodies, and releases `done` at the end."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            bodies.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(statuses.pop(0))
            self.send_header("content-length", "0")
            self.end_headers()
            if not statuses:
                done.release()

        def log_message(self, *args: object) -> None:
            """Log nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/hook"
        server.shutdown()
        thread.join()


async def test_a_webhook_gets_lines_until_it_takes_them(tmp_path: Path) -> None:
    """A failure and a redirect do not count as delivery; the same lines are sent again."""
    path, bodies, arrived = tmp_path / "audit.jsonl", list[bytes](), threading.Semaphore(0)
    append(path, 1, 2)
    with webhook([500, 302, 200], bodies, arrived) as url:
        forwarder = AuditForwarder(path, "webhook", WebhookReceiver(url))
        running = asyncio.create_task(forwarder.run(lambda _: asyncio.sleep(0.01)))
        async with asyncio.timeout(60):
            await asyncio.to_thread(arrived.acquire)
        running.cancel()
        forwarder.close()
    assert bodies[0] == bodies[1] == bodies[2]
    assert [read_line(json.dumps(line).encode()).number for line in json.loads(bodies[2])["lines"]] == [1, 2]


@pytest.mark.parametrize(
    "settings",
    [{"audit_syslog": "host"}, {"audit_syslog": "udp://host"}, {"audit_webhook": "ftp://x"}, {"audit_key": "kms:a:b"}],
    ids=str,
)
def test_wrong_settings_are_named(settings: dict[str, str]) -> None:
    """An invalid receiver or key in the settings is refused at the start."""
    with pytest.raises(InvalidRequest, match=next(iter(settings))):
        load_settings(settings)

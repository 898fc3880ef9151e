"""Requests that offer HTTP/2 are answered in HTTP/1.1, with their bodies read."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest
from tests.support.server_process import call, serving

from stele.server.http2_upgrade import remove_upgrade_offer, split_whole_lines

HEAD = (
    b"POST /subjects/%s/versions HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: %d\r\n"
    b"Host: here\r\n%s: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
    b"Content-Type: application/json\r\n\r\n"
)


@pytest.mark.parametrize("name", [b"Upgrade", b"upgrade", b"UPGRADE"])
def test_the_offer_is_taken_out_of_the_head_alone(name: bytes) -> None:
    """The head keeps its length and loses the offer; the same text in the body, and other upgrades, stay."""
    body = b"\r\nUpgrade: h2c\r\n"
    head = HEAD % (b"a", len(body), name)
    assert remove_upgrade_offer(head + body) == head.replace(name + b": h2c", b"offered: h2c") + body
    others = (b"GET / HTTP/1.1\r\nUpgrade: websocket\r\nX: h2c\r\n\r\n", b"GET /h2c HTTP/1.1\r\n\r\n", b"\r\n" + body)
    assert [remove_upgrade_offer(other) for other in others] == list(others)


def test_lines_wait_for_their_end() -> None:
    """An incomplete line waits, unless the head is complete or the line is too long to be the offer."""
    assert split_whole_lines(b"GET / HTTP/1.1\r\nUpgra") == (b"GET / HTTP/1.1\r\n", b"Upgra")
    assert split_whole_lines(b"\r") == (b"", b"\r")
    for whole in (b"GET / HTTP/1.1\r\n\r\nrest", b"\r\nrest", b"GET /" + b"a" * 2000):
        assert split_whole_lines(whole) == (whole, b"")


def test_a_server_reads_the_body(tmp_path: Path) -> None:
    """Requests with the offer are answered according to their body, sent complete, in parts or byte by byte."""
    doc = "\r\nUpgrade: h2c\r\n"
    text = json.dumps({"type": "fixed", "name": "F", "size": 4, "doc": doc})
    body = json.dumps({"schema": text}).encode()
    with serving("--store", "memory:", folder=tmp_path, environ={"STELE_HEADER_SECONDS": "600"}) as server:
        host, _, port = server.url.removeprefix("http://").partition(":")
        with (
            socket.create_connection((host, int(port)), timeout=60) as connection,
            connection.makefile("rb") as answers,
        ):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for subject, size in ((b"a", 10**6), (b"b", 301), (b"c", 1)):
                request = HEAD % (subject, len(body), b"Upgrade") + body
                for start in range(0, len(request), size):
                    connection.sendall(request[start : start + size])
                assert b" 200 " in answers.readline()
                lines = list(iter(answers.readline, b"\r\n"))
                length = next(line for line in lines if line.lower().startswith(b"content-length:"))
                assert json.loads(answers.read(int(length.split(b":")[1])))["id"] == 1
        assert json.loads(call(f"{server.url}/schemas/ids/1").body["schema"])["doc"] == doc

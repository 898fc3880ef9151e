"""Requests of the server itself: allowed addresses, and limits."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_address
from typing import Any

import httpx
import pytest
from tests.support.server_process import free_port

from stele.errors import ForbiddenAddress, InvalidRequest, Unavailable
from stele.server.settings import load_settings
from stele.service.outgoing import AddressRules, GuardedTransport, OutgoingClient, resolve_host

PUBLIC = "93.184.215.14"
FORBIDDEN = [
    "127.0.0.1",
    "127.8.9.1",
    "0.0.0.0",
    "10.0.0.1",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "192.0.0.192",
    "168.63.129.16",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fc00::1",
    "fd00:ec2::254",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::10.0.0.1",
    "2002:7f00:1::",
    "2001:0:7f00:1::",
]


@pytest.mark.parametrize("address", FORBIDDEN)
def test_addresses_of_the_own_network_are_forbidden(address: str) -> None:
    """Loopback, private, link-local, shared, multicast and reserved addresses are refused, also inside IPv6 ones."""
    assert not AddressRules().allows(ip_address(address))


@pytest.mark.parametrize("address", [PUBLIC, "2606:4700::1111", "::ffff:93.184.215.14", "64:ff9b::93.184.215.14"])
def test_public_addresses_are_allowed(address: str) -> None:
    """Requests to public addresses are allowed."""
    assert AddressRules().allows(ip_address(address))


def test_named_networks_are_allowed() -> None:
    """Requests to networks in the settings are allowed, and to no other private ones."""
    rules = AddressRules(
        load_settings({}, environ={"STELE_OUTGOING_NETWORKS": "10.1.0.0/16, fd00::/8"}).outgoing_networks
    )
    allowed = [
        text
        for text in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::1", "10.2.0.1", "127.0.0.1")
        if rules.allows(ip_address(text))
    ]
    assert allowed == ["10.1.2.3", "::ffff:10.1.2.3", "fd00::1"]
    with pytest.raises(InvalidRequest, match="outgoing_networks"):
        load_settings({"outgoing_networks": ["10.1.0.0/99"]}, environ={})


class Names:
    """A name service with prepared answers, one after another; the last one is repeated."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


class Wire(httpx.AsyncBaseTransport):
    """Records the targets of requests, and answers with redirects as long as there are any."""

    def __init__(self, *redirects: str) -> None:
        self.redirects = list(redirects)
        self.went: list[tuple[str, str, str]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.went.append((request.url.host, request.headers["host"], request.extensions["sni_hostname"]))
        if self.redirects:
            return httpx.Response(302, headers={"location": self.redirects.pop(0)}, stream=httpx.ByteStream(b""))
        return httpx.Response(200, stream=httpx.ByteStream(b"yes"))


def make_client(names: Any, wire: Wire, *networks: str, follow_redirects: bool = False) -> httpx.AsyncClient:
    """Return a client with a guarded transport."""
    transport = GuardedTransport(AddressRules(networks), resolver=names, inner=wire)
    return httpx.AsyncClient(transport=transport, follow_redirects=follow_redirects)


async def test_the_connection_goes_to_the_address_that_was_judged() -> None:
    """The name is resolved once: a different second answer of the name service (rebinding) has no effect."""
    names, wire = Names([PUBLIC], ["127.0.0.1"]), Wire()
    async with make_client(names, wire) as client:
        answer = await client.get("https://hooks.example:8443/x")
        assert (answer.status_code, str(answer.url)) == (200, "https://hooks.example:8443/x")
        assert wire.went == [(PUBLIC, "hooks.example:8443", "hooks.example")]
        assert names.asked == ["hooks.example"]
        with pytest.raises(ForbiddenAddress, match="127"):
            await client.get("https://hooks.example/x")


async def test_one_forbidden_address_among_many_is_enough() -> None:
    """A host with public and forbidden addresses is refused."""
    wire = Wire()
    async with make_client(Names([PUBLIC, "::1"]), wire) as client:
        with pytest.raises(ForbiddenAddress, match="outgoing_networks"):
            await client.get("http://both.example/")
    assert not wire.went


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "017700000001",
        "127.1",
        "[::1]",
        "[::ffff:7f00:1]",
        "localhost",
    ],
)
async def test_every_spelling_of_loopback_is_refused(host: str) -> None:
    """The system's resolver converts any spelling to an address, and that address is checked."""
    wire = Wire()
    async with make_client(resolve_host, wire) as client:
        with pytest.raises((ForbiddenAddress, httpx.InvalidURL)):
            await client.get(f"http://{host}:8081/")
    assert not wire.went


async def test_redirects_are_judged_too() -> None:
    """The server's client follows no redirects; a client that does has each hop checked."""
    wire = Wire("http://169.254.169.254/latest/meta-data/")
    async with make_client(resolve_host, wire, follow_redirects=True) as client:
        with pytest.raises(ForbiddenAddress):
            await client.get(f"http://{PUBLIC}/")
    assert [place for place, *_ in wire.went] == [PUBLIC]
    wire = Wire("http://169.254.169.254/latest/meta-data/")
    own = OutgoingClient(AddressRules(), transport=GuardedTransport(AddressRules(), inner=wire))
    assert (await own.send_request("GET", f"http://{PUBLIC}/")).status == 302


async def test_an_ipv6_address_can_be_asked() -> None:
    """An IPv6 address that replaces the host name is put in brackets."""
    wire = Wire()
    async with make_client(Names(["2606:4700::1111"]), wire) as client:
        await client.get("http://six.example/")
    assert wire.went == [("2606:4700::1111", "six.example", "six.example")]


@contextlib.asynccontextmanager
async def answering(*parts: bytes, stays: bool = False) -> AsyncIterator[int]:
    """Run a TCP server that sends these bytes to each client, and closes the connection or waits. Yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            for part in parts:
                writer.write(part)
                await writer.drain()
            if stays:
                await reader.read()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", free_port())
    async with server:
        yield server.sockets[0].getsockname()[1]


async def test_answers_are_bounded() -> None:
    """An answer that is too long, too slow or missing is an error; any other answer is returned."""
    rules = AddressRules(["127.0.0.0/8"])
    client, hasty = (OutgoingClient(rules, seconds=seconds, answer_bytes=1000) for seconds in (60.0, 0.5))
    head = b"HTTP/1.1 200 OK\r\n\r\n"
    async with answering(head, b"fine") as port:
        assert await client.send_request("POST", f"http://127.0.0.1:{port}/", body=b"{}") == (200, b"fine", {})
    async with answering(head, b"x" * 5000) as port:
        with pytest.raises(Unavailable, match="more than 1000 bytes"):
            await client.send_request("GET", f"http://127.0.0.1:{port}/")
    async with answering(b"HTTP/1.1 200 OK\r\nX: ", stays=True) as port:
        with pytest.raises(Unavailable, match=r"within 0.5 seconds|no answer"):
            await hasty.send_request("GET", f"http://127.0.0.1:{port}/")
    with pytest.raises(Unavailable):
        await client.send_request("GET", f"http://127.0.0.1:{port}/")
    await client.close()
    await hasty.close()


@pytest.mark.parametrize("url", ["file:///etc/passwd", "gopher://x/", "http://", "//x", "http://a b/", "http://[::1"])
async def test_what_is_no_web_address_is_refused(url: str) -> None:
    """Only http and https URLs are allowed."""
    client = OutgoingClient(AddressRules())
    with pytest.raises((ForbiddenAddress, Unavailable)):
        await client.send_request("GET", url)
    await client.close()

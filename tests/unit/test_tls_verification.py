"""Clients, including those in the server, trust the authorities that httpx trusts, and load them when they connect."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest
from tests.support.certificates import write_certificates

from stele.client import Retry, SchemaRegistryClient
from stele.errors import Unavailable
from stele.server.audit_forwarding import DeliveryFailed, WebhookReceiver
from stele.server.authentication.key_set import KeySet
from stele.service.outgoing import AddressRules, GuardedTransport, OutgoingClient
from stele.tls_verification import make_client_context

ANSWER = b'{"keys": []}'


@pytest.fixture
async def url(tmp_path: Path) -> AsyncIterator[str]:
    """Run a server with a certificate that the test's own authority signed, and yield its URL."""
    write_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b" % (len(ANSWER), ANSWER))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0, ssl=context) as server:
        yield f"https://localhost:{server.sockets[0].getsockname()[1]}/subjects"


def ask_blocking(url: str, context: ssl.SSLContext) -> bytes:
    """Return the answer to a request of a blocking client."""
    with httpx.Client(verify=context, timeout=60) as client:
        return client.get(url).content


async def ask(url: str, context: ssl.SSLContext) -> list[bytes]:
    """Return the answers to a blocking and an asynchronous client."""
    async with httpx.AsyncClient(verify=context, timeout=60) as client:
        return [await asyncio.to_thread(ask_blocking, url, context), (await client.get(url)).content]


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_the_environment_names_authorities(
    url: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Authorities in a named file or folder are trusted; certificates that they did not sign are refused."""
    authorities = tmp_path / "ca.pem"
    folder = tmp_path / "folder"
    folder.mkdir()
    subject_hash = await _hash_subject(authorities)
    (folder / f"{subject_hash}.0").write_bytes(authorities.read_bytes())
    for other in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(other, raising=False)
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        await ask(url, make_client_context())
    monkeypatch.setenv(name, str(authorities if name == "SSL_CERT_FILE" else folder))
    assert await ask(url, make_client_context()) == [ANSWER, ANSWER]


async def test_the_server_trusts_these_authorities_where_it_asks_others(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Receivers of events and of the audit trail, and issuers of tokens, may have a private authority."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.delenv("SSL_CERT_DIR", raising=False)
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        await send_event(url)
    with pytest.raises(DeliveryFailed, match="ConnectError"):
        await WebhookReceiver(url).send_lines([b"{}"])
    with pytest.raises(Unavailable, match="CERTIFICATE_VERIFY_FAILED"):
        await asyncio.to_thread(KeySet(url, "https://issuer").fetch)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    assert await send_event(url) == ANSWER
    await WebhookReceiver(url).send_lines([b"{}"])
    await asyncio.to_thread(KeySet(url, "https://issuer").fetch)


async def send_event(url: str) -> bytes:
    """Return the answer to a request that the server sends."""

    async def find_this_machine(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    transport = GuardedTransport(AddressRules(["127.0.0.0/8"]), resolver=find_this_machine)
    client = OutgoingClient(AddressRules(), transport=transport)
    try:
        return (await client.send_request("POST", url, body=b"{}")).body
    finally:
        await client.close()


async def _hash_subject(certificate: Path) -> str:
    """Return the file name stem that OpenSSL looks for in a folder of authorities."""
    command = ("openssl", "x509", "-noout", "-hash", "-in", str(certificate))
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await process.communicate()
    return output.decode().strip()


async def test_what_cannot_be_read_fails_the_connection(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the authorities cannot be read, both clients fail with an error that names the file; nothing is trusted."""
    missing = str(tmp_path / "missing.pem")
    monkeypatch.setenv("SSL_CERT_FILE", missing)
    context = make_client_context()
    with pytest.raises(httpx.ConnectError, match=r"cannot read the authorities in .*missing\.pem"):
        await asyncio.to_thread(ask_blocking, url, context)
    async with httpx.AsyncClient(verify=context, timeout=60) as client:
        with pytest.raises(httpx.ConnectError, match=r"cannot read the authorities in .*missing\.pem"):
            await client.get(url)


def test_a_client_without_tls_reads_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unreadable authorities do not matter to a connection without TLS."""
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "missing.pem"))
    with (
        SchemaRegistryClient("http://127.0.0.1:1", timeout=10, retry=Retry(rounds=1)) as client,
        pytest.raises(Unavailable, match="refused"),
    ):
        client.subjects()


def test_its_rules_are_those_of_httpx() -> None:
    """Versions, ciphers, names and verification mode are those of httpx."""
    late, usual = make_client_context(), httpx.create_ssl_context()
    for member in ("check_hostname", "verify_mode", "minimum_version", "maximum_version", "options"):
        assert getattr(late, member) == getattr(usual, member)
    assert late.get_ciphers() == usual.get_ciphers()

"""TLS of the server: certificates and authorities that change while it runs, and older sessions."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import NamedTuple

import pytest
from structlog.testing import capture_logs
from tests.support.certificates import write_certificates

from stele.errors import InvalidRequest
from stele.server import tls
from stele.server.settings import ServerSettings
from stele.server.tls import ServerTls, has_outlived_authorities
from stele.service import watched_file


class TlsServer(NamedTuple):
    """A server that answers whether it got a certificate, and the folders of its files and of another authority's."""

    tls: ServerTls
    port: int
    folder: Path
    other: Path

    def replace(self, name: str) -> None:
        """Replace a file of the server by that of the other authority, and reload the files."""
        shutil.copy(self.other / name, self.folder / name)
        self.tls.reload_when_changed()

    async def connect(
        self, context: ssl.SSLContext, session: ssl.SSLSession | None = None
    ) -> tuple[bytes, ssl.SSLSession | None]:
        """Return the answer of the server to a client, b'' if it ends the connection; and the session."""
        return await asyncio.to_thread(self._connect, context, session)

    def _connect(self, context: ssl.SSLContext, session: ssl.SSLSession | None) -> tuple[bytes, ssl.SSLSession | None]:
        try:
            with (
                socket.create_connection(("127.0.0.1", self.port), timeout=60) as plain,
                context.wrap_socket(plain, session=session) as secured,
            ):
                return secured.recv(100), secured.session
        except OSError:  # among them errors of TLS
            return b"", None


def make_client(folder: Path, version: ssl.TLSVersion) -> ssl.SSLContext:
    """Return a client context with the certificate of a folder, which accepts any server."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.maximum_version = version
    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    return context


@pytest.fixture
async def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TlsServer]:
    """A server that asks for certificates of one authority."""
    monkeypatch.setattr(watched_file, "_LOOK_SECONDS", 0.0)
    folder, other = tmp_path / "one", tmp_path / "other"
    for each in (folder, other):
        each.mkdir()
        write_certificates(each)
    tls = ServerTls(
        ServerSettings(
            tls_certificate=str(folder / "server.pem"),
            tls_key=str(folder / "server.key"),
            tls_client_ca=str(folder / "ca.pem"),
        )
    )

    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = writer.get_extra_info("ssl_object")
        if not has_outlived_authorities(connection):
            writer.write(b"known" if writer.get_extra_info("peercert") else b"unknown")
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls.context)
    async with listener:
        yield TlsServer(tls, listener.sockets[0].getsockname()[1], folder, other)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_authorities_are_exchanged(server: TlsServer, version: ssl.TLSVersion) -> None:
    """Certificates of the new authority are accepted at once, and those of the old one refused."""
    old, new = make_client(server.folder, version), make_client(server.other, version)
    assert (await server.connect(old))[0] == b"known"
    assert (await server.connect(new))[0] == b""
    server.replace("ca.pem")
    assert (await server.connect(old))[0] == b""
    assert (await server.connect(new))[0] == b"known"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_sessions_end_with_their_authority(server: TlsServer, version: ssl.TLSVersion) -> None:
    """A session opened with an old certificate cannot be resumed after its authority was removed."""
    client = make_client(server.folder, version)
    first, session = await server.connect(client)
    again, _ = await server.connect(client, session)
    assert first == again == b"known"
    server.replace("ca.pem")
    assert (await server.connect(client, session))[0] == b""
    assert (await server.connect(make_client(server.other, version)))[0] == b"known"


async def test_what_does_not_fit_changes_nothing(server: TlsServer) -> None:
    """An invalid file of authorities, or a certificate without its key, changes nothing until all files are valid."""
    old, new = (make_client(folder, ssl.TLSVersion.TLSv1_3) for folder in (server.folder, server.other))
    authority = (server.folder / "ca.pem").read_text()
    (server.folder / "ca.pem").write_text("no certificate")
    server.tls.reload_when_changed()
    assert (await server.connect(old))[0] == b"known"
    (server.folder / "ca.pem").write_text(authority)
    server.replace("server.pem")
    assert (await server.connect(old))[0] == b"known"
    server.replace("ca.pem")
    assert (await server.connect(new))[0] == b"", "the key of the certificate is missing still"
    server.replace("server.key")
    assert (await server.connect(new))[0] == b"known"


async def test_files_that_could_not_be_read_are_read_again(server: TlsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a free descriptor reads new certificates once it has one; each reason is logged once."""
    make_context, refusals = tls._make_context, iter(["no descriptor", "no descriptor", "no memory"])

    def refuse(settings: ServerSettings) -> tls.ServerContext:
        for refusal in refusals:
            raise InvalidRequest(refusal)
        return make_context(settings)

    monkeypatch.setattr(tls, "_make_context", refuse)
    with capture_logs() as lines:
        server.replace("ca.pem")
        for _ in range(4):
            server.tls.reload_when_changed()
    assert [(line["event"], line.get("reason")) for line in lines] == [
        ("certificates not reloaded", "no descriptor"),
        ("certificates not reloaded", "no memory"),
        ("certificates reloaded", None),
    ]
    assert (await server.connect(make_client(server.other, ssl.TLSVersion.TLSv1_3)))[0] == b"known"


def test_unusable_files_end_the_start(tmp_path: Path) -> None:
    """The error for unusable files at the start names the setting and the file."""
    write_certificates(tmp_path)
    good = {"tls_certificate": str(tmp_path / "server.pem"), "tls_key": str(tmp_path / "server.key")}
    for wrong in ({"tls_client_ca": str(tmp_path / "none")}, {"tls_key": str(tmp_path / "client.key")}):
        setting = "tls_client_ca" if "tls_client_ca" in wrong else "tls_certificate"
        with pytest.raises(InvalidRequest, match=setting):
            ServerTls(ServerSettings(**(good | wrong)))

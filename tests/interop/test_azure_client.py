"""Azure's clients from PyPI, unmodified, against a real server: 28 of the must-have behaviours of the CNCF reference.

The clients require https, so a TLS proxy runs in front of the server.
"""

from __future__ import annotations

import ipaddress
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.interop.test_tools import HERE, TOOLS, run
from tests.support.server_process import serving

LOCAL = "127.0.0.1"


def certificate(folder: Path) -> tuple[Path, Path]:
    """Create a self-signed certificate for this address. Return the files of the certificate and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, LOCAL)])
    now = datetime.now(UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(LOCAL))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = folder / "certificate.pem", folder / "key.pem"
    files[0].write_bytes(signed.public_bytes(Encoding.PEM))
    files[1].write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return files


@contextmanager
def ending_tls(url: str, folder: Path) -> Iterator[tuple[str, Path]]:
    """Run a TLS proxy for the URL on its own port. Yield host and port, and the certificate."""
    own, key = certificate(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own, key)
    target = urlsplit(url)
    listener = socket.create_server((LOCAL, 0))

    def serve() -> None:
        with suppress(OSError):  # the listener was closed: the end
            while True:
                threading.Thread(target=connect, args=(listener.accept()[0],), daemon=True).start()

    def connect(plain: socket.socket) -> None:
        with suppress(OSError), context.wrap_socket(plain, server_side=True) as client:
            server = socket.create_connection((target.hostname, target.port))
            back = threading.Thread(target=pump, args=(server, client), daemon=True)
            back.start()
            pump(client, server)
            back.join()
            server.close()

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_RDWR)

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"{LOCAL}:{listener.getsockname()[1]}", own
    finally:
        listener.close()


@pytest.mark.parametrize("store", ["memory:", "sqlite:///stele.db"])
def test_28_azure_clients(store: str, tmp_path: Path) -> None:
    """28: the registry's client, blocking and async, and its Avro and JSON encoders pass all their calls."""
    assert (TOOLS / "python").exists(), f"no environment of tools at {TOOLS.parent}: run `make test`, which makes it"
    with serving("--store", store, folder=tmp_path) as server, ending_tls(server.url, tmp_path) as (host, ca):
        run(TOOLS / "python", HERE / "tools" / "azure_clients.py", host, ca)


def test_28_below_a_prefix(tmp_path: Path) -> None:
    """28: the client accepts a path in the name of its namespace, so the dialect's prefix works too."""
    with serving("--store", "memory:", folder=tmp_path) as server, ending_tls(server.url, tmp_path) as (host, ca):
        run(TOOLS / "python", HERE / "tools" / "azure_clients.py", f"{host}/cncf", ca)

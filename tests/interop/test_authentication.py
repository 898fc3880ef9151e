"""Unmodified clients authenticate over TLS to a server with every method enabled and two workers."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import bcrypt
import httpx
import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaRegistryClient as TheirClient
from confluent_kafka.schema_registry.error import SchemaRegistryError
from tests.support.certificates import write_certificates
from tests.support.fork_server import Process, start_process
from tests.support.server_process import free_port
from tests.support.token_issuer import TokenIssuer, run_issuer
from typer.testing import CliRunner

from stele.cli.app import app
from stele.client import OAuthClientCredentials, SchemaRegistryClient

SCHEMA = TheirSchema('{"type": "string"}', "AVRO")


class SecuredServer(NamedTuple):
    """A server, the folder with its certificates and passwords, and the issuer whose tokens it accepts."""

    url: str
    folder: Path
    issuer: TokenIssuer

    @property
    def ca(self) -> str:
        """File of the certificate authority."""
        return str(self.folder / "ca.pem")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredServer]:
    """A server on which ann has the password `one` and carl has a certificate."""
    folder = tmp_path_factory.mktemp("secured")
    write_certificates(folder)
    (folder / "users").write_text(f"ann:{bcrypt.hashpw(b'one', bcrypt.gensalt(4)).decode()}\n")
    port = free_port()
    url = f"https://localhost:{port}"
    with run_issuer() as issuer, (folder / "log").open("wb") as log:
        environ = {
            **os.environ,
            "STELE_AUTHENTICATION": "basic,keys,oidc,mtls",
            "STELE_PASSWORD_FILE": str(folder / "users"),
            "STELE_OIDC_ISSUER": issuer.url,
            "STELE_OIDC_AUDIENCE": issuer.audience,
            "STELE_TLS_CERTIFICATE": str(folder / "server.pem"),
            "STELE_TLS_KEY": str(folder / "server.key"),
            "STELE_TLS_CLIENT_CA": str(folder / "ca.pem"),
            "STELE_MTLS_PRINCIPAL_RULES": "RULE:CN=([^,]+).*/$1/",
        }
        process = start_process(["stele", "serve", "--port", str(port), "--workers", "2"], folder, environ, log)
        try:
            secured = SecuredServer(url, folder, issuer)
            _wait(secured, process)
            yield secured
        finally:
            process.terminate()
            process.wait(120)


def _wait(server: SecuredServer, process: Process) -> None:
    context = ssl.create_default_context(cafile=server.ca)
    until = time.monotonic() + 240
    while time.monotonic() < until and process.poll() is None:
        try:
            if httpx.get(f"{server.url}/health/ready", verify=context, timeout=60).status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    pytest.fail((server.folder / "log").read_text(errors="replace"))


def status(server: SecuredServer, path: str = "/subjects", **headers: str) -> httpx.Response:
    """Return the response to a request with these headers."""
    context = ssl.create_default_context(cafile=server.ca)
    return httpx.get(f"{server.url}{path}", headers=headers, verify=context, timeout=120)


def test_confluents_client_with_a_password(server: SecuredServer) -> None:
    """The setting `basic.auth.user.info` is enough. A wrong password returns a 401 in Confluent's format."""
    conf = {"url": server.url, "ssl.ca.location": server.ca}
    with TheirClient({**conf, "basic.auth.user.info": "ann:one"}) as client:
        assert client.register_schema("basic-value", SCHEMA) > 0
    for wrong in ({"basic.auth.user.info": "ann:two"}, {}):
        with TheirClient({**conf, **wrong}) as client, pytest.raises(SchemaRegistryError) as refused:
            client.get_subjects()
        assert (refused.value.http_status_code, refused.value.error_code) == (401, 401)


def test_confluents_client_with_oauth(server: SecuredServer) -> None:
    """The client gets its token with its OAuth settings, and the server accepts it."""
    conf = {
        "url": server.url,
        "ssl.ca.location": server.ca,
        "bearer.auth.credentials.source": "OAUTHBEARER",
        "bearer.auth.issuer.endpoint.url": f"{server.issuer.url}/token",
        "bearer.auth.client.id": "client",
        "bearer.auth.client.secret": "secret",
        "bearer.auth.scope": "schema-registry",
        "bearer.auth.logical.cluster": "any",
    }
    with TheirClient(conf) as client:
        assert client.register_schema("oauth-value", SCHEMA) > 0
        assert "oauth-value" in client.get_subjects()
    assert "/token" in server.issuer.requests


def test_confluents_client_with_a_certificate(server: SecuredServer, tmp_path: Path) -> None:
    """The client's `ssl.*` settings are enough. A certificate of another authority is refused."""
    conf = {
        "url": server.url,
        "ssl.ca.location": server.ca,
        "ssl.certificate.location": str(server.folder / "client.pem"),
        "ssl.key.location": str(server.folder / "client.key"),
    }
    with TheirClient(conf) as client:
        assert client.register_schema("mtls-value", SCHEMA) > 0
    write_certificates(tmp_path)
    stranger = ssl.create_default_context(cafile=server.ca)
    stranger.load_cert_chain(tmp_path / "client.pem", tmp_path / "client.key")
    with pytest.raises(httpx.TransportError):
        httpx.get(f"{server.url}/subjects", verify=stranger)


def test_confluents_client_with_an_api_key(server: SecuredServer) -> None:
    """A command creates a key that works as token and as password, and is refused after it is revoked."""
    common = ["--registry", server.url, "--ca", server.ca, "--user", "ann:one"]
    result = CliRunner().invoke(app, ["key", "create", "billing", "--group", "services", "--expires", "90d", *common])
    assert result.exit_code == 0, result.output
    key = result.stdout.strip()
    key_id = key.split("_")[1]
    conf = {"url": server.url, "ssl.ca.location": server.ca, "basic.auth.user.info": f"{key_id}:{key}"}
    with TheirClient(conf) as client:
        assert client.register_schema("key-value", SCHEMA) > 0
    assert status(server, **{"X-API-Key": key}).status_code == 200
    listed = CliRunner().invoke(app, ["key", "list", *common])
    assert "billing  groups: services" in listed.stdout
    assert key not in listed.stdout
    assert key_id in CliRunner().invoke(app, ["key", "revoke", key_id, *common]).stdout
    for _ in range(8):  # both workers
        assert status(server, Authorization=f"Bearer {key}").status_code == 401
    log = b"".join(path.read_bytes() for path in server.folder.rglob("*") if path.is_file() and ".stele" in str(path))
    assert key_id.encode() in log
    assert key.encode() not in log
    assert key not in (server.folder / "log").read_text()


def test_our_client_with_oauth(server: SecuredServer) -> None:
    """Stele's client, and a command with OAuth settings in its environment, get their tokens themselves."""
    auth = OAuthClientCredentials(f"{server.issuer.url}/token", "client", "secret", scope="schema-registry")
    context = ssl.create_default_context(cafile=server.ca)
    with SchemaRegistryClient(server.url, auth=auth, verify=context) as client:
        assert isinstance(client.subjects(), list)
    environ = {
        "STELE_URL": server.url,
        "STELE_CA": server.ca,
        "STELE_TOKEN_URL": f"{server.issuer.url}/token",
        "STELE_CLIENT_ID": "client",
        "STELE_CLIENT_SECRET": "secret",
    }
    done = CliRunner().invoke(app, ["subject", "list"], env=environ)
    assert done.exit_code == 0, done.output


def test_pages_of_the_server(server: SecuredServer) -> None:
    """Probes need no credentials, metrics and the index do, and a 401 names the methods."""
    assert status(server, "/health/live").status_code == status(server, "/health/ready").status_code == 200
    for path in ("/", "/metrics", "/subjects", "/api/journal", "/_docs/native/openapi.json", "/schemagroups"):
        answer = status(server, path)
        assert answer.status_code == 401, path
        assert answer.headers.get_list("www-authenticate") == [
            'Basic realm="stele", charset="UTF-8"',
            'Bearer realm="stele"',
        ]
        assert status(server, path, Authorization=f"Bearer {server.issuer.sign_token()}").status_code == 200, path


def test_a_renewed_certificate(server: SecuredServer) -> None:
    """All workers use a renewed certificate or authority for new connections within seconds, and ignore half a file."""

    def read_serial() -> str:
        host, port = server.url.removeprefix("https://").split(":")
        return ssl.get_server_certificate((host, int(port)))

    before = (server.folder / "server.pem").read_text()
    assert read_serial() == before
    (server.folder / "server.pem").write_text(before[: len(before) // 2])
    time.sleep(2.5)
    assert read_serial() == before
    renewed = server.folder / "renewed"
    renewed.mkdir()
    write_certificates(renewed)
    for name in ("server.key", "server.pem"):
        shutil.copy(renewed / name, server.folder / name)
    after = (renewed / "server.pem").read_text()
    _wait_for_both_workers(read_serial, after)
    assert {read_serial() for _ in range(8)} == {after}
    assert _read_as(server, server.folder) == 200
    shutil.copy(renewed / "ca.pem", server.folder / "ca.pem")
    _wait_for_both_workers(lambda: _read_as(server, renewed), 200)
    assert {_read_as(server, renewed) for _ in range(8)} == {200}
    assert {_read_as(server, server.folder) for _ in range(8)} == {0}


def _wait_for_both_workers(find: Callable[[], str | int], wanted: str | int) -> None:
    """Return when ten rounds of eight requests have all had the wanted result.

    That is longer than a worker uses old files. A single worker may answer many requests in a row.
    """
    until = time.monotonic() + 120
    rounds = 0
    while rounds < 10:
        rounds = rounds + 1 if {find() for _ in range(8)} == {wanted} else 0
        assert time.monotonic() < until
        time.sleep(0.2)


def _read_as(server: SecuredServer, folder: Path) -> int:
    """Return the status of a request with the client certificate of a folder; 0 if the connection is refused."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.load_cert_chain(folder / "client.pem", folder / "client.key")
    try:
        return httpx.get(f"{server.url}/subjects", verify=context, timeout=120).status_code
    except httpx.TransportError:
        return 0


def _sign_long_token(server: SecuredServer) -> str:
    """Return a token that stays valid while a program is built, or waits for another build."""
    return server.issuer.sign_token(exp=int(time.time()) + 3600)


@pytest.mark.servers
@pytest.mark.timeout(600)
def test_franz_go(server: SecuredServer) -> None:
    """franz-go's client authenticates with a password and with a token, and reports a 401 as such."""
    assert shutil.which("go"), "go is missing: this test needs Go 1.24 or newer"
    folder = Path(__file__).parent / "go"
    for credentials in ("ann:one", _sign_long_token(server)):
        command = ["go", "run", ".", server.url, server.ca, credentials]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


_CARGO_SECONDS = 300
_OLDEST_RUST = (1, 86)
"""Oldest Rust version that the client's dependencies support. The Rust of Debian 12 is older."""


def find_cargo() -> str | None:
    """Return the path of Cargo, if there is one that is new enough."""
    cargo = shutil.which("cargo") or shutil.which("cargo", path=str(Path.home() / ".cargo" / "bin"))
    if cargo is None:
        return None
    words = subprocess.run([cargo, "--version"], capture_output=True, text=True, timeout=60, check=False).stdout.split()
    version = tuple(int(part) for part in words[1].split(".")[:2]) if len(words) > 1 else (0, 0)
    return cargo if version >= _OLDEST_RUST else None


@pytest.mark.servers
@pytest.mark.timeout(600)
def test_rust(server: SecuredServer) -> None:
    """schema_registry_converter's client authenticates over TLS with password and token; wrong ones are refused."""
    cargo = find_cargo()
    if cargo is None:
        pytest.skip("needs Cargo of Rust 1.86 or newer, and the headers of OpenSSL")
    folder = Path(__file__).parent / "rust"
    target = folder.parents[2] / ".venv" / "rust"
    build = [
        cargo,
        "build",
        "--quiet",
        "--manifest-path",
        str(folder / "Cargo.toml"),
        "--target-dir",
        str(target),
    ]
    done = subprocess.run(build, capture_output=True, text=True, timeout=_CARGO_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    environ = {**os.environ, "SSL_CERT_FILE": server.ca}
    for credentials in ("ann:one", _sign_long_token(server)):
        client = [str(target / "debug" / "registry-client"), server.url, credentials]
        done = subprocess.run(client, env=environ, capture_output=True, text=True, timeout=240, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

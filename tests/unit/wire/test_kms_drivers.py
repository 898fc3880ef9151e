"""Drivers of key management services: the services' own client libraries against stand-ins of the services."""

from __future__ import annotations

import base64
import json
import socket
import ssl
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import boto3
import grpc
import pytest
from azure.core.credentials import AccessToken
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from google.cloud import kms_v1
from google.cloud.kms_v1.services.key_management_service.transports import KeyManagementServiceGrpcTransport
from moto import mock_aws
from moto.core import set_initial_no_auth_action_count
from tink.integration import awskms

from stele.wire import kms
from stele.wire.kms_drivers.aws import aws_kms
from stele.wire.kms_drivers.azure import azure_kms
from stele.wire.kms_drivers.gcp import gcp_kms
from stele.wire.kms_drivers.vault import hcvault

MATERIAL = b"\x1a\x20" + bytes(range(32))
TOML = Path(__file__).parents[3] / "pyproject.toml"


@pytest.mark.parametrize("kms_type", ["aws-kms", "azure-kms", "gcp-kms", "hcvault", "local-kms"])
def test_every_type_leads_to_a_driver(kms_type: str) -> None:
    """The entry points name existing functions."""
    import tomllib

    points = tomllib.loads(TOML.read_text())["project"]["entry-points"]["stele.kms"]
    module, _, name = points[kms_type].partition(":")
    assert callable(getattr(import_module(module), name))


# --- AWS ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def aws_key(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the ARN of a key of a stand-in for AWS KMS."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    with mock_aws():
        yield boto3.client("kms", region_name="eu-central-1").create_key()["KeyMetadata"]["Arn"]


def test_aws_wraps_what_tink_unwraps(aws_key: str) -> None:
    """The driver and Tink unwrap each other's keys, by an ARN with and without its prefix."""
    key = aws_kms(aws_key, {})
    client = boto3.client("kms", region_name="eu-central-1")
    tink = awskms.new_client(boto3_client=client, key_uri=f"aws-kms://{aws_key}").get_aead(f"aws-kms://{aws_key}")
    assert tink.decrypt(key.wrap(MATERIAL), b"") == MATERIAL
    assert aws_kms(f"aws-kms://{aws_key}", {}).unwrap(tink.encrypt(MATERIAL, b"")) == MATERIAL


def test_aws_takes_credentials_of_a_kek(aws_key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Properties take precedence over the environment, also to assume a role."""
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with pytest.raises(kms.KmsError, match="NoCredentials"):
        aws_kms(aws_key, {}).wrap(MATERIAL)
    own = {"access.key.id": "testing", "secret.access.key": "s3cret"}
    assert aws_kms(aws_key, own).unwrap(aws_kms(aws_key, own).wrap(MATERIAL)) == MATERIAL
    role = {**own, "role.arn": "arn:aws:iam::123456789012:role/keys", "role.external.id": "team"}
    assert aws_kms(aws_key, role).unwrap(aws_kms(aws_key, own).wrap(MATERIAL)) == MATERIAL


def test_aws_failures_are_told_apart(aws_key: str) -> None:
    """A missing key and foreign bytes give errors with AWS's code; a denial gives an error of its own type."""
    with pytest.raises(kms.KmsError, match="NotFoundException"):
        aws_kms(aws_key[:-4] + "0000", {}).wrap(MATERIAL)
    with pytest.raises(kms.KmsError) as caught:
        aws_kms(aws_key, {}).unwrap(b"nonsense")
    assert not isinstance(caught.value, kms.KmsDenied)
    with pytest.raises(kms.KmsDenied):
        set_initial_no_auth_action_count(0)(lambda: aws_kms(aws_key, {}).wrap(MATERIAL))()


# --- Vault ----------------------------------------------------------------------------------------------------------


class VaultStandIn(BaseHTTPRequestHandler):
    """The transit engine and AppRole of Vault, as far as the driver uses them; keys are reversed base64."""

    seen: list[tuple[str, str]]

    def do_PUT(self) -> None:
        """Answer one request."""
        self.do_POST()

    def do_POST(self) -> None:
        """Answer one request."""
        token = self.headers.get("X-Vault-Token", "")
        self.seen.append((self.path, token))
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        match self.path.removeprefix("/v1/").split("/"):
            case ["auth", "approle", "login"] if body == {"role_id": "r", "secret_id": "s"}:
                self.answer(200, {"auth": {"client_token": "good"}})
            case _ if token != "good":
                self.answer(403, {"errors": ["permission denied"]})
            case ["transit", "encrypt", "k"]:
                self.answer(200, {"data": {"ciphertext": "vault:v1:" + body["plaintext"][::-1]}})
            case ["transit", "decrypt", "k"] if body["ciphertext"].startswith("vault:v1:"):
                self.answer(200, {"data": {"plaintext": body["ciphertext"][9:][::-1]}})
            case ["transit", "decrypt", "k"]:
                self.answer(400, {"errors": ["invalid ciphertext"]})
            case _:
                self.answer(404, {"errors": []})

    def answer(self, status: int, body: dict[str, Any]) -> None:
        """Send an answer."""
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *args: object) -> None:
        """Log nothing."""


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """Run a server in a thread, and yield its address."""
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        if tls is not None:
            server.socket = tls.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def vault(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Yield the address of a stand-in for Vault."""
    for name in ("VAULT_ADDR", "VAULT_TOKEN", "VAULT_NAMESPACE"):
        monkeypatch.delenv(name, raising=False)
    VaultStandIn.seen = []
    with serving(VaultStandIn) as address:
        yield address


@pytest.mark.parametrize(
    "properties", [{"token.id": "good"}, {"approle.role.id": "r", "approle.secret.id": "s"}], ids=["token", "role"]
)
def test_vault_wraps_and_unwraps(vault: str, properties: dict[str, str]) -> None:
    """Works with a token or an AppRole login; the wrapped key is Vault's text, as in Confluent's clients."""
    key = hcvault(f"hcvault://{vault}/transit/keys/k", properties)
    wrapped = key.wrap(MATERIAL)
    assert wrapped == b"vault:v1:" + base64.b64encode(MATERIAL)[::-1]
    assert key.unwrap(wrapped) == MATERIAL


def test_credentials_of_the_environment_go_to_their_own_server_only(
    vault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key id on another server does not get the token of the environment."""
    monkeypatch.setenv("VAULT_TOKEN", "good")
    monkeypatch.setenv("VAULT_ADDR", "http://vault.example.org:8200")
    with pytest.raises(kms.KmsError, match="VAULT_ADDR"):
        hcvault(f"{vault}/transit/keys/k", {})
    assert VaultStandIn.seen == []
    monkeypatch.setenv("VAULT_ADDR", vault + "/")
    assert hcvault(f"{vault}/transit/keys/k", {}).wrap(MATERIAL)


def test_vault_failures_are_told_apart(vault: str) -> None:
    """A denial, invalid bytes, a missing key, no server and a wrong id give different errors without secrets."""
    with pytest.raises(kms.KmsDenied):
        hcvault(f"{vault}/transit/keys/k", {"token.id": "bad"}).wrap(MATERIAL)
    with pytest.raises(kms.KmsDenied):
        hcvault(f"{vault}/transit/keys/k", {"approle.role.id": "r", "approle.secret.id": "wrong"})
    good = {"token.id": "good"}
    for wrapped in (b"nonsense", b"\xff"):
        with pytest.raises(kms.KmsError):
            hcvault(f"{vault}/transit/keys/k", good).unwrap(wrapped)
    with pytest.raises(kms.KmsError, match="InvalidPath"):
        hcvault(f"{vault}/transit/keys/other", good).wrap(MATERIAL)
    with pytest.raises(kms.KmsError, match="ConnectionError"):
        hcvault("http://127.0.0.1:1/transit/keys/k", good).wrap(MATERIAL)
    for key_id in ("vault", "ftp://h/transit/keys/k", f"{vault}/k", "http://u:p@h/transit/keys/k", "http://[/a/keys/k"):
        with pytest.raises(kms.KmsError, match="the id of a key"):
            hcvault(key_id, good)


# --- Azure ----------------------------------------------------------------------------------------------------------

VAULT_HOST = "kv.stele.test"


class AzureStandIn(BaseHTTPRequestHandler):
    """Key Vault as far as the driver uses it: names the issuer of tokens, returns the public key, decrypts."""

    key: rsa.RSAPrivateKey
    status = 200

    def do_GET(self) -> None:
        """Return the public key, with which the library encrypts."""
        if self.is_welcome():
            numbers = self.key.public_key().public_numbers()
            key = {"kid": "https://x/keys/k/1", "kty": "RSA", "key_ops": ["encrypt", "decrypt"]}
            key |= {"n": _base64url(numbers.n.to_bytes(256, "big")), "e": _base64url(numbers.e.to_bytes(3, "big"))}
            self.answer(self.status, {"key": key, "attributes": {"enabled": True}})

    def do_POST(self) -> None:
        """Decrypt the value in the request, and return it."""
        body = json.loads(self.rfile.read(int(self.headers["content-length"])) or b"{}")
        if self.is_welcome():
            wrapped = base64.urlsafe_b64decode(body["value"] + "==")
            try:
                material = self.key.decrypt(wrapped, padding.OAEP(padding.MGF1(SHA256()), SHA256(), None))
            except ValueError:
                self.answer(400, {"error": {"code": "BadParameter"}})
            else:
                self.answer(self.status, {"kid": "https://x/keys/k/1", "value": _base64url(material)})

    def is_welcome(self) -> bool:
        """Return whether the request has a token. Without one, send the issuer of tokens."""
        if self.headers.get("authorization") == "Bearer good":
            return True
        port = self.headers["host"].rpartition(":")[2]
        self.send_response(401)
        challenge = f'Bearer authorization="https://login.test/tenant", resource="https://stele.test:{port}"'
        self.send_header("www-authenticate", challenge)
        self.send_header("content-length", "0")
        self.end_headers()
        return False

    answer = VaultStandIn.answer
    log_message = VaultStandIn.log_message


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class GoodCredential:
    """A credential whose token the stand-in accepts."""

    def get_token(self, *scopes: str, **options: Any) -> AccessToken:
        """Return the token."""
        return AccessToken("good", 2**40)


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """Yield the id of a key of a stand-in for Azure Key Vault, over TLS."""
    AzureStandIn.key = rsa.generate_private_key(65537, 2048)
    AzureStandIn.status = 200
    certificate = tmp_path / "tls.pem"
    certificate.write_bytes(_make_certificate(AzureStandIn.key))
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(certificate))
    monkeypatch.setattr("azure.identity.DefaultAzureCredential", GoodCredential)
    find = socket.getaddrinfo
    monkeypatch.setattr(
        socket,
        "getaddrinfo",
        lambda host, *rest, **named: find("127.0.0.1" if host == VAULT_HOST else host, *rest, **named),
    )
    with serving(AzureStandIn, tls) as address:
        yield f"https://{VAULT_HOST}:{address.rpartition(':')[2]}/keys/k/1"


def _make_certificate(key: rsa.RSAPrivateKey) -> bytes:
    """Return a key and a self-signed certificate with the stand-in's name."""
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, VAULT_HOST)])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(VAULT_HOST)]), critical=False)
        .sign(key, SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return private + certificate.public_bytes(Encoding.PEM)


def test_azure_wraps_and_unwraps(azure: str) -> None:
    """Keys are wrapped by RSA-OAEP-256 with the vault's key; denials and failures give different errors."""
    key = azure_kms(f"azure-kms://{azure}", {})
    wrapped = key.wrap(MATERIAL)
    assert AzureStandIn.key.decrypt(wrapped, padding.OAEP(padding.MGF1(SHA256()), SHA256(), None)) == MATERIAL
    assert key.unwrap(wrapped) == MATERIAL
    with pytest.raises(kms.KmsError, match="HTTP 400"):
        key.unwrap(bytes(256))
    AzureStandIn.status = 403
    with pytest.raises(kms.KmsDenied):
        azure_kms(azure, {}).unwrap(wrapped)
    with pytest.raises(kms.KmsError):
        azure_kms("https://127.0.0.1", {})


# --- Google Cloud ---------------------------------------------------------------------------------------------------

GCP_NAME = "projects/p/locations/l/keyRings/r/cryptoKeys/k"


def _encrypt(request: Any, context: grpc.ServicerContext) -> Any:
    _require_known(request.name, context)
    return kms_v1.EncryptResponse(name=request.name, ciphertext=b"gcp:" + request.plaintext[::-1])


def _decrypt(request: Any, context: grpc.ServicerContext) -> Any:
    _require_known(request.name, context)
    if not request.ciphertext.startswith(b"gcp:"):
        context.abort(grpc.StatusCode.INVALID_ARGUMENT, "not decryptable")
    return kms_v1.DecryptResponse(plaintext=request.ciphertext[4:][::-1])


def _require_known(name: str, context: grpc.ServicerContext) -> None:
    if name.endswith("/forbidden"):
        context.abort(grpc.StatusCode.PERMISSION_DENIED, "no")
    if name != GCP_NAME:
        context.abort(grpc.StatusCode.NOT_FOUND, "no such key")


@pytest.fixture
def gcp(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Connect the library's client to a stand-in for Google Cloud KMS."""
    server = grpc.server(ThreadPoolExecutor(2))
    handlers = {
        "Encrypt": grpc.unary_unary_rpc_method_handler(
            _encrypt, kms_v1.EncryptRequest.deserialize, kms_v1.EncryptResponse.serialize
        ),
        "Decrypt": grpc.unary_unary_rpc_method_handler(
            _decrypt, kms_v1.DecryptRequest.deserialize, kms_v1.DecryptResponse.serialize
        ),
    }
    service = "google.cloud.kms.v1.KeyManagementService"
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    original = kms_v1.KeyManagementServiceClient

    def make_client(credentials: object) -> Any:
        channel = grpc.insecure_channel(f"127.0.0.1:{port}")
        return original(transport=KeyManagementServiceGrpcTransport(channel=channel))

    monkeypatch.setattr(kms_v1, "KeyManagementServiceClient", make_client)
    yield
    server.stop(None)


@pytest.mark.usefixtures("gcp")
def test_gcp_wraps_and_unwraps() -> None:
    """The wrapped key is Google's ciphertext; denials and failures give different errors."""
    key = gcp_kms(f"gcp-kms://{GCP_NAME}", {})
    assert key.wrap(MATERIAL) == b"gcp:" + MATERIAL[::-1]
    assert key.unwrap(key.wrap(MATERIAL)) == MATERIAL
    with pytest.raises(kms.KmsError, match="InvalidArgument"):
        key.unwrap(b"nonsense")
    with pytest.raises(kms.KmsError, match="NotFound"):
        gcp_kms(GCP_NAME + "2", {}).wrap(MATERIAL)
    with pytest.raises(kms.KmsDenied):
        gcp_kms(GCP_NAME.removesuffix("/k") + "/forbidden", {}).wrap(MATERIAL)


def test_gcp_without_credentials_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing and wrong credentials are reported by type, and no message contains the private key."""
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere.json")
    with pytest.raises(kms.KmsError, match="DefaultCredentialsError"):
        gcp_kms(GCP_NAME, {})
    account = {"client.id": "1", "client.email": "a@b", "private.key.id": "2", "private.key": "s3cret"}
    with pytest.raises(kms.KmsError) as caught:
        gcp_kms(GCP_NAME, account)
    assert "s3cret" not in str(caught.value)

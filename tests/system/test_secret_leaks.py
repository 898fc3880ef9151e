"""No secret appears in a server's output, metrics or answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from tests.support.server_process import Running, serving
from typer.testing import CliRunner

from stele.cli.app import app

SECRETS = {
    name: f"S3cret-{number}-of-{name}-Zq7"
    for number, name in enumerate(
        [
            "store",
            "basic",
            "bearer",
            "key",
            "query",
            "exporter",
            "jaas",
            "sink",
            "credential",
            "kms",
            "userinfo",
            "cookie",
            "body",
        ]
    )
}
BASIC = base64.b64encode(f"ann:{SECRETS['basic']}".encode()).decode()
BEARER = f"eyJhbGciOiJSUzI1NiJ9.{base64.urlsafe_b64encode(SECRETS['bearer'].encode()).decode().rstrip('=')}.c2ln"
SEALING_KEY = base64.b64encode(b"0123456789abcdef0123456789abcdef").decode()
NEEDLES = [
    *SECRETS.values(),
    BASIC,
    BEARER,
    BEARER.split(".")[1],
    SEALING_KEY,
    *(quote(text) for text in SECRETS.values()),
]
SCHEMA = '{"type":"record","name":"R","fields":[]}'


def require_no_secret(text: str, place: str) -> None:
    """Raise AssertionError for a text with any secret in it."""
    for needle in NEEDLES:
        assert needle not in text, f"{place} has {needle!r}: …{text[max(0, text.index(needle) - 200) :][:400]}"


EXPORTER = {
    "name": "e",
    "config": {
        "schema.registry.url": f"https://ann:{SECRETS['userinfo']}@registry.example/",
        "basic.auth.credentials.source": "USER_INFO",
        "basic.auth.user.info": f"ann:{SECRETS['exporter']}",
        "sasl.jaas.config": f"org.apache.kafka Login required username=a password='{SECRETS['jaas']}';",
        "api.key": SECRETS["exporter"],
    },
}
SUBSCRIPTION = {
    "sink": f"https://ann:{SECRETS['userinfo']}@sink.example/hook?token={SECRETS['sink']}",
    "protocol": "HTTP",
    "protocolsettings": {"headers": {"Authorization": f"Bearer {SECRETS['sink']}", "X-Api-Key": SECRETS["sink"]}},
    "sinkCredential": {
        "credentialType": "ACCESSTOKEN",
        "accessToken": SECRETS["credential"],
        "accessTokenType": "bearer",
    },
}
KEK = {
    "name": "k",
    "kmsType": "hcvault",
    "kmsKeyId": "https://vault.example/transit/keys/k",
    "kmsProps": {"token.id": SECRETS["kms"], "secret.access.key": SECRETS["kms"], "anything": SECRETS["kms"]},
    "shared": True,
}
ASKED: list[tuple[str, str, Any]] = [
    ("POST", "/exporters", EXPORTER),
    ("POST", "/exporters", EXPORTER),
    ("GET", "/exporters/e", None),
    ("GET", "/exporters/e/config", None),
    ("PUT", "/exporters/e/config", EXPORTER["config"]),
    ("GET", "/exporters/e/status", None),
    ("POST", "/exporters", {**EXPORTER, "name": 7, "config": SECRETS["body"]}),
    ("POST", "/subscriptions", SUBSCRIPTION),
    ("GET", "/subscriptions", None),
    ("POST", "/subscriptions", {**SUBSCRIPTION, "protocol": 1, "sinkCredential": SECRETS["body"]}),
    (
        "POST",
        "/subscriptions",
        {**SUBSCRIPTION, "sinkCredential": {"credentialType": "x", "accessToken": [SECRETS["body"]]}},
    ),
    ("POST", "/dek-registry/v1/keks", KEK),
    ("POST", "/dek-registry/v1/keks", {**KEK, "kmsType": "aws-kms"}),
    ("POST", "/dek-registry/v1/keks", {**KEK, "name": "l", "kmsProps": [SECRETS["body"]]}),
    ("GET", "/dek-registry/v1/keks", None),
    ("GET", "/dek-registry/v1/keks/k", None),
    ("PUT", "/dek-registry/v1/keks/k", {"kmsProps": {"token.id": SECRETS["kms"]}, "doc": "x", "shared": True}),
    ("POST", "/dek-registry/v1/keks/k/deks", {"subject": "s", "version": 1}),
    ("GET", f"/dek-registry/v1/keks/k/deks/s?token={SECRETS['query']}", None),
    ("POST", "/subjects/s/versions", {"schema": SCHEMA}),
    ("POST", "/subjects/s/versions", {"schema": '{"type":"nonsense"}'}),
    ("GET", f"/subjects/s/versions/1?access_token={SECRETS['query']}", None),
    ("GET", f"/subjects/nobody/versions?access_token={SECRETS['query']}", None),
    ("GET", f"/nothing/here?api_key={SECRETS['query']}", None),
    ("POST", "/api/check", {"format": "avro", "schema": SCHEMA, "against": []}),
    ("POST", "/api/check", {"format": SECRETS["body"][:0], "schema": 7}),
    ("GET", "/api/journal", None),
    ("GET", "/api/policies/nobody", None),
    ("POST", "/v1/groups", {"groupName": "g", "groupProperties": {}}),
    ("GET", "/v1/groups/nobody", None),
    ("PUT", "/schema-repo/r", None),
    ("GET", "/schema-repo/nobody/latest", None),
    ("PUT", "/schemagroups/g", {"format": "avro"}),
    ("GET", "/schemagroups/nobody", None),
    ("POST", "/schema-registry/v1/subject/s/schema/S", {"schemaIdl": SCHEMA, "schemaType": "AVRO"}),
    ("GET", "/openschema/subjects/nobody", None),
    ("GET", "/metrics", None),
    ("GET", "/", None),
    ("GET", "/health/ready", None),
    ("GET", "/config", None),
    ("DELETE", "/subjects/nobody", None),
]
CREDENTIALS: list[dict[str, str]] = [
    {"authorization": f"Basic {BASIC}"},
    {"authorization": f"Bearer {BEARER}"},
    {
        "authorization": f"Bearer {SECRETS['key']}",
        "x-api-key": SECRETS["key"],
        "cookie": f"session={SECRETS['cookie']}",
    },
]


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Running]:
    """Run a server with all logs on, whose output goes to the file `printed`."""
    environ = {"STELE_SECRETS_KEY": "env:SEALING", "SEALING": SEALING_KEY, "STELE_LOG_LEVEL": "debug"}
    flags = ["--store", f"sqlite:///{tmp_path}/stele.db", "--log-level", "debug"]
    with (
        (tmp_path / "printed").open("wb") as output,
        serving(*flags, folder=tmp_path, environ=environ, output=output) as running,
    ):
        yield running


def test_a_whole_run_shows_no_secret(server: Running, tmp_path: Path) -> None:
    """Requests to every dialect with secrets in headers, bodies, URLs and queries reveal none of them."""
    statuses = set()
    with httpx.Client(base_url=server.url, timeout=30) as client:
        for headers in CREDENTIALS:
            for method, path, body in ASKED:
                content = None if body is None else json.dumps(body)
                sent = {**headers, "content-type": "application/json", "accept": "application/json, text/html, */*"}
                answer = client.request(method, path, content=content, headers=sent)
                statuses.add(answer.status_code // 100)
                require_no_secret(answer.text, f"the answer {answer.status_code} to {method} {path}")
                require_no_secret(str(answer.headers), f"the head of the answer to {method} {path}")
        require_no_secret(client.get("/metrics").text, "/metrics")
    assert {2, 4} <= statuses
    for command in (["status", "--registry", server.url], ["doctor", "--registry", server.url]):
        require_no_secret(CliRunner().invoke(app, command).output, " ".join(command))
    printed = (tmp_path / "printed").read_text(encoding="utf-8")
    assert "path=/exporters/e/config" in printed, "reads are logged at this level"
    require_no_secret(printed, "what the server printed")


STORES = [
    f"postgresql://ann:{SECRETS['store']}@127.0.0.1:1/db?password={SECRETS['query']}",
    f"mysql://ann:{SECRETS['store']}@127.0.0.1:1/db?ssl_key_password={SECRETS['query']}",
    f"kafka://ann:{SECRETS['store']}@127.0.0.1:1/topic?sasl.password={SECRETS['query']}&security.protocol=SASL_PLAINTEXT",
    f"nonsense://ann:{SECRETS['store']}@127.0.0.1:1/db?password={SECRETS['query']}",
    f"sqlite:///nowhere/at/all/x.db?password={SECRETS['query']}",
]


@pytest.mark.parametrize("store", STORES, ids=lambda store: store.partition(":")[0])
@pytest.mark.parametrize("command", ["serve", "doctor", "log", "backup"])
def test_a_store_that_does_not_open_shows_no_password(
    store: str, command: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Errors about an unreachable store name it without user, password and parameters."""
    monkeypatch.chdir(tmp_path)
    rest = {"serve": ["--port", "0"], "doctor": [], "log": [], "backup": ["copy.db"]}[command]
    words = ["log", "verify"] if command == "log" else [command]
    result = CliRunner().invoke(app, [*words, *rest, "--store", store])
    printed = capfd.readouterr()
    assert result.exit_code != 0
    require_no_secret(result.output + printed.out + printed.err + str(result.exception), " ".join(words))

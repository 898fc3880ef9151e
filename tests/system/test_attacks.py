"""Attacks by strangers over HTTP: each is refused or answered soon, and other clients are served meanwhile.

docs/explanation/threat-model.md lists attacks that need no server or are tested in other files.
"""

from __future__ import annotations

import gzip
import json
import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.support.canary import watch_answers
from tests.support.server_process import Running, call, serving
from tests.support.time_limit import limit_time

SCHEMA = {"schema": '{"type":"record","name":"R","fields":[{"name":"a","type":"int"}]}'}
BOUNDS = {"STELE_REQUEST_SECONDS": "5", "STELE_BODY_SECONDS": "60", "STELE_IDLE_SECONDS": "60"}
SECONDS = 10.0
"""Longest time of an answer in seconds. The server gives up a request after five."""
PATIENCE = 120.0
"""Longest time in seconds for which a test waits for an answer, to measure it."""
MEMORY = 400 * 2**20
DEEP = 30_000
ROCKETMQ = "/schema-registry/v1/cluster/default/tenant/default/subjects"
SAME_HASH = 2**61 - 1
"""All multiples of this number have the same hash in Python."""


class Listener:
    """A server at an address that the registry must not contact. It counts connections."""

    def __init__(self) -> None:
        # An address of its own: at 127.0.0.1, clients of a server that has ended may still connect to its port.
        self._socket = socket.create_server(("127.0.0.2", 0))
        self.url = f"http://127.0.0.2:{self._socket.getsockname()[1]}"
        self.came = 0
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self.came += 1
                connection.close()

    def close(self) -> None:
        """Stop listening."""
        self._socket.close()


@pytest.fixture(scope="module")
def listener() -> Iterator[Listener]:
    """Run a listener and assert at the end that it got no connection."""
    listener = Listener()
    yield listener
    assert listener.came == 0, "the server asked an address that a stranger named"
    listener.close()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """Run a server that other clients use during the attacks, and assert that its memory stays bounded."""
    with serving("--store", "memory:", folder=tmp_path_factory.mktemp("attacks"), environ=BOUNDS) as running:
        assert call(f"{running.url}/subjects/s/versions", "POST", SCHEMA).status == 200
        for path in ("/v1/groups", "/schemagroups", "/schema-repo", "/openschema/subjects", ROCKETMQ, "/api/journal"):
            assert call(running.url + path).status == 200, path  # a dialect is built at its first request
        before = memory_of(running)
        with watch_answers(running, 1.0):
            yield running
        assert memory_of(running) - before < MEMORY


def memory_of(server: Running) -> int:
    """Return the resident bytes of the server process."""
    pages = int(Path(f"/proc/{server.process.pid}/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def send(server: Running, *parts: bytes, seconds: float = PATIENCE) -> bytes:
    """Send bytes and return everything the server answers until it closes the connection. Raises TimeoutError."""
    port = int(server.url.rpartition(":")[2])
    until = time.monotonic() + seconds
    answer = b""
    connection = socket.create_connection(("127.0.0.1", port), timeout=seconds)
    with connection, suppress(ConnectionResetError):
        with suppress(ConnectionResetError, BrokenPipeError):  # the server may refuse a request before it has read it
            for part in parts:
                connection.sendall(part)
        while chunk := connection.recv(65536):
            answer += chunk
            connection.settimeout(max(0.01, until - time.monotonic()))
    return answer


def request(server: Running, method: str, path: str, body: bytes = b"", *lines: str) -> tuple[int, bytes]:
    """Send a request and return its status and the whole answer; status 0 for a connection closed without an answer."""
    head = [f"{method} {path} HTTP/1.1", "Host: x", "Connection: close", f"Content-Length: {len(body)}", *lines]
    answer = send(server, "\r\n".join([*head, "", ""]).encode("latin-1") + body)
    return (int(answer[9:12]) if answer else 0), answer


def post(server: Running, path: str, body: Any, content_type: str = "application/json") -> tuple[int, bytes]:
    """Send a POST with a body as JSON, or as it is if it is bytes; see `request`."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return request(server, "POST", path, data, f"Content-Type: {content_type}")


# --- schemas ----------------------------------------------------------------------------------------------------------


def xsd(inner: str, before: str = "") -> str:
    """Return an XML schema document."""
    return f'{before}<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema">{inner}</xs:schema>'


def avro_doubling(levels: int) -> str:
    """Return nested records, each of which uses the next one twice: a short text with exponentially many paths."""

    def record(level: int) -> Any:
        if level == levels:
            return {"type": "record", "name": f"R{level}", "fields": []}
        fields = [{"name": "a", "type": record(level + 1)}, {"name": "b", "type": f"R{level + 1}"}]
        return {"type": "record", "name": f"R{level}", "fields": fields}

    return json.dumps(record(0))


def json_doubling(levels: int) -> str:
    """Return the same structure as `avro_doubling` with `allOf` and `$ref`."""
    defs: dict[str, Any] = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(levels)
    }
    return json.dumps({"$ref": "#/$defs/d0", "$defs": {**defs, f"d{levels}": {"type": "string"}}})


def protobuf_doubling(levels: int) -> str:
    """Return the same structure as `avro_doubling` with message types."""
    messages = [f"message M{n} {{ M{n + 1} a = 1; M{n + 1} b = 2; }}" for n in range(levels)]
    return 'syntax = "proto3";\n' + "\n".join([*messages, f"message M{levels} {{ string s = 1; }}"])


def entities(count: int = 12) -> str:
    """Return a DOCTYPE with entities, each of which expands to ten of the one before."""
    rows = ['<!ENTITY e0 "lol">'] + [f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, count)]
    return f"<!DOCTYPE x [{''.join(rows)}]>"


SCHEMAS: dict[str, Callable[[], tuple[str, str]]] = {
    "billion laughs": lambda: (
        "xsd",
        xsd("<xs:annotation><xs:documentation>&e11;</xs:documentation></xs:annotation>", entities()),
    ),
    "quadratic entity": lambda: ("xsd", xsd("&a;" * 20_000, f'<!DOCTYPE x [<!ENTITY a "{"a" * 20_000}">]>')),
    "external entity": lambda: ("xsd", xsd("&x;", '<!DOCTYPE x [<!ENTITY x SYSTEM "file:///etc/passwd">]>')),
    "parameter entity": lambda: ("xsd", xsd("", '<!DOCTYPE x [<!ENTITY % x SYSTEM "LISTENER/x.dtd"> %x;]>')),
    "external DTD": lambda: ("xsd", xsd("", '<!DOCTYPE x SYSTEM "LISTENER/x.dtd">')),
    "included XML schemas": lambda: (
        "xsd",
        xsd(
            '<xs:include schemaLocation="LISTENER/a.xsd"/><xs:import namespace="n" schemaLocation="file:///etc/passwd"/>'
        ),
    ),
    "XML occurrences": lambda: (
        "xsd",
        xsd(
            '<xs:element name="a"><xs:complexType><xs:sequence>'
            + '<xs:element name="b" minOccurs="99999999" maxOccurs="999999999"/>' * 50
            + "</xs:sequence></xs:complexType></xs:element>"
        ),
    ),
    "XML depth": lambda: ("xsd", xsd("<xs:sequence>" * 20_000 + "</xs:sequence>" * 20_000)),
    "XML attributes": lambda: ("xsd", xsd("<xs:element " + " ".join(f'a{n}="x"' for n in range(50_000)) + "/>")),
    "XML regex": lambda: (
        "xsd",
        xsd(
            '<xs:simpleType name="s"><xs:restriction base="xs:string">'
            '<xs:pattern value="((a{1,99}){1,99}){1,99}"/></xs:restriction></xs:simpleType>'
        ),
    ),
    "JSON Schema depth": lambda: ("json", '{"not":' * DEEP + "{}" + "}" * DEEP),
    "JSON Schema regex": lambda: (
        "json",
        json.dumps(
            {
                "type": "string",
                "pattern": "^(([a-z])+.)+[A-Z]([a-z])+$",
                "default": "a" * 50_000,
                "examples": ["a" * 50_000],
            }
        ),
    ),
    "JSON Schema regex count": lambda: ("json", json.dumps({"pattern": "(((a{1,999}){1,999}){1,999}){1,999}"})),
    "JSON Schema doubling": lambda: ("json", json_doubling(60)),
    "JSON Schema reference to itself": lambda: (
        "json",
        json.dumps({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
    ),
    "JSON Schema reference to others": lambda: (
        "json",
        json.dumps(
            {
                "$schema": "LISTENER/meta",
                "$id": "LISTENER/x",
                "$ref": "LISTENER/y",
                "allOf": [{"$ref": "file:///etc/passwd"}, {"$dynamicRef": "LISTENER/z"}],
            }
        ),
    ),
    "JSON Schema huge numbers": lambda: (
        "json",
        '{"minimum":1e400000,"maximum":' + "9" * 100_000 + ',"multipleOf":1e-400000,"maxLength":1e300}',
    ),
    "JSON Schema keys with one hash": lambda: ("json", json.dumps({"enum": [n * SAME_HASH for n in range(1, 30_000)]})),
    "JSON Schema duplicate keys": lambda: ("json", "{" + ",".join(['"type":"string"'] * 50_000) + "}"),
    "JSON Schema prototype keys": lambda: (
        "json",
        json.dumps({"properties": {"__proto__": {}, "__class__": {}, "constructor": {"type": "string"}}}),
    ),
    "Avro depth": lambda: ("avro", '{"type":"array","items":' * DEEP + '"int"' + "}" * DEEP),
    "Avro doubling": lambda: ("avro", avro_doubling(60)),
    "Avro names": lambda: (
        "avro",
        json.dumps(
            [
                {"type": "enum", "name": f"E{n}", "symbols": ["A"], "aliases": [f"x.A{n}", f"y.A{n}"]}
                for n in range(10_000)
            ]
        ),
    ),
    "Avro huge numbers": lambda: (
        "avro",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"long","default":'
        + "9" * 200_000
        + '},{"name":"b","type":"double","default":1e999999999},{"name":"c","type":{"type":"fixed","name":"F","size":'
        + "9" * 5000
        + "}}]}",
    ),
    "Avro decimals": lambda: (
        "avro",
        '{"type":"bytes","logicalType":"decimal","precision":999999999,"scale":' + "9" * 4000 + "}",
    ),
    "Avro default depth": lambda: (
        "avro",
        '{"type":"record","name":"R","fields":[{"name":"a","type":"int","default":' + "[" * DEEP + "]" * DEEP + "}]}",
    ),
    "Protobuf depth": lambda: ("protobuf", 'syntax = "proto3";' + "message M {" * 5_000 + "}" * 5_000),
    "Protobuf doubling": lambda: ("protobuf", protobuf_doubling(60)),
    "Protobuf imports": lambda: (
        "protobuf",
        'syntax = "proto3";' + "".join(f'import public "a{n}.proto";' for n in range(4_000)),
    ),
    "Protobuf imports of files": lambda: (
        "protobuf",
        'syntax = "proto3"; import "/etc/passwd"; import "../../../../etc/passwd"; import "LISTENER/x.proto";',
    ),
    "Protobuf options": lambda: (
        "protobuf",
        'syntax = "proto3"; message M { string s = 1 [(o) = {' + "a {" * 5_000 + "}" * 5_000 + "}]; }",
    ),
    "Protobuf ranges": lambda: (
        "protobuf",
        'syntax = "proto2"; message M { reserved 1 to 2; '
        + "".join(f"extensions {n} to {n + 1};" for n in range(100, 40_000, 3))
        + "}",
    ),
    "Thrift depth": lambda: ("thrift", "struct S { 1: " + "list<" * 20_000 + "i32" + ">" * 20_000 + " a }"),
    "Thrift constants": lambda: ("thrift", "const list<i32> C = " + "[" * 20_000 + "]" * 20_000),
    "Thrift comments": lambda: ("thrift", "/*" * 200_000),
}
"""Formats and texts. LISTENER stands for the URL of the listener, which must not be contacted."""


@pytest.mark.parametrize("name", SCHEMAS)
def test_hostile_schemas_hold_up_nobody(server: Running, listener: Listener, name: str) -> None:
    """Checked, converted, linted and registered, a hostile schema soon gets an answer that is not a server error."""
    language, text = SCHEMAS[name]()
    text = text.replace("LISTENER", listener.url)
    requests: list[tuple[str, dict[str, Any]]] = [
        ("/api/check", {"format": language, "policy": "FULL", "schema": text, "against": [{"schema": text}]}),
        ("/api/convert", {"format": language, "to": "avro" if language != "avro" else "json", "schema": text}),
        ("/api/lint", {"format": language, "schema": text}),
    ]
    if language in {"avro", "json", "protobuf"}:
        requests.append((f"/subjects/{quote(name)}/versions", {"schema": text, "schemaType": language.upper()}))
    for path, body in requests:
        with limit_time(SECONDS, time.monotonic):
            status, answer = post(server, path, body)
        assert status in {200, 201, 400, 409, 413, 422, 503}, (path, status, answer[-300:])
        assert b"root:" not in answer
    assert call(f"{server.url}/schemas/ids/1").status == 200


# --- bodies -----------------------------------------------------------------------------------------------------------


@cache
def zeros() -> bytes:
    """Return half a gigabyte of zeros, compressed to half a megabyte."""
    return gzip.compress(bytes(512 * 2**20), 1)


BODIES: dict[str, Callable[[], tuple[bytes, tuple[str, ...]]]] = {
    "gzip bomb": lambda: (zeros(), ("Content-Type: application/json", "Content-Encoding: gzip")),
    "unknown coding": lambda: (b"{}", ("Content-Type: application/json", "Content-Encoding: gzip, gzip, br, zstd")),
    "deep arrays": lambda: (b"[" * 2_000_000, ("Content-Type: application/json",)),
    "deep objects": lambda: (b'{"a":' * 1_000_000, ("Content-Type: application/json",)),
    "many keys": lambda: (
        b"{" + b",".join(b'"%d":0' % n for n in range(90_000)) + b"}",
        ("Content-Type: application/json",),
    ),
    "one key": lambda: (b"{" + b",".join([b'"schema":"x"'] * 90_000) + b"}", ("Content-Type: application/json",)),
    "a long number": lambda: (
        b'{"schema":"\\"int\\"","id":' + b"9" * 3_000_000 + b"}",
        ("Content-Type: application/json",),
    ),
    "a large exponent": lambda: (b'{"schema":"\\"int\\"","id":1e999999999}', ("Content-Type: application/json",)),
    "half a surrogate": lambda: (
        b'{"schema":"\\"int\\"","metadata":{"properties":{"\\ud800":"\\udfff"}}}',
        ("Content-Type: application/json",),
    ),
    "no UTF-8": lambda: (b'{"schema":"\xff\xfe"}', ("Content-Type: application/json",)),
    "UTF-32": lambda: ('{"schema":"int"}'.encode("utf-32"), ("Content-Type: application/json; charset=utf-32",)),
    "an unknown charset": lambda: (b"{}", ("Content-Type: application/json; charset=" + "x" * 5000,)),
    "many parts": lambda: (b"--b\r\n" * 100_000, ("Content-Type: multipart/form-data; boundary=b",)),
    "many fields": lambda: (
        b"&".join(b"a%d=b" % n for n in range(100_000)),
        ("Content-Type: application/x-www-form-urlencoded",),
    ),
}


@pytest.mark.parametrize("name", BODIES)
def test_hostile_bodies_are_refused(server: Running, name: str) -> None:
    """Decompression bombs, deep nesting, floods and broken texts get a client error in every dialect."""
    body, headers = BODIES[name]()
    for method, path in (
        ("POST", "/subjects/bodies/versions"),
        ("POST", "/api/check"),
        ("POST", "/v1/groups"),
        ("PUT", "/schema-repo/bodies"),
        ("PUT", "/schemagroups/bodies"),
        ("POST", "/schema-registry/v1/subject/bodies/schema/S"),
        ("POST", "/openschema/subjects/bodies/versions"),
    ):
        for _ in range(6):
            with limit_time(SECONDS, time.monotonic):
                status, answer = request(server, method, path, body, *headers)
            if status != 503 or path != "/api/check":  # on a busy machine the check process may start too slowly
                break
        taken = {200, 201} if path in {"/schema-repo/bodies", "/schemagroups/bodies"} or name == "one key" else set()
        assert status in {0, 400, 409, 413, 415, 422, *taken}, (path, answer[-300:])
        assert len(answer) < 10_000, path


# --- requests ---------------------------------------------------------------------------------------------------------

SMUGGLED = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
SMUGGLING: dict[str, bytes] = {
    "both lengths": b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two lengths": b"Content-Length: 0\r\nContent-Length: 46\r\n\r\n" + SMUGGLED,
    "a list of lengths": b"Content-Length: 0, 46\r\n\r\n" + SMUGGLED,
    "a signed length": b"Content-Length: +0\r\n\r\n" + SMUGGLED,
    "a negative length": b"Content-Length: -1\r\n\r\n" + SMUGGLED,
    "a hexadecimal length": b"Content-Length: 0x0\r\n\r\n" + SMUGGLED,
    "a huge length": b"Content-Length: 99999999999999999999999\r\n\r\n" + SMUGGLED,
    "a blank before the colon": b"Content-Length : 46\r\n\r\n" + SMUGGLED,
    "a folded header": b"X: a\r\n Content-Length: 46\r\n\r\n" + SMUGGLED,
    "a folded coding": b"Transfer-Encoding:\r\n chunked\r\nContent-Length: 46\r\n\r\n" + SMUGGLED,
    "a coding that is none": b"Transfer-Encoding: xchunked\r\n\r\n" + SMUGGLED,
    "chunked and more": b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "two codings": b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n" + SMUGGLED,
    "a chunk of bad size": b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + SMUGGLED,
    "a chunk of huge size": b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + SMUGGLED,
    # If one read gets all of it, it is a complete request, and the connection would stay open.
    "a long chunk extension": (
        b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n0;" + b"a" * 200_000 + b"\r\n\r\n"
    ),
    "a bare line feed": b"X: a\nTransfer-Encoding: chunked\r\nContent-Length: 46\r\n\r\n" + SMUGGLED,
    "a bare carriage return": b"X: a\rTransfer-Encoding: chunked\r\nContent-Length: 46\r\n\r\n" + SMUGGLED,
    "a zero byte": b"X: a\x00b\r\n\r\n",
}


@pytest.mark.parametrize("name", SMUGGLING)
def test_no_request_hides_in_another(server: Running, name: str) -> None:
    """A request of unclear length is refused or read as one body, never as a second request."""
    rest = SMUGGLING[name]
    with suppress(TimeoutError):
        # A body may take a minute. Without an answer in 30 s, the server waits for more of the body.
        answer = send(server, b"POST /api/check HTTP/1.1\r\nHost: x\r\n" + rest, seconds=30)
        assert answer.count(b"HTTP/1.1 ") <= 1, answer
        assert b" 500 " not in answer
        if answer[9:12] != b"503":  # 503: the server gave up the request
            return
    assert "half" in name or "length" in name, f"{name}: the server waits for more"


PATHS = [
    "/%2e%2e/%2e%2e/etc/passwd",
    "/subjects/%2e%2e%2f%2e%2e%2fetc%2fpasswd/versions",
    "/../../etc/passwd",
    "//etc/passwd",
    "/subjects//versions",
    "/subjects/%00/versions",
    "/subjects/a%00.json/versions",
    "/subjects/%c0%ae%c0%ae/versions",
    "/subjects/%ff%fe/versions",
    "/subjects/%u0041/versions",
    "/subjects/%/versions",
    "/subjects/..%5c..%5cwindows/versions",
    "/subjects/%252e%252e/versions",
    "/_docs/../../etc/passwd",
    "/_docs/%2e%2e/%2e%2e/openapi.json",
    "/schema?uri=file:///etc/passwd",
    "/schema?uri=http://127.0.0.1:1/",
    "/subjects/" + "a/" * 20_000,
    "/subjects/" + "%2f" * 10_000 + "/versions",
    "/subjects?subjectPrefix=" + "%" * 10_000,
    "/subjects?" + "a=b&" * 10_000,
    "/subjects/\u202e\u0430dmin/versions".encode().decode("latin-1"),
    "http://127.0.0.1:1/subjects/x/versions",
    "*",
]


@pytest.mark.parametrize("number", range(len(PATHS)))
def test_paths_lead_nowhere_else(server: Running, number: int) -> None:
    """Dots, slashes, zero bytes, invalid UTF-8 and other spellings in a path are ordinary names or refused."""
    for method in ("GET", "DELETE", "OPTIONS"):
        status, answer = request(server, method, PATHS[number])
        assert status in {200, 204, 400, 404, 405, 406, 414, 422, 431}, answer[-300:]
        assert b"root:" not in answer
    assert call(f"{server.url}/subjects").body == call(f"{server.url}/subjects").body


HEADERS = [
    "Accept: " + ",".join(f"a/b{n};q=0.1" for n in range(4000)),
    "Accept: " + "*/*;" * 15_000,
    "Accept-Encoding: " + ",".join(f"x{n};q=1e{n}" for n in range(5000)),
    "If-None-Match: " + ",".join('"a"' for _ in range(15_000)),
    "If-None-Match: " + '"' * 60_000,
    "Authorization: Basic " + "A" * 60_000,
    "Authorization: Bearer " + "eyJhbGciOiJub25lIn0." * 3000,
    "Cookie: " + "a=b;" * 15_000,
    "X-Request-ID: " + "a" * 60_000,
    "X-Forwarded-For: " + ",".join("127.0.0.1" for _ in range(6000)),
    "Content-Type: " + ";".join(f"a{n}=b" for n in range(8000)),
    "Traceparent: 00-" + "f" * 60_000,
    "Host: " + "a" * 60_000,
    "Expect: 100-continue",
    "Range: bytes=" + ",".join(f"{n}-{n}" for n in range(9000)),
    "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: " + "A" * 50_000,
]


@pytest.mark.parametrize("number", range(len(HEADERS)))
def test_hostile_headers_cost_nothing(server: Running, number: int) -> None:
    """Header values of maximal length are parsed in linear time."""
    for path in ("/subjects", "/schemas/ids/1", "/schema-repo-browser", "/schemagroups", "/v1/groups"):
        with limit_time(SECONDS / 4, time.monotonic):
            status, answer = request(server, "GET", path, b"", HEADERS[number])
        assert status in {200, 400, 401, 403, 406, 415, 431}, answer[-300:]
        assert len(answer) < 10_000


def test_nothing_that_a_stranger_names_is_asked(server: Running, listener: Listener) -> None:
    """The server sends no request to sinks, exporter destinations, key servers and webhooks named in bodies."""
    url = listener.url
    requests = [
        ("/subscriptions", {"sink": url, "protocol": "HTTP", "sinkcredential": {"credentialtype": "PLAIN"}}),
        ("/exporters", {"name": "e", "config": {"schema.registry.url": url}}),
        (
            "/dek-registry/v1/keks",
            {"name": "k", "kmsType": "hcvault", "kmsKeyId": f"{url}/transit/keys/k", "shared": True},
        ),
        (
            "/dek-registry/v1/keks",
            {
                "name": "l",
                "kmsType": "aws-kms",
                "kmsKeyId": "arn:aws:kms:x:1:key/k",
                "kmsProps": {"endpoint": url, "endpoint_url": url},
                "shared": True,
            },
        ),
        ("/dek-registry/v1/keks/k/deks", {"subject": "s", "version": 1}),
        ("/dek-registry/v1/keks/l/deks", {"subject": "s", "version": 1}),
    ]
    for path, body in requests:
        status, answer = post(server, path, body)
        assert status < 500 or b"error_code" in answer, answer[-300:]
    time.sleep(0.2)
    assert listener.came == 0


def test_rules_of_a_schema_do_not_run_here(server: Running) -> None:
    """CEL and JSONata rules that loop or grow are stored with their schema and not run."""
    programs = {
        "CEL": "[0].map(x, " * 30 + "1" + ")" * 30,
        "JSONATA": "($f := function($x) { $f($x & $x) }; $f('a'))",
    }
    for kind, program in programs.items():
        rule = {"name": "r", "kind": "TRANSFORM", "mode": "UPGRADE", "type": kind, "expr": program}
        body = {"schema": '"int"', "ruleSet": {"migrationRules": [rule]}}
        with limit_time(SECONDS / 4, time.monotonic):
            status, _ = post(server, f"/subjects/rules-{kind}/versions", body)
        assert status in {200, 422}


def test_few_requests_wait_on_one_connection(server: Running) -> None:
    """Pipelined requests are answered in order. A connection that floods the server with them is closed."""
    one = b"GET /subjects?x=%d HTTP/1.1\r\nHost: x\r\n\r\n"
    last = b"GET /health/live HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    assert send(server, b"".join(one % n for n in range(90)) + last).count(b"HTTP/1.1 200 OK") == 91
    assert send(server, b"".join(one % n for n in range(1000, 5000)) + last).count(b"HTTP/1.1 200 OK") < 91
    assert 'stele_connections_closed_total{reason="pipelined"} ' in call(f"{server.url}/metrics").body


def test_a_reader_that_takes_nothing_costs_nothing(server: Running) -> None:
    """Answers that a client does not read take no memory: the server stops reading its connection."""
    before = memory_of(server)
    port = int(server.url.rpartition(":")[2])
    connections = []
    for _ in range(20):
        connection = socket.socket()
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect(("127.0.0.1", port))
        connection.setblocking(False)
        with suppress(BlockingIOError):
            connection.send(b"GET /_docs/confluent/openapi.json HTTP/1.1\r\nHost: x\r\n\r\n" * 2000)
        connections.append(connection)
    time.sleep(2)
    assert memory_of(server) - before < 150 * 2**20
    for connection in connections:
        connection.close()

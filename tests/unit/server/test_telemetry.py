"""OpenTelemetry: the data about requests, verdicts, appends and metrics that an OTLP receiver gets."""

from __future__ import annotations

import gzip
import http.server
import subprocess
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from opentelemetry import trace
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider

from stele.client import Schema, SchemaRegistryClient
from stele.client.trace_context import make_trace_headers
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.settings import load_settings

RECORD = '{"type": "record", "name": "R", "fields": [%s]}'
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Receiver:
    """The received bodies, by path."""

    def __init__(self) -> None:
        self.bodies: dict[str, list[bytes]] = defaultdict(list)

    def list_spans(self) -> list[Any]:
        """Return all spans, with their names as text."""
        requests = map(ExportTraceServiceRequest.FromString, self.bodies["/v1/traces"])
        return [
            span
            for each in requests
            for row in each.resource_spans
            for scope in row.scope_spans
            for span in scope.spans
        ]

    def last_metrics(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the attributes of the service, and the metrics sent last by name."""
        (row,) = ExportMetricsServiceRequest.FromString(self.bodies["/v1/metrics"][-1]).resource_metrics
        service = {pair.key: pair.value.string_value for pair in row.resource.attributes}
        return service, {metric.name: metric for scope in row.scope_metrics for metric in scope.metrics}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """An OTLP receiver on its own port, which the environment names."""
    received = Receiver()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            received.bodies[self.path].append(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment=test")
    yield received
    server.shutdown()
    server.server_close()


@contextmanager
def serving(**settings: Any) -> Iterator[httpx.BaseTransport]:
    """Run a server in this process that sends its data when it stops."""
    server = InProcessServer(load_settings({"store": "memory:", "otel": True, **settings}))
    yield InProcessTransport(server)
    server.stop()


def attributes_of(span: Any) -> dict[str, Any]:
    """Return attributes by name."""
    return {pair.key: pair.value.string_value or pair.value.int_value for pair in span.attributes}


def test_a_registration_is_one_trace(receiver: Receiver) -> None:
    """The caller's trace continues with spans of the request, the comparison and the append."""
    with serving() as transport, SchemaRegistryClient("http://here", transport=transport) as client:
        client.register("s", Schema(RECORD % '{"name": "a", "type": "int"}'))
        http = httpx.Client(transport=transport, base_url="http://here")
        body = {"schema": RECORD % '{"name": "a", "type": "long"}'}
        response = http.post("/subjects/s/versions?secret=x", json=body, headers={"traceparent": PARENT})
        assert response.status_code == 200
    spans = {span.name: span for span in receiver.list_spans() if span.trace_id.hex() in PARENT}
    assert set(spans) == {"POST /subjects/{subject}/versions", "stele.verdict", "stele.append"}
    request = spans["POST /subjects/{subject}/versions"]
    assert request.parent_span_id.hex() in PARENT
    assert {spans[name].parent_span_id for name in ("stele.verdict", "stele.append")} == {request.span_id}
    attributes = attributes_of(request)
    assert attributes["http.response.status_code"] == 200
    assert (attributes["stele.dialect"], attributes["stele.subject"], attributes["url.path"]) == (
        "confluent",
        "s",
        "/subjects/s/versions",
    )
    assert "secret" not in str(request)


def test_refusals_and_hot_reads_are_traced(receiver: Receiver) -> None:
    """The span of a refusal names its error and is no failure of the server; a schema by id has a span, too."""
    with serving() as transport, httpx.Client(transport=transport, base_url="http://here") as http:
        http.post("/subjects/s/versions", json={"schema": '"int"'})
        assert http.get("/schemas/ids/1").status_code == 200
        assert http.get("/subjects/t/versions").status_code == 404
    spans = {span.name: span for span in receiver.list_spans()}
    assert "GET /schemas/ids/{schema_id}" in spans or "GET /schemas/ids/{id}" in spans
    refused = next(span for span in spans.values() if attributes_of(span).get("http.response.status_code") == 404)
    assert attributes_of(refused)["error.type"] == "SubjectNotFound"
    assert refused.status.code == 0


def test_metrics_are_those_of_the_page(receiver: Receiver) -> None:
    """Names, labels and numbers are those of /metrics; buckets are counted as OpenTelemetry does."""
    with serving() as transport, httpx.Client(transport=transport, base_url="http://here") as http:
        http.post("/subjects/s/versions", json={"schema": '"int"'})
        for _ in range(3):
            http.get("/subjects")
    service, metrics = receiver.last_metrics()
    assert (service["service.name"], service["deployment.environment"]) == ("stele", "test")
    assert metrics["stele_schemas"].gauge.data_points[0].as_double == 1
    listed = next(
        point
        for point in metrics["stele_requests"].sum.data_points
        if attributes_of(point) == {"dialect": "confluent", "route": "/subjects", "method": "GET", "status": "200"}
    )
    assert listed.as_double == 3
    assert metrics["stele_requests"].sum.is_monotonic
    timed = next(
        point
        for point in metrics["stele_request_seconds"].histogram.data_points
        if attributes_of(point)["route"] == "/subjects"
    )
    assert (timed.count, sum(timed.bucket_counts), len(timed.bucket_counts)) == (3, 3, len(timed.explicit_bounds) + 1)


def test_the_environment_turns_parts_off(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_TRACES_EXPORTER and OTEL_METRICS_EXPORTER can be none, and OTEL_SERVICE_NAME names the service."""
    monkeypatch.setenv("OTEL_TRACES_EXPORTER", "none")
    monkeypatch.setenv("OTEL_SERVICE_NAME", "registry-1")
    with serving() as transport, httpx.Client(transport=transport, base_url="http://here") as http:
        http.get("/subjects")
    assert set(receiver.bodies) == {"/v1/metrics"}
    assert receiver.last_metrics()[0]["service.name"] == "registry-1"
    receiver.bodies.clear()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    with serving() as transport, httpx.Client(transport=transport, base_url="http://here") as http:
        assert http.get("/subjects").status_code == 200
    assert not receiver.bodies


def test_the_client_hands_its_trace_on() -> None:
    """A request within a span of the caller's program carries its trace; outside of a span nothing is added."""
    assert "traceparent" not in make_trace_headers()
    requests: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, json=[])

    tracer = TracerProvider().get_tracer("program")
    transport = httpx.MockTransport(answer)
    with SchemaRegistryClient("http://here", transport=transport) as client, tracer.start_as_current_span("work"):
        client.subjects()
        span = trace.get_current_span().get_span_context()
    assert requests[0].headers["traceparent"].split("-")[1:3] == [f"{span.trace_id:032x}", f"{span.span_id:016x}"]


_WITHOUT_EXTRA = """
import sys
class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("opentelemetry"):
            raise ModuleNotFoundError(name, name=name)
sys.meta_path.insert(0, Missing())
sys.argv = ["stele", "serve", "--port", "0", "--store", "memory:"]
from stele.cli import main
main()
"""


def test_a_missing_extra_is_named(tmp_path: Path) -> None:
    """A missing extra is reported in one line before a port is bound, with exit code 2."""
    (tmp_path / "stele.toml").write_text("[server]\notel = true\n")
    done = subprocess.run(
        [sys.executable, "-c", _WITHOUT_EXTRA], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "error: OpenTelemetry is not installed: pip install 'stele-registry[otel]'\n"


def test_nothing_is_loaded_when_it_is_off() -> None:
    """A server without the setting, and a client in a program without OpenTelemetry, do not import it."""
    parts = ("opentelemetry.sdk", "opentelemetry.trace", "opentelemetry.exporter")  # another library loads the names
    code = (
        "import sys\nfrom stele.cli.offline import open_offline\n"
        "from stele.client import Schema, SchemaRegistryClient\n"
        "with open_offline('memory:') as transport, SchemaRegistryClient('http://x', transport=transport) as client:\n"
        "    client.register('s', Schema('\"int\"'))\n"
        "sys.exit(str([name for name in sys.modules if name.startswith(PARTS)] or ''))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code.replace("PARTS", repr(parts))], capture_output=True, text=True, check=False
    )
    assert done.stderr.strip() == ""

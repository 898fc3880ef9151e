"""OpenTelemetry: traces of requests and the server's metrics, sent by OTLP over HTTP.

A trace has a span for the request. Below it are spans for the comparison of schemas (`stele.verdict`) and for the wait
until the log has the record (`stele.append`). A caller's `traceparent` is continued. The standard OTEL_* variables set
the destination of the data, the share of traces that are kept and the name of the service. Nothing here is imported
unless the setting `otel` is on.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

from stele import __version__
from stele.apis.http.requests import ERROR
from stele.errors import NotInstalled, SteleError
from stele.server.asgi import App, AsgiScope, Message, Receive, Send

if TYPE_CHECKING:
    from opentelemetry.trace import Span
    from prometheus_client import Metric

try:
    from opentelemetry import propagate, trace
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor
except ModuleNotFoundError:
    raise NotInstalled("OpenTelemetry", "otel") from None

_SCOPE: Final = "stele"


class Telemetry:
    """The traces and metrics of one server process. Belongs to one event loop; `start` and `stop` run in it.

    Args:
        collect_metrics: Returns the current metrics of this process.
    """

    def __init__(self, collect_metrics: Callable[[], Iterable[Metric]]) -> None:
        is_enabled = os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true"
        resource = Resource.create(
            {
                **({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "stele"}),
                "service.version": __version__,
                "service.instance.id": f"{os.uname().nodename}-{os.getpid()}",
            }
        )
        self._provider = TracerProvider(resource=resource)
        if is_enabled and os.environ.get("OTEL_TRACES_EXPORTER") != "none":
            self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer(_SCOPE, __version__)
        self._collect = collect_metrics
        self._resource = resource
        sends_metrics = is_enabled and os.environ.get("OTEL_METRICS_EXPORTER") != "none"
        self._exporter = OTLPMetricExporter() if sends_metrics else None
        self._seconds = float(os.environ.get("OTEL_METRIC_EXPORT_INTERVAL") or 60_000) / 1000
        self._thread = ThreadPoolExecutor(1, "stele-telemetry")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start to send metrics."""
        if self._exporter is not None:
            self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Send the remaining data, and stop."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task
            await self.send_metrics()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._thread, self._provider.shutdown)
        self._thread.shutdown()

    async def send_metrics(self) -> None:
        """Send the current metrics. When they do not arrive, the exporter logs that, and they are lost."""
        from stele.server.otlp_metrics import to_metrics_data

        if self._exporter is not None:
            data = to_metrics_data(self._collect(), self._resource, _SCOPE)
            await asyncio.get_running_loop().run_in_executor(self._thread, self._exporter.export, data)

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._seconds)
            await self.send_metrics()

    def open_span(self, name: str, attributes: Mapping[str, int | str]) -> AbstractContextManager[object]:
        """Return a span below that of the current request; a no-op where no request is traced."""
        if not trace.get_current_span().is_recording():
            return nullcontext()
        return self._tracer.start_as_current_span(name, attributes=dict(attributes))

    def trace_app(self, dialect: str, app: App) -> App:
        """Return a dialect's application with a span around each request."""

        async def trace_request(scope: AsgiScope, receive: Receive, send: Send) -> None:
            parent = propagate.extract(
                {name.decode("latin-1"): text.decode("latin-1") for name, text in scope["headers"]}
            )
            with self._tracer.start_as_current_span(
                scope["method"],
                parent,
                trace.SpanKind.SERVER,
                _describe_request(dialect, scope),
                record_exception=False,
            ) as span:

                async def send_noting(message: Message) -> None:
                    if message["type"] == "http.response.start":
                        _note_answer(span, scope, message["status"])
                    await send(message)

                await app(scope, receive, send_noting)

        return trace_request


def _describe_request(dialect: str, scope: AsgiScope) -> dict[str, str]:
    """Return the attributes of OpenTelemetry's conventions for a request, without its query, which may hold secrets."""
    client = scope.get("client")
    return {
        "http.request.method": scope["method"],
        "url.path": scope["path"],
        "url.scheme": scope["scheme"],
        "network.protocol.version": scope["http_version"],
        "stele.dialect": dialect,
        **({"client.address": client[0]} if client else {}),
    }


def _note_answer(span: Span, scope: AsgiScope, status: int) -> None:
    route = str(scope.get("path_template") or "")
    if route:
        span.update_name(f"{scope['method']} {route}")
        span.set_attribute("http.route", route)
    span.set_attribute("http.response.status_code", status)
    subject: Any = (scope.get("path_params") or {}).get("subject")
    if subject:
        span.set_attribute("stele.subject", str(subject))
    error = scope.get(ERROR)
    if error is not None:
        span.set_attribute("error.type", type(error).__name__)
    if status >= 500:
        span.set_status(trace.StatusCode.ERROR, str(error) if isinstance(error, SteleError) else None)

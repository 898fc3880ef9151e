"""HTTP headers that continue the caller's trace in the registry."""

from __future__ import annotations

import sys


def make_trace_headers() -> dict[str, str]:
    """Return `traceparent` and related headers of the current span; nothing in a program without OpenTelemetry.

    OpenTelemetry's setting OTEL_PROPAGATORS chooses the headers; the default are those of the W3C.
    """
    if "opentelemetry.trace" not in sys.modules:  # then no span can be open
        return {}
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return headers

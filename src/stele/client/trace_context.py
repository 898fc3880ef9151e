"""The headers by which a registry continues the trace of its caller."""

from __future__ import annotations

import sys


def make_trace_headers() -> dict[str, str]:
    """Return `traceparent` and the like of the current span; nothing in a program that does not use OpenTelemetry.

    Which headers these are is a setting of OpenTelemetry (OTEL_PROPAGATORS); the W3C's by default.
    """
    if "opentelemetry.trace" not in sys.modules:  # nobody can have opened a span
        return {}
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return headers

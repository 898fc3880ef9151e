"""The process: uvicorn with one or several workers over the same settings."""

from __future__ import annotations

import os
import signal
import sys
import tempfile

import msgspec
import uvicorn

from stele.errors import InvalidRequest
from stele.server.app import Server
from stele.server.logs import configure_logs
from stele.server.settings import Settings

_HANDED_DOWN = "STELE_RESOLVED_SETTINGS"


def worker() -> Server:
    """The application of a worker process, with the settings its parent handed down."""
    settings = msgspec.json.decode(os.environ[_HANDED_DOWN], type=Settings)
    configure_logs(settings.log_level, settings.log_format)
    return Server(settings)


def serve(settings: Settings) -> None:
    """Serve until SIGTERM or SIGINT. Raises `InvalidRequest` when the address cannot be bound."""
    # The server raises the signal again when it has shut down in order: that is a good end, not a death by signal.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    configure_logs(settings.log_level, settings.log_format)
    os.environ[_HANDED_DOWN] = msgspec.json.encode(settings).decode("utf-8")
    with tempfile.TemporaryDirectory(prefix="stele-metrics-") as metrics_directory:
        if settings.workers > 1:
            # Read by prometheus-client when a worker imports it.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_directory
        try:
            uvicorn.run(
                "stele.server.run:worker",
                factory=True,
                host=settings.host,
                port=settings.port,
                workers=settings.workers,
                loop="uvloop",
                http="httptools",
                lifespan="on",
                access_log=False,
                log_level="warning",
                server_header=False,
                timeout_graceful_shutdown=settings.shutdown_seconds,
            )
        except OSError as error:
            raise InvalidRequest(f"cannot listen on {settings.host}:{settings.port}: {error.strerror}") from error

"""The server process: uvicorn with one or several workers over the same settings."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog
import uvicorn
from uvicorn import _subprocess
from uvicorn.config import STARTUP_FAILURE
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import SIGNALS

from stele.errors import InvalidRequest, StoreError
from stele.server.authentication import open_methods
from stele.server.browser_sessions import KEY_VARIABLE
from stele.server.exposure import check_exposure
from stele.server.log_config import configure_logs
from stele.server.rate_limits import share_rates
from stele.server.service_manager import notify_service_manager, take_sockets
from stele.server.settings import LoadedSettings, ServerSettings
from stele.server.tls import ServerTls
from stele.service.session_seal import make_session_key
from stele.storage import open_log
from stele.storage.drivers import hide_credentials
from stele.storage.heap import return_memory

if TYPE_CHECKING:
    from stele.server.app import Server
    from stele.service.early_state import EarlyState

_logger = structlog.get_logger("stele.server")

_HANDED_DOWN = "STELE_RESOLVED_SETTINGS"
_SWITCH_SECONDS = 0.001
"""Seconds that a parsing or comparing thread keeps the interpreter lock when the event loop wants it."""
_LIFESPAN_MODULE = "on"
"""The module of uvicorn that logs a failed start.

Its log is suppressed, since the caller of `run_server` reports the reason.
"""
_NOTIFY_SECONDS = 1
_WORKER_SECONDS = 30
"""Seconds without a sign of life after which a worker is replaced. On a very busy machine a worker may be slow."""
_THREADS_END_SECONDS = 1.0
"""Seconds that threads of the store's libraries may take to end after the store is closed."""
_COLLECTED_AFTER = (5_000, 10, 20)
"""Thresholds of the garbage collector.

A full collection stops all threads, so it runs only after a million new objects.
"""


def make_worker_app() -> Server:
    """Return the application of a worker process, with the settings passed by its parent."""
    from stele.server.app import Server

    global _app  # noqa: PLW0603 - uvicorn makes the application and does not hand it out
    settings = msgspec.json.decode(os.environ[_HANDED_DOWN], type=LoadedSettings)
    configure_logs(settings.log_level, settings.log_format)
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(*_COLLECTED_AFTER)
    _app = Server(settings, _early)
    return _app


_app: Server | None = None
"""The application of this process; None until it is created."""


_early: EarlyState | None = None
"""State of the log that this process loaded for the workers that are forked from it."""


_tls: ServerTls | None = None
"""The TLS contexts of this process; None without TLS."""


def _make_tls_context(config: uvicorn.Config, make_default: Callable[[], ssl.SSLContext]) -> ssl.SSLContext:
    """Return the TLS context of this process, with the settings passed by its parent."""
    global _tls  # noqa: PLW0603 - as `_app`
    _tls = ServerTls(msgspec.json.decode(os.environ[_HANDED_DOWN], type=LoadedSettings))
    return _tls.context


async def _notify_alive() -> None:
    """Report to the service manager, once a second, that this process serves. Also reload changed certificates."""
    if _tls is not None:
        _tls.reload_when_changed()
    if _app is not None and _app.is_ready:
        notify_service_manager("READY=1\nWATCHDOG=1")


def _raise_start_failure() -> None:
    """Raise the error that the start failed with, if it failed."""
    if _app is not None and _app.start_failure is not None:
        raise _app.start_failure


def _end_process(*_: object) -> None:
    """End this process in order. Raises the error that the start failed with, if it failed."""
    _raise_start_failure()
    sys.exit(0)


def run_server(settings: ServerSettings, announce: Callable[[str], None] = lambda line: None) -> None:
    """Serve until SIGTERM or SIGINT.

    Sockets that a service manager passes replace `host` and `port`; one with the port of a single dialect serves that
    dialect. Raises `InvalidRequest` when the address cannot be bound, `StoreError` when the store cannot be opened or
    read, `NotInstalled` for the setting `otel` without its extra.

    Args:
        settings: What to serve, and where.
        announce: Called with a line for each address, once the addresses are bound and the store could be opened.
    """
    # uvicorn raises the signal again after an orderly shutdown. The exit status must be 0 then, not a signal.
    signal.signal(signal.SIGTERM, _end_process)
    configure_logs(settings.log_level, settings.log_format)
    os.environ[_HANDED_DOWN] = msgspec.json.encode(settings).decode("utf-8")
    if settings.otel:
        import stele.server.telemetry  # noqa: F401 - raises `NotInstalled` before a port is bound
    with (
        tempfile.TemporaryDirectory(prefix="stele-metrics-") as metrics_directory,
        contextlib.ExitStack() as bound,
    ):
        if settings.workers > 1:
            # Read by prometheus-client when it is imported, so this comes before the application.
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = metrics_directory
        ports = _parse_ports(settings)
        open_methods(settings, {port: dialect for port, dialect in ports.items() if dialect})
        if settings.tls_certificate:
            ServerTls(settings)  # These raise before anything listens; each worker opens its own.
        config = _make_config(settings)
        inherited_sockets = [bound.enter_context(taken) for taken in take_sockets()]
        own = [
            bound.enter_context(_bind_socket(settings.host, port)) for port in _list_unserved(ports, inherited_sockets)
        ]
        sockets = [*inherited_sockets, *own]
        check_exposure(settings, [_describe_place(each, ports) for each in sockets])
        asyncio.run(_prepare_store(settings))
        _announce_sockets(settings, sockets, ports, announce)
        if settings.workers > 1:
            os.environ[KEY_VARIABLE] = make_session_key().hex()  # Each worker accepts the sessions of the others.
            _fork_loaded_workers()
            workers = Multiprocess(config, sockets=sockets)
            workers.run()
            if any(each.process.exitcode == STARTUP_FAILURE for each in workers.processes):
                raise StoreError("the workers could not start: the lines above say why")
            return
        server = uvicorn.Server(config)
        logging.getLogger("uvicorn.error").addFilter(lambda record: record.module != _LIFESPAN_MODULE)
        with contextlib.suppress(KeyboardInterrupt):
            try:
                server.run(sockets)
            except SystemExit:  # uvicorn exits by itself when the start fails
                _raise_start_failure()
                raise
        if not server.started:
            _end_process()


def _make_config(settings: ServerSettings) -> uvicorn.Config:
    return uvicorn.Config(
        "stele.server.run:make_worker_app",
        factory=True,
        workers=settings.workers,
        loop="auto",  # uvloop where it is installed
        http="stele.server.connections:BoundedProtocol",
        ws="none",  # otherwise an installed library for web sockets bypasses the connection limits
        lifespan="on",
        access_log=False,
        log_level="error",
        server_header=False,
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
        timeout_keep_alive=settings.idle_seconds,
        timeout_graceful_shutdown=settings.shutdown_seconds,
        timeout_worker_healthcheck=_WORKER_SECONDS,
        callback_notify=_notify_alive,
        timeout_notify=_NOTIFY_SECONDS,
        ssl_context_factory=_make_tls_context if settings.tls_certificate else None,
    )


def _list_unserved(ports: dict[int, str], sockets: list[socket.socket]) -> list[int]:
    """Return the ports for which the service manager passed no socket.

    Each socket without the port of a single dialect stands for the port of all dialects.
    """
    served = {ports.get(_port_of(taken), "") for taken in sockets}
    return [port for port, dialect in ports.items() if dialect not in served]


def _port_of(bound: socket.socket) -> int:
    """Return the TCP port of a socket, -1 for a Unix socket."""
    address = bound.getsockname()
    return address[1] if isinstance(address, tuple) else -1


def _describe_place(bound: socket.socket, ports: dict[int, str]) -> tuple[str, str]:
    """Return the address of a socket, '' for a Unix socket, and the dialect that its port belongs to."""
    address = bound.getsockname()
    return (address[0] if isinstance(address, tuple) else "", ports.get(_port_of(bound), ""))


def _announce_sockets(
    settings: ServerSettings, sockets: list[socket.socket], ports: dict[int, str], announce: Callable[[str], None]
) -> None:
    store = hide_credentials(settings.store)
    scheme = "https" if settings.tls_certificate else "http"
    for bound in sockets:
        port = _port_of(bound)
        place = f"unix:{bound.getsockname()}" if port < 0 else f"{scheme}://{settings.host}:{port}"
        dialect = ports.get(port, "")
        announce(f"{dialect} alone on {place}" if dialect else f"Stele on {place}, log in {store}")


async def _prepare_store(settings: ServerSettings) -> None:
    """Open and close a store, which creates a missing one. With several workers, load the state that they share.

    Raises `StoreError`, `InvalidRequest`.
    """
    global _early  # noqa: PLW0603 - the workers find it in the memory of their parent
    log = await open_log(settings.store, Path(settings.state_dir))
    try:
        if settings.workers > 1 and not settings.as_of and _can_fork():
            from stele.service.early_state import load_early_state

            gc.disable()
            _early = await load_early_state(log)
    finally:
        gc.enable()
        await log.close()


def _can_fork() -> bool:
    """Return whether system libraries work after a fork."""
    return sys.platform == "linux"


def _parse_ports(settings: ServerSettings) -> dict[int, str]:
    """Return dialects by port; '' for the port of all dialects."""
    from stele.server.dialects import parse_ports

    own = parse_ports(settings.listen)
    if settings.port in own:
        raise InvalidRequest(f"listen: port {settings.port} is already the port of all dialects")
    return {settings.port: "", **own}


def _fork_loaded_workers() -> None:
    """Load the application once, and make uvicorn fork its workers from this process instead of starting new ones.

    A worker then shares the memory of all modules and of the loaded state of the log, and starts in a tenth of the
    time. The garbage collector leaves frozen objects alone; otherwise it would write to their memory pages.

    New workers are started on other systems than Linux, whose system libraries do not work after a fork. The same
    happens when a library that opened the store still has a thread: a worker would inherit the locks of that thread,
    and they would never be released.
    """
    global _early  # noqa: PLW0603 - as `_prepare_store`
    if not _can_fork():
        return
    import stele.server.app  # noqa: F401 - loaded for the workers

    if not _is_single_threaded():
        _logger.warning("workers do not share memory: a library keeps a thread in this process")
        _early = None
        return

    def restore_signals() -> None:
        for signal_number in SIGNALS:  # the handlers of the parent only queue signals for its loop
            signal.signal(signal_number, signal.SIG_DFL)

    os.register_at_fork(after_in_child=restore_signals)
    share_rates()
    return_memory()
    gc.freeze()
    _subprocess.spawn = multiprocessing.get_context("fork")  # type: ignore[assignment]  # uvicorn has no setting for it


def _is_single_threaded() -> bool:
    """Return whether no thread but this one is left; ending threads get a second to end."""
    until = time.monotonic() + _THREADS_END_SECONDS
    while len(os.listdir("/proc/self/task")) > 1:
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def _bind_socket(host: str, port: int) -> socket.socket:
    """Return a socket bound to an address, which worker processes share. Raises `InvalidRequest` when binding fails."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family=family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InvalidRequest(f"cannot listen on {host}:{port}: {error.strerror}") from error
    listener.set_inheritable(True)
    return listener

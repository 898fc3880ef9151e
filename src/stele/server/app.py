"""One worker: opens the log, mounts the dialects behind the dispatcher, and closes everything in order."""

from __future__ import annotations

import asyncio
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import structlog

from stele import __version__
from stele.core.findings import WhenUndecided
from stele.core.ports import Log
from stele.errors import SteleError, TooManyRequests, Unauthenticated, Unavailable
from stele.server.access_setup import follow_files, make_access
from stele.server.answer_cache import ResponseCache
from stele.server.asgi import App, AsgiScope, Message, Receive, Send
from stele.server.audit_trail import ServerAudit, has_audit
from stele.server.authentication import RequestAuthenticator, open_methods
from stele.server.browser_sessions import open_sessions
from stele.server.connections import CONNECTIONS, ConnectionTable
from stele.server.cors import CrossOriginApp
from stele.server.dialects import build_dispatcher, parse_ports
from stele.server.dispatch import NO_SNIFFING, Dispatcher
from stele.server.event_delivery import deliver_changes
from stele.server.index_page import choose_index_type, count_contents, render_index
from stele.server.metrics import Metrics
from stele.server.replication import run_replications
from stele.server.settings import ServerSettings, make_secrets
from stele.server.site_guard import SiteGuard
from stele.service.delivery.stats import DeliveryStats
from stele.service.early_state import EarlyState
from stele.service.log_sealing import prepare_keys, seal_plain_log
from stele.service.registry import Registry
from stele.service.threads import WorkThreads
from stele.service.times import current_millis
from stele.service.work_processes import WorkProcesses
from stele.storage import open_log
from stele.storage.past_log import open_past
from stele.templates import PAGE_HEADERS

if TYPE_CHECKING:
    from stele.server.telemetry import Telemetry

_logger = structlog.get_logger("stele.server")

_START_GRACE_SECONDS = 1.0
"""Seconds after which a start continues in the background, while the server answers 503 `starting`."""
_MAX_AGE_SECONDS = 15.0
"""A node that has not read the log to its end for this many seconds is not ready. It reads the log every second."""
_RETRY_SECONDS = 1
_KILL_SECONDS = 5
"""Seconds beyond the time limit of a request after which a worker process that was not ended is killed."""


class Server:
    """The ASGI application of one worker process; everything is built when its event loop starts."""

    def __init__(self, settings: ServerSettings, early: EarlyState | None = None) -> None:
        self.settings = settings
        self._early = early
        """State of the log that the parent process has loaded."""
        self._front: App | None = None
        self._dispatcher: Dispatcher | None = None
        self._authenticator: RequestAuthenticator | None = None
        self._cache: ResponseCache | None = None
        self._registry: Registry | None = None
        self._telemetry: Telemetry | None = None
        self._audit: ServerAudit | None = None
        self._metrics = Metrics(multiprocess=settings.workers > 1)
        self._delivery_stats = DeliveryStats(self._metrics.count_delivery)
        self._ready = False
        self._work = WorkThreads(settings.work_threads, settings.work_waiting, "parsing and comparing")
        self._stateless = WorkThreads(settings.stateless_threads, settings.stateless_waiting, "checks")
        self._processes = WorkProcesses(
            settings.stateless_threads, settings.process_bytes, settings.request_seconds + _KILL_SECONDS
        )
        self._connections = ConnectionTable(settings.connection_limits, self._metrics.count_closed_connection)
        self._starting: asyncio.Task[Registry] | None = None
        self._following: asyncio.Task[None] | None = None
        self._followers: list[asyncio.Task[None]] = []
        self._own_ports = parse_ports(settings.listen)
        self._guard = SiteGuard(settings.allowed_hosts, settings.cors_origins)
        self.start_failure: BaseException | None = None
        """The error that the start failed with; None unless it has failed."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Handle the lifespan, the operations pages, and, through the dispatcher, all other requests."""
        if scope["type"] == "lifespan":
            scope["state"][CONNECTIONS] = self._connections
            await self._run_lifespan(receive, send)
        elif scope["type"] == "http":
            match scope["path"]:
                case "/health/live":
                    await _send_text(send, 200, {"status": "live", "version": __version__})
                case "/health/ready":
                    await self._answer_readiness(send)
                case "/metrics" | "/" if (refusal := await self._find_refusal(scope)) is not None:
                    await self._refuse(scope, send, refusal)
                case "/metrics" if self._registry is not None:
                    body, content_type = self._metrics.render_metrics(
                        self._registry, self._count_work(), self._delivery_stats
                    )
                    await _send_response(send, 200, body, content_type.encode("ascii"))
                case "/" if self._registry is not None and await self._answer_index(scope, send):
                    pass
                case _ if self._front is not None:
                    await self._front(scope, receive, send)
                case _:
                    await _send_text(send, 503, {"status": "starting"})

    async def _find_refusal(self, scope: AsgiScope) -> SteleError | None:
        """Return why a request for a page of the server itself is refused, None if it is allowed."""
        is_open = scope["path"] == "/metrics" and self.settings.open_metrics
        if self._dispatcher is None or is_open:
            return self._guard.find_refusal(scope["method"], scope["headers"], (scope.get("server") or ("",))[0])
        return (await self._dispatcher.identify_caller(scope))[1]

    async def _refuse(self, scope: AsgiScope, send: Send, refusal: SteleError) -> None:
        status, headers = 403, []
        match refusal:
            case Unauthenticated() if self._dispatcher is not None:
                status, headers = 401, self._dispatcher.list_challenges(scope)
            case TooManyRequests():
                status, headers = 429, [(b"retry-after", b"%d" % refusal.seconds)]
            case Unavailable():
                status = 503
        await _send_response(send, status, msgspec.json.encode({"error": str(refusal)}), b"application/json", *headers)

    async def _answer_index(self, scope: AsgiScope, send: Send) -> bool:
        """Send the index if a request for `/` wants it, and return whether it was sent.

        A port that belongs to one dialect has no index.
        """
        media_type = choose_index_type(scope)
        if not media_type or scope["server"][1] in self._own_ports:
            return False
        assert self._registry is not None
        kind = self.settings.store.partition(":")[0]
        body = render_index(
            media_type, *self._find_status(), kind, count_contents(self._registry.state), has_pages=self.settings.ui
        )
        content_type = (
            f"{media_type}; charset=utf-8".encode() if media_type != "application/json" else b"application/json"
        )
        page_headers = [(name.encode(), value.encode()) for name, value in PAGE_HEADERS.items()]
        await _send_response(send, 200, body, content_type, (b"vary", b"accept"), *page_headers)
        return True

    def _find_status(self) -> tuple[str, str]:
        """Return the status of the server and the reason if it is not ready.

        It is ready when the registry is loaded, has every record of the log and can write.
        """
        if not self._ready or self._registry is None:
            return "starting", ""
        if self._registry.write_failure is not None:
            return "cannot write", str(self._registry.write_failure)
        age = time.monotonic() - self._registry.caught_up_at
        if age > _MAX_AGE_SECONDS:
            return "catching up", f"the log was last read to its end {age:.0f} seconds ago"
        return "ready", ""

    async def _answer_readiness(self, send: Send) -> None:
        status, reason = self._find_status()
        body = {"status": status, "reason": reason} if reason else {"status": status}
        await _send_text(send, 200 if status == "ready" else 503, body)

    @property
    def is_ready(self) -> bool:
        """Whether the registry is loaded and served."""
        return self._ready

    async def start(self) -> Registry:
        """Open the log and build the dispatcher. Raises `StoreError` when the log cannot be opened or read."""
        asyncio.get_running_loop().set_default_executor(self._work)
        secrets = make_secrets(self.settings)
        registry = self._registry = await Registry.open(
            await self._open_log(),
            self.settings.limits,
            undecided=WhenUndecided(self.settings.undecided),
            early=self._early,
        )
        self._early = None
        registry.secrets = secrets
        await self._prepare_secrets(registry)
        registry.access = access = make_access(registry, self.settings)
        if access.has_files:
            self._following = asyncio.create_task(follow_files(access))
        registry.stateless_threads = self._stateless
        registry.stateless_processes = self._processes
        if self.settings.otel:
            self._telemetry = self._start_telemetry(registry)
        if has_audit(self.settings) and not self.settings.as_of:
            self._audit = ServerAudit(self.settings, registry)
            await self._audit.start()
        trace_app = self._telemetry.trace_app if self._telemetry is not None else None
        methods = open_methods(self.settings, self._own_ports)
        self._authenticator = None if methods is None else RequestAuthenticator(registry, methods)
        sessions = open_sessions(self.settings, registry, self._authenticator, dict(self._own_ports))
        front = build_dispatcher(
            registry, self.settings, self._metrics, trace_app, self._guard, self._authenticator, sessions
        )
        self._dispatcher = front
        self._cache = front.cache
        origins = self.settings.cors_origins
        self._front = CrossOriginApp(front, origins) if origins else front
        if self._cache is not None and self.settings.log_level != "debug":  # at that level reads are logged, too
            self._connections.find_answer = front.find_answer_at_once
        if self.settings.event_delivery and not self.settings.as_of:
            works = (
                deliver_changes(registry, self.settings, self._delivery_stats),
                run_replications(registry, self.settings),
            )
            self._followers = [asyncio.create_task(work) for work in works]
        if self.settings.testing:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGUSR1, lambda: _keep_reference(loop.create_task(self._reset_store())))
        self._ready = True
        return registry

    async def _prepare_secrets(self, registry: Registry) -> None:
        """Load the keys that seal secrets, and seal stored secrets that are plain text. Raises `KmsError`."""
        is_past = bool(self.settings.as_of)
        await prepare_keys(registry, current_millis(), read_only=is_past)
        plain, locked = registry.secrets.count_documents(registry.state)
        if locked:
            _logger.error("secrets are sealed with a key that is missing", documents=locked, setting="secrets_key")
        if plain and not registry.secrets.has_key:
            _logger.warning("secrets are stored as plain text", documents=plain, setting="secrets_key")
        if registry.secrets.has_key and not is_past:
            _keep_reference(asyncio.create_task(_seal_plain_secrets(registry)))

    async def _open_log(self) -> Log:
        log = await open_log(self.settings.store, Path(self.settings.state_dir))
        if self._early is not None:
            await log.require_position(self._early.position)
        return await open_past(log, self.settings.as_of) if self.settings.as_of else log

    def _start_telemetry(self, registry: Registry) -> Telemetry:
        from stele.server.telemetry import Telemetry

        telemetry = Telemetry(lambda: self._metrics.collect_metrics(registry, self._count_work(), self._delivery_stats))
        registry.tracer = telemetry
        telemetry.start()
        return telemetry

    async def stop(self) -> None:
        """Finish writes, save a snapshot, close the log, send the last traces and metrics."""
        self._ready = False
        if self._following is not None:
            self._following.cancel()
        for task in self._followers:
            task.cancel()
        if self._followers:
            await asyncio.wait(self._followers)
        self._stateless.shutdown()
        self._processes.close()
        if self._authenticator is not None:
            self._authenticator.close()
        if self._audit is not None:
            await self._audit.stop()
        if self._registry is not None:
            await self._registry.close()
        if self._telemetry is not None:
            await self._telemetry.stop()
        self._work.shutdown()

    def _count_work(self) -> dict[str, int]:
        return {
            "connections": self._connections.open,
            "answer_cache_bytes": self._cache.bytes if self._cache is not None else 0,
            "audit_dropped": self._audit.dropped_lines if self._audit is not None else 0,
            "audit_failing": int(self._audit is not None and self._audit.is_failing),
            "work_running": self._work.running,
            "work_waiting": self._work.waiting,
            "stateless_running": self._stateless.running,
            "stateless_waiting": self._stateless.waiting,
        }

    async def _reset_store(self) -> None:
        assert self._registry is not None
        await self._registry.reset(await self._open_log())
        _logger.info("emptied")

    async def _run_lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            step = self._begin_start if message["type"] == "lifespan.startup" else self._end
            try:
                await step()
            except Exception as error:
                # Start-up and shutdown report through the protocol, and the process exits non-zero.
                self._note_failure(error, message["type"])
                await send({"type": f"{message['type']}.failed", "message": ""})
                return
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return

    async def _begin_start(self) -> None:
        """Start the server; after one second the start continues while requests are answered already.

        Raises the errors of the first second.
        """
        _keep_reference(asyncio.create_task(self._connections.close_overdue()))
        self._starting = asyncio.create_task(self.start())
        done, _ = await asyncio.wait({self._starting}, timeout=_START_GRACE_SECONDS)
        if done:
            self._starting.result()
        else:
            self._starting.add_done_callback(self._stop_after_failure)

    async def _end(self) -> None:
        if self._starting is not None and not self._starting.done():
            self._starting.remove_done_callback(self._stop_after_failure)
            self._starting.cancel()
            await asyncio.wait({self._starting})
        await self.stop()

    def _note_failure(self, error: BaseException, step: str) -> None:
        """Store the error of a start, for the process to report. Log the traceback of an unexpected error."""
        self.start_failure = error
        if not isinstance(error, SteleError):
            _logger.error("failed", step=step, exc_info=error)
        elif self.settings.workers > 1:
            _logger.error("failed", step=step, reason=str(error))

    def _stop_after_failure(self, starting: asyncio.Task[Registry]) -> None:
        """End the process when a start fails that continued in the background."""
        error = None if starting.cancelled() else starting.exception()
        if error is not None:
            self._note_failure(error, "lifespan.startup")
            signal.raise_signal(signal.SIGTERM)


_tasks: set[asyncio.Task[None]] = set()


def _keep_reference(task: asyncio.Task[None]) -> None:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


async def _seal_plain_secrets(registry: Registry) -> None:
    """Seal the secrets of the log in the background. The server serves even if that fails."""
    try:
        done = await seal_plain_log(registry, current_millis())
    except SteleError as error:
        _logger.error("secrets are not sealed", reason=str(error), hint="run `stele secrets seal`")
    else:
        if done is not None:
            _logger.info("sealed", documents=done.documents, records=done.records)


async def _send_text(send: Send, status: int, body: dict[str, str]) -> None:
    await _send_response(send, status, msgspec.json.encode(body), b"application/json")


async def _send_response(send: Send, status: int, body: bytes, content_type: bytes, *more: tuple[bytes, bytes]) -> None:
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body)), NO_SNIFFING, *more]
    if status == 503:
        headers.append((b"retry-after", b"%d" % _RETRY_SECONDS))
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})

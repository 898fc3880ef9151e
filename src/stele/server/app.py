"""One worker: opens the log, mounts the dialects behind the front, and closes everything in order."""

from __future__ import annotations

import asyncio
import signal
from typing import cast

import msgspec
import structlog
from litestar import Litestar

from stele import __version__
from stele.apis import confluent, native, pravega, schema_repo
from stele.core.findings import WhenUndecided
from stele.server.front import App, Front, Message, Mount, Receive, Scope, Send
from stele.server.metrics import Metrics
from stele.server.settings import Settings
from stele.service.registry import Registry
from stele.storage import open_log

_logger = structlog.get_logger("stele.server")

_CONFLUENT_SEGMENTS = (
    "subjects",
    "schemas",
    "config",
    "mode",
    "contexts",
    "compatibility",
    "v1/metadata",
    "associations",
    "associations:batch",
    "associations:batchGet",
    "associations:batchMutate",
    "dek-registry",
    "exporters",
    "security",
    "confluent",
)


class Server:
    """The ASGI application of one worker process; everything is built when its event loop starts."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._front: App | None = None
        self._registry: Registry | None = None
        self._metrics = Metrics(multiprocess=settings.workers > 1)
        self._ready = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lifespan, operations pages, and everything else through the front."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            match scope["path"]:
                case "/health/live":
                    await _plain(send, 200, {"status": "live", "version": __version__})
                case "/health/ready":
                    await _plain(send, 200 if self._ready else 503, {"status": "ready" if self._ready else "starting"})
                case "/metrics":
                    assert self._registry is not None
                    body, content_type = self._metrics.render(self._registry)
                    await _respond(send, 200, body, content_type.encode("ascii"))
                case _:
                    assert self._front is not None
                    await self._front(scope, receive, send)

    async def start(self) -> Registry:
        """Open the log and build the front. Raises `StoreError` when the log cannot be opened or read."""
        registry = self._registry = await Registry.open(
            await open_log(self.settings.store),
            self.settings.limits,
            undecided=WhenUndecided(self.settings.undecided),
        )
        self._front = build_front(registry, self.settings, self._metrics)
        if self.settings.testing:
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGUSR1, lambda: _keep(loop.create_task(self._empty())))
        self._ready = True
        return registry

    async def stop(self) -> None:
        """Finish writes, keep a snapshot, close the log."""
        self._ready = False
        if self._registry is not None:
            await self._registry.close()

    async def _empty(self) -> None:
        assert self._registry is not None
        await self._registry.reset(await open_log(self.settings.store))
        _logger.info("emptied")

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            step = self.start if message["type"] == "lifespan.startup" else self.stop
            try:
                await step()
            except Exception as error:
                # Start-up and shutdown report through the protocol: the server prints it and exits non-zero.
                _logger.exception("failed", step=message["type"])
                await send({"type": f"{message['type']}.failed", "message": str(error)})
                return
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return


_tasks: set[asyncio.Task[None]] = set()


def _keep(task: asyncio.Task[None]) -> None:
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)


def build_front(registry: Registry, settings: Settings, metrics: Metrics) -> App:
    """Every dialect of the registry behind one front."""
    options = confluent.ConfluentOptions(
        incompatible_code=settings.confluent_incompatible_code,
        mode_mutable=settings.mode_mutable,
        profile=settings.confluent_profile,
        max_request_bytes=settings.max_request_bytes,
    )
    fallback = _mount("confluent", confluent.application(registry, options))
    own = _mount("native", native.application(registry, max_request_bytes=settings.max_request_bytes))
    mounts = dict.fromkeys(_CONFLUENT_SEGMENTS, fallback) | {"api": own, "native": own}
    repo = _mount("schema-repo", schema_repo.application(registry, _schema_repo_options(settings)))
    mounts |= dict.fromkeys(schema_repo.SEGMENTS, repo)
    words = pravega.PravegaOptions(max_request_bytes=settings.max_request_bytes)
    mounts |= dict.fromkeys(pravega.SEGMENTS, _mount("pravega", pravega.application(registry, words)))
    return Front(mounts, fallback, metrics, hot=confluent.HotSchemas(registry, options).get)


def _schema_repo_options(settings: Settings) -> schema_repo.SchemaRepoOptions:
    return schema_repo.SchemaRepoOptions(
        ids=schema_repo.Ids(settings.schema_repo_ids),
        default_validators=schema_repo.words_in(settings.schema_repo_validators),
        models=schema_repo.models_in(settings.schema_repo_models),
        read_only=settings.schema_repo_read_only,
        max_request_bytes=settings.max_request_bytes,
    )


def _mount(dialect: str, app: Litestar) -> Mount:
    # The framework types its messages more narrowly than the protocol does.
    return Mount(dialect, cast("App", app))


async def _plain(send: Send, status: int, body: dict[str, str]) -> None:
    await _respond(send, status, msgspec.json.encode(body), b"application/json")


async def _respond(send: Send, status: int, body: bytes, content_type: bytes) -> None:
    headers = [(b"content-type", content_type), (b"content-length", b"%d" % len(body))]
    start: Message = {"type": "http.response.start", "status": status, "headers": headers}
    await send(start)
    await send({"type": "http.response.body", "body": body})

"""A registry for tests: in this process, with schemas from the start, and with failures on request.

    with registry({"orders-value": '{"type": "string"}'}) as box:
        assert box.client.version("orders-value").id == 1

The server, its dialects and its rules are the real ones. Only the log is in memory.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import httpx
import msgspec
import structlog
import uvicorn

from stele.client import AsyncSchemaRegistryClient, RegisteredSchema, Retry, Schema, SchemaRegistryClient
from stele.errors import InvalidRequest
from stele.server.asgi import App
from stele.server.http2_upgrade import Http1Protocol
from stele.server.in_process import InProcessServer, InProcessTransport
from stele.server.log_config import configure_logs
from stele.server.settings import ServerSettings
from stele.testing.failures import ConnectionDropped, FailingApp, InjectedFailure

SchemaLike = str | bytes | Mapping[str, Any] | list[Any] | Schema
"""A schema: its text (Avro), its JSON as Python values (Avro, too), or a `Schema` of any type."""

Schemas = Mapping[str, SchemaLike] | Iterable[tuple[str, SchemaLike]] | Path | None
"""Schemas by subject. A folder has files `subject.avsc` or `subject/1.avsc`, `subject/2.avsc`."""

_TYPES: Final = {".avsc": "AVRO", ".proto": "PROTOBUF", ".json": "JSON"}
_IN_PROCESS: Final = "http://stele.test"


class RegistryBox:
    """A registry in this process. Use it as a context manager, `with` or `async with`.

    Attributes:
        url: Base URL. Without a port, only `client`, `async_client` and the transports can reach it.
        app: The ASGI application, for other clients: `httpx.ASGITransport(box.app)`. Any event loop may call it.
        registered: The registered schemas, in the order of `schemas`.
    """

    def __init__(self, schemas: Schemas = None, *, port: int | None = None, **settings: Any) -> None:
        """Start a registry.

        Args:
            schemas: Schemas to register first.
            port: TCP port to listen on, too; 0 takes a free one, None listens on none.
            **settings: Settings of the server, as in `stele.toml`.
        """
        self._failing: FailingApp | None = None
        if not structlog.is_configured():
            configure_logs("warning", "console")
        server_settings = _read_settings(settings)
        self._server = InProcessServer(server_settings, self._stand_between)
        self._listener: _Listener | None = None
        try:
            self._listener = None if port is None else _Listener(self._server, port, server_settings.idle_seconds)
            self.url: str = _IN_PROCESS if self._listener is None else self._listener.url
            self.app: App = self._server
            self.registered = self.register_all(schemas)
        except BaseException:
            self.close()
            raise

    @cached_property
    def client(self) -> SchemaRegistryClient:
        """A blocking client without a cache and without retries, so that tests see every request."""
        transport = None if self._listener is not None else self.transport
        return SchemaRegistryClient(self.url, transport=transport, retry=Retry(rounds=1), cache_size=0, cache_ttl=0)

    @cached_property
    def async_client(self) -> AsyncSchemaRegistryClient:
        """An async client without a cache and without retries."""
        transport = None if self._listener is not None else self.async_transport
        return AsyncSchemaRegistryClient(
            self.url, transport=transport, retry=Retry(rounds=1), cache_size=0, cache_ttl=0
        )

    @property
    def transport(self) -> httpx.BaseTransport:
        """Transport for blocking httpx clients: `httpx.Client(transport=box.transport, base_url=box.url)`."""
        return _Transport(InProcessTransport(self._server))

    @property
    def async_transport(self) -> httpx.AsyncBaseTransport:
        """Transport for async httpx clients."""
        return _AsyncTransport(httpx.ASGITransport(self._server))

    @property
    def requests(self) -> list[str]:
        """The requests so far, such as `GET /subjects`."""
        assert self._failing is not None
        return list(self._failing.requests)

    def register_all(self, schemas: Schemas) -> list[RegisteredSchema]:
        """Register schemas in their order. Raises the error of the first registration that fails."""
        return [self.client.register(subject, schema) for subject, schema in _read_schemas(schemas)]

    def fail(
        self,
        path: str = "*",
        *,
        method: str = "*",
        status: int | None = None,
        latency: float = 0.0,
        drop: bool = False,
        times: int = 1,
    ) -> None:
        """Make the next requests fail or delay them.

        Args:
            path: Pattern of paths with `*`, such as `/subjects/*`.
            method: GET, POST … or `*` for all.
            status: Answer with this status.
            latency: Seconds to wait before anything else.
            drop: End the connection without a response.
            times: Number of requests; -1 for all from now on, until `heal`.
        """
        if status is None and not latency and not drop:
            raise InvalidRequest("a failure needs a status, a latency or drop=True")
        assert self._failing is not None
        self._failing.add_failure(InjectedFailure(path, method, status, latency, drop, times=times))

    def call_before(self, path: str, action: Callable[[], object], *, method: str = "*", times: int = 1) -> None:
        """Call a function when a request arrives, before the request is answered; for tests of races.

        Args:
            path: Pattern of paths with `*`, such as `/schemas/ids/*`.
            action: The function, called in a thread; it may use `client`.
            method: GET, POST … or `*` for all.
            times: Number of requests; -1 for all from now on, until `heal`.
        """
        assert self._failing is not None
        self._failing.add_failure(InjectedFailure(path, method, action=action, times=times))

    def heal(self) -> None:
        """Remove all failures and clear `requests`."""
        assert self._failing is not None
        self._failing.clear()

    def reset(self, schemas: Schemas = None) -> None:
        """Empty the registry (subjects, ids, settings), remove all failures, and register schemas."""
        self.heal()
        self._server.empty_log()
        self.registered = self.register_all(schemas)

    def close(self) -> None:
        """Stop the registry. Its data are lost."""
        if "client" in self.__dict__:
            self.client.close()
        if self._listener is not None:
            self._listener.close()
        self._server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if "async_client" in self.__dict__:
            await self.async_client.close()
        self.close()

    def _stand_between(self, app: App) -> App:
        self._failing = FailingApp(app)
        return self._failing


class _Listener:
    """A port of 127.0.0.1 on which uvicorn answers, in the server's event loop."""

    def __init__(self, server: InProcessServer, port: int, idle_seconds: int) -> None:
        self._server = server
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", port))
        self._socket.listen(128)
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            server,
            http=Http1Protocol,
            lifespan="off",
            access_log=False,
            log_config=None,
            log_level="critical",
            timeout_graceful_shutdown=1,
            timeout_keep_alive=idle_seconds,
        )
        self._uvicorn = uvicorn.Server(config)
        self._serving = server.submit(self._uvicorn.serve([self._socket]))

    def close(self) -> None:
        """Stop listening."""
        self._uvicorn.should_exit = True
        self._serving.result(30)


class _Transport(httpx.BaseTransport):
    """Raises httpx's own error for a dropped connection, as a real transport would."""

    def __init__(self, transport: httpx.BaseTransport) -> None:
        self._transport = transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        try:
            return self._transport.handle_request(request)
        except ConnectionDropped as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error


class _AsyncTransport(httpx.AsyncBaseTransport):
    """Like `_Transport`, for async clients."""

    def __init__(self, transport: httpx.AsyncBaseTransport) -> None:
        self._transport = transport

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Answer one request."""
        try:
            return await self._transport.handle_async_request(request)
        except ConnectionDropped as error:
            raise httpx.RemoteProtocolError(str(error), request=request) from error


def _read_settings(settings: Mapping[str, Any]) -> ServerSettings:
    try:
        return msgspec.convert({"store": "memory:", **settings}, ServerSettings)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"not a setting of a server: {error}") from None


def _read_schemas(schemas: Schemas) -> Iterator[tuple[str, Schema]]:
    if schemas is None:
        return
    if isinstance(schemas, Path):
        yield from _read_folder(schemas)
        return
    pairs = schemas.items() if isinstance(schemas, Mapping) else schemas
    for subject, schema in pairs:
        yield subject, _to_schema(schema)


def _to_schema(schema: SchemaLike) -> Schema:
    if isinstance(schema, Schema):
        return schema
    if isinstance(schema, bytes):
        return Schema(schema.decode())
    return Schema(schema if isinstance(schema, str) else json.dumps(schema))


def _read_folder(folder: Path) -> Iterator[tuple[str, Schema]]:
    """Yield subjects and schemas from files.

    The files in a subject's folder are in order of the numbers in their names.
    """
    for path in sorted(folder.iterdir()):
        files = sorted(path.iterdir(), key=_version_in_name) if path.is_dir() else [path]
        for file in files:
            if file.suffix in _TYPES:
                subject = path.name if path.is_dir() else path.stem
                yield subject, Schema(file.read_text(encoding="utf-8"), _TYPES[file.suffix])


def _version_in_name(file: Path) -> tuple[int, str]:
    return (int(file.stem), "") if file.stem.isdecimal() else (2**31, file.name)

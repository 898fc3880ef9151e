"""A registry that holds the subjects, keys and other objects of one team, and all endpoints of its dialects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
from litestar.routes import HTTPRoute
from tests.support.access_samples import PARAMS, SUBJECT, TEAM, WORLD, Sample
from tests.support.authentication import HeaderAuthenticator

from stele.apis.http.access import EndpointAccess, find_access
from stele.core.events import LogRecord, encode_record
from stele.core.model import SubjectKey
from stele.server.authentication.authenticator import RequestAuthenticator, open_methods
from stele.server.browser_sessions import BrowserSessions, open_sessions
from stele.server.dialects import DialectEntry, build_dispatcher
from stele.server.metrics import Metrics
from stele.server.settings import ServerSettings
from stele.service.access import Headers, Principal
from stele.service.registry import Registry
from stele.storage import open_log

_PREFIXED = {"confluent", "openschema", "xregistry"}
"""Dialects that are mounted under their name, because they share paths."""


class Endpoint(NamedTuple):
    """One method of one path, with its handler and the access that the handler requires."""

    dialect: str
    method: str
    template: str
    handler: str
    wanted: EndpointAccess | None

    def __str__(self) -> str:
        return f"{self.dialect} {self.method} {self.template}"


def open_login(registry: Registry) -> BrowserSessions | None:
    """Return the login sessions of the web pages for API keys. The registry has no API keys."""
    settings = ServerSettings(authentication=("keys",))
    methods = open_methods(settings, {})
    assert methods is not None
    return open_sessions(settings, registry, RequestAuthenticator(registry, methods), {})


def list_endpoints(registry: Registry, dialect: DialectEntry) -> Iterator[Endpoint]:
    """Yield every method of every path of a dialect, except those that the framework answers itself."""
    options = dialect.options(ServerSettings())
    if dialect.name == "ui":  # with sessions, the pages include a login page
        options = options._replace(log_in=open_login(registry))
    app = dialect.build(registry, options)
    for route in app.routes:
        assert isinstance(route, HTTPRoute)
        for method, (handler, _) in route.route_handler_map.items():
            name = handler.handler_name.rpartition(".")[2]
            if dialect.name == "schema-repo":  # two dialects whose handlers share some names
                name = f"{handler.fn.__module__.rpartition('.')[2]}.{name}"
            if not _is_of_framework(method, route.path, handler.fn.__module__):
                yield Endpoint(dialect.name, str(method), route.path_format, name, find_access(handler))


def _is_of_framework(method: Any, path: str, module: str) -> bool:
    """Return whether Litestar added the endpoint: for OPTIONS or for the OpenAPI document."""
    return module.startswith("litestar.") and (str(method) == "OPTIONS" or path.startswith("/_docs/"))


class World:
    """A registry with the objects of one team, which can be reset to its first state.

    With `has_login`, users can log in to its pages.
    """

    def __init__(self, registry: Registry, *, has_login: bool = False, **settings: Any) -> None:
        self.registry = registry
        sessions = open_login(registry) if has_login else None
        server_settings = ServerSettings(**{"answer_cache_bytes": 0, **settings})
        front = build_dispatcher(registry, server_settings, Metrics(), sessions=sessions)
        front._authenticator = HeaderAuthenticator(_authenticate)
        self._http = httpx.AsyncClient(transport=httpx.ASGITransport(front), base_url="http://registry")
        self._records: list[LogRecord] = []
        self.params: dict[str, dict[str, str]] = {}

    async def ask(self, caller: str, method: str, path: str, body: Any = None, **headers: str) -> httpx.Response:
        """Send a request as a caller and return the response."""
        sent = {"x-caller": caller, **headers}
        if isinstance(body, bytes):
            return await self._http.request(method, path, content=body, headers=sent)
        return await self._http.request(method, path, json=body, headers=sent)

    async def create(self, more: Sequence[tuple[str, str, Any]] = ()) -> None:
        """Send the requests of `WORLD` and those of `more`, and note the ids that the registry assigned."""
        for method, path, body in (*WORLD, *more):
            response = await self.ask("admin", method, path, body)
            assert response.is_success, (method, path, response.text)
        self._records = [record for _, record in await self.registry.read_log(0, 1000)]
        state = self.registry.state
        subject = state.find_subject(SubjectKey(TEAM, SUBJECT))
        assert subject is not None
        version = (await self.ask("admin", "GET", f"/subjects/{SUBJECT}/versions/1")).json()
        document = await self.ask("admin", "GET", f"/schemagroups/{TEAM}/schemas/{SUBJECT}")
        opened = (await self.ask("admin", "GET", f"/openschema/subjects/{SUBJECT}/versions/1/schema")).json()
        subscriptions = (await self.ask("admin", "GET", "/subscriptions")).json()
        known = {
            "guid": version["guid"],
            "schema_id": document.headers["schema-id"],
            "uri": document.headers["schema-version-uri"],
            "record_id": str(subject.versions[0].record_id),
            "subscription": subscriptions[0]["id"],
            "sha256": next(sha.hex() for sha in state.contents),
        }
        self.params = {name: {**known, **own} for name, own in PARAMS.items()}
        self.params["cncf"] |= {"subscription": known["subscription"]}
        self.params["openschema"] |= {"schema_id": opened["schema"]["id"]}

    async def restore(self) -> None:
        """Undo all changes since `create`."""
        if self.registry.state.seq != len(self._records):
            log = await open_log("memory:")
            assert await log.append(0, list(map(encode_record, self._records)))
            await self.registry.reset(log)
            await self.registry.fresh_state()

    async def send(self, endpoint: Endpoint, sample: Sample, caller: str) -> httpx.Response:
        """Send the request of a sample to an endpoint as a caller, and return the response."""
        values = {**self.params[endpoint.dialect], **sample.params}
        if endpoint.template.startswith("/exporters"):
            values["name"] = "exp"
        path = endpoint.template
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", quote(value, safe=""))
        assert "{" not in path, f"{endpoint}: a parameter has no value"
        prefix = f"/{endpoint.dialect}" if endpoint.dialect in _PREFIXED else ""
        query = sample.query.format(**{name: quote(value, safe="") for name, value in values.items()})
        address = f"{prefix}{path}?{query}" if query else prefix + path
        return await self.ask(caller, endpoint.method, address, sample.body, **sample.headers)


def _authenticate(headers: Headers) -> Principal:
    return Principal(dict(headers).get(b"x-caller", b"").decode())

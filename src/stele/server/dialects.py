"""The table of dialects that a server speaks, and where each is mounted.

A dialect answers the paths that begin with one of its segments, and everything below a prefix of its own name
(`/pravega/v1/groups`). If `listen` gives it a port of its own, it answers every path of that port. The first dialect
answers all other paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeVar

from stele.apis import cncf, confluent, native, openschema, pravega, rocketmq, schema_repo, xregistry
from stele.apis.http.application import RegistryApplication
from stele.errors import InvalidRequest
from stele.server.answer_cache import ResponseCache
from stele.server.answers import AnswerFinisher, AnswerOptions
from stele.server.asgi import App, AsgiScope, Receive, Send
from stele.server.audit_trail import note_refusal
from stele.server.browser_sessions import BrowserSessions
from stele.server.client_views import describe_version
from stele.server.dispatch import Dispatcher, MountedDialect
from stele.server.metrics import Metrics
from stele.server.rate_limits import Rate, RateLimiter
from stele.server.settings import ServerSettings
from stele.server.settings_table import list_settings
from stele.server.site_guard import SiteGuard
from stele.server.version_import import import_versions
from stele.service.access import Authenticator
from stele.service.registry import Registry
from stele.ui import NAME as UI_NAME
from stele.ui import SEGMENTS as UI_SEGMENTS
from stele.ui import UiOptions
from stele.ui.options import DialectRow, LogIn

T = TypeVar("T")


class DialectEntry(NamedTuple):
    """One dialect and where it is mounted.

    name      its name in metrics, prefix and documents, and for its port
    title     its name for users
    segments  beginnings of paths, of one segment or two
    options   makes its options from the settings; raises `InvalidRequest`
    build     makes its application, from the registry and the options
    root      beginning of its paths, which clients of its own port leave out
    media     media types that mean this dialect on paths of the first one
    immutable templates of paths whose responses never change, until a permanent deletion
    repeatable beginnings of paths with endpoints for POST whose responses may be cached (`REPEATABLE`)
    """

    name: str
    title: str
    segments: tuple[str, ...]
    options: Callable[[ServerSettings], Any]
    build: Callable[[Registry, Any], RegistryApplication]
    root: str = ""
    media: tuple[str, ...] = ()
    immutable: tuple[str, ...] = ()
    repeatable: tuple[str, ...] = ()


def _confluent_options(settings: ServerSettings) -> confluent.ConfluentOptions:
    return confluent.ConfluentOptions(
        incompatible_code=settings.confluent_incompatible_code,
        mode_mutable=settings.mode_mutable,
        profile=settings.confluent_profile,
        max_request_bytes=settings.max_request_bytes,
    )


def _schema_repo_options(settings: ServerSettings) -> schema_repo.SchemaRepoOptions:
    options = schema_repo.SchemaRepoOptions(
        ids=settings.schema_repo_ids,
        default_validators=schema_repo.split_words(settings.schema_repo_validators),
        models=schema_repo.parse_models(settings.schema_repo_models),
        read_only=settings.schema_repo_read_only,
        max_request_bytes=settings.max_request_bytes,
    )
    schema_repo.check_options(options)  # At the start: the application is built only when it is first needed.
    return options


def _native_options(settings: ServerSettings) -> native.NativeOptions:
    return native.NativeOptions(max_request_bytes=settings.max_request_bytes, public_url=settings.public_url)


def _cncf_options(settings: ServerSettings) -> cncf.CncfOptions:
    return cncf.CncfOptions(max_request_bytes=settings.max_request_bytes, base_url=settings.public_url)


def _xregistry_options(settings: ServerSettings) -> xregistry.XregistryOptions:
    return xregistry.XregistryOptions(
        max_request_bytes=settings.max_request_bytes,
        base_url=settings.public_url,
        known_registries=settings.known_registries,
    )


def _request_limit_only(options: Callable[..., T]) -> Callable[[ServerSettings], T]:
    """Return the options of a dialect whose only setting is the highest length of a request."""
    return lambda settings: options(max_request_bytes=settings.max_request_bytes)


DIALECTS = (
    DialectEntry(
        "confluent",
        "Confluent and Redpanda",
        confluent.SEGMENTS,
        _confluent_options,
        confluent.application,
        immutable=confluent.IMMUTABLE,
        repeatable=confluent.REPEATABLE,
    ),
    DialectEntry("native", "Stele's own", ("api",), _native_options, native.application),
    DialectEntry(
        "pravega",
        "Pravega",
        pravega.SEGMENTS,
        _request_limit_only(pravega.PravegaOptions),
        pravega.application,
    ),
    DialectEntry(
        "schema-repo",
        "AVRO-1124 and schema-repo",
        schema_repo.SEGMENTS,
        _schema_repo_options,
        schema_repo.application,
        root="/avro1124",
    ),
    DialectEntry(cncf.NAME, "CNCF Schema Registry and Azure", cncf.SEGMENTS, _cncf_options, cncf.application),
    DialectEntry(
        rocketmq.NAME,
        "RocketMQ",
        rocketmq.SEGMENTS,
        _request_limit_only(rocketmq.RocketmqOptions),
        rocketmq.application,
        root=rocketmq.ROOT,
    ),
    DialectEntry(
        openschema.NAME,
        "OpenSchema",
        openschema.SEGMENTS,
        _request_limit_only(openschema.OpenSchemaOptions),
        openschema.application,
        media=(openschema.MEDIA_TYPE,),
    ),
    DialectEntry(
        xregistry.NAME,
        "xRegistry",
        xregistry.SEGMENTS,
        _xregistry_options,
        xregistry.application,
    ),
)


def _ui_options(settings: ServerSettings, log_in: LogIn | None = None) -> UiOptions:
    return UiOptions(
        read_only=settings.ui_read_only,
        log_in=log_in,
        pipelines=settings.ui_pipelines,
        environment=settings.ui_environment,
        environment_color=settings.ui_environment_color,
        public_url=settings.public_url,
        max_request_bytes=settings.max_request_bytes,
        store=settings.store.partition(":")[0],
        settings=list_settings(settings),
        dialects=[
            DialectRow(
                dialect.name,
                dialect.title,
                [f"/{segment}" for segment in dialect.segments] or ["/"],
                f"/_docs/{dialect.name}/openapi.json",
            )
            for dialect in DIALECTS
        ],
        describe_version=partial(describe_version, schema_repo_ids=settings.schema_repo_ids),
        import_versions=partial(import_versions, options=_confluent_options(settings)),
    )


def _build_ui(registry: Registry, options: UiOptions) -> RegistryApplication:
    from stele.ui.app import application  # The pages are loaded when the first one is asked for.

    return application(registry, options)


UI = DialectEntry(UI_NAME, "Web pages", UI_SEGMENTS, _ui_options, _build_ui, root="/ui")
"""The web pages. They are no dialect, but are mounted like one."""
MOUNTS = (*DIALECTS, UI)
"""Everything that a server can mount."""


def list_mounts(settings: ServerSettings) -> tuple[DialectEntry, ...]:
    """Return what a server with these settings mounts."""
    return MOUNTS if settings.ui else DIALECTS


class DeferredApp:
    """An ASGI application that is built when its first request arrives.

    So a server with eight dialects starts as fast as one with none; most servers are used through one or two.
    """

    def __init__(self, build: Callable[[], App]) -> None:
        self._build = build
        self._app: App | None = None

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if self._app is None:
            self._app = self._build()
        await self._app(scope, receive, send)


def build_dispatcher(
    registry: Registry,
    settings: ServerSettings,
    metrics: Metrics,
    trace_app: Callable[[str, App], App] | None = None,
    guard: SiteGuard | None = None,
    authenticator: Authenticator | None = None,
    sessions: BrowserSessions | None = None,
) -> Dispatcher:
    """Return one dispatcher for every dialect of the registry. Raises `InvalidRequest` for a port of no dialect.

    Args:
        registry: The registry that the dialects serve.
        settings: Settings of the dialects and of the dispatcher.
        metrics: Counts the requests.
        guard: Refuses requests that pages of other sites send; None: nothing is refused.
        authenticator: Determines the sender of a request; None: all callers are anonymous.
        sessions: Sessions of users who log in to the pages; None: users cannot log in.
        trace_app: Puts a span around each request of a dialect, by name; no response is cached then.
    """
    answers = AnswerOptions(settings.cache_seconds, settings.compression_bytes)

    def mount_dialect(dialect: DialectEntry) -> MountedDialect:
        options = _ui_options(settings, sessions) if dialect is UI else dialect.options(settings)
        app = DeferredApp(partial(dialect.build, registry, options))
        finished: App = AnswerFinisher(app, answers, dialect.immutable)
        traced = trace_app(dialect.name, finished) if trace_app is not None else finished
        return MountedDialect(dialect.name, traced, dialect.root)

    mounts = list_mounts(settings)
    apps = {dialect.name: mount_dialect(dialect) for dialect in mounts}
    is_cached = settings.answer_cache_bytes > 0 and trace_app is None
    return Dispatcher(
        {segment: apps[dialect.name] for dialect in mounts for segment in dialect.segments},
        apps[DIALECTS[0].name],
        metrics,
        cache=ResponseCache(registry, settings.answer_cache_bytes) if is_cached else None,
        repeatable=[path for dialect in DIALECTS for path in dialect.repeatable],
        names=apps,
        media={media_type: apps[dialect.name] for dialect in DIALECTS for media_type in dialect.media},
        ports={port: apps[name] for port, name in parse_ports(settings.listen, mounts).items()},
        authenticator=authenticator,
        guard=guard,
        rates=RateLimiter(
            Rate(settings.requests_per_second, settings.requests_burst),
            Rate(settings.changes_per_second, settings.changes_burst),
        ),
        request_seconds=settings.request_seconds,
        note_refusal=partial(note_refusal, registry.audit),
        sessions=sessions,
    )


def parse_ports(listen: Iterable[str], mounts: Iterable[DialectEntry] = MOUNTS) -> Mapping[int, str]:
    """Return dialects by port, from `name=port` items. Raises `InvalidRequest` for a malformed item.

    Args:
        listen: The items.
        mounts: What can have a port.
    """
    names = [dialect.name for dialect in mounts]
    ports: dict[int, str] = {}
    for item in listen:
        name, _, port = item.partition("=")
        if name not in names or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
            raise InvalidRequest(f"listen: {item!r} is not dialect=port with one of the dialects {', '.join(names)}")
        if int(port) in ports:
            raise InvalidRequest(f"listen: two dialects on port {port}")
        ports[int(port)] = name
    return ports

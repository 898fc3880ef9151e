"""Settings of a server: flags, then `STELE_*` environment variables, then a TOML file, then the defaults here."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec

from stele.core.access_rule_text import check_principal
from stele.core.suggestions import suggest_name
from stele.errors import InvalidRequest
from stele.server.connection_limits import ConnectionLimits
from stele.service.limits import Limits
from stele.service.secrets import PlainSecrets, Secrets, parse_source
from stele.storage import find_driver


def _description(text: str, **limits: Any) -> msgspec.Meta:
    return msgspec.Meta(description=text, **limits)


_TABLES = ("server",)
"""Tables of `stele.toml`."""
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[A-Za-z0-9.:_\[\]-]+")
_RECEIVERS = {
    "audit_syslog": (re.compile(r"(udp|tcp)://[^/@\s]+:[0-9]{1,5}"), "udp://host:port or tcp://host:port"),
    "audit_webhook": (re.compile(r"https?://[^/\s]+(/\S*)?"), "https://host/path"),
}
"""Patterns of the settings that name receivers of the audit trail, and a description of the expected form."""
_COLOR = re.compile(r"#[0-9a-fA-F]{6}")
_HOST = re.compile(r"\*|(\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")

Port = Annotated[int, _description("TCP port to listen on; 0 takes a free one.", ge=0, le=65535)]


STATE_DIR = Path(".stele")
"""Default directory for a server's own state."""


class ServerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of a server; the description of each member is its documentation."""

    store: Annotated[
        str,
        _description(
            "Where the log lives: `sqlite:///file.db`, `files:///folder`, `postgresql://host/database`,"
            " `mysql://host/database`, `kafka://broker/topic` or `memory:`."
        ),
    ] = "sqlite:///.stele/stele.db"
    state_dir: Annotated[
        str,
        _description(
            "Folder where this node remembers how far the log of a store on a server had come; a store in files has"
            " that beside it."
        ),
    ] = str(STATE_DIR)
    as_of: Annotated[
        str,
        _description(
            "Serve the registry as it was, read-only: up to a record of the log (its number), or to a time"
            " (`2026-11-23T10:00:00Z`); empty: as it is."
        ),
    ] = ""
    host: Annotated[str, _description("Address to listen on.")] = "127.0.0.1"
    port: Port = 8081
    listen: Annotated[
        tuple[str, ...],
        _description("More ports, each for one dialect alone, at the root: `pravega=9092`; comma list."),
    ] = ()
    secrets_key: Annotated[
        tuple[str, ...],
        _description(
            "Keys that seal secrets in the log: `file:/path`, `env:NAME`, `kms:type:key-id`; comma list: the first one"
            " seals, all of them open; empty: none."
        ),
    ] = ()
    plain_secrets: Annotated[
        Literal["allow", "refuse"],
        _description("Without `secrets_key`: store secrets as plain text and warn, or refuse to store them."),
    ] = "allow"
    access: Annotated[
        Literal["allow", "deny"],
        _description("What is decided where no rule of access matches: everything is allowed, or nothing."),
    ] = "allow"
    super_users: Annotated[
        tuple[str, ...],
        _description(
            "Who may do everything, whatever the rules say: `user:root`, `group:ops`; comma list; empty: nobody."
        ),
    ] = ()
    access_rules: Annotated[
        str,
        _description("File with rules of access, one a line, read again when it changes; empty: none."),
    ] = ""
    pravega_acl: Annotated[
        str,
        _description("File with users and permissions as Pravega has it, read again when it changes; empty: none."),
    ] = ""
    pravega_acl_passwords: Annotated[
        bool, _description("For `basic`: users of `pravega_acl` log in with the passwords in that file.")
    ] = False
    authentication: Annotated[
        tuple[str, ...],
        _description(
            "How callers prove who they are: `basic` (users of `password_file`), `keys` (API keys of this registry),"
            " `oidc` (signed tokens), `mtls` (client certificates); `pravega:basic` says it for the port that is a"
            " dialect's own, `none` switches it off there; comma list; empty: nobody is asked."
        ),
    ] = ()
    anonymous: Annotated[
        bool, _description("With authentication: take requests without credentials, as those of nobody in particular.")
    ] = False
    insecure: Annotated[
        bool,
        _description(
            "Without authentication, listen on addresses that other machines reach; get an issuer's keys without TLS."
        ),
    ] = False
    open_metrics: Annotated[bool, _description("With authentication: answer `/metrics` without credentials.")] = False
    password_file: Annotated[
        str,
        _description(
            "Users for `basic`, as `htpasswd -B` writes them (bcrypt), or with argon2id; read again when it changes."
        ),
    ] = ""
    group_file: Annotated[
        str,
        _description(
            "Groups of the users of `basic`, lines `group: user user …` as in Apache's `AuthGroupFile`; read again when"
            " it changes; empty: users have none."
        ),
    ] = ""
    oidc_issuer: Annotated[
        str, _description("For `oidc`: address of the issuer of tokens, exactly as in their claim `iss`.")
    ] = ""
    oidc_audience: Annotated[
        tuple[str, ...],
        _description("For `oidc`: what the claim `aud` of a token must name, one of them; comma list."),
    ] = ()
    oidc_jwks: Annotated[
        str,
        _description(
            "For `oidc`: address or file of the issuer's public keys; empty: where the metadata of the issuer say."
        ),
    ] = ""
    oidc_algorithms: Annotated[
        tuple[str, ...],
        _description("For `oidc`: algorithms that tokens may be signed with, asymmetrical ones only; comma list."),
    ] = ("RS256", "PS256", "ES256", "EdDSA")
    oidc_leeway_seconds: Annotated[
        int, _description("For `oidc`: how far the clocks of issuer and server may be apart.", ge=0, le=600)
    ] = 30
    oidc_name_claim: Annotated[
        str, _description("For `oidc`: claim with the caller's name, or the path to it: `sub`, `email`, `act.sub`.")
    ] = "sub"
    oidc_groups_claim: Annotated[
        str,
        _description(
            "For `oidc`: claim with the caller's groups, a list or words with blanks between, or the path to it:"
            " `groups`, `realm_access.roles`, `scope`."
        ),
    ] = "groups"
    mtls_principal_rules: Annotated[
        str,
        _description(
            "For `mtls`: who a certificate stands for. Rules with commas between, the first that fits decides:"
            " `RULE:^CN=([^,]+).*$/$1/L` on the distinguished name, `SAN:^URI:spiffe://example.org/(.+)$/$1/` on"
            " alternative names, `DEFAULT` for the whole distinguished name; `L` or `U` at the end change the case."
        ),
    ] = "DEFAULT"
    tls_certificate: Annotated[
        str,
        _description(
            "Certificate of this server with its chain, a PEM file: it speaks TLS then; read again when it changes."
        ),
    ] = ""
    tls_key: Annotated[str, _description("Key of the certificate, a PEM file; empty: it is in the same file.")] = ""
    tls_client_ca: Annotated[
        str, _description("Authorities whose client certificates are accepted, a PEM file; empty: none are asked for.")
    ] = ""
    tls_client_required: Annotated[
        bool, _description("Refuse connections without a client certificate of `tls_client_ca`.")
    ] = False
    audit_file: Annotated[
        str,
        _description(
            "File for the audit trail, JSON lines; empty: `audit.jsonl` in `state_dir` if it is passed on, else none."
        ),
    ] = ""
    audit_file_bytes: Annotated[
        int, _description("Length of that file after which a new one begins, bytes.", ge=4096)
    ] = 100 * 1024 * 1024
    audit_files: Annotated[int, _description("Full files of the audit trail that are kept.", ge=1, le=1_000_000)] = 10
    refusals_kept: Annotated[
        int,
        _description(
            "Refused registrations that each process remembers where there is no file of the audit trail.",
            ge=0,
            le=10_000,
        ),
    ] = 200
    refused_text_bytes: Annotated[
        int,
        _description(
            "Length up to which the audit trail has the text of a refused schema, bytes; 0: never, digests only.",
            ge=0,
            le=65_536,
        ),
    ] = 0
    audit_key: Annotated[
        str,
        _description("Key that only those have who may write the audit trail: `file:/path`, `env:NAME`; empty: none."),
    ] = ""
    audit_syslog: Annotated[
        str,
        _description("Where to pass the audit trail on by syslog (RFC 5424): `udp://host:port`, `tcp://host:port`."),
    ] = ""
    audit_webhook: Annotated[str, _description("URL that gets the audit trail by POST.")] = ""
    public_url: Annotated[
        str,
        _description("Address clients see, with any prefix, for links in answers; empty: the one each request names."),
    ] = ""
    known_registries: Annotated[
        tuple[str, ...],
        _description("URLs of other xRegistry servers, which `/xregistry/.xregistry` tells clients; comma list."),
    ] = ()
    workers: Annotated[int, _description("Processes serving the same log.", ge=1, le=64)] = 1
    cors_origins: Annotated[
        tuple[str, ...],
        _description(
            "Origins whose pages may read answers: `https://ui.example.org`, `*` for all; comma list; empty: none."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        _description(
            "Names this server answers to besides addresses and names without a dot: `registry.example.org`,"
            " `*.example.org`, `*` for all; comma list; empty: all, but on connections to loopback addresses none."
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        _description(
            "Proxies, by address or network, whose `X-Forwarded-For` and `X-Forwarded-Proto` count: `10.0.0.0/8`;"
            " comma list; empty: none."
        ),
    ] = ()
    outgoing_networks: Annotated[
        tuple[str, ...],
        _description(
            "Networks, besides public addresses, that the server may send requests of its own to, as to webhooks and"
            " brokers: `10.1.0.0/16`; comma list; empty: none."
        ),
    ] = ()
    event_brokers: Annotated[
        tuple[str, ...],
        _description("Kafka brokers that subscriptions may send events to: `broker:9092`; comma list; empty: none."),
    ] = ()
    event_delivery: Annotated[
        bool, _description("Send events to subscribers from this node, when no other node does.")
    ] = True
    webhook_consent: Annotated[
        bool,
        _description("Ask a webhook whether it takes events (OPTIONS, `WebHook-Request-Origin`) before the first one."),
    ] = True
    ui: Annotated[bool, _description("Serve web pages for people at `/ui`.")] = True
    ui_read_only: Annotated[
        bool, _description("Pages offer no change and refuse those that are sent to them; the APIs go on taking them.")
    ] = False
    ui_session_seconds: Annotated[
        int,
        _description(
            "How long somebody who logs in to the pages stays logged in, seconds; 0: pages have no login.",
            ge=0,
            le=30 * 86_400,
        ),
    ] = 8 * 3600
    ui_session_key: Annotated[
        str,
        _description(
            "Key that seals sessions of pages, one for all nodes: `file:/path`, `env:NAME`; empty: a new one per start."
        ),
    ] = ""
    ui_pipelines: Annotated[
        str,
        _description("Folder whose folders are checkpoints of pipelines: pages show their journals; empty: none."),
    ] = ""
    ui_environment: Annotated[
        str, _description("Name of the environment, shown on every page: `production`; empty: none.", max_length=100)
    ] = ""
    ui_environment_color: Annotated[
        str, _description("Colour of the strip beside that name: `#b00020`; empty: a neutral one.")
    ] = ""
    cache_seconds: Annotated[
        int,
        _description(
            "How long caches keep a schema got by id or GUID without asking, also a deleted one; 0: never.",
            ge=0,
            le=31_536_000,
        ),
    ] = 86_400
    answer_cache_bytes: Annotated[
        int,
        _description("Memory per process for answers that are given again while they hold, bytes; 0: none.", ge=0),
    ] = 64 * 1024 * 1024
    compression_bytes: Annotated[
        int, _description("Length from which answers are compressed (gzip, zstd), bytes; 0: never.", ge=0)
    ] = 1024
    testing: Annotated[bool, _description("SIGUSR1 empties the registry; memory stores only.")] = False
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _description("Least level that is logged.")] = (
        "info"
    )
    otel: Annotated[
        bool,
        _description("Send traces and metrics by OTLP, as the `OTEL_*` variables say; needs the extra `otel`."),
    ] = False
    log_format: Annotated[Literal["console", "json"], _description("Shape of log lines.")] = "console"
    max_connections: Annotated[
        int, _description("Open connections per process; where there are more, the longest idle one is closed.", ge=1)
    ] = 2048
    max_address_connections: Annotated[
        int, _description("Open connections per process and client address, as that of a proxy.", ge=1)
    ] = 1024
    max_header_bytes: Annotated[
        int, _description("Longest head of a request, bytes (431).", ge=1024, le=16_777_216)
    ] = 65_536
    max_headers: Annotated[int, _description("Most header fields of a request (431).", ge=10, le=10_000)] = 100
    requests_per_second: Annotated[
        float,
        _description(
            "Requests per second that one caller may send on average, a principal or an anonymous address;"
            " more are refused (429); 0: any number.",
            ge=0,
        ),
    ] = 0
    requests_burst: Annotated[int, _description("Requests that one caller may send at once.", ge=1)] = 1000
    changes_per_second: Annotated[
        float,
        _description("The same for requests other than GET, HEAD and OPTIONS (429); 0: any number.", ge=0),
    ] = 0
    changes_burst: Annotated[int, _description("Such requests that one caller may send at once.", ge=1)] = 100
    header_seconds: Annotated[
        int, _description("How long the head of a request may take to arrive (408).", ge=1, le=86_400)
    ] = 10
    body_seconds: Annotated[
        int, _description("How long the body of a request may take to arrive (408).", ge=1, le=86_400)
    ] = 60
    idle_seconds: Annotated[int, _description("How long a connection may stay without a request.", ge=1, le=86_400)] = (
        60
    )
    request_seconds: Annotated[
        int, _description("How long one request may take before it is given up (503).", ge=1, le=86_400)
    ] = 60
    work_threads: Annotated[
        int, _description("Threads per process that parse and compare registered schemas.", ge=1, le=64)
    ] = 4
    work_waiting: Annotated[
        int, _description("Calls that may wait for such a thread; more are refused (503).", ge=0, le=1_000_000)
    ] = 1000
    stateless_threads: Annotated[
        int,
        _description("Threads per process for checks, conversions and all else that registers nothing.", ge=1, le=64),
    ] = 2
    stateless_waiting: Annotated[
        int, _description("Checks and the like that may wait for a thread; more are refused (503).", ge=0, le=1_000_000)
    ] = 32
    process_bytes: Annotated[
        int,
        _description(
            "Bodies of checks and the like from this length on are worked on in processes of their own, as many as"
            " there are threads for them; 0: in threads.",
            ge=0,
        ),
    ] = 16 * 1024
    shutdown_seconds: Annotated[int, _description("How long open requests may finish after SIGTERM.", ge=0)] = 10
    max_schema_bytes: Annotated[int, _description("Longest schema text, bytes of UTF-8.", ge=1)] = 1024 * 1024
    max_request_bytes: Annotated[int, _description("Longest request body, bytes.", ge=1)] = 16 * 1024 * 1024
    max_references: Annotated[
        int, _description("Direct and indirect references of one schema; chains of them have 200 at most.", ge=0)
    ] = 1000
    max_versions: Annotated[int, _description("Versions of one subject, soft-deleted ones included.", ge=1)] = 100_000
    max_schemas: Annotated[int, _description("Different schema texts in the registry.", ge=1)] = 10_000_000
    max_text_bytes: Annotated[
        int, _description("Length of all schema texts together, bytes, before compression.", ge=1)
    ] = 16 * 1024**3
    max_waiting_writes: Annotated[
        int,
        _description("Changes per process that may wait for the store; more are refused (503).", ge=1, le=1_000_000),
    ] = 4096
    max_caller_schemas: Annotated[
        int,
        _description(
            "Versions that one caller may have registered and nobody purged, soft-deleted ones included; super users"
            " may have more; 0: any number.",
            ge=0,
        ),
    ] = 0
    max_caller_bytes: Annotated[
        int, _description("Length of the texts of those versions together, bytes, each one counted; 0: any.", ge=0)
    ] = 0
    max_associations: Annotated[int, _description("Associations of subjects with topics.", ge=0)] = 100_000
    max_keys: Annotated[int, _description("Keys of each kind in the DEK registry.", ge=0)] = 10_000
    max_places: Annotated[int, _description("Topics, tables and paths whose last census is recorded.", ge=0)] = 10_000
    undecided: Annotated[
        Literal["refuse", "allow"], _description("What to do with a change no rule can decide: a warning when allowed.")
    ] = "refuse"
    mode_mutable: Annotated[bool, _description("Whether modes can be changed through the dialects.")] = True
    confluent_incompatible_code: Annotated[
        Literal[409, 40901] | None,
        _description(
            "`error_code` of a refused schema in the Confluent dialect (HTTP status is 409); else the profile's."
        ),
    ] = None
    confluent_profile: Annotated[
        Literal["7.9", "8.0", "8.1", "8.2", "8.3", "8.4", "redpanda", "karapace"],
        _description("Confluent's release, or other maker, whose visible shapes the Confluent dialect has."),
    ] = "8.1"

    schema_repo_ids: Annotated[
        str,
        _description("Ids in the AVRO-1124 and schema-repo dialects: `sequential`, `md5`, `crc-64-avro` or a plug-in."),
    ] = "sequential"
    schema_repo_validators: Annotated[
        str, _description("Validators (comma list) of schema-repo subjects created without `repo.validators`.")
    ] = ""
    schema_repo_models: Annotated[
        str, _description("Compatibility models and validators of your own: `db_policy=full,lint; noop=none`.")
    ] = ""
    schema_repo_read_only: Annotated[bool, _description("Refuse writes through AVRO-1124 and schema-repo.")] = False

    @property
    def connection_limits(self) -> ConnectionLimits:
        """The limits of connections."""
        return ConnectionLimits(
            connections=self.max_connections,
            address_connections=self.max_address_connections,
            header_bytes=self.max_header_bytes,
            headers=self.max_headers,
            header_seconds=self.header_seconds,
            body_seconds=self.body_seconds,
            idle_seconds=self.idle_seconds,
        )

    @property
    def limits(self) -> Limits:
        """The limits that the service enforces."""
        return Limits(
            schema_bytes=self.max_schema_bytes,
            references=self.max_references,
            versions=self.max_versions,
            schemas=self.max_schemas,
            text_bytes=self.max_text_bytes,
            waiting_writes=self.max_waiting_writes,
            associations=self.max_associations,
            keys=self.max_keys,
            places=self.max_places,
            caller_schemas=self.max_caller_schemas,
            caller_bytes=self.max_caller_bytes,
            refusals=self.refusals_kept,
            refused_text_bytes=self.refused_text_bytes,
        )


class LoadedSettings(ServerSettings, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings with their origin, `flag`, `environment` or `file`, by name. The others have their defaults."""

    origins: dict[str, str] = {}


def make_secrets(settings: ServerSettings) -> Secrets:
    """Return the keys that seal secrets. Raises `InvalidRequest` for a missing key, `NotInstalled`."""
    return Secrets(
        [parse_source("secrets_key", text) for text in settings.secrets_key], PlainSecrets(settings.plain_secrets)
    )


def load_settings(
    flags: Mapping[str, Any], *, config: Path | None = None, environ: Mapping[str, str] = os.environ
) -> LoadedSettings:
    """Return the settings from all sources; a flag that is None was not given.

    config is read when given, else `stele.toml` in the working directory when it exists. Raises `InvalidRequest`
    with the name of the wrong setting.
    """
    values: dict[str, Any] = dict(_read_file(config))
    origins = dict.fromkeys(values, "file")
    for name in ServerSettings.__struct_fields__:
        variable = f"STELE_{name.upper()}"
        if variable in environ:
            values[name], origins[name] = environ[variable], "environment"
    given_flags = {name: value for name, value in flags.items() if value is not None}
    values.update(given_flags)
    origins.update(dict.fromkeys(given_flags, "flag"))
    for name in [field.name for field in msgspec.structs.fields(ServerSettings) if isinstance(field.default, tuple)]:
        if isinstance(values.get(name), str):
            values[name] = [part.strip() for part in values[name].split(",") if part.strip()]
    try:
        settings = msgspec.convert(values | {"origins": origins}, LoadedSettings, strict=False)
    except msgspec.ValidationError as error:
        raise InvalidRequest(f"settings: {error}") from None
    driver = find_driver(settings.store)
    for text in settings.secrets_key:
        parse_source("secrets_key", text)
    for name in (name for name in ("ui_session_key", "audit_key") if getattr(settings, name)):
        parse_source(name, getattr(settings, name))
    for name, (pattern, shape) in _RECEIVERS.items():
        if (url := getattr(settings, name)) and not pattern.fullmatch(url):
            raise InvalidRequest(f"settings: {name}: it is no {shape}")
    if settings.ui_environment_color and not _COLOR.fullmatch(settings.ui_environment_color):
        raise InvalidRequest("settings: ui_environment_color: write a colour as #b00020")
    for origin in settings.cors_origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise InvalidRequest(f"settings: cors_origins: {origin!r} is no origin such as https://ui.example.org")
    for host in settings.allowed_hosts:
        if not _HOST.fullmatch(host):
            raise InvalidRequest(f"settings: allowed_hosts: {host!r} is no name such as registry.example.org")
    for principal in settings.super_users:
        try:
            check_principal(principal)
        except InvalidRequest as error:
            raise InvalidRequest(f"settings: super_users: {error}") from None
    _check_addresses(settings)
    if not settings.tls_certificate and (settings.tls_key or settings.tls_client_ca or settings.tls_client_required):
        raise InvalidRequest("settings: TLS needs tls_certificate")
    if settings.tls_client_required and not settings.tls_client_ca:
        raise InvalidRequest("settings: tls_client_required needs tls_client_ca")
    if settings.testing and driver.is_durable:
        raise InvalidRequest("settings: --testing empties the registry on a signal and is refused on a durable store")
    if settings.workers > 1 and not driver.is_durable:
        raise InvalidRequest("settings: several workers need a store they share; memory: is one process's own")
    return settings


def _check_addresses(settings: ServerSettings) -> None:
    """Raise `InvalidRequest` for malformed URLs and networks."""
    for url in settings.known_registries:
        if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
            raise InvalidRequest(
                f"settings: known_registries: {url!r} is no URL such as https://registry.example.org/x"
            )
    for name in ("trusted_proxies", "outgoing_networks"):
        for network in getattr(settings, name):
            try:
                ip_network(network)
            except ValueError as error:
                raise InvalidRequest(f"settings: {name}: {error}") from None


def _read_file(config: Path | None) -> Mapping[str, Any]:
    path = config or Path("stele.toml")
    if config is None and not path.exists():
        return {}
    try:
        with path.open("rb") as file:
            table = tomllib.load(file)
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise InvalidRequest(f"settings: {path}: {error}") from None
    for name in table:
        if name not in _TABLES:
            raise InvalidRequest(f"settings: {path}: unknown table or key {name!r}{suggest_name(name, _TABLES)}")
    server = table.get("server", {})
    if not isinstance(server, dict):
        raise InvalidRequest(f"settings: {path}: [server] is not a table")
    for name in server:
        if name not in ServerSettings.__struct_fields__:
            hint = suggest_name(name, ServerSettings.__struct_fields__)
            raise InvalidRequest(f"settings: {path}: unknown key {name!r} in [server]{hint}")
    return server

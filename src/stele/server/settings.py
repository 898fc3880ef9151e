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
            "URL of the store with the log: `sqlite:///file.db`, `files:///folder`,"
            " `postgresql://host/database`, `mysql://host/database`, `kafka://broker/topic` or `memory:`."
        ),
    ] = "sqlite:///.stele/stele.db"
    state_dir: Annotated[
        str,
        _description(
            "Folder for the state of this node. For a store on a server it holds the high-water mark of the"
            " log; a store in files keeps that beside the files."
        ),
    ] = str(STATE_DIR)
    as_of: Annotated[
        str,
        _description(
            "Serve an earlier state of the registry, read-only: at the number of a record of the log, or at a"
            " time (`2026-11-23T10:00:00Z`); empty: the current state."
        ),
    ] = ""
    host: Annotated[str, _description("Address to listen on.")] = "127.0.0.1"
    port: Port = 8081
    listen: Annotated[
        tuple[str, ...],
        _description("Additional ports, each for one dialect, served at the root path: `pravega=9092`; comma list."),
    ] = ()
    secrets_key: Annotated[
        tuple[str, ...],
        _description(
            "Keys that encrypt secrets in the log: `file:/path`, `env:NAME`, `kms:type:key-id`; comma list:"
            " the first key encrypts, all of them decrypt; empty: none."
        ),
    ] = ()
    plain_secrets: Annotated[
        Literal["allow", "refuse"],
        _description("Without `secrets_key`: store secrets as plain text and log a warning, or refuse to store them."),
    ] = "allow"
    access: Annotated[
        Literal["allow", "deny"],
        _description("Decision where no access rule matches: allow everything, or deny everything."),
    ] = "allow"
    super_users: Annotated[
        tuple[str, ...],
        _description(
            "Callers with every right, independent of the rules: `user:root`, `group:ops`; comma list; empty: none."
        ),
    ] = ()
    access_rules: Annotated[
        str,
        _description("File of access rules, one per line; read again when it changes; empty: none."),
    ] = ""
    pravega_acl: Annotated[
        str,
        _description("File of users and permissions in Pravega's form; read again when it changes; empty: none."),
    ] = ""
    pravega_acl_passwords: Annotated[
        bool, _description("For `basic`: users of `pravega_acl` log in with the passwords in that file.")
    ] = False
    authentication: Annotated[
        tuple[str, ...],
        _description(
            "Authentication methods: `basic` (users of `password_file`), `keys` (API keys of this registry),"
            " `oidc` (signed tokens), `mtls` (client certificates). `pravega:basic` sets the methods of a"
            " dialect with its own port, `none` switches them off there. Comma list; empty: no authentication."
        ),
    ] = ()
    anonymous: Annotated[
        bool, _description("With authentication: accept requests without credentials, as those of an anonymous caller.")
    ] = False
    insecure: Annotated[
        bool,
        _description(
            "Without authentication, listen on addresses that other machines can reach; fetch the keys of an"
            " issuer without TLS."
        ),
    ] = False
    open_metrics: Annotated[bool, _description("With authentication: answer `/metrics` without credentials.")] = False
    password_file: Annotated[
        str,
        _description(
            "File of users for `basic`, as created by `htpasswd -B` (bcrypt), or with argon2id; read again"
            " when it changes."
        ),
    ] = ""
    group_file: Annotated[
        str,
        _description(
            "File of groups of the users of `basic`, lines `group: user user …` as in Apache's"
            " `AuthGroupFile`; read again when it changes; empty: no groups."
        ),
    ] = ""
    oidc_issuer: Annotated[
        str, _description("For `oidc`: address of the issuer of tokens, exactly as in their claim `iss`.")
    ] = ""
    oidc_audience: Annotated[
        tuple[str, ...],
        _description("For `oidc`: accepted values of the claim `aud` of a token; comma list."),
    ] = ()
    oidc_jwks: Annotated[
        str,
        _description(
            "For `oidc`: address or file of the issuer's public keys; empty: the address in the metadata of the issuer."
        ),
    ] = ""
    oidc_algorithms: Annotated[
        tuple[str, ...],
        _description("For `oidc`: algorithms that tokens may be signed with, asymmetrical ones only; comma list."),
    ] = ("RS256", "PS256", "ES256", "EdDSA")
    oidc_leeway_seconds: Annotated[
        int,
        _description("For `oidc`: greatest difference between the clocks of issuer and server, seconds.", ge=0, le=600),
    ] = 30
    oidc_name_claim: Annotated[
        str, _description("For `oidc`: claim with the caller's name, or the path to it: `sub`, `email`, `act.sub`.")
    ] = "sub"
    oidc_groups_claim: Annotated[
        str,
        _description(
            "For `oidc`: claim with the caller's groups, a list or words separated by blanks, or the path to"
            " it: `groups`, `realm_access.roles`, `scope`."
        ),
    ] = "groups"
    mtls_principal_rules: Annotated[
        str,
        _description(
            "For `mtls`: rules that map a certificate to a caller, separated by commas; the first that matches"
            " decides: `RULE:^CN=([^,]+).*$/$1/L` on the distinguished name,"
            " `SAN:^URI:spiffe://example.org/(.+)$/$1/` on alternative names, `DEFAULT` for the whole"
            " distinguished name; `L` or `U` at the end change the case."
        ),
    ] = "DEFAULT"
    tls_certificate: Annotated[
        str,
        _description(
            "PEM file with the certificate of this server and its chain; turns on TLS; read again when it changes."
        ),
    ] = ""
    tls_key: Annotated[
        str, _description("PEM file with the key of the certificate; empty: the key is in the same file.")
    ] = ""
    tls_client_ca: Annotated[
        str,
        _description(
            "PEM file with the authorities whose client certificates are accepted; empty: no client certificates."
        ),
    ] = ""
    tls_client_required: Annotated[
        bool, _description("Refuse connections without a client certificate of `tls_client_ca`.")
    ] = False
    audit_file: Annotated[
        str,
        _description(
            "File for the audit trail, JSON lines; empty: `audit.jsonl` in `state_dir` if the trail is"
            " forwarded, else no trail."
        ),
    ] = ""
    audit_file_bytes: Annotated[
        int, _description("Length after which a new file of the audit trail begins, bytes.", ge=4096)
    ] = 100 * 1024 * 1024
    audit_files: Annotated[
        int, _description("Number of full files of the audit trail that are kept.", ge=1, le=1_000_000)
    ] = 10
    refusals_kept: Annotated[
        int,
        _description(
            "Number of refused registrations that each process keeps in memory if there is no audit trail.",
            ge=0,
            le=10_000,
        ),
    ] = 200
    refused_text_bytes: Annotated[
        int,
        _description(
            "Longest text of a refused schema that the audit trail keeps, bytes; 0: digests only.",
            ge=0,
            le=65_536,
        ),
    ] = 0
    audit_key: Annotated[
        str,
        _description("Secret key that authenticates the audit trail: `file:/path`, `env:NAME`; empty: none."),
    ] = ""
    audit_syslog: Annotated[
        str,
        _description(
            "Syslog server (RFC 5424) that the audit trail is forwarded to: `udp://host:port`, `tcp://host:port`."
        ),
    ] = ""
    audit_webhook: Annotated[str, _description("URL that the audit trail is forwarded to by POST.")] = ""
    public_url: Annotated[
        str,
        _description(
            "Address of this server for clients, with any prefix, used in links; empty: the address of each request."
        ),
    ] = ""
    known_registries: Annotated[
        tuple[str, ...],
        _description("URLs of other xRegistry servers, listed at `/xregistry/.xregistry`; comma list."),
    ] = ()
    workers: Annotated[int, _description("Number of worker processes.", ge=1, le=64)] = 1
    cors_origins: Annotated[
        tuple[str, ...],
        _description(
            "Origins whose pages may read answers: `https://ui.example.org`, `*` for all; comma list; empty: none."
        ),
    ] = ()
    allowed_hosts: Annotated[
        tuple[str, ...],
        _description(
            "Host names this server answers to, besides addresses and names without a dot:"
            " `registry.example.org`, `*.example.org`, `*` for all; comma list; empty: all, but none on"
            " connections to loopback addresses."
        ),
    ] = ()
    trusted_proxies: Annotated[
        tuple[str, ...],
        _description(
            "Proxies, by address or network, whose `X-Forwarded-For` and `X-Forwarded-Proto` are used:"
            " `10.0.0.0/8`; comma list; empty: none."
        ),
    ] = ()
    outgoing_networks: Annotated[
        tuple[str, ...],
        _description(
            "Networks, besides public addresses, to which the server may send its own requests, such as those"
            " to webhooks and brokers: `10.1.0.0/16`; comma list; empty: none."
        ),
    ] = ()
    event_brokers: Annotated[
        tuple[str, ...],
        _description("Kafka brokers that subscriptions may send events to: `broker:9092`; comma list; empty: none."),
    ] = ()
    event_delivery: Annotated[
        bool, _description("Send events to subscribers from this node if no other node does.")
    ] = True
    webhook_consent: Annotated[
        bool,
        _description("Ask a webhook for its consent (OPTIONS, `WebHook-Request-Origin`) before the first event."),
    ] = True
    ui: Annotated[bool, _description("Serve the web pages at `/ui`.")] = True
    ui_read_only: Annotated[
        bool, _description("Pages offer no changes and refuse requests for changes. The APIs still accept them.")
    ] = False
    ui_session_seconds: Annotated[
        int,
        _description(
            "Time until a login to the pages expires, seconds; 0: pages have no login.",
            ge=0,
            le=30 * 86_400,
        ),
    ] = 8 * 3600
    ui_session_key: Annotated[
        str,
        _description(
            "Key that encrypts the sessions of the pages, the same on all nodes: `file:/path`, `env:NAME`;"
            " empty: a new key at each start."
        ),
    ] = ""
    ui_pipelines: Annotated[
        str,
        _description("Folder that contains the checkpoints of pipelines, whose journals the pages show; empty: none."),
    ] = ""
    ui_environment: Annotated[
        str, _description("Name of the environment, shown on every page: `production`; empty: none.", max_length=100)
    ] = ""
    ui_environment_color: Annotated[
        str, _description("Colour of the strip with that name: `#b00020`; empty: a neutral colour.")
    ] = ""
    cache_seconds: Annotated[
        int,
        _description(
            "Time for which caches keep a schema read by id or GUID without revalidation, even if it is"
            " deleted, seconds; 0: never.",
            ge=0,
            le=31_536_000,
        ),
    ] = 86_400
    answer_cache_bytes: Annotated[
        int,
        _description("Memory per process for cached answers, bytes; 0: no cache.", ge=0),
    ] = 64 * 1024 * 1024
    compression_bytes: Annotated[
        int, _description("Shortest answer that is compressed (gzip, zstd), bytes; 0: never.", ge=0)
    ] = 1024
    testing: Annotated[bool, _description("Empty the registry on SIGUSR1; for memory stores only.")] = False
    log_level: Annotated[Literal["debug", "info", "warning", "error"], _description("Lowest level that is logged.")] = (
        "info"
    )
    otel: Annotated[
        bool,
        _description(
            "Send traces and metrics by OTLP, as configured by the `OTEL_*` variables; needs the extra `otel`."
        ),
    ] = False
    log_format: Annotated[Literal["console", "json"], _description("Format of log lines.")] = "console"
    max_connections: Annotated[
        int,
        _description(
            "Open connections per process; beyond that, the connection that is idle for the longest time is closed.",
            ge=1,
        ),
    ] = 2048
    max_address_connections: Annotated[
        int, _description("Open connections per process and client address (for a proxy: its address).", ge=1)
    ] = 1024
    max_header_bytes: Annotated[
        int, _description("Longest head of a request, bytes (431).", ge=1024, le=16_777_216)
    ] = 65_536
    max_headers: Annotated[int, _description("Most header fields of a request (431).", ge=10, le=10_000)] = 100
    requests_per_second: Annotated[
        float,
        _description(
            "Requests per second that one caller may send on average; a caller is a principal or, without one,"
            " an address; further requests are refused (429); 0: no limit.",
            ge=0,
        ),
    ] = 0
    requests_burst: Annotated[int, _description("Requests that one caller may send at once.", ge=1)] = 1000
    changes_per_second: Annotated[
        float,
        _description("The same for requests other than GET, HEAD and OPTIONS (429); 0: no limit.", ge=0),
    ] = 0
    changes_burst: Annotated[int, _description("Such requests that one caller may send at once.", ge=1)] = 100
    header_seconds: Annotated[
        int, _description("Time for the head of a request to arrive, seconds (408).", ge=1, le=86_400)
    ] = 10
    body_seconds: Annotated[
        int, _description("Time for the body of a request to arrive, seconds (408).", ge=1, le=86_400)
    ] = 60
    idle_seconds: Annotated[
        int, _description("Time after which a connection without a request is closed, seconds.", ge=1, le=86_400)
    ] = 60
    request_seconds: Annotated[
        int, _description("Time after which a request is cancelled, seconds (503).", ge=1, le=86_400)
    ] = 60
    work_threads: Annotated[
        int, _description("Threads per process that parse and compare registered schemas.", ge=1, le=64)
    ] = 4
    work_waiting: Annotated[
        int, _description("Calls that may wait for such a thread; further calls are refused (503).", ge=0, le=1_000_000)
    ] = 1000
    stateless_threads: Annotated[
        int,
        _description(
            "Threads per process for work that registers nothing, such as checks and conversions.", ge=1, le=64
        ),
    ] = 2
    stateless_waiting: Annotated[
        int, _description("Calls that may wait for such a thread; further calls are refused (503).", ge=0, le=1_000_000)
    ] = 32
    process_bytes: Annotated[
        int,
        _description(
            "Length from which the body of a check or conversion is processed in a separate process, bytes;"
            " there are as many processes as such threads; 0: always in threads.",
            ge=0,
        ),
    ] = 16 * 1024
    shutdown_seconds: Annotated[int, _description("Time for open requests to finish after SIGTERM, seconds.", ge=0)] = (
        10
    )
    max_schema_bytes: Annotated[int, _description("Longest schema text, bytes of UTF-8.", ge=1)] = 1024 * 1024
    max_request_bytes: Annotated[int, _description("Longest request body, bytes.", ge=1)] = 16 * 1024 * 1024
    max_references: Annotated[
        int, _description("Direct and indirect references of one schema; a chain of them may have at most 200.", ge=0)
    ] = 1000
    max_versions: Annotated[int, _description("Versions of one subject, soft-deleted ones included.", ge=1)] = 100_000
    max_schemas: Annotated[int, _description("Different schema texts in the registry.", ge=1)] = 10_000_000
    max_text_bytes: Annotated[
        int, _description("Total length of all schema texts before compression, bytes.", ge=1)
    ] = 16 * 1024**3
    max_waiting_writes: Annotated[
        int,
        _description(
            "Changes per process that may wait for the store; further changes are refused (503).", ge=1, le=1_000_000
        ),
    ] = 4096
    max_caller_schemas: Annotated[
        int,
        _description(
            "Versions registered by one caller, including soft-deleted ones, that are not deleted for good;"
            " super users have no limit; 0: no limit.",
            ge=0,
        ),
    ] = 0
    max_caller_bytes: Annotated[
        int, _description("Total length of the texts of those versions, bytes; 0: no limit.", ge=0)
    ] = 0
    max_associations: Annotated[int, _description("Associations of subjects with topics.", ge=0)] = 100_000
    max_keys: Annotated[int, _description("Keys of each kind in the DEK registry.", ge=0)] = 10_000
    max_places: Annotated[int, _description("Topics, tables and paths whose last census is recorded.", ge=0)] = 10_000
    undecided: Annotated[
        Literal["refuse", "allow"],
        _description("Decision on a change that no rule can decide: refuse it, or allow it with a warning."),
    ] = "refuse"
    mode_mutable: Annotated[bool, _description("Whether modes can be changed through the dialects.")] = True
    confluent_incompatible_code: Annotated[
        Literal[409, 40901] | None,
        _description(
            "`error_code` of a refused schema in the Confluent dialect (its HTTP status is 409); by default"
            " that of the profile."
        ),
    ] = None
    confluent_profile: Annotated[
        Literal["7.9", "8.0", "8.1", "8.2", "8.3", "8.4", "redpanda", "karapace"],
        _description("Release of Confluent, or other registry, whose behaviour the Confluent dialect imitates."),
    ] = "8.1"

    schema_repo_ids: Annotated[
        str,
        _description("Ids in the AVRO-1124 and schema-repo dialects: `sequential`, `md5`, `crc-64-avro` or a plug-in."),
    ] = "sequential"
    schema_repo_validators: Annotated[
        str, _description("Validators (comma list) of schema-repo subjects created without `repo.validators`.")
    ] = ""
    schema_repo_models: Annotated[
        str, _description("Additional compatibility models and validators: `db_policy=full,lint; noop=none`.")
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
            raise InvalidRequest(f"settings: {name}: it is not a valid {shape}")
    if settings.ui_environment_color and not _COLOR.fullmatch(settings.ui_environment_color):
        raise InvalidRequest("settings: ui_environment_color: write a colour as #b00020")
    for origin in settings.cors_origins:
        if origin != "*" and not _ORIGIN.fullmatch(origin):
            raise InvalidRequest(f"settings: cors_origins: {origin!r} is not an origin such as https://ui.example.org")
    for host in settings.allowed_hosts:
        if not _HOST.fullmatch(host):
            raise InvalidRequest(f"settings: allowed_hosts: {host!r} is not a name such as registry.example.org")
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
        raise InvalidRequest(
            "settings: several workers need a store they share; a memory: store belongs to one process"
        )
    return settings


def _check_addresses(settings: ServerSettings) -> None:
    """Raise `InvalidRequest` for malformed URLs and networks."""
    for url in settings.known_registries:
        if urlsplit(url).scheme not in {"http", "https"} or not urlsplit(url).hostname:
            raise InvalidRequest(
                f"settings: known_registries: {url!r} is not a URL such as https://registry.example.org/x"
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

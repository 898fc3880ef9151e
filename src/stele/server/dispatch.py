"""The outermost ASGI application: what happens to every request before and after a dialect handles it.

It uses the raw path (a `%2F` inside a name survives) and handles HEAD as GET without a body. It dispatches by the first
path segments to one application per dialect, authenticates the caller, adds request ids, and writes metrics and logs.
It also returns cached responses (`answer_cache`).
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import count
from textwrap import shorten
from types import MappingProxyType
from typing import Final, NamedTuple
from urllib.parse import unquote

import structlog
from structlog.typing import FilteringBoundLogger

from stele.apis.http.dependencies import find_dependencies, is_repeatable
from stele.apis.http.errors import error_message
from stele.apis.http.media_types import bare_media_type, is_preferred
from stele.apis.http.requests import ERROR, MOUNTED_PREFIX, PRINCIPAL, REFUSAL, REQUEST_SECONDS, SHORT_BODY, decode_path
from stele.errors import Forbidden, ForeignSite, Overloaded, SteleError, TooManyRequests, Unauthenticated, Unavailable
from stele.server.answer_cache import (
    KEY_HEADERS,
    AnswerKey,
    CachedAnswer,
    ResponseCache,
    make_answer,
    make_key,
    select_key_headers,
)
from stele.server.asgi import App, AsgiScope, Message, Receive, ReceivedRequest, Send
from stele.server.authentication.credentials import CREDENTIAL_HEADERS
from stele.server.browser_sessions import BrowserSessions
from stele.server.metrics import UNMATCHED, Metrics
from stele.server.rate_limits import RateLimiter
from stele.server.request_bodies import read_short_body
from stele.server.site_guard import SiteGuard
from stele.service.access import (
    ANONYMOUS,
    CALLER,
    Authenticator,
    Caller,
    Headers,
    PresentedCredentials,
    Principal,
)

_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}\Z")
_REQUEST_ID_HEADER: Final = b"x-request-id"
_RETRY_AFTER = (b"retry-after", b"1")
PEER_CERTIFICATE: Final = "stele.certificate"
"""Key of the ASGI scope under which a connection stores the certificate of its client; absent: there is none."""
NO_SNIFFING = (b"x-content-type-options", b"nosniff")
"""Keeps browsers from treating a response as a page or a script when its content type is another one."""
PAGES = "/ui"
"""Path of the web pages, which accept sessions as credentials."""
_KEPT_STATUS = frozenset({200, 304})
"""Status codes of responses that may be cached."""
_CLIENT_LEFT = 499
"""Status code under which requests are counted whose client disconnected before the response."""
_MEDIA_HEADERS = frozenset({b"accept", b"content-type"})
_SUBJECT_NAMES = ("subject", "group", "schema")
"""Names of path parameters for a subject in the dialects."""
_REASON_CHARACTERS = 300
_AGENT_BYTES = 200
_SLOW_HEADERS = frozenset(
    {b"content-length", b"transfer-encoding", b"expect", b"upgrade", b"origin", b"x-forwarded-proto"}
)
"""Headers of requests that are not answered at once: they announce a body, or more than the cache reads them."""
_DRAINED_BYTES = 64 * 1024 * 1024
"""Bytes of a refused body that are still read, so that the client receives the error instead of a broken connection."""


class MountedDialect(NamedTuple):
    """A dialect's application, its name in metrics, and the path prefix that clients omit on a port of its own."""

    dialect: str
    app: App
    root: str = ""


class _Target(NamedTuple):
    """The dialect that handles a request, the path for it, and the prefix that was removed from the path."""

    mount: MountedDialect
    path: str
    base: str = ""


class Dispatcher:
    """The outermost application.

    mounts     dialects by the beginning of the path, one segment or two (`v1`, `v1/metadata`); the longer one wins
    fallback   dialect for all other paths
    names      dialects by name, for paths whose first segment is no beginning in `mounts` (`/pravega/v1/groups`)
    ports      dialects that have a port of their own
    media      media types by which clients select another dialect on paths of the fallback: as the type of their body,
               or as the type that they prefer to receive
    """

    def __init__(
        self,
        mounts: Mapping[str, MountedDialect],
        fallback: MountedDialect,
        metrics: Metrics,
        *,
        cache: ResponseCache | None = None,
        repeatable: Sequence[str] = (),
        names: Mapping[str, MountedDialect] = MappingProxyType({}),
        ports: Mapping[int, MountedDialect] = MappingProxyType({}),
        media: Mapping[str, MountedDialect] = MappingProxyType({}),
        authenticator: Authenticator | None = None,
        guard: SiteGuard | None = None,
        rates: RateLimiter | None = None,
        request_seconds: float | None = None,
        note_refusal: Callable[[Caller, AsgiScope, int, SteleError], None] | None = None,
        sessions: BrowserSessions | None = None,
    ) -> None:
        self._sessions = sessions
        """Sessions of users who logged in to the pages; None: users cannot log in."""
        self._note_refusal = note_refusal
        self.mounts = dict(mounts)
        self._fallback = fallback
        self._metrics = metrics
        self.cache = cache
        self._repeatable = tuple(repeatable)
        self._repeatable_targets = tuple(path.encode("ascii") for path in repeatable)
        self._names = names
        self._ports = ports
        self._media = {name.encode("ascii"): mount for name, mount in media.items()}
        self._authenticator = authenticator
        """Authenticates callers; None: every caller is anonymous."""
        self._guard = guard
        self._rates = rates if rates is not None and rates.is_limiting else None
        self._slow_headers = _SLOW_HEADERS if self._rates is None else _SLOW_HEADERS | {b"x-forwarded-for"}
        if sessions is not None:
            self._slow_headers |= {b"cookie"}  # it may contain credentials
        # Every POST is logged with the address of its client, which a proxy puts into a header.
        self._slow_headers_of_posts = (self._slow_headers | {b"x-forwarded-for"}) - {b"content-length"}
        self._request_seconds = request_seconds
        self._logger: FilteringBoundLogger = structlog.get_logger("stele.requests").bind()
        """Bound once, because binding takes as long as returning a cached response."""

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        if self._sessions is not None:
            scope = self._add_credentials(self._sessions, scope)
        headers = scope["headers"]
        principal, refusal = await self.identify_caller(scope)
        if not isinstance(refusal, TooManyRequests | ForeignSite):
            refusal = self._find_excess(principal, _find_address(scope), scope["method"]) or refusal
        if isinstance(refusal, TooManyRequests):
            self._metrics.count_limited_request(refusal.rate)
        key = None
        if self.cache is not None and refusal is None:
            key, receive = await self._identify_request(scope, receive, principal)
            if key is not None:
                answer = await self.cache.find_after_catching_up(key, self._request_seconds)
                if answer is not None:
                    await self._send_cached(answer, scope, send, principal, started)
                    return
        own = self._ports.get(scope["server"][1]) if self._ports else None
        path = _decode_path(scope)
        target = (
            self._by_media_type(self._find_target(path), headers) if own is None else self._serve_at_root(own, path)
        )
        inner = {
            **scope,
            "path": target.path,
            PRINCIPAL: principal,
            MOUNTED_PREFIX: target.base,
            REQUEST_SECONDS: self._request_seconds,
            REFUSAL: refusal,
        }
        await self._dispatch(scope, inner, receive, send, target.mount, started, key)

    def _add_credentials(self, sessions: BrowserSessions, scope: AsgiScope) -> AsgiScope:
        """Return a request for a page with the credentials of its session added, other requests unchanged."""
        path, own = scope["path"], self._ports.get((scope.get("server") or ("", 0))[1])
        is_page = own.root == PAGES if own is not None else path == PAGES or path.startswith(f"{PAGES}/")
        if not is_page or any(name in CREDENTIAL_HEADERS for name, _ in scope["headers"]):
            return scope
        header = sessions.find_credentials(scope["method"], scope["headers"])
        return scope if header is None else {**scope, "headers": [*scope["headers"], header]}

    async def identify_caller(self, scope: AsgiScope) -> tuple[Principal, SteleError | None]:
        """Return the principal of a request, and the error if the request is refused before it is handled."""
        headers = scope["headers"]
        address, port = scope.get("server") or ("", 0)
        if self._guard is not None:
            foreign = self._guard.find_refusal(scope["method"], headers, address)
            if foreign is not None:
                return ANONYMOUS, foreign
        if self._authenticator is None:
            return ANONYMOUS, None
        client = _find_address(scope)
        presented = PresentedCredentials(headers, port or 0, client, scope.get(PEER_CERTIFICATE))
        principal: Principal | None = None
        refusal: SteleError | None = None
        try:
            principal = self._authenticator.find_principal(presented)
            if principal is None:
                # Verifying a password is expensive, and guessing takes many attempts. Each one counts for its address.
                refusal = self._find_excess(ANONYMOUS, client, scope["method"])
            if principal is None and refusal is None:
                async with asyncio.timeout(self._request_seconds):
                    principal = await self._authenticator.authenticate(presented)
        except (Unauthenticated, Unavailable) as error:
            refusal = error
        except TimeoutError:
            refusal = Overloaded("authentication took longer than request_seconds")
        return principal or ANONYMOUS, refusal

    def _find_excess(self, principal: Principal, address: str, method: str) -> TooManyRequests | None:
        """Count a request where there are rate limits. Return the error if the request exceeds one."""
        return self._rates.find_refusal(principal, address, method) if self._rates is not None else None

    def list_challenges(self, scope: AsgiScope) -> list[tuple[bytes, bytes]]:
        """Return the headers of a 401 that name the ways in which a caller can authenticate."""
        if self._authenticator is None:
            return []
        port = (scope.get("server") or ("", 0))[1] or 0
        return [(b"www-authenticate", challenge) for challenge in self._authenticator.list_challenges(port)]

    def find_answer_at_once(self, request: ReceivedRequest) -> tuple[bytes, bytes, bytes] | None:
        """Return a cached response in the form of HTTP/1.1, and count it; None: the request is handled normally.

        Returns:
            The status line; the headers, without an empty line at their end; the body.
        """
        started = time.perf_counter()
        cache, is_read = self.cache, request.method == "GET"
        if cache is None or not (is_read or request.target.startswith(self._repeatable_targets)):
            return None
        slow = self._slow_headers if is_read else self._slow_headers_of_posts
        key_headers, credentials, host, given_id = [], [], b"", b""
        for pair in request.headers:
            name = pair[0]
            if name in KEY_HEADERS:
                key_headers.append(pair)
                if name == b"host":
                    host = pair[1]
            elif name in slow:
                return None
            elif name in CREDENTIAL_HEADERS:
                credentials.append(pair)
            elif name == _REQUEST_ID_HEADER:
                given_id = given_id or pair[1]
        if self._guard is not None and not self._guard.knows_host(host, request.address):
            return None
        principal = self._find_principal_at_once(request, credentials)
        if principal is None:
            return None
        digest = b"" if is_read else sha256(request.body).digest()
        answer = cache.find_answer(
            make_key(request.method, request.target, key_headers, request.place, principal, digest)
        )
        # Where access rules name addresses, the headers of proxies must be read first.
        if answer is None or not answer.raw_headers or answer.position.rules.has_hosts:
            return None
        if self._rates is not None and self._rates.find_refusal(principal, request.client, request.method) is not None:
            return None
        request_id = _choose_request_id(given_id)
        answer.counter.count_cached(started)
        if not is_read:
            path = unquote(request.target.partition(b"?")[0].decode("ascii"))
            scope = {"method": request.method, "path": path}
            who, status = principal.name or request.client, answer.head["status"]
            self._log_request(scope, answer.dialect, status, started, request_id, caller=who, subject=answer.subject)
        return answer.status_line, b"%bx-request-id: %b\r\n" % (answer.raw_headers, request_id), answer.body["body"]

    def _find_principal_at_once(
        self, request: ReceivedRequest, credentials: list[tuple[bytes, bytes]]
    ) -> Principal | None:
        """Return the principal of a request with these credential headers; None: that needs waiting, or is refused."""
        authenticator, port = self._authenticator, request.place[1]
        if authenticator is None:
            return ANONYMOUS
        if len(credentials) == 1:
            return authenticator.find_known_principal(credentials[0], port)
        try:
            presented = PresentedCredentials(request.headers, port, request.client, request.certificate)
            return authenticator.find_principal(presented)
        except Unauthenticated:
            return None

    async def _identify_request(
        self, scope: AsgiScope, receive: Receive, principal: Principal
    ) -> tuple[AnswerKey | None, Receive]:
        """Return the cache key of a request, None if its response cannot be cached; and the `receive` to use.

        The body of such a POST is read for its key; the returned `receive` yields it again.
        """
        method, digest = scope["method"], b""
        if method == "POST" and scope["path"].startswith(self._repeatable):
            body = scope.get(SHORT_BODY)
            if body is None:
                body, receive = await read_short_body(scope["headers"], receive)
                if body is None:
                    return None, receive
                scope[SHORT_BODY] = body
            digest = sha256(body).digest()
        elif method != "GET":
            return None, receive
        target = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
        if scope["query_string"]:
            target = b"%b?%b" % (target, scope["query_string"])
        place = scope.get("scheme", "http"), (scope.get("server") or ("", 0))[1]
        assert self.cache is not None
        caller = self.cache.make_caller_key(principal, _find_address(scope))
        return make_key(method, target, select_key_headers(scope["headers"]), place, caller, digest), receive

    async def _send_cached(
        self, answer: CachedAnswer, scope: AsgiScope, send: Send, principal: Principal, started: float
    ) -> None:
        request_id = _make_request_id(scope["headers"])
        await send({**answer.head, "headers": [*answer.head["headers"], (b"x-request-id", request_id)]})
        await send(answer.body)
        answer.counter.count_cached(started)
        who = _describe_caller(principal, scope)
        status = answer.head["status"]
        self._log_request(scope, answer.dialect, status, started, request_id, caller=who, subject=answer.subject)

    def _log_request(
        self, scope: AsgiScope, dialect: str, status: int, started: float, request_id: bytes, **details: str
    ) -> None:
        logger, is_write = self._logger, scope["method"] not in {"GET", "HEAD", "OPTIONS"}
        # A client that sends too many requests must not fill the log. A metric counts its requests.
        log = logger.error if status >= 500 else logger.info if is_write and status != 429 else logger.debug
        log(
            "request",
            dialect=dialect,
            method=scope["method"],
            path=scope["path"],
            status=status,
            ms=round((time.perf_counter() - started) * 1000, 2),
            request_id=request_id.decode("ascii"),
            **{name: value for name, value in details.items() if value},
        )

    def _find_mount(self, segments: list[str]) -> MountedDialect | None:
        return self.mounts.get("/".join(segments[:2])) or self.mounts.get(segments[0])

    def _serve_at_root(self, own: MountedDialect, path: str) -> _Target:
        """Return the target of a request on a port that belongs to one dialect."""
        whole = path.startswith("/_docs/") or self._find_mount(path[1:].split("/", 2)) is own
        return _Target(own, path if whole else own.root + path)

    def _find_target(self, path: str) -> _Target:
        segments = path[1:].split("/", 2)
        mount = self._find_mount(segments)
        if mount is not None:
            return _Target(mount, path)
        if path.startswith("/_docs/"):
            return _Target(self._names.get(segments[1], self._fallback), path)
        named = self._names.get(segments[0])
        if named is None:
            return _Target(self._fallback, path)
        base = f"/{segments[0]}"
        return _Target(named, path.removeprefix(base) or "/", base)

    def _by_media_type(self, target: _Target, headers: Headers) -> _Target:
        """Return the target; on paths of the fallback, the dialect whose media type the client names."""
        if target.mount is not self._fallback or target.base or target.path.startswith("/_docs/"):
            return target
        media_headers = [(name, value.lower()) for name, value in headers if name in _MEDIA_HEADERS]
        for media_type, mount in self._media.items():
            if any(media_type in value for _, value in media_headers) and _names_media_type(
                media_headers, media_type.decode("ascii")
            ):
                return target._replace(mount=mount)
        return target

    async def _dispatch(
        self,
        scope: AsgiScope,
        inner: AsgiScope,
        receive: Receive,
        send: Send,
        mount: MountedDialect,
        started: float,
        key: AnswerKey | None,
    ) -> None:
        answer = _AnswerTracker(
            receive,
            send,
            _make_request_id(scope["headers"]),
            lambda: self.list_challenges(scope),
            head=scope["method"] == "HEAD",
        )
        caller = _make_caller(inner, mount.dialect, answer.request_id)
        asking = CALLER.set(caller)
        position = self.cache.mark_position() if self.cache is not None and key is not None else None
        if answer.head:
            inner["method"] = "GET"
        try:
            await mount.app(inner, answer.receive, answer)
        except asyncio.CancelledError:
            answer.status = _CLIENT_LEFT
            raise
        finally:
            CALLER.reset(asking)
            route = str(inner.get("path_template") or UNMATCHED)
            counter = self._metrics.get_counter(mount.dialect, route, scope["method"], answer.status)
            counter.count_request(time.perf_counter() - started)
            subject = _find_subject(inner)
            details = {"caller": _describe_caller(inner[PRINCIPAL], inner), "reason": _describe_error(inner)}
            self._log_request(
                scope, mount.dialect, answer.status, started, answer.request_id, subject=subject, **details
            )
            if self._note_refusal is not None and isinstance(error := inner.get(ERROR), Unauthenticated | Forbidden):
                self._note_refusal(caller, inner, answer.status, error)
        if self.cache is not None and key is not None and position is not None:
            self._metrics.count_miss()
            if answer.kept is not None and is_repeatable(inner):
                needs = find_dependencies(inner)
                cached_answer = make_answer(key, answer.kept, position, needs, counter, mount.dialect, subject)
                self.cache.keep_answer(key, cached_answer)


class _AnswerTracker:
    """The `send` of a dialect: adds the request id, records the status, and omits the body of a HEAD."""

    def __init__(
        self,
        receive: Receive,
        send: Send,
        request_id: bytes,
        list_challenges: Callable[[], list[tuple[bytes, bytes]]],
        *,
        head: bool,
    ) -> None:
        self._receive = receive
        self._unread = True
        self._send = send
        self.request_id = request_id
        self._list_challenges = list_challenges
        self.head = head
        self.status = 500
        self.kept: tuple[Message, Message] | None = None
        """The response of the dialect in two messages, if it can be cached: status 200 or 304, and complete."""
        self._start: Message = {}

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.status == 413:
                await self._drain_body()
            headers = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"x-request-id"]
            headers.append(NO_SNIFFING)
            if self.status == 503:
                headers.append(_RETRY_AFTER)
            elif self.status == 401:
                headers.extend(self._list_challenges())
            self._start = {**message, "headers": headers}
            message = {**message, "headers": [*headers, (b"x-request-id", self.request_id)]}
        elif self.head and message["type"] == "http.response.body":
            message = {"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)}
        elif message["type"] == "http.response.body" and self.status in _KEPT_STATUS:
            # A response is complete if its last part is also its first one.
            is_whole = self._start and not message.get("more_body", False)
            body = {"type": "http.response.body", "body": message.get("body", b"")}
            self.kept = (self._start, body) if is_whole else None
            self._start = {}
        await self._send(message)

    async def receive(self) -> Message:
        """Return the next message from the client, and record whether the body has ended; nothing follows its end."""
        message = await self._receive()
        self._unread = bool(message.get("more_body", False))
        return message

    async def _drain_body(self) -> None:
        left = _DRAINED_BYTES
        while self._unread and left > 0:
            left -= len((await self.receive()).get("body", b""))


def _make_caller(scope: AsgiScope, dialect: str, request_id: bytes) -> Caller:
    """Return the caller of a request, as far as the server knows it."""
    agent = next((value for name, value in scope["headers"] if name == b"user-agent"), b"")
    return Caller(
        scope[PRINCIPAL], _find_address(scope), dialect, agent[:_AGENT_BYTES].decode("latin-1"), request_id.decode()
    )


def _describe_caller(principal: Principal, scope: AsgiScope) -> str:
    """Return the name of the caller, else its address."""
    return principal.name or _find_address(scope)


def _find_address(scope: AsgiScope) -> str:
    """Return the address a request came from, '' when it is not known."""
    client = scope.get("client")
    return str(client[0]) if client else ""


def _find_subject(scope: AsgiScope) -> str:
    """Return the name of the subject in the path of a request, '' if there is none."""
    names = scope.get("path_params") or {}
    return next((str(names[name]) for name in _SUBJECT_NAMES if name in names), "")


def _describe_error(scope: AsgiScope) -> str:
    """Return the message of the error that a request was refused with, shortened; '' if there is none."""
    error = scope.get(ERROR)
    return "" if error is None else shorten(error_message(error), _REASON_CHARACTERS, placeholder=" …")


def _names_media_type(headers: Iterable[tuple[bytes, bytes]], media_type: str) -> bool:
    """Return whether headers select a media type: as the type of the body, or as the type the client prefers."""
    accept = ", ".join(value.decode("latin-1") for name, value in headers if name == b"accept")
    sent = (bare_media_type(value.decode("latin-1")) for name, value in headers if name == b"content-type")
    return media_type in sent or is_preferred(accept, media_type)


def _decode_path(scope: AsgiScope) -> str:
    """Return the decoded path, in which slashes inside a name differ from those between segments."""
    raw: bytes = scope.get("raw_path") or b""
    return decode_path(raw.split(b"?", 1)[0]) if b"%" in raw else str(scope["path"])


def _make_request_id(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    return _choose_request_id(next((value for name, value in headers if name == _REQUEST_ID_HEADER), b""))


def _choose_request_id(request_id: bytes) -> bytes:
    """Return the id that a client has sent if it is valid, else a new one."""
    return request_id if request_id and _REQUEST_ID.match(request_id) else next(_unique_ids)


def _number_ids() -> Iterator[bytes]:
    """Yield ids of 32 hexadecimal digits that no other process yields: a random prefix and a number."""
    prefix = os.urandom(8).hex()
    return (f"{prefix}{number:016x}".encode() for number in count())


_unique_ids = _number_ids()


def _begin_ids_anew() -> None:
    """Choose a new prefix for request ids in a forked process, different from that of its parent."""
    global _unique_ids  # noqa: PLW0603 - the process has one
    _unique_ids = _number_ids()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_ids_anew)

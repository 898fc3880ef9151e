"""The ASGI front: what happens to every request before and after a dialect sees it.

Raw path (a `%2F` inside a name survives), HEAD as GET without a body, dispatch by first path segment to one application
per dialect, who is asking, request ids, metrics and logs; and the one read so hot that it is answered right here.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from textwrap import shorten
from types import MappingProxyType
from typing import NamedTuple

import msgspec
import structlog

from stele.apis.http.errors import error_message
from stele.apis.http.media_types import bare_media_type, is_preferred
from stele.apis.http.prebuilt import PrebuiltAnswer
from stele.apis.http.requests import ERROR, MOUNTED_PREFIX, PRINCIPAL, REQUEST_SECONDS, decode_path
from stele.errors import Unauthenticated
from stele.server.answers import AnswerOptions, find_prebuilt_variant, matches_tag, not_modified
from stele.server.asgi import App, AsgiScope, Message, Receive, Send
from stele.server.metrics import UNMATCHED, Metrics
from stele.service.access import Authenticator, Headers, authenticate_anyone

_logger = structlog.get_logger("stele.requests")
_REQUEST_ID = re.compile(rb"[\x21-\x7e]{1,128}\Z")
_PREBUILT_TYPES = (b"*/*", b"application/vnd.schemaregistry.v1+json")
"""How the Accept header begins of clients that take prebuilt answers."""
_RETRY_AFTER = (b"retry-after", b"1")
_CLIENT_LEFT = 499
"""Status under which requests are counted whose client left before the answer."""
_MEDIA_HEADERS = frozenset({b"accept", b"content-type"})
_SUBJECT_NAMES = ("subject", "group", "schema")
"""What dialects call a subject in their paths."""
_REASON_CHARACTERS = 300
_DRAINED_BYTES = 64 * 1024 * 1024
"""What of a refused body is still read, so that the client gets to see the refusal instead of a broken connection."""


class MountedDialect(NamedTuple):
    """A dialect's application, its name in metrics, and what clients leave out of paths on a port of its own."""

    dialect: str
    app: App
    root: str = ""


class _Target(NamedTuple):
    """Who answers a request, under which path, and what was taken off the front of it."""

    mount: MountedDialect
    path: str
    base: str = ""


PrebuiltAnswers = Callable[[str], PrebuiltAnswer | None]
"""Prebuilt answers by path, or None."""


class Dispatcher:
    """The outermost application. `mounts` maps beginnings of paths to dialects; `fallback` takes the rest.

    A beginning is one segment or two (`v1`, `v1/metadata`); the longer one wins. names are the dialects a first segment
    that is nobody's beginning can name (`/pravega/v1/groups`); ports are those that belong to one dialect alone. media
    are types by which clients mean another dialect than the fallback on its paths: as that of their body, or as the one
    they would most like to get.
    """

    def __init__(
        self,
        mounts: Mapping[str, MountedDialect],
        fallback: MountedDialect,
        metrics: Metrics,
        *,
        hot: PrebuiltAnswers | None = None,
        names: Mapping[str, MountedDialect] = MappingProxyType({}),
        ports: Mapping[int, MountedDialect] = MappingProxyType({}),
        media: Mapping[str, MountedDialect] = MappingProxyType({}),
        authenticate: Authenticator = authenticate_anyone,
        options: AnswerOptions | None = None,
        request_seconds: float | None = None,
    ) -> None:
        self.mounts = dict(mounts)
        self._fallback = fallback
        self._metrics = metrics
        self._hot = hot
        self._names = names
        self._ports = ports
        self._media = {name.encode("ascii"): mount for name, mount in media.items()}
        self._authenticate = authenticate
        self._options = options or AnswerOptions()
        self._request_seconds = request_seconds

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = time.perf_counter()
        headers = scope["headers"]
        try:
            principal = self._authenticate(headers)
        except Unauthenticated as error:
            await _send_refusal(send, error)
            return
        own = self._ports.get(scope["server"][1]) if self._ports else None
        if self._hot is not None and own is None and scope["method"] == "GET" and not scope["query_string"]:
            prebuilt = self._hot(scope["path"])
            answer = None if prebuilt is None else self._fit_prebuilt(prebuilt, headers)
            if answer is not None:
                await send(answer[0])
                await send(answer[1])
                self._metrics.count_prebuilt(time.perf_counter() - started)
                return
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
        }
        await self._dispatch(scope, inner, receive, send, target.mount, started)

    def _fit_prebuilt(self, answer: PrebuiltAnswer, headers: Headers) -> tuple[Message, Message] | None:
        """A prebuilt answer as this client takes it; None when it wants another media type or dialect."""
        accepted = asked = request_id = b""
        for name, value in headers:
            if name in _MEDIA_HEADERS:
                if any(media_type in value.lower() for media_type in self._media):
                    return None
                if name == b"accept" and not value.startswith(_PREBUILT_TYPES):
                    return None
            elif name == b"accept-encoding":
                accepted = value
            elif name == b"if-none-match":
                asked = value
            elif name == b"x-request-id" and _REQUEST_ID.match(value):
                request_id = value
        head, body = answer.head, answer.body
        if asked and matches_tag(asked, head["headers"]):
            head, body = not_modified(head["headers"])
        elif accepted:
            encoding = self._options.choose_encoding(accepted, len(body["body"]))
            head, body = find_prebuilt_variant(answer, encoding)
        if request_id:
            head = {**head, "headers": [*head["headers"], (b"x-request-id", request_id)]}
        return head, body

    def _find_mount(self, segments: list[str]) -> MountedDialect | None:
        return self.mounts.get("/".join(segments[:2])) or self.mounts.get(segments[0])

    def _serve_at_root(self, own: MountedDialect, path: str) -> _Target:
        """A request on a port that is the dialect's own."""
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
        """The target, or on paths of the fallback the dialect whose media type the client names."""
        if target.mount is not self._fallback or target.base or target.path.startswith("/_docs/"):
            return target
        given = [(name, value.lower()) for name, value in headers if name in _MEDIA_HEADERS]
        for media_type, mount in self._media.items():
            if any(media_type in value for _, value in given) and _names_media_type(given, media_type.decode("ascii")):
                return target._replace(mount=mount)
        return target

    async def _dispatch(
        self, scope: AsgiScope, inner: AsgiScope, receive: Receive, send: Send, mount: MountedDialect, started: float
    ) -> None:
        answer = _AnswerTracker(receive, send, _make_request_id(scope), head=scope["method"] == "HEAD")
        if answer.head:
            inner["method"] = "GET"
        try:
            await mount.app(inner, answer.receive, answer)
        except asyncio.CancelledError:
            answer.status = _CLIENT_LEFT
            raise
        finally:
            seconds = time.perf_counter() - started
            route = str(inner.get("path_template") or UNMATCHED)
            self._metrics.count_request(mount.dialect, route, scope["method"], answer.status, seconds)
            log = _logger.error if answer.status >= 500 else _logger.info if _is_write(scope) else _logger.debug
            log(
                "request",
                dialect=mount.dialect,
                method=scope["method"],
                path=scope["path"],
                status=answer.status,
                ms=round(seconds * 1000, 2),
                request_id=answer.request_id.decode("ascii"),
                **_describe_request(inner),
            )


class _AnswerTracker:
    """The `send` of a dialect: adds the request id, notes the status, and leaves out the body of a HEAD."""

    def __init__(self, receive: Receive, send: Send, request_id: bytes, *, head: bool) -> None:
        self._receive = receive
        self._unread = True
        self._send = send
        self.request_id = request_id
        self.head = head
        self.status = 500

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            if self.status == 413:
                await self._drain_body()
            kept = [pair for pair in message.get("headers", ()) if pair[0].lower() != b"x-request-id"]
            if self.status == 503:
                kept.append(_RETRY_AFTER)
            message = {**message, "headers": [*kept, (b"x-request-id", self.request_id)]}
        elif self.head and message["type"] == "http.response.body":
            message = {"type": "http.response.body", "body": b"", "more_body": message.get("more_body", False)}
        await self._send(message)

    async def receive(self) -> Message:
        """The next message from the client, noting whether its body has come to an end: nothing follows that."""
        message = await self._receive()
        self._unread = bool(message.get("more_body", False))
        return message

    async def _drain_body(self) -> None:
        left = _DRAINED_BYTES
        while self._unread and left > 0:
            left -= len((await self.receive()).get("body", b""))


def _describe_request(scope: AsgiScope) -> dict[str, str]:
    """Return who asked about which subject, and why they were refused, as far as that is known."""
    client, error = scope.get("client"), scope.get(ERROR)
    caller = scope[PRINCIPAL].name or (client[0] if client else "")
    names = scope.get("path_params") or {}
    subject = next((str(names[name]) for name in _SUBJECT_NAMES if name in names), "")
    reason = "" if error is None else shorten(error_message(error), _REASON_CHARACTERS, placeholder=" …")
    said = {"caller": caller, "subject": subject, "reason": reason}
    return {name: value for name, value in said.items() if value}


def _names_media_type(given: Iterable[tuple[bytes, bytes]], media_type: str) -> bool:
    """Whether these headers name a media type: that of the body decides, else what the client would like to get."""
    accept = ", ".join(value.decode("latin-1") for name, value in given if name == b"accept")
    sent = (bare_media_type(value.decode("latin-1")) for name, value in given if name == b"content-type")
    return media_type in sent or is_preferred(accept, media_type)


def _decode_path(scope: AsgiScope) -> str:
    """The decoded path, with slashes that belong to a name told apart from those between segments."""
    raw: bytes = scope.get("raw_path") or b""
    return decode_path(raw.split(b"?", 1)[0]) if b"%" in raw else str(scope["path"])


def _make_request_id(scope: AsgiScope) -> bytes:
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    return given if _REQUEST_ID.match(given) else uuid.uuid4().hex.encode("ascii")


def _is_write(scope: AsgiScope) -> bool:
    return scope["method"] not in {"GET", "HEAD", "OPTIONS"}


async def _send_refusal(send: Send, error: Unauthenticated) -> None:
    body = msgspec.json.encode({"error_code": 401, "message": str(error)})
    headers = [(b"content-type", b"application/json"), (b"www-authenticate", b'Basic realm="stele"')]
    await send({"type": "http.response.start", "status": 401, "headers": headers})
    await send({"type": "http.response.body", "body": body})

"""The page at `/`: an overview of the server for browsers, and the same as JSON for programs that ask for it.

Clients of the Confluent API request `/` to check whether a registry is there, and get the empty object of that API.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from stele import __version__
from stele.apis.http.media_types import is_preferred
from stele.core.state import State
from stele.server.asgi import AsgiScope
from stele.server.dialects import DIALECTS
from stele.templates import render_template

_HTML = "text/html"
_JSON = "application/json"
_HEALTH = {"live": "/health/live", "ready": "/health/ready", "metrics": "/metrics"}


class IndexedDialect(msgspec.Struct, frozen=True):
    """An API of the server.

    Attributes:
        name: Its name in settings, metrics and prefixes.
        title: Its name for users.
        paths: Beginnings of its paths.
        prefix: Optional prefix of its paths, for use where another API has the same paths.
        openapi: Path of its OpenAPI document.
    """

    name: str
    title: str
    paths: Sequence[str]
    prefix: str
    openapi: str


class RegistryCounts(msgspec.Struct, frozen=True):
    """Number of objects in a registry.

    Attributes:
        schemas: Different schema texts.
        subjects: Subjects, including those with soft-deleted versions only.
        versions: Their versions, soft-deleted ones included.
        ids: Schema ids, of all namespaces.
        position: Sequence number of the newest record of the log.
    """

    schemas: int
    subjects: int
    versions: int
    ids: int
    position: int


class ServerIndex(msgspec.Struct, frozen=True):
    """The content of the page at `/`."""

    version: str
    status: str
    reason: str
    store: str
    schemas: int
    counts: RegistryCounts
    dialects: Sequence[IndexedDialect]
    health: dict[str, str]
    ui: str | None
    """Path of the web pages; None: this server has none."""


def choose_index_type(scope: AsgiScope) -> str:
    """Return the media type in which a request wants the index, '' for a request that does not want the index."""
    if scope["path"] != "/" or scope["method"] not in {"GET", "HEAD"}:
        return ""
    accept = b", ".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1").lower()
    if _HTML in accept and is_preferred(accept, _HTML):
        return _HTML
    return _JSON if _JSON in accept and "vnd." not in accept else ""


def count_contents(state: State) -> RegistryCounts:
    """Return the number of objects in a registry."""
    namespaces = state.namespaces.values()
    return RegistryCounts(
        schemas=len(state.contents),
        subjects=sum(len(namespace.subjects) for namespace in namespaces),
        versions=sum(len(subject.versions) for namespace in namespaces for subject in namespace.subjects.values()),
        ids=sum(len(namespace.schema_entries) for namespace in namespaces),
        position=state.seq,
    )


def render_index(
    media_type: str, status: str, reason: str, store: str, counts: RegistryCounts, *, has_pages: bool
) -> bytes:
    """Return the index of a server in one of the types that `choose_index_type` returns.

    Args:
        media_type: The type.
        status: Status of the server, as in `/health/ready`.
        reason: Why it is not ready; '' if it is.
        store: The kind of its store, such as `sqlite`.
        counts: Number of objects in it.
        has_pages: Whether it has web pages.
    """
    dialects = [
        IndexedDialect(
            entry.name,
            entry.title,
            [f"/{segment}" for segment in entry.segments] or ["/"],
            f"/{entry.name}",
            f"/_docs/{entry.name}/openapi.json",
        )
        for entry in DIALECTS
    ]
    index = ServerIndex(
        __version__, status, reason, store, counts.schemas, counts, dialects, _HEALTH, "/ui" if has_pages else None
    )
    if media_type == _JSON:
        return msgspec.json.encode(index)
    return render_template("stele.server", "index.html.j2", index=index).encode("utf-8")

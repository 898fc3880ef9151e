"""An Apicurio registry, read through its own API, version 3 or 2: groups, artifacts, versions with any name, states.

A version is identified by its global id, which is never used again. So an artifact that was deleted and created again
is a different one. The content of a content id never changes, so contents and references are requested once.

Source: docs/protocols/apicurio.md
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

import httpx
import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from stele.errors import NotFound
from stele.protocol.cncf import group_id_of, namespace_of
from stele.protocol.replication import ReplicaReference, ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.foreign_api import AT_ONCE, ForeignSource, add_text, parse_format, parse_number, parse_time
from stele.replicate.registries import Changes, SourceListing

T = TypeVar("T")
A = TypeVar("A")

_PATH: Final = "/apis/registry/v3"
_PAGE: Final = 500
_MOST_PAGES: Final = 40_000
_NEWEST: Final = 20
"""Number of the last changed versions that a check compares, since their times have whole seconds only."""
_CACHE_BYTES: Final = 32 * 1024 * 1024
_VERSIONS: Final = "/search/versions?orderby=globalId&order=asc"
_ARTIFACTS: Final = "/search/artifacts?orderby=createdOn&order=asc"
"""Paths that list everything, in version 3 and 2 of the API."""
_URI: Final = re.compile(r"/groups/([^/]+)/artifacts/([^/]+)/versions/([^/]+)\Z")
_DRAFT: Final = "DRAFT"
_STATES: Final = {"DISABLED": ReplicaState.DELETED}
"""Replica states by Apicurio's states; all others count as active."""


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    """A version as in lists and metadata; type is called artifact_type in API 2."""

    global_id: int
    content_id: int
    version: str
    artifact_id: str = ""
    group_id: str | None = None
    artifact_type: str = ""
    type: str = ""
    state: str = "ENABLED"
    created_on: str = ""
    description: str | None = None
    labels: Any = None

    @property
    def number(self) -> int:
        """Number of the version: its name if that is a number, else the global id, which also increases."""
        return parse_number(self.version) or self.global_id


class _Reference(msgspec.Struct, frozen=True, rename="camel"):
    artifact_id: str
    name: str
    group_id: str | None = None
    version: str | None = None


class _Artifact(msgspec.Struct, frozen=True, rename="camel"):
    id: str
    group_id: str | None = None


class _Versions(msgspec.Struct, frozen=True):
    count: int
    versions: list[_Version]


class _Artifacts(msgspec.Struct, frozen=True):
    count: int
    artifacts: list[_Artifact]


class _Place(NamedTuple):
    group: str
    artifact: str
    version: str


_version: Final = msgspec.json.Decoder(_Version)
_versions: Final = msgspec.json.Decoder(_Versions)
_artifacts: Final = msgspec.json.Decoder(_Artifacts)
_references: Final = msgspec.json.Decoder(list[_Reference])


class ApicurioSource(ForeignSource):
    """A registry that is read only through Apicurio's API.

    Args:
        client: Sends requests, with credentials where they are needed. Closing the source closes it.
        url: Base URI of the API, `…/apis/registry/v3` or `…/v2`, or of the server, which means version 3.
        authority: URI that is the authority of its schemas; '' is the base URI.
        poll_seconds: Pause between two checks for changes.
    """

    def __init__(self, client: httpx.Client, url: str, authority: str = "", poll_seconds: float = 1.0) -> None:
        base = url.rstrip("/")
        base = base if "/apis/" in urlsplit(base).path else base + _PATH
        super().__init__(client, base, authority, poll_seconds)
        self._is_second = base.endswith("/v2")
        self._texts: LRUCache[int, bytes] = LRUCache(_CACHE_BYTES, getsizeof=len)
        self._referenced: dict[int, tuple[_Reference, ...]] = {}

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions, with texts if requested. Drafts are left out, since they may still change."""
        if subjects is None:
            listed = self._list_versions(None if namespace is None else group_id_of(namespace))
        else:
            places = [(group_id_of(place.namespace), place.subject) for place in subjects]
            listed = [row for rows in _map_in_pool(self._list_artifact, places) for row in rows]
        versions = [row for row in listed if row.state != _DRAFT]
        self._load_references({row.content_id for row in versions})
        names = {_place_of(row): row for row in versions}
        rows = [self._to_replica(row, names) for row in versions]
        return SourceListing(self.fetch(rows) if texts else rows, "")

    def _list_versions(self, group: str | None) -> list[_Version]:
        if not self._is_second:
            path = _VERSIONS
            path += "" if group is None else f"&groupId={quote(group, safe='')}"
            return list(self._read_pages(path, _versions, lambda page: page.versions))
        path = _ARTIFACTS
        path += "" if group is None else f"&group={quote(group, safe='')}"
        artifacts = self._read_pages(path, _artifacts, lambda page: page.artifacts)
        places = [(row.group_id or "default", row.id) for row in artifacts]
        return [row for rows in _map_in_pool(self._list_artifact, places) for row in rows]

    def _list_artifact(self, place: tuple[str, str]) -> list[_Version]:
        group, artifact = place
        path = f"{_path_of(group, artifact)}/versions?"
        path += "" if self._is_second else "orderby=globalId&order=asc"
        try:
            versions = list(self._read_pages(path, _versions, lambda page: page.versions))
        except NotFound:
            return []  # deleted meanwhile, or never there
        return [replace(row, group_id=group, artifact_id=artifact) for row in versions]

    def _read_pages(self, path: str, decoder: msgspec.json.Decoder[A], pick: Callable[[A], Sequence[T]]) -> Iterator[T]:
        for number in range(_MOST_PAGES):
            page = self._api.decode(
                decoder.decode, self._api.get(f"{path}&limit={_PAGE}&offset={number * _PAGE}".replace("?&", "?"))
            )
            rows = pick(page)
            yield from rows
            if len(rows) < _PAGE:
                break

    def _load_references(self, contents: set[int]) -> None:
        lacking = sorted(contents - self._referenced.keys())
        for content, references in zip(lacking, _map_in_pool(self._read_references, lacking), strict=True):
            self._referenced[content] = references

    def _read_references(self, content: int) -> tuple[_Reference, ...]:
        try:
            answer = self._api.get(f"/ids/contentIds/{content}/references")
        except NotFound:
            return ()
        return tuple(self._api.decode(_references.decode, answer))

    def _to_replica(self, row: _Version, names: Mapping[_Place, _Version]) -> ReplicaVersion:
        place = _place_of(row)
        kind = row.artifact_type or row.type
        schema_format, custom = parse_format(kind)
        labels = row.labels if isinstance(row.labels, dict) else None
        return ReplicaVersion(
            uid=self._make_uid(row),
            state=_STATES.get(row.state, ReplicaState.ACTIVE),
            namespace=namespace_of(place.group),
            subject=place.artifact,
            version=row.number,
            schema_id=row.content_id,
            uri=f"{self._authority}{_path_of(place.group, place.artifact)}/versions/{quote(place.version, safe='')}",
            authority=self._authority,
            format=schema_format,
            custom_format=custom,
            references=tuple(self._to_reference(each, names) for each in self._referenced[row.content_id]),
            description=row.description or "",
            labels={str(name): str(value or "") for name, value in labels.items()} if labels else None,
            at=parse_time(row.created_on),
            numbering="never_reuse",
            written_format=kind,
        )

    def _make_uid(self, row: _Version) -> str:
        """Return a uid computed from the attributes of a version that never change."""
        named = f"{self._authority}\n{row.global_id}\n{row.content_id}\n{parse_time(row.created_on)}"
        return hashlib.sha256(named.encode()).hexdigest()[:32]

    def _to_reference(self, each: _Reference, names: Mapping[_Place, _Version]) -> ReplicaReference:
        place = _Place(each.group_id or "default", each.artifact_id, each.version or "")
        number = parse_number(place.version)
        if not number:
            version = names.get(place) or self._find_version(place)
            number = version.number if version is not None else 0
        return ReplicaReference(each.name, namespace_of(place.group), place.artifact, number)

    def _find_version(self, place: _Place) -> _Version | None:
        """Return a version by its name, '' for the newest; None if it does not exist."""
        name = quote(place.version, safe="") or ("latest" if self._is_second else "branch=latest")
        path = f"{_path_of(place.group, place.artifact)}/versions/{name}" + ("/meta" if self._is_second else "")
        try:
            return self._api.decode(_version.decode, self._api.get(path))
        except NotFound:
            return None

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return these versions with their texts. Deleted ones are left out."""
        wanted = {row.schema_id for row in rows if not row.has_text}
        texts = {content: self._texts[content] for content in wanted if content in self._texts}
        lacking = sorted(wanted - texts.keys())
        for content, data in zip(lacking, _map_in_pool(self._read_content, lacking), strict=True):
            if data is None:
                continue
            texts[content] = data
            if len(data) <= _CACHE_BYTES:
                self._texts[content] = data
        existing_rows = [row for row in rows if row.has_text or row.schema_id in texts]
        return [row if row.has_text else add_text(row, texts[row.schema_id]) for row in existing_rows]

    def _read_content(self, content: int) -> bytes | None:
        try:
            return self._api.get(f"/ids/contentIds/{content}").content
        except NotFound:
            return None

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of those versions that exist after all: pages may have shifted while they were read."""
        own = {row.uid: place for row in rows if (place := self._parse_uri(row.uri)) is not None}
        fates: dict[str, ReplicaState] = {}
        for uid, version in zip(own, _map_in_pool(self._find_version, own.values()), strict=True):
            if version is not None and self._make_uid(version) == uid:
                fates[uid] = _STATES.get(version.state, ReplicaState.ACTIVE)
        if len(fates) < len(own):
            self._api.require_answer(f"{_ARTIFACTS if self._is_second else _VERSIONS}&limit=1&offset=0")
        return fates

    def _parse_uri(self, uri: str) -> _Place | None:
        match = _URI.match(uri.removeprefix(self._authority))
        return _Place(*map(unquote, match.groups())) if match and uri.startswith(self._authority) else None

    # --- following ------------------------------------------------------------------------------------------------

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return whether versions were added, deleted or changed since the last call. Does not wait.

        The caller sleeps between calls. In version 3 two short requests return the number of versions, the newest one
        and the last changed ones. Version 2 cannot tell, so anything may have changed.
        """
        if self._is_second:
            return Changes(None, "")
        digest = hashlib.sha256()
        for order, limit in (("globalId", 1), ("modifiedOn", _NEWEST)):
            digest.update(self._api.get(f"/search/versions?orderby={order}&order=desc&limit={limit}").content)
        new_position = digest.hexdigest()
        return Changes(frozenset() if new_position == position else None, new_position)


def _place_of(row: _Version) -> _Place:
    return _Place(row.group_id or "default", row.artifact_id, row.version)


def _path_of(group: str, artifact: str) -> str:
    return f"/groups/{quote(group, safe='')}/artifacts/{quote(artifact, safe='')}"


def _map_in_pool(work: Callable[[A], T], items: Iterable[A]) -> list[T]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(work, items))

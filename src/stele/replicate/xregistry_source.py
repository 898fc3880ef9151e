"""A server of xRegistry 1.0 with the schema extension, read group by group. It does not list deleted versions.

A version is identified by its XID, its creation time and its document. So a version that was deleted and created again
is a different one, and so is one whose document was replaced. Changes of other attributes do not matter. Documents are
requested again only where the epoch of their version has grown.

Source: docs/protocols/xregistry.md
"""

from __future__ import annotations

import hashlib
import re
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple
from urllib.parse import quote, unquote, urljoin

import httpx
import msgspec

from stele.errors import NotFound, Refused, RegistryUnreachable
from stele.protocol.cncf import group_id_of, namespace_of
from stele.protocol.replication import ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.foreign_api import AT_ONCE, ForeignSource, add_text, parse_format, parse_number, parse_time
from stele.replicate.registries import Changes, SourceListing

_PAGE: Final = 500
_MOST_PAGES: Final = 100_000
_NEXT: Final = re.compile(r'<([^>]*)>\s*;(?:[^,<]*;)?\s*rel="?next"?')
_XID: Final = re.compile(r"/schemagroups/([^/]+)/schemas/([^/]+)/versions/([^/]+)\Z")
_SAFE: Final = "@:~"


class _Version(msgspec.Struct, frozen=True):
    """A version with its attributes; schemabase64 if it was inlined, schemaurl if the document is elsewhere."""

    versionid: str
    epoch: int = 0
    createdat: str = ""
    description: str = ""
    labels: dict[str, str] | None = None
    format: str = ""
    contenttype: str = ""
    schemabase64: str | None = None
    schemaurl: str | None = None


class _Meta(msgspec.Struct, frozen=True):
    xref: str = ""


class _Schema(msgspec.Struct, frozen=True):
    schemaid: str
    meta: _Meta = _Meta()
    versions: dict[str, _Version] = {}


class _Capabilities(msgspec.Struct, frozen=True):
    flags: frozenset[str] = frozenset()
    pagination: bool = False

    @property
    def has_documents(self) -> bool:
        """Whether lists can include documents, byte for byte."""
        return {"inline", "binary"} <= self.flags

    @property
    def limit(self) -> str:
        """The query parameter for pages; '' if the server has none."""
        return f"&limit={_PAGE}" if self.pagination else ""


class _Document(NamedTuple):
    """The digest of a version's document at an epoch."""

    epoch: int
    createdat: str
    sha256: str


_schemas: Final = msgspec.json.Decoder(dict[str, _Schema])
_schema: Final = msgspec.json.Decoder(_Schema)
_any: Final = msgspec.json.Decoder(dict[str, Any])
_capabilities: Final = msgspec.json.Decoder(_Capabilities)


class XRegistrySource(ForeignSource):
    """A registry that is read only through the API of xRegistry; see `ForeignSource`."""

    def __init__(self, client: httpx.Client, url: str, authority: str = "", poll_seconds: float = 1.0) -> None:
        super().__init__(client, url, authority, poll_seconds)
        self._capabilities: _Capabilities | None = None
        self._documents: dict[str, _Document] = {}

    def _load_capabilities(self) -> _Capabilities:
        """Return the capabilities of the server. Raises `Refused` for a server that cannot inline."""
        if self._capabilities is None:
            try:
                capabilities = self._decode(_capabilities, self._api.get("/capabilities"))
            except NotFound:
                capabilities = _Capabilities(frozenset({"inline"}))
            if "inline" not in capabilities.flags:
                raise Refused(f"{self.name} does not know the flag `inline`, without which it cannot be replicated")
            self._capabilities = capabilities
        return self._capabilities

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions. New ones have their texts, and all have them if requested."""
        paths = self._list_collections(namespace) if subjects is None else [_path_of(row) for row in subjects]
        inlined = (texts or not self._documents) and self._load_capabilities().has_documents
        with ThreadPoolExecutor(AT_ONCE) as pool:
            listed = [row for rows in pool.map(lambda path: self._read_versions(path, inlined), paths) for row in rows]
            replicas = [row for row in pool.map(lambda pair: self._to_replica(*pair, texts=texts), listed) if row]
        if subjects is None and namespace is None:
            listed_xids = {xid for xid, _ in listed}
            self._documents = {xid: row for xid, row in self._documents.items() if xid in listed_xids}
        return SourceListing(replicas, "")

    def _list_collections(self, namespace: str | None) -> list[str]:
        """Return the paths of the schemas of each group."""
        if namespace is not None:
            return [f"/schemagroups/{quote(group_id_of(namespace), safe=_SAFE)}/schemas"]
        groups = [
            group for page in self._read_pages("/schemagroups", is_kept=True) for group in self._decode(_any, page)
        ]
        return [f"/schemagroups/{quote(group, safe=_SAFE)}/schemas" for group in groups]

    def _decode(self, decoder: msgspec.json.Decoder[Any], answer: httpx.Response) -> Any:
        return self._api.decode(decoder.decode, answer)

    def _read_pages(self, path: str, *, is_kept: bool = False) -> Iterator[httpx.Response]:
        """Yield the responses of a collection, one or more; none if it does not exist."""
        url: str | None = path
        for _ in range(_MOST_PAGES):
            if url is None:
                return
            try:
                answer = self._api.get_known(url) if is_kept else self._api.get(url)
            except NotFound:
                return
            yield answer
            url = self._find_next(answer)

    def _find_next(self, answer: httpx.Response) -> str | None:
        match = _NEXT.search(answer.headers.get("link", ""))
        if match is None:
            return None
        url = urljoin(str(answer.url), match[1])
        path = url.partition("/schemagroups")[2]
        # A server behind a proxy may write another host into its links than the one in the request.
        return f"/schemagroups{path}" if path else None

    def _read_versions(self, path: str, inlined: bool) -> list[tuple[str, _Version]]:
        """Return the versions of a collection of schemas, or of one schema, by XID."""
        query = "?inline=versions,meta" + (",versions.schema&binary" if inlined else "")
        if path.endswith("/schemas"):
            query += self._load_capabilities().limit
            schemas = [
                schema for page in self._read_pages(path + query) for schema in self._decode(_schemas, page).values()
            ]
            start = path.removesuffix("/schemas")
        else:
            try:
                schemas = [self._decode(_schema, self._api.get(f"{path}$details{query}"))]
            except NotFound:
                return []
            start = path.rpartition("/schemas/")[0]
        start = unquote(start)
        return [
            (f"{start}/schemas/{schema.schemaid}/versions/{version.versionid}", version)
            for schema in schemas
            if not schema.meta.xref
            for version in schema.versions.values()
            if not version.schemaurl
        ]

    def _to_replica(self, xid: str, version: _Version, *, texts: bool) -> ReplicaVersion | None:
        """Convert a version to a replica; None for one that is deleted or has no document."""
        known = self._documents.get(xid)
        data: bytes | None = None
        if version.schemabase64 is not None:
            data = _decode_base64(version.schemabase64, xid)
        elif texts or known is None or (known.epoch, known.createdat) != (version.epoch, version.createdat):
            data = self._read_document(xid)
            if data is None:
                return None
        if data is not None:
            known = _Document(version.epoch, version.createdat, hashlib.sha256(data).hexdigest())
            self._documents[xid] = known
        assert known is not None
        _, _, group, _, schema, _, _ = xid.split("/")
        schema_format, custom = parse_format(version.format)
        row = ReplicaVersion(
            uid=self._make_uid(xid, known),
            namespace=namespace_of(group),
            subject=schema,
            version=parse_number(version.versionid),
            uri=self._authority + quote(xid, safe=_SAFE + "/"),
            authority=self._authority,
            format=schema_format,
            custom_format=custom,
            sha256=known.sha256,
            media_type=version.contenttype,
            description=version.description,
            labels=version.labels or None,
            at=parse_time(version.createdat),
            numbering="never_reuse",
            written_format=version.format,
        )
        return row if data is None else add_text(row, data)

    def _make_uid(self, xid: str, document: _Document) -> str:
        named = f"{self._authority}\n{xid}\n{parse_time(document.createdat)}\n{document.sha256}"
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    def _read_document(self, xid: str) -> bytes | None:
        """Return a document; None if there is none."""
        try:
            answer = self._api.get(quote(xid, safe=_SAFE + "/"))
        except NotFound:
            return None
        return answer.content or None

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return these versions with their texts. Versions deleted or replaced meanwhile are left out."""
        versions = []
        xids = [self._parse_uri(row.uri) or "" for row in rows]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for row, data in zip(rows, pool.map(self._read_document, xids), strict=True):
                if data is not None and hashlib.sha256(data).hexdigest() == row.sha256:
                    versions.append(add_text(row, data))
        return versions

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return which of those versions exist after all: pages may have shifted while they were read."""
        xids = [xid for row in rows if (xid := self._parse_uri(row.uri)) is not None]
        places = {_place_of(xid) for xid in xids}
        uids = {row.uid for row in self.read(None, sorted(places), texts=False).rows}
        if any(row.uid not in uids for row in rows):
            self._api.require_answer("/schemagroups")
        return {row.uid: ReplicaState.ACTIVE for row in rows if row.uid in uids}

    def _parse_uri(self, uri: str) -> str | None:
        xid = unquote(uri.removeprefix(self._authority))
        return xid if uri.startswith(self._authority) and _XID.match(xid) else None

    # --- following ------------------------------------------------------------------------------------------------

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return whether the lists changed since the last call. Does not wait: the caller sleeps between calls.

        The lists include epochs and times, but no documents. If the server has entity tags, unchanged lists are not
        sent again.
        """
        limit = self._load_capabilities().limit
        digest = hashlib.sha256()
        for group in self._list_collections(None):
            for page in self._read_pages(f"{group}?inline=versions,meta{limit}", is_kept=True):
                digest.update(page.content)
        new_position = digest.hexdigest()
        return Changes(frozenset() if new_position == position else None, new_position)


def _path_of(place: SubjectName) -> str:
    group, schema = quote(group_id_of(place.namespace), safe=_SAFE), quote(place.subject, safe=_SAFE)
    return f"/schemagroups/{group}/schemas/{schema}"


def _place_of(xid: str) -> SubjectName:
    _, _, group, _, schema, _, _ = xid.split("/")
    return SubjectName(namespace_of(group), schema)


def _decode_base64(text: str, xid: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except ValueError:
        raise RegistryUnreachable(f"the document of {xid} is not base64") from None

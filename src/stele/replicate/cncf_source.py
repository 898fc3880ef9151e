"""A server of the CNCF Schema Registry API 0.2, read group by group. It does not list deleted versions.

Source: docs/protocols/cncf.md
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import httpx
import msgspec
from msgspec.structs import replace

from stele.errors import NotFound
from stele.protocol import cncf_uris
from stele.protocol.cncf import group_id_of, namespace_of
from stele.protocol.replication import ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.dump_versions import give_next_lives
from stele.replicate.foreign_api import AT_ONCE, ForeignSource, parse_format, parse_time, split_text
from stele.replicate.registries import Changes, SourceListing

_UID: Final = re.compile(r"[0-9a-f]{32}\Z")
_names: Final = msgspec.json.Decoder(list[str])
_GROUPS: Final = "/schemagroups"
_numbers: Final = msgspec.json.Decoder(list[int])


class CncfSource(ForeignSource):
    """A registry that is read only through the CNCF API; see `ForeignSource`."""

    def _get_list(self, decoder: msgspec.json.Decoder[Any], path: str) -> list[Any]:
        try:
            return list(self._api.decode(decoder.decode, self._api.get(path)))
        except NotFound:
            return []

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions, always with their texts."""
        places = self._list_places(namespace) if subjects is None else list(subjects)
        with ThreadPoolExecutor(AT_ONCE) as pool:
            versions = [row for rows in pool.map(self._read_schema, places) for row in rows]
        shared = {uid for uid, count in Counter(row.uid for row in versions).items() if count > 1}
        return SourceListing([replace(row, uid=_make_uid(row)) if row.uid in shared else row for row in versions], "")

    def _list_places(self, namespace: str | None) -> list[SubjectName]:
        groups = self._api.decode(_names.decode, self._api.get(_GROUPS))
        if namespace is not None:
            groups = [group for group in groups if group == group_id_of(namespace)]
        return [
            SubjectName(namespace_of(group), schema)
            for group in groups
            for schema in self._get_list(_names, f"/schemagroups/{quote(group, safe='')}/schemas")
        ]

    def _read_schema(self, place: SubjectName) -> list[ReplicaVersion]:
        group = group_id_of(place.namespace)
        path = f"/schemagroups/{quote(group, safe='')}/schemas/{quote(place.subject, safe='')}/versions"
        rows = []
        for number in self._get_list(_numbers, path):
            try:
                answer = self._api.get(f"{path}/{number}")
            except NotFound:
                continue  # deleted meanwhile
            rows.append(self._to_replica(place, number, answer))
        return rows

    def _to_replica(self, place: SubjectName, number: int, answer: httpx.Response) -> ReplicaVersion:
        headers = answer.headers
        authority = headers.get("schema-authority", "") or self._authority
        default_id = cncf_uris.default_id(group_id_of(place.namespace), place.subject, number)
        reference = headers.get("schema-version-id", "") or default_id
        schema_format, custom = parse_format(_decode_header(headers.get("schema-format", "")))
        data = answer.content
        text, encoded = split_text(data)
        row = ReplicaVersion(
            uid="",
            namespace=place.namespace,
            subject=place.subject,
            version=number,
            uri=cncf_uris.join_uri(authority, reference),
            authority=authority,
            format=schema_format,
            custom_format=custom,
            sha256=hashlib.sha256(data).hexdigest(),
            text=text,
            base64=encoded,
            media_type=headers.get("content-type", ""),
            description=_decode_header(headers.get("schema-version-description", "")),
            at=parse_time(headers.get("schema-version-created-time-utc", "")),
            numbering="never_restart",
            subject_description=_decode_header(headers.get("schema-description", "")),
            written_format=_decode_header(headers.get("schema-format", "")),
        )
        schema_id = headers.get("schema-id", "")
        return replace(row, uid=schema_id if _UID.match(schema_id) else _make_uid(row))

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return the rows unchanged: they have their texts."""
        return list(rows)

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return the states of those versions that exist after all."""
        fates: dict[str, ReplicaState] = {}
        for row in rows:
            try:
                answer = self._api.get(f"/schema?uri={quote(row.uri, safe='')}")
            except NotFound:
                continue
            if row.uid in (answer.headers.get("schema-id", ""), _make_uid(row)):
                fates[row.uid] = ReplicaState.ACTIVE
        if len(fates) < len(rows):
            self._api.require_answer(_GROUPS)
        return fates

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Return that anything may have changed. Does not wait: the caller sleeps between calls."""
        return Changes(None, "")

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows, with the uid of the next life for buried ones whose uid this source has made."""
        own_uids = {row.uid for row in rows if row.uid == _make_uid(row)}
        return give_next_lives(rows, {uid: state for uid, state in buried.items() if uid in own_uids})


def _make_uid(row: ReplicaVersion) -> str:
    return hashlib.sha256(f"{row.uri}\n{row.sha256}".encode()).hexdigest()[:32]


def _decode_header(raw: str) -> str:
    return unquote_to_bytes(raw).decode("utf-8", "replace")

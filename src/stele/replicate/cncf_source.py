"""A server of the CNCF Schema Registry API 0.2, walked from group to group; it shows nothing that was deleted.

Source: docs/protocols/cncf.md
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote, unquote_to_bytes

import httpx
import msgspec
from msgspec.structs import replace

from stele.core.model import OPAQUE_FORMAT
from stele.errors import NotFound, Refused, RegistryUnreachable
from stele.formats.registry import list_formats
from stele.protocol import cncf_uris
from stele.protocol.cncf import group_id_of, namespace_of
from stele.protocol.replication import ReplicaState, ReplicaVersion, SubjectName
from stele.replicate.dump_versions import next_life
from stele.replicate.registries import Changes, SourceListing

_AT_ONCE: Final = 4
_UID: Final = re.compile(r"[0-9a-f]{32}\Z")
_ALIASES: Final = {"jsonschema": "json", "proto": "protobuf", "xmlschema": "xsd", "custom": OPAQUE_FORMAT}
_names: Final = msgspec.json.Decoder(list[str])
_numbers: Final = msgspec.json.Decoder(list[int])


class CncfSource:
    """A registry that is read through that API alone.

    Args:
        client: Sends requests, with credentials where they are needed; it is closed with this.
        url: Base URI of the API.
        authority: URI that is the authority of schemas without one; '' is the base URI.
        poll_seconds: Pause between two looks.
    """

    def __init__(self, client: httpx.Client, url: str, authority: str = "", poll_seconds: float = 1.0) -> None:
        self.name = url
        self.poll_seconds = poll_seconds
        self._client = client
        self._url = url.rstrip("/")
        self._authority = (authority or url).rstrip("/")

    def get_authority(self) -> str:
        """Return the authority of schemas that have none of their own."""
        return self._authority

    def _get(self, path: str) -> httpx.Response:
        """Return the answer to a request. Raises `NotFound`, `Refused`, `RegistryUnreachable`."""
        try:
            answer = self._client.get(self._url + path)
        except httpx.HTTPError as error:
            raise RegistryUnreachable(f"{self.name} does not answer: {str(error) or type(error).__name__}") from None
        if answer.status_code == 404:
            raise NotFound(f"{self.name} has no {path}")
        if answer.status_code >= 500:
            raise RegistryUnreachable(f"{self.name} answered {answer.status_code} to {path}")
        if answer.status_code >= 300:
            raise Refused(f"{self.name} answered {answer.status_code} to {path}")
        return answer

    def _get_list(self, decoder: msgspec.json.Decoder[Any], path: str) -> list[Any]:
        try:
            return list(decoder.decode(self._get(path).content))
        except NotFound:
            return []
        except msgspec.MsgspecError as error:
            raise RegistryUnreachable(f"{self.name} answered to {path} with no list: {error}") from None

    # --- reading --------------------------------------------------------------------------------------------------

    def read(self, namespace: str | None, subjects: Sequence[SubjectName] | None, *, texts: bool) -> SourceListing:
        """Return its versions; they come with their texts."""
        places = self._list_places(namespace) if subjects is None else list(subjects)
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            found = [row for rows in pool.map(self._read_schema, places) for row in rows]
        shared = {uid for uid, count in Counter(row.uid for row in found).items() if count > 1}
        return SourceListing([replace(row, uid=_make_uid(row)) if row.uid in shared else row for row in found], "")

    def _list_places(self, namespace: str | None) -> list[SubjectName]:
        groups = self._get_list(_names, "/schemagroups") if namespace is None else [group_id_of(namespace)]
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
                answer = self._get(f"{path}/{number}")
            except NotFound:
                continue  # deleted meanwhile
            rows.append(self._to_replica(place, number, answer))
        return rows

    def _to_replica(self, place: SubjectName, number: int, answer: httpx.Response) -> ReplicaVersion:
        headers = answer.headers
        authority = headers.get("schema-authority", "") or self._authority
        default_id = cncf_uris.default_id(group_id_of(place.namespace), place.subject, number)
        reference = headers.get("schema-version-id", "") or default_id
        schema_format, custom = _parse_format(_decode_header(headers.get("schema-format", "")))
        data = answer.content
        text, encoded = _split_text(data)
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
            at=_parse_time(headers.get("schema-version-created-time-utc", "")),
            numbering="never_restart",
            subject_description=_decode_header(headers.get("schema-description", "")),
            written_format=_decode_header(headers.get("schema-format", "")),
        )
        told = headers.get("schema-id", "")
        return replace(row, uid=told if _UID.match(told) else _make_uid(row))

    def fetch(self, rows: Sequence[ReplicaVersion]) -> list[ReplicaVersion]:
        """Return the rows: they have their texts."""
        return list(rows)

    def find_fates(self, rows: Sequence[ReplicaVersion]) -> Mapping[str, ReplicaState]:
        """Return which versions are there after all."""
        fates: dict[str, ReplicaState] = {}
        for row in rows:
            try:
                answer = self._get(f"/schema?uri={quote(row.uri, safe='')}")
            except NotFound:
                continue
            if row.uid in (answer.headers.get("schema-id", ""), _make_uid(row)):
                fates[row.uid] = ReplicaState.ACTIVE
        return fates

    def wait_for_changes(self, position: str, seconds: float) -> Changes:
        """Say that anything may have changed; whoever asks does the waiting."""
        return Changes(None, "")

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows, with the uid of a next life for those whose uid is of this source's making."""
        return [
            replace(row, uid=next_life(row.uid))
            if row.uid in buried and not buried[row.uid].is_listed and row.uid == _make_uid(row)
            else row
            for row in rows
        ]

    def close(self) -> None:
        """Close connections."""
        self._client.close()


def _make_uid(row: ReplicaVersion) -> str:
    return hashlib.sha256(f"{row.uri}\n{row.sha256}".encode()).hexdigest()[:32]


def _split_text(data: bytes) -> tuple[str | None, bytes | None]:
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, data


def _decode_header(raw: str) -> str:
    return unquote_to_bytes(raw).decode("utf-8", "replace")


def _parse_format(name: str) -> tuple[str, str]:
    """Return the format that a name means, and the name where nobody here knows it."""
    word = re.sub(r"[-_ ]", "", name.partition("/")[0].lower()).rstrip("0123456789.")
    known = _ALIASES.get(word, word)
    return (known, "") if known in list_formats() else (OPAQUE_FORMAT, name)


def _parse_time(text: str) -> int:
    try:
        return round(datetime.fromisoformat(text).timestamp() * 1000)
    except ValueError:
        return 0

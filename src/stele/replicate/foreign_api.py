"""Read-only requests to registries of other makes, and conversions of their responses."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Final, NamedTuple, TypeVar

import httpx
import msgspec
from cachetools import LRUCache
from msgspec.structs import replace

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.core.model import OPAQUE_FORMAT
from stele.errors import NotFound, Refused, RegistryUnreachable
from stele.formats.registry import list_formats
from stele.protocol.replication import ReplicaState, ReplicaVersion
from stele.replicate.dump_versions import give_next_lives

T = TypeVar("T")

AT_ONCE: Final = 4
"""Highest number of concurrent requests."""
_ALIASES: Final = {"jsonschema": "json", "proto": "protobuf", "xmlschema": "xsd", "custom": OPAQUE_FORMAT}
_NUMBER: Final = re.compile(r"[1-9][0-9]{0,9}\Z")
_NOT_MODIFIED: Final = 304
_KNOWN_BYTES: Final = 32 * 1024 * 1024
"""Size in bytes of the cache of responses."""


class _CachedAnswer(NamedTuple):
    tag: str
    answer: httpx.Response


class ForeignApi:
    """Sends read requests. It caches the last responses with an entity tag, so that unchanged ones are not sent again.

    Args:
        client: Sends requests, with credentials where they are needed. Closing this object closes it.
        url: Base URI of the API.
    """

    def __init__(self, client: httpx.Client, url: str) -> None:
        self.url = url.rstrip("/")
        self._client = client
        self._known: LRUCache[str, _CachedAnswer] = LRUCache(
            _KNOWN_BYTES, getsizeof=lambda known: len(known.answer.content)
        )

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Return the response to a request for a path or an absolute URL below the base URI.

        Raises `NotFound`, `Refused`, `RegistryUnreachable`.
        """
        url = path if path.startswith(self.url) else self.url + path
        try:
            answer = self._client.get(url, headers=dict(headers or {}))
        except httpx.HTTPError as error:
            raise RegistryUnreachable(f"{self.url} does not answer: {str(error) or type(error).__name__}") from None
        if answer.status_code in (404, 405):
            raise NotFound(f"{self.url} has no {path}")
        if answer.status_code >= 500:
            raise RegistryUnreachable(f"{self.url} answered {answer.status_code} to {path}")
        if answer.status_code >= 300 and answer.status_code != _NOT_MODIFIED:
            raise Refused(f"{self.url} answered {answer.status_code} to {path}")
        return answer

    def require_answer(self, path: str) -> None:
        """Raise like `get` unless the registry answers a list that every such registry has.

        A gateway whose registry is down may answer 404 to everything. Without this check all versions would count as
        deleted.
        """
        self.get(path)

    def get_known(self, path: str) -> httpx.Response:
        """Return a response. A server with entity tags sends it again only if it has changed. Raises like `get`."""
        known = self._known.get(path)
        answer = self.get(path, {"if-none-match": known.tag} if known else None)
        if known and answer.status_code == _NOT_MODIFIED:
            return known.answer
        tag = answer.headers.get("etag", "")
        if tag and len(answer.content) <= _KNOWN_BYTES:
            self._known[path] = _CachedAnswer(tag, answer)
        else:
            self._known.pop(path, None)
        return answer

    def decode(self, decode: Callable[[bytes], T], answer: httpx.Response) -> T:
        """Decode a response with a msgspec decoder. Raises `RegistryUnreachable` for an invalid response."""
        if is_nested_deeper(answer.content):
            raise RegistryUnreachable(f"{answer.url} nests deeper than {MAX_JSON_DEPTH} levels")
        try:
            return decode(answer.content)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise RegistryUnreachable(f"{answer.url} has an unexpected form: {error}") from None

    def close(self) -> None:
        """Close connections."""
        self._client.close()


class ForeignSource:
    """Base class of sources that are read through one `ForeignApi`; see `ReplicaSource` for the other methods.

    Args:
        client: Sends requests, with credentials where they are needed. Closing the source closes it.
        url: Base URI of the API.
        authority: URI that is the authority of schemas without one; '' is the base URI.
        poll_seconds: Pause between two checks for changes.
    """

    def __init__(self, client: httpx.Client, url: str, authority: str = "", poll_seconds: float = 1.0) -> None:
        self.name = url
        self.poll_seconds = poll_seconds
        self._api = ForeignApi(client, url)
        self._authority = (authority or url).rstrip("/")

    def get_authority(self) -> str:
        """Return the authority of schemas that have none of their own."""
        return self._authority

    def rename_revived(self, rows: list[ReplicaVersion], buried: Mapping[str, ReplicaState]) -> list[ReplicaVersion]:
        """Return the rows, with the uid of the next life for those that the target has buried."""
        return give_next_lives(rows, buried)

    def close(self) -> None:
        """Close connections."""
        self._api.close()


def parse_format(name: str) -> tuple[str, str]:
    """Return the format with that name and ''; for an unknown name, the opaque format and the name."""
    word = re.sub(r"[-_ ]", "", name.partition("/")[0].lower()).rstrip("0123456789.")
    known = _ALIASES.get(word, word)
    return (known, "") if known in list_formats() else (OPAQUE_FORMAT, name)


def parse_time(text: str) -> int:
    """Return milliseconds since 1970 (UTC, unless the text has an offset); 0 for an invalid time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return 0
    return round((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def parse_number(name: str) -> int:
    """Return the number in the name of a version; 0 for a name that is no number."""
    return int(name) if _NUMBER.match(name) and int(name) < 2**31 else 0


def split_text(data: bytes) -> tuple[str | None, bytes | None]:
    """Return a document as text, or as bytes where it is not UTF-8."""
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return None, data


def add_text(row: ReplicaVersion, data: bytes) -> ReplicaVersion:
    """Return a version with its document."""
    text, encoded = split_text(data)
    return replace(row, text=text, base64=encoded, sha256=hashlib.sha256(data).hexdigest())

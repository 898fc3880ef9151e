"""One request as a value: what to send, how to read the response, and whether both may be cached or repeated.

Nothing here does I/O. The functions of `endpoints` build requests; `exchange` decides when and where they are sent.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from stele.core.json_depth import MAX_JSON_DEPTH, is_nested_deeper
from stele.errors import InvalidName, InvalidRequest

T = TypeVar("T")

CONFLUENT = "application/vnd.schemaregistry.v1+json"
"""Media type of bodies in the Confluent dialect."""
JSON = "application/json"
"""Media type of bodies in Stele's own API."""

ParamValue = str | int | bool | None
"""A query parameter. None and False are left out, because every flag of the API is off by default."""


class CachePolicy(Enum):
    """How long an answer may be cached."""

    NEVER = "never"
    """Not cached: each call sends a request."""
    TTL = "while"
    """Changeable: cached for the client's time to live, and until the client itself writes."""
    IMMUTABLE = "ever"
    """Unchanging unless deleted for good. The client drops it when it deletes something itself."""


class Effect(Enum):
    """What a request does to the registry. It decides whether the request may be sent twice."""

    READ = "read"
    """Changes nothing."""
    WRITE = "write"
    """A change that has the same effect when it is sent twice: registration, settings."""
    DELETE = "delete"
    """A deletion. A second one has another effect.

    `versions/latest` deletes another version; other deletions answer "not found" the second time.
    """


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A call of the registry's API.

    method, path    path is percent-encoded and begins with a slash
    read            turns the body of a successful answer into the result; raises `msgspec.MsgspecError` if it cannot
    query           encoded query string without the question mark
    body            JSON bytes, or None
    media           media type of the body
    cache_policy    see `CachePolicy`; the request without its `read` is the key of the cache
    effect          see `Effect`
    subject         the subject that errors name, as given by the caller
    version         the version that errors name
    """

    method: str
    path: str
    read: Callable[[bytes], T]
    query: str = ""
    body: bytes | None = None
    media: str = CONFLUENT
    cache_policy: CachePolicy = CachePolicy.NEVER
    effect: Effect = Effect.READ
    subject: str = ""
    version: str = ""

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def key(self) -> tuple[str, str, bytes | None]:
        """Cache key. It is equal for requests with equal answers."""
        return self.method, self.target, self.body


Workflow = Generator[Request[Any], Any, T]
"""Several requests that depend on one another: yields each, receives its result, returns the final result."""


def build_path(*segments: str | int) -> str:
    """Return a path of literal text and names. Every segment is percent-encoded completely.

    `/`, `%`, spaces and non-ASCII letters are data in a name. A name of dots only is escaped, so that it is not read as
    a parent folder. Raises `InvalidName` for a name that UTF-8 cannot encode.
    """
    return "".join(f"/{_encode_segment(str(segment))}" for segment in segments)


def _encode_segment(name: str) -> str:
    return name.replace(".", "%2E") if name in {".", ".."} else escape_name(name)


def escape_name(name: str) -> str:
    """Return a name escaped for use in a URL. Raises `InvalidName` for lone surrogates."""
    try:
        return quote(name, safe="")
    except UnicodeEncodeError:
        raise InvalidName(name, "cannot be written in UTF-8") from None


def build_query(parameters: Mapping[str, ParamValue]) -> str:
    """Return a query string in the order given."""
    present = {key: value for key, value in parameters.items() if value is not None and value is not False}
    return "&".join(f"{key}={'true' if value is True else escape_name(str(value))}" for key, value in present.items())


def json_decoder(kind: type[T]) -> Callable[[bytes], T]:
    """Return a reader of JSON bodies of one type. It raises `msgspec.MsgspecError` for anything else.

    A null member counts as missing where its type does not allow null: other registries write `"tags": null`.
    """
    decode = msgspec.json.Decoder(kind).decode

    def read(body: bytes) -> T:
        if is_nested_deeper(body):
            raise msgspec.DecodeError(f"it is nested too deeply, more than {MAX_JSON_DEPTH} levels")
        try:
            return decode(body)
        except msgspec.ValidationError as error:
            try:
                return msgspec.convert(without_nulls(_anything(body)), kind)
            except RecursionError:
                raise error from None

    return read


def without_nulls(value: Any) -> Any:
    """Return a JSON value with all null members of its objects removed."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


_anything = msgspec.json.Decoder().decode


def encode_body(body: object) -> bytes:
    """Return a JSON body. Raises `InvalidRequest` for text that UTF-8 cannot encode."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the request holds text that cannot be written in UTF-8: {error.reason}") from None


def ignore_body(_: bytes) -> None:
    """Reader of responses whose body has no information."""


def delete_request(
    route: str, read: Callable[[bytes], T], parameters: str = "", *, subject: str = "", version: str = ""
) -> Request[T]:
    """Return a DELETE request."""
    return Request("DELETE", route, read, parameters, effect=Effect.DELETE, subject=subject, version=version)

"""One request as a value: what to send, how to read the answer, and what may be done with both.

Nothing here does I/O. The functions of `endpoints` build requests; `exchange` decides when and whither they go.
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
"""A query parameter; None and False are left out, as every flag of the API is off unless said otherwise."""


class CachePolicy(Enum):
    """How long an answer holds."""

    NEVER = "never"
    """Ask every time."""
    TTL = "while"
    """May change; good for the client's time to live, and until the client itself writes."""
    IMMUTABLE = "ever"
    """Never changes as long as nobody deletes for good; the client forgets it when it deletes something itself."""


class Effect(Enum):
    """What sending a request does to the registry, hence whether it may be sent twice."""

    READ = "read"
    """Nothing."""
    WRITE = "write"
    """Something, but twice is the same as once: registration, settings."""
    DELETE = "delete"
    """Twice differs from once: `versions/latest` deletes another version, others answer "not found" the second time."""


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """A call of the registry's API.

    method, path    path is percent-encoded and begins with a slash
    read            turns the body of a successful answer into the result; raises `msgspec.MsgspecError` if it cannot
    query           encoded query string without the question mark
    body            JSON bytes, or None
    media           media type of the body
    lifetime        see `CachePolicy`; the request without its `read` is the key of the cache
    effect          see `Effect`
    subject         whom errors are about, as given by the caller
    version         likewise
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
        """Equal for requests with equal answers."""
        return self.method, self.target, self.body


Workflow = Generator[Request[Any], Any, T]
"""Several requests which build on one another: yields each, is sent its result, returns the whole's result."""


def build_path(*segments: str | int) -> str:
    """Return a path of literal text and names, every segment percent-encoded whole.

    `/`, `%`, blanks and letters beyond ASCII are data in a name; a name of dots only must not look like a step upwards.
    Raises `InvalidName` for a name UTF-8 cannot write.
    """
    return "".join(f"/{_encode_segment(str(segment))}" for segment in segments)


def _encode_segment(name: str) -> str:
    return name.replace(".", "%2E") if name in {".", ".."} else escape_name(name)


def escape_name(name: str) -> str:
    """Return a name as data in an address. Raises `InvalidName` for lone surrogates."""
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

    A member that is null is taken as left out where the type has no null: other registries write `"tags": null`.
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
    """Return a JSON value whose objects have no members that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(member) for name, member in value.items() if member is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


_anything = msgspec.json.Decoder().decode


def encode_body(body: object) -> bytes:
    """Return a JSON body. Raises `InvalidRequest` for text UTF-8 cannot write."""
    try:
        return msgspec.json.encode(body)
    except UnicodeEncodeError as error:
        raise InvalidRequest(f"the request holds text that cannot be written in UTF-8: {error.reason}") from None


def ignore_body(_: bytes) -> None:
    """Reader of answers whose body says nothing."""


def delete_request(
    route: str, read: Callable[[bytes], T], parameters: str = "", *, subject: str = "", version: str = ""
) -> Request[T]:
    """Return a DELETE request."""
    return Request("DELETE", route, read, parameters, effect=Effect.DELETE, subject=subject, version=version)

"""CloudEvents: the URI `dataschema` names the schema, in a header or in the event itself.

A URI in the data is never fetched. It is read as a path of the registry (`/schemas/ids/7`,
`/subjects/orders-value/versions/3`, `/schemagroups/…/schemas/…/versions/…`), and the schema is looked up there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from stele.errors import FrameError, Invalid, NotFound
from stele.spark.engines.arrow import Column
from stele.spark.wires.base import HEADERS, FrameParts, Framer, ResolvedId, first_header, read_ids
from stele.wire import cloudevents

if TYPE_CHECKING:
    from stele.client import Version
    from stele.client.snapshot import ResolvedSchema
    from stele.spark.registry import RegistryLike, SchemaLookup

_MISSING: Final = "the event names no dataschema"


@dataclass(frozen=True, slots=True)
class CloudEvents:
    """Events of one mode.

    mode    `binary`: bare data, attributes in the headers; `structured`: one JSON document
    bases   allowed beginnings of absolute URIs; without them, the registry's addresses, or any if a function opens the
            registry. Schemas of other URIs are unknown; relative URIs are always accepted
    base, source, type   for writing: beginning of `dataschema`, and two attributes that events must have
    """

    mode: Literal["binary", "structured"] = "binary"
    bases: tuple[str, ...] = ()
    base: str = ""
    source: str = "/stele"
    type: str = "record"
    name: str = "cloudevents"
    id_type = pa.string()
    id_label = "dataschema"

    @property
    def needs_headers(self) -> bool:
        """Whether the mode is `binary`, in which the URI is in a header."""
        return self.mode == "binary"

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart; see `Wire.split`."""
        values = values.cast(pa.binary())
        if headers is not None and self.mode == "binary":
            schema_headers = [first_header(headers, prefix + "dataschema") for prefix in cloudevents.PREFIXES]
            ids, errors = read_ids(
                pc.if_else(values.is_valid(), pc.coalesce(*schema_headers), None), _read_uri, pa.string()
            )
            return FrameParts(ids, values, pc.coalesce(errors, _missing_schema_errors(ids, values)))
        events = [None if document is None else _read_event(document) for document in values.to_pylist()]
        ids = pa.array([event.dataschema or None if isinstance(event, cloudevents.Event) else None for event in events])
        payloads = [event.data if isinstance(event, cloudevents.Event) else None for event in events]
        errors = pa.array([event if isinstance(event, str) else None for event in events], pa.string())
        ids = ids.cast(pa.string())
        return FrameParts(
            ids, pa.array(payloads, pa.binary()), pc.coalesce(errors, _missing_schema_errors(ids, values))
        )

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema that a URI names; see `Wire.resolve_id`."""
        named = cloudevents.parse_dataschema(number)
        if named is None or not self._is_trusted(number, lookup.registry):
            return None
        if named.id is not None or named.guid is not None:
            key = named.id if named.id is not None else named.guid
            assert key is not None
            schema = lookup.find_schema(key)
        else:
            schema = _find_version(named, lookup)
        return None if schema is None else ResolvedId(schema, message="")

    def _is_trusted(self, uri: str, registry: RegistryLike) -> bool:
        if "://" not in uri and not uri.startswith("//"):
            return True
        bases = self.bases or (tuple(registry.split(",")) if isinstance(registry, str) else ())
        known = [base.strip().rstrip("/") + "/" for base in bases]
        return not known or uri.startswith(tuple(known))

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema; see `Wire.framer`."""
        del message
        first = registry.partition(",")[0] if isinstance(registry, str) else ""
        base = (self.base or first).rstrip("/")
        uri = f"{base}/schemas/ids/{writer.id}"
        return EventFramer(uri, self.source, self.type, self.mode, writer.schema_type == "JSON")


@dataclass(frozen=True, slots=True)
class EventFramer:
    """Makes an event of each payload, with an id of its own; see `Framer`."""

    uri: str
    source: str
    type: str
    mode: str
    is_json: bool

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Frame payloads; see `Framer`."""
        del indexes
        attributes = {"source": self.source, "type": self.type}
        if self.mode == "structured":
            events = [
                None
                if data is None
                else cloudevents.structured_event(
                    self.uri, data, {"id": str(uuid4()), **attributes}, is_json=self.is_json
                )
                for data in payloads.to_pylist()
            ]
            return pa.array(events, pa.binary()), None
        rows = []
        for _ in range(len(payloads)):
            headers = cloudevents.event_headers(self.uri, {"id": str(uuid4()), **attributes})
            rows.append([{"key": key, "value": value} for key, value in headers.items()])
        return payloads, pa.array(rows, HEADERS)


def _read_event(document: bytes) -> cloudevents.Event | str:
    try:
        return cloudevents.read_structured(document)
    except FrameError as error:
        return str(error)


def _read_uri(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise FrameError("the dataschema in the record header is not UTF-8") from None


def _missing_schema_errors(ids: Column, values: Column) -> Column:
    lacks = pc.and_(ids.is_null(), values.is_valid())
    return pc.if_else(lacks, pa.scalar(_MISSING), pa.scalar(None, pa.string()))


def _find_version(named: cloudevents.DataSchemaTarget, lookup: SchemaLookup) -> ResolvedSchema | None:
    number: Version = "latest" if named.version == "latest" else int(named.version)
    try:
        return lookup.pinned.snapshot.resolve_version(named.subject, number)
    except NotFound:
        question = (named.subject, number)
        return lookup.query(question, lambda registry: registry.resolve_version(named.subject, number), NotFound)


def events_of_mode(mode: str) -> CloudEvents:
    """Return the wire of a mode. Raises `Invalid` for an unknown one."""
    if mode not in {"binary", "structured"}:
        raise Invalid(f"events are binary or structured, not {mode!r}")
    return CloudEvents("binary" if mode == "binary" else "structured")

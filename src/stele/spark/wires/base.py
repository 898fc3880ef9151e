"""The interface of a wire format: how records name their schemas, taken apart a column at a time.

Engines and formats get Confluent frames, whatever the wire: `normalize.FrameNormalizer` puts a number of its own in
place of each id. So a wire format is one class with the three methods of `Wire`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from stele.errors import FrameError, Invalid
from stele.spark.engines.arrow import ArrowType, Column

if TYPE_CHECKING:
    from stele.client.snapshot import ResolvedSchema
    from stele.spark.registry import RegistryLike, SchemaLookup


class FrameParts(NamedTuple):
    """A column of records taken apart, all arrays as long as the column.

    ids       what names the schema of each record, in the wire's own type; null where there is no frame
    payloads  binary, the rest of the record
    frame_errors  reason why a record has no frame; null elsewhere, also where the record is null
    indexes   binary, message indexes of Protobuf that stood apart from the payload; None if the wire has none
    """

    ids: Column
    payloads: Column
    frame_errors: Column
    indexes: Column | None = None


@dataclass(frozen=True, slots=True)
class ResolvedId:
    """The schema of an id, and how its payloads are read.

    message  full name of the Protobuf message or Thrift struct of the payloads, '' for the one that is read anyway;
             None if payloads begin with message indexes in case they are Protobuf
    unpack   function that returns the datum of a payload; None if the payload is the datum
    padded   whether zero bytes can follow the datum
    """

    schema: ResolvedSchema
    message: str | None = None
    unpack: Callable[[bytes], bytes] | None = None
    padded: bool = False


class Framer(Protocol):
    """Puts the frame of one schema around payloads.

    It is made on the driver and used by tasks, so it must be picklable.
    """

    def __call__(self, payloads: Column, indexes: bytes) -> tuple[Column, Column | None]:
        """Return the records, and their headers if the wire has them. Null payloads stay null.

        indexes are the message indexes of a Protobuf schema, b"" for others.
        """
        ...


class Wire(Protocol):
    """A wire format with its settings. It is sent to tasks, so it must be picklable."""

    @property
    def name(self) -> str:
        """Name of the wire."""
        ...

    @property
    def id_type(self) -> ArrowType:
        """Type of the ids in `FrameParts`, and of the column `id_column` makes."""
        ...

    @property
    def id_label(self) -> str:
        """The wire's word for an id in messages: `schema id`, `schema guid` …."""
        ...

    @property
    def needs_headers(self) -> bool:
        """Whether ids are in the headers of records, so that a column of headers is needed."""
        ...

    def split(self, values: Column, headers: Column | None) -> FrameParts:
        """Take a binary column apart."""
        ...

    def resolve_id(self, number: Any, lookup: SchemaLookup) -> ResolvedId | None:
        """Return the schema of an id, None when it is unknown; see `engines.base.FindWriter` for what it raises."""
        ...

    def framer(self, writer: ResolvedSchema, message: str, registry: RegistryLike) -> Framer:
        """Return the framer of a schema. Raises `Invalid` when the wire cannot carry it."""
        ...


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
"""Type of a headers column, as Spark's Kafka source returns it and its sink accepts it."""


def first_header(headers: Column, name: str) -> Column:
    """Return for each record the value of the first header of a name (in lower case), binary; null if there is none."""
    (keys, values), owners = _header_entries(headers)
    mine = pc.fill_null(pc.equal(pc.utf8_lower(keys), pa.scalar(name)), False)
    rows, matches = owners.filter(mine), values.filter(mine)
    first: dict[int, int] = {}
    for place, row in enumerate(rows.to_pylist()):
        first.setdefault(row, place)
    wanted = pa.array([first.get(row) for row in range(len(headers))], pa.int64())
    return matches.cast(pa.binary()).take(wanted)


def _header_entries(headers: Column) -> tuple[tuple[Column, Column], Column]:
    """Return keys and values of all headers, and the row numbers they belong to."""
    if pa.types.is_map(headers.type):
        headers = headers.cast(pa.list_(pa.struct([("key", headers.type.key_type), ("value", headers.type.item_type)])))
    kinds = headers.type
    if not pa.types.is_list(kinds) or not pa.types.is_struct(kinds.value_type) or kinds.value_type.num_fields != 2:
        raise Invalid(f"headers are a list of structs (key, value) or a map, not {kinds}")
    flat: Column = pc.list_flatten(headers)
    keys, values = flat.flatten()
    return (keys.cast(pa.string()), values), pc.list_parent_indices(headers)


def split_heads(values: Column, size: int) -> tuple[Column, Column]:
    """Return the first bytes of each record, and the rest of it. A record shorter than `size` has fewer first bytes."""
    if not pa.types.is_binary(values.type):
        values = values.cast(pa.binary())
    return pc.binary_slice(values, 0, size), pc.binary_slice(values, size, 1 << 31)


def split_by_heads(values: Column, size: int, read: Callable[[bytes], Any], id_type: ArrowType) -> FrameParts:
    """Return records whose first bytes hold the id, taken apart. There are few different heads, so each is read once.

    read returns the id of a head, or raises `FrameError`; it also gets the heads of records shorter than `size`.
    """
    heads, payloads = split_heads(values, size)
    ids, reasons = read_ids(heads, read, id_type)
    return FrameParts(ids, payloads, reasons)


def read_ids(keys: Column, read: Callable[[bytes], Any], id_type: ArrowType) -> tuple[Column, Column]:
    """Return ids and reasons for keys of which many are equal; null keys have neither."""
    coded = keys.dictionary_encode()
    ids: list[Any] = []
    reasons: list[str | None] = []
    for key in coded.dictionary.to_pylist():
        try:
            ids.append(read(key))
            reasons.append(None)
        except FrameError as error:
            ids.append(None)
            reasons.append(str(error))
    return pa.array(ids, id_type).take(coded.indices), pa.array(reasons, pa.string()).take(coded.indices)


def prepend_frame(prefix: bytes, payloads: Column) -> Column:
    """Return the payloads with a prefix before each."""
    prefixes = pa.repeat(pa.scalar(prefix, pa.binary()), len(payloads))
    return pc.binary_join_element_wise(prefixes, payloads.cast(pa.binary()), b"")

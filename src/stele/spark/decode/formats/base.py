"""What a schema language has to be able to do for its data to become columns, and what is shared between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias

from stele.client.serdes.schemas import ParsedSchema, parse_schema
from stele.client.snapshot import ResolvedSchema
from stele.errors import DataError, Invalid
from stele.spark.decode.formats.plans import ColumnPlan

if TYPE_CHECKING:
    from stele.spark.decode.formats.protobuf_scan import Scanner

Read: TypeAlias = Callable[[bytes], Any]
"""Makes a value of what follows the id in a frame. Raises `DecodeError`, `FrameError`."""
Write: TypeAlias = Callable[[Any], bytes]
"""Makes what follows the id of a value. Raises `EncodeError`."""


Accepts: TypeAlias = Callable[[int, tuple[int, ...]], bool]
"""Whether records with a schema id and message indexes are of the type read."""


class DatumReaders(NamedTuple):
    """The ways to read: the usual one, and the one for data in which `ColumnFormat.careful` is found.

    accepts  whether data that begin with these message indexes are of the type read; Protobuf only
    """

    usual: Read
    careful: Read
    accepts: Callable[[tuple[int, ...]], bool] = bool


class ColumnFormat(Protocol):
    """How values of one schema language become columns and come from them.

    message names the type among those of a schema that has several (Protobuf, Thrift); '' is the usual one.
    """

    @property
    def careful(self) -> str:
        """A regular expression found in data that take the careful way; '' for a language with one way only."""
        ...

    def plan(self, schema: ParsedSchema, message: str, recursion: int) -> ColumnPlan:
        """Return the columns for data of a schema. Raises `Invalid` when it has no table shape.

        recursion is how often a type that contains itself is unrolled into columns, values that go deeper are bad; with
        0 they are JSON text where they come round again.
        """
        ...

    def make_scanner(self, reader: ParsedSchema, message: str, plan: ColumnPlan, accepts: Accepts) -> Scanner | None:
        """Return what reads whole batches at once, where there is such a thing for the reader's schema and its plan."""
        ...

    def make_readers(self, writer: ParsedSchema, reader: ParsedSchema, message: str) -> DatumReaders:
        """Reads data of the writer's schema as values for the plan of the reader's."""
        ...

    def make_writer(self, schema: ParsedSchema, message: str) -> Write:
        """Writes data that the plan of the schema has made."""
        ...


def require_parsed(schema: ResolvedSchema, schema_type: str) -> ParsedSchema:
    """Return the schema parsed. Raises `DataError` when it is of another type, or none at all."""
    if schema.schema_type.upper() != schema_type.upper():
        raise DataError(f"its format is {schema.schema_type}, {schema_type} is needed")
    try:
        return parse_schema(schema)
    except Invalid as error:
        raise DataError(f"the text is no {schema_type} schema: {error}") from error

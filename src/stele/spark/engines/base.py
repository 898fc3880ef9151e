"""What an engine is: the one interface behind every decode and encode of the Spark part, and its look-up by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

from stele.formats.avro.model import AvroSchema
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.decoded import Decoded

FindWriter: TypeAlias = Callable[[int], "AvroSchema | None"]
"""The schema of an id; None when the registry knows no such id.

A `DataError` says that the id is of no use (another format, text that does not parse) and becomes the reason of its
records; whatever else it raises fails the batch, as an outage must.
"""


class Decoder(Protocol):
    """Decodes batches of one column. Keeps what it compiled per writer; not for use by several threads at once."""

    @property
    def type(self) -> ArrowType:
        """The type of `Decoded.values`: a struct for a record schema."""
        ...

    def decode(self, frames: Column) -> Decoded:
        """Decode Confluent-framed records. Bad records are reported, not raised; nulls stay null."""
        ...


class Encoder(Protocol):
    """Encodes rows under one schema."""

    def encode(self, values: Column) -> Column:
        """Framed records, one per row; a null row stays null (a tombstone), unless the schema itself allows null.

        Raises `EncodeError` naming row and field.
        """
        ...


class Engine(Protocol):
    """One way to decode and encode."""

    @property
    def name(self) -> str:
        """Word by which `get_engine` finds it."""
        ...

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """Return a decoder towards the reader's schema, with types Spark can take when asked for.

        recursion is how often a type that contains itself is unrolled into columns; records that go deeper are bad.
        Raises `Invalid` when the reader's schema has no table shape (a type that contains itself, and no recursion).
        """
        ...

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """Return an encoder whose frames carry the id.

        recursion is as in `decoder`; what is deeper is written as null or empty.

        Raises `Invalid` when the schema has no table shape.
        """
        ...

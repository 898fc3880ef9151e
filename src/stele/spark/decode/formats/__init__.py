"""Schema languages on Spark: framed records to columns under a reader's schema, and back.

Avro has engines of its own (`stele.spark.engines`); the others implement `base.ColumnFormat`. Each language has one
file and one line here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stele.errors import DataError
from stele.spark.decode.formats.base import ColumnFormat, RowDecoder, RowEncoder, Schemas, fit_column, require_parsed
from stele.spark.decode.formats.json import JsonColumns
from stele.spark.decode.formats.protobuf import ProtobufColumns
from stele.spark.decode.formats.thrift import ThriftColumns
from stele.spark.engines import get_engine
from stele.spark.engines.base import Decoder, Encoder
from stele.spark.registry import parse_avro

if TYPE_CHECKING:
    from stele.client.snapshot import ResolvedSchema
    from stele.formats.avro.model import AvroSchema
    from stele.spark.engines.arrow import ArrowType, Column

AVRO: Final = "AVRO"
COLUMN_FORMATS: Final[dict[str, ColumnFormat]] = {
    "JSON": JsonColumns(),
    "PROTOBUF": ProtobufColumns(),
    "THRIFT": ThriftColumns(),
}
"""The languages other than Avro, by the registry's name for them."""

__all__ = ["AVRO", "COLUMN_FORMATS", "Schemas", "check_columns", "decoder_for", "encoder_for", "type_for"]


def decoder_for(
    reader: ResolvedSchema, schemas: Schemas, engine: str = "auto", message: str = "", recursion: int = 0
) -> Decoder:
    """Return a decoder of Confluent-framed records towards the reader's schema.

    engine is for Avro; with `python`, Protobuf is read without numba, too. message names one of the types of a Protobuf
    or Thrift schema. recursion is how many times a type that contains itself is nested in itself in the
    columns:
    Avro needs at least 1, the others use JSON text with 0.
    Raises `DataError` for a schema of a format without columns, `Invalid` for one without table shape, `InvalidRequest`
    for an unknown message.
    """
    if reader.schema_type.upper() == AVRO:

        def writers(number: int) -> AvroSchema | None:
            writer = schemas(number)
            return None if writer is None else parse_avro(writer)

        return get_engine(engine).decoder(parse_avro(reader), writers, for_spark=True, recursion=recursion)
    language = _get_language(reader)
    ready = require_parsed(reader, reader.schema_type)
    return RowDecoder(language, ready, schemas, message, scanning=engine != "python", recursion=recursion)


def encoder_for(
    writer: ResolvedSchema, number: int, engine: str = "auto", message: str = "", recursion: int = 0
) -> Encoder:
    """Return an encoder whose frames carry the number. Raises what `decoder_for` raises."""
    if writer.schema_type.upper() == AVRO:
        return get_engine(engine).encoder(parse_avro(writer), number, for_spark=True, recursion=recursion)
    language = _get_language(writer)
    ready = require_parsed(writer, writer.schema_type)
    return RowEncoder(language.plan(ready, message, recursion), language.make_writer(ready, message), number)


def type_for(reader: ResolvedSchema, message: str = "", recursion: int = 0) -> ArrowType:
    """Return the type of decoded values: a struct for a record. Raises like `decoder_for`."""
    if reader.schema_type.upper() == AVRO:
        from stele.spark.engines.resolve import Resolver

        return Resolver(parse_avro(reader), for_spark=True, recursion=recursion).root.type
    return _get_language(reader).plan(require_parsed(reader, reader.schema_type), message, recursion).type


def check_columns(writer: ResolvedSchema, value: Column, message: str = "", recursion: int = 0) -> None:
    """Raise `EncodeError` when a column cannot be written with a schema that is not Avro, whatever its rows."""
    fit_column(_get_language(writer).plan(require_parsed(writer, writer.schema_type), message, recursion), value)


def _get_language(schema: ResolvedSchema) -> ColumnFormat:
    column_format = COLUMN_FORMATS.get(schema.schema_type.upper())
    if column_format is None:
        known = ", ".join((AVRO, *COLUMN_FORMATS))
        raise DataError(f"data of the format {schema.schema_type} have no columns here; there are {known}")
    return column_format

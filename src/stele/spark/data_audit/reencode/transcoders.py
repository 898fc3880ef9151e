"""Turn old records into new ones, a batch at a time, with a reason for each record that cannot be turned."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import ParsedSchema, parse_schema
from stele.errors import DataError, EncodeError, Invalid
from stele.formats.conversion import json_values as neutral
from stele.formats.protobuf import indexes_of, message_by_indexes
from stele.formats.protobuf.codec import ProtobufCodec
from stele.spark.data_audit.reencode.field_mapping import Adapt, map_by_name
from stele.spark.decode.records import ReadPlan, RecordEncoder, WritePlan
from stele.spark.engines.arrow import Column
from stele.spark.engines.error_messages import describe_errors
from stele.spark.registry.snapshot import SchemaLookup
from stele.spark.wires import CloudEvents, HeaderGuid, Prefix, Wire
from stele.spark.wires.base import HEADERS
from stele.spark.wires.normalize import FrameNormalizer
from stele.wire.cloudevents import PREFIXES
from stele.wire.confluent import HEADER_NAMES, decode_indexes, encode_indexes

_HEAD: Final = 5
NULL_DATUM: Final = "its datum is null, and the record would be a tombstone"


class TranscodedBatch(NamedTuple):
    """New records, null where the old one is null or bad; their headers where the wire has such; ids and reasons."""

    records: Column
    headers: Column | None
    ids: Column
    reasons: Column


class Transcoder(Protocol):
    """For one task."""

    def transcode(self, raw: Column, headers: Column | None) -> TranscodedBatch:
        """The new records. Raises `RegistryUnreachable`."""
        ...


class ColumnTranscoder:
    """Within one schema language: decoded towards the new schema, by the language's own resolution, and encoded."""

    def __init__(self, reading: ReadPlan, writing: WritePlan) -> None:
        self._decoder = reading.decoder()
        self._encoder = RecordEncoder(writing)
        self._headed = writing.wire.needs_headers

    def transcode(self, raw: Column, headers: Column | None) -> TranscodedBatch:
        """See `Transcoder`."""
        decoded = self._decoder.decode(raw, headers)
        lost = pc.and_(pc.and_(raw.is_valid(), decoded.values.is_null()), pc.invert(decoded.is_bad()))
        reasons = pc.if_else(lost, pa.scalar(NULL_DATUM), describe_errors(decoded))
        records, made, more = _encode_with_reasons(decoded.values, self._encoder.encode)
        return TranscodedBatch(records, made, decoded.schema_ids, pc.coalesce(reasons, more))


def _encode_with_reasons(
    values: Column, encode: Callable[[Column], list[Column]]
) -> tuple[Column, Column | None, Column]:
    """Records, headers and reasons; a batch with bad values is halved until these are alone."""
    try:
        made = encode(values)
        return made[0], made[1] if len(made) > 1 else None, pa.nulls(len(values), pa.string())
    except (DataError, Invalid, pa.ArrowException) as error:
        if len(values) == 1:
            empty = encode(pa.nulls(1, values.type))
            return empty[0], empty[1] if len(empty) > 1 else None, pa.array([str(error)], pa.string())
    middle = len(values) // 2
    one, other = (
        _encode_with_reasons(values.slice(0, middle), encode),
        _encode_with_reasons(values.slice(middle), encode),
    )
    headers = None if one[1] is None or other[1] is None else pa.concat_arrays([one[1], other[1]])
    return pa.concat_arrays([one[0], other[0]]), headers, pa.concat_arrays([one[2], other[2]])


class ValueTranscoder:
    """From one schema language to another: decoded by the old one's codec and resolution, mapped by name, encoded."""

    def __init__(self, reading: ReadPlan, writing: WritePlan) -> None:
        target = reading.targets[0]
        lookup = SchemaLookup(target.pinned, reading.registry, patience=reading.patience)
        self._normalizer = FrameNormalizer(reading.wire, lookup, target.message)
        self._framer = writing.framer or Prefix().framer(writing.writer, writing.message, writing.registry)
        self._message = target.message
        self._reader, writer = parse_schema(target.pinned.reader), parse_schema(writing.writer)
        self._source = make_neutral_model(target.pinned.reader, target.message)
        self._target = make_neutral_model(writing.writer, writing.message)
        self._adapt: Adapt = map_by_name(self._source, self._target)[0]
        self._encode = _make_codec(writer, None, writing.message).encode
        self._is_json = writer.format.name == "json"  # whose data are the neutral notation
        self._indexes = b""
        if writer.format.name == "protobuf":
            message = writer.parsed.get_message(writing.message).full_name
            self._indexes = encode_indexes(indexes_of(writer.parsed, message))
        self._decoders: dict[tuple[int, str], Callable[[bytes], Any]] = {}

    def transcode(self, raw: Column, headers: Column | None) -> TranscodedBatch:
        """See `Transcoder`."""
        frames = self._normalizer.normalize(raw, headers)
        payloads: list[bytes | None] = []
        reasons: list[str | None] = describe_errors(frames).to_pylist()
        for row, frame in enumerate(frames.frames.to_pylist()):
            made, why = (None, None) if frame is None else self._transcode_record(frame, padded=frames.padded)
            payloads.append(made)
            reasons[row] = reasons[row] or why
        records, made_headers = self._framer(pa.array(payloads, pa.binary()), self._indexes)
        return TranscodedBatch(records, made_headers, frames.schema_ids, pa.array(reasons, pa.string()))

    def _transcode_record(self, frame: bytes, *, padded: bool) -> tuple[bytes | None, str | None]:
        number = int.from_bytes(frame[1:_HEAD], "big", signed=True)
        try:
            value = neutral.to_json_value(self._source, self._decode_datum(number, frame[_HEAD:], padded=padded))
            if value is None:
                return None, NULL_DATUM
            adapted = self._adapt(value)
            return self._encode(adapted if self._is_json else neutral.from_json_value(self._target, adapted)), None
        except (DataError, Invalid, ValueError, ArithmeticError) as error:
            return None, str(error)

    def _decode_datum(self, number: int, data: bytes, *, padded: bool) -> Any:
        """The datum of a payload, towards the reader's schema. Raises `DataError`, `Invalid`."""
        schema = self._normalizer.find_schema(number)
        if schema is None:
            raise DataError("unknown schema")
        name = self._message
        if self._reader.format.name == "protobuf":
            indexes, start = decode_indexes(data)
            name, data = message_by_indexes(parse_schema(schema).parsed, indexes), data[start:]
        decode = self._decoders.get((number, name))
        if decode is None:
            if schema.schema_type != self._reader.schema.schema_type:
                raise DataError(f"the schema is {schema.schema_type}, and not {self._reader.schema.schema_type}")
            decode = self._decoders[number, name] = _make_codec(parse_schema(schema), self._reader, name).decode
        try:
            return decode(data)
        except DataError:
            # zero bytes that a wire puts behind a datum are not its own
            if not padded or not data.endswith(b"\0"):
                raise
            return decode(data.rstrip(b"\0"))


def make_neutral_model(schema: ResolvedSchema, message: str = "") -> Any:
    """The neutral model of a schema's data. Raises `CannotConvert` for a language that has none."""
    found = parse_schema(schema)
    to_model: Any = getattr(found.format, "to_model", None)
    if to_model is None:
        raise EncodeError(f"data of the format {found.format.name} cannot be turned into others")
    return (to_model(found.parsed, message) if message else to_model(found.parsed))[0]


def _make_codec(writer: ParsedSchema, reader: ParsedSchema | None, message: str) -> Any:
    if writer.format.name == "protobuf":
        return ProtobufCodec(writer.parsed, None if reader is None else reader.parsed, message)
    return writer.format.codec(writer.parsed, None if reader is None else reader.parsed)


def make_transcoder(reading: ReadPlan, writing: WritePlan) -> Transcoder:
    """By columns where reader and writer speak one language, which is quicker; else by values."""
    if reading.targets[0].pinned.reader.schema_type == writing.writer.schema_type:
        return ColumnTranscoder(reading, writing)
    return ValueTranscoder(reading, writing)


class HeaderMerger:
    """For records that were on a wire."""

    def __init__(self, wire: Wire) -> None:
        self._stale = _is_stale_header(wire)

    def merge_headers(self, old: Column | None, new: Column | None, rows: int) -> Column:
        """The headers records have: what is left of the old ones, then the new ones."""
        if old is None:
            return pa.nulls(rows, HEADERS) if new is None else new
        before = old.to_pylist()
        after: list[Any] = [None] * rows if new is None else new.to_pylist()
        return pa.array([self._merge_row(*pair) for pair in zip(before, after, strict=True)], HEADERS)

    def _merge_row(self, old: Any, new: Any) -> Any:
        if old is None:
            return new
        made = new or []
        named = {entry["key"].lower() for entry in made}
        # a map comes as pairs, a list of headers as dicts
        pairs = [each if isinstance(each, tuple) else tuple(each.values()) for each in old if each is not None]
        kept = [
            {"key": key, "value": value}
            for key, value in pairs
            if key is None or (key.lower() not in named and not self._stale(key.lower()))
        ]
        return [*kept, *made]


def _is_stale_header(wire: Wire) -> Callable[[str], bool]:
    """Whether a header, by its name in lower case, said which schema a record had, or what the wire needs beside."""
    if isinstance(wire, HeaderGuid):
        name = HEADER_NAMES[wire.field]
        return lambda key: key == name
    if isinstance(wire, CloudEvents):
        return lambda key: key.startswith(PREFIXES) or key == "content-type"
    return lambda key: False

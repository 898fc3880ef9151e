"""Turn old records into new ones, a batch at a time, with an error code for each record that fails.

Between schema languages, data pass through neutral JSON (`stele.formats.conversion.json_values`), so no language needs
to know another. Fields are matched by name, and losses are listed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from stele.client import ResolvedSchema
from stele.client.serdes.schemas import ParsedSchema, parse_schema
from stele.errors import CannotConvert, DataError, EncodeError, Invalid
from stele.formats.conversion import json_values as neutral
from stele.formats.conversion.json_values import INTEGERS
from stele.formats.conversion.model import (
    ABSENT,
    Array,
    Decimal,
    Duration,
    Enumeration,
    Fixed,
    Loss,
    Map,
    Model,
    RecordField,
    RecordType,
    Scalar,
    ScalarKind,
    Time,
    Timestamp,
    Type,
    TypeReference,
    Union,
)
from stele.formats.protobuf import indexes_of, message_by_indexes
from stele.formats.protobuf.codec import ProtobufCodec
from stele.spark.decode.formats.base import as_record_error
from stele.spark.decode.records import ReadPlan, RecordEncoder, WritePlan
from stele.spark.engines.arrow import Column
from stele.spark.engines.base import Decoded, ErrorColumns
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.spark.registry import SchemaLookup
from stele.spark.wires import CloudEvents, HeaderGuid, Prefix, Wire
from stele.spark.wires.base import HEADERS
from stele.spark.wires.normalize import FrameNormalizer
from stele.wire.cloudevents import PREFIXES
from stele.wire.confluent import HEADER_NAMES, decode_indexes, encode_indexes

Adapt: TypeAlias = Callable[[Any], Any]
"""Turns a neutral value of the source into one of the target."""

_WHOLE: Final = frozenset(kind for kind in ScalarKind if "int" in kind.value)
_NUMBERS: Final = _WHOLE | {ScalarKind.FLOAT32, ScalarKind.FLOAT64, ScalarKind.NUMBER}
_TEXTS: Final = frozenset({ScalarKind.STRING, ScalarKind.UUID, ScalarKind.DATE, ScalarKind.BYTES})
_MEETING: Final = ({"number", "decimal"}, {"decimal", "text"})
"""Pairs of value families that can be converted into each other."""


def map_by_name(source: Model, target: Model) -> tuple[Adapt, list[Loss]]:
    """Return a function that maps data of the source to data of the target, and the losses.

    A field takes the value of the source field with its name, or one of its aliases, or else with the only name that
    differs in case and underscores alone. A field without a source field gets its default, or null. Raises
    `CannotConvert` for a field that has neither, and for types without a conversion.
    """
    way = _TypeMapper(source, target)
    return way.map_value(source.root, target.root, ""), way.losses


class _TypeMapper:
    """Maps the types of two models. A pair of records is mapped once."""

    def __init__(self, source: Model, target: Model) -> None:
        self._source, self._target = source, target
        self._known: dict[tuple[str, str], _RecordMapping] = {}
        self.losses: list[Loss] = []

    def map_value(self, have: Type, want: Type, path: str) -> Adapt:
        """Return the function that converts a value that is not null from one type to another."""
        have_named, want_named = self._find_declared(have, self._source), self._find_declared(want, self._target)
        if isinstance(have_named, RecordType) and isinstance(want_named, RecordType):
            return self._map_records(have_named, want_named, path)
        match have, want:
            case Array(), Array():
                return _map_items(
                    self._map_nullable(have.items, want.items, f"{path}[]", (have.nullable, want.nullable))
                )
            case Map(), Map():
                return _map_values(
                    self._map_nullable(have.values, want.values, f"{path}{{}}", (have.nullable, want.nullable))
                )
            case (Union(), _) | (_, Union()) | (_, Scalar(ScalarKind.ANY)):
                return _keep_value  # the target's model chooses the branch
        if isinstance(have_named, Enumeration) and isinstance(want_named, Enumeration):
            known = {symbol.name for symbol in want_named.symbols}
            missing = [symbol.name for symbol in have_named.symbols if symbol.name not in known]
            if missing:
                self._add_loss(path, "SYMBOL", f"The target has no symbol {', '.join(missing)}: such records are dead.")
            return _keep_value
        return self._map_scalar(have_named or have, want_named or want, path)

    def _map_records(self, have: RecordType, want: RecordType, path: str) -> Adapt:
        key = have.name, want.name
        if key in self._known:
            return self._known[key]
        within = self._known[key] = _RecordMapping()
        sources = _FieldIndex(have.fields)
        moves: list[_FieldMove] = []
        fills: list[tuple[str, Any]] = []
        used: set[str] = set()
        for field in want.fields:
            at = f"{path}.{field.name}" if path else field.name
            move = sources.find_field(field)
            if move is None:
                fills += self._fill_field(field, at)
                continue
            used.add(move.name)
            nullable = move.nullable or not move.required, field.nullable or not field.required
            adapt = self._map_nullable(move.type, field.type, at, nullable, field)
            moves.append(_FieldMove(move.name, field.name, adapt, left_out=not field.nullable and not field.required))
        for field in have.fields:
            if field.name not in used:
                at = f"{path}.{field.name}" if path else field.name
                self._add_loss(at, "FIELD", "The target has no field of that name: its values are dropped.")
        within.moves, within.fills = tuple(moves), tuple(fills)
        return within

    def _fill_field(self, field: RecordField, path: str) -> list[tuple[str, Any]]:
        """Return the name and value of a target field that no source field fills, as a list of at most one pair.

        Raises `CannotConvert` for a required field without a default.
        """
        if field.default is not ABSENT:
            why = "The source has no such field: it gets its default."
        elif field.nullable or not field.required:
            why = "The source has no such field: it is null, or left out."
        else:
            raise CannotConvert(
                f"{path}: the target requires it, but the source has no such field and it has no default"
            )
        self.losses.append(Loss(path, "FILLED", why))
        if field.default is ABSENT and not field.nullable:
            return []
        return [(field.name, None if field.default is ABSENT else field.default)]

    def _map_nullable(
        self, have: Type, want: Type, path: str, nullable: tuple[bool, bool], field: RecordField | None = None
    ) -> Adapt:
        """Return the conversion as `map_value` does, for values that can be null in the source or in the target."""
        inner = self.map_value(have, want, path)
        instead = None
        if nullable[0] and not nullable[1]:
            if field is not None and field.default is not ABSENT:
                instead = field.default
                self._add_loss(path, "NULL", "The target does not accept null: its default is used.")
            else:
                self._add_loss(path, "NULL", "The target takes no null: records with one are dead.")
        return lambda value: instead if value is None else inner(value)

    def _map_scalar(self, have: Any, want: Any, path: str) -> Adapt:
        if have == want or have == Scalar(ScalarKind.ANY):
            return _keep_value
        one, other = _value_family(have), _value_family(want)
        if one != other and {one, other} not in _MEETING:
            raise CannotConvert(f"{path or 'the value'}: {_type_word(have)} does not become {_type_word(want)}")
        self._note_narrowing(have, want, path)
        if one == "decimal" and other == "number":
            whole = isinstance(want, Scalar) and want.kind in _WHOLE
            return _to_whole_number if whole else float
        if one == "number" and other == "decimal":
            return str
        return _keep_value

    def _note_narrowing(self, have: Any, want: Any, path: str) -> None:
        """Add a loss if values of one type may not fit the other."""
        if isinstance(have, Scalar) and isinstance(want, Scalar) and have.kind in _NUMBERS and want.kind in _WHOLE:
            least, greatest = INTEGERS.get(want.kind, (None, None))
            low, high = INTEGERS.get(have.kind, (None, None))
            fits = least is None or (low is not None and high is not None and least <= low and high <= (greatest or 0))
            if not fits or have.kind not in _WHOLE:
                self._add_loss(path, "RANGE", f"What does not fit {want.kind.value} is dead.")
        elif _type_word(have) != _type_word(want) and not (isinstance(want, Scalar) and want.kind is ScalarKind.STRING):
            self._add_loss(
                path, "TYPE", f"{_type_word(have)} becomes {_type_word(want)}: values that are none are dead."
            )
        elif _type_word(have) != _type_word(want):
            self._add_loss(
                path, "TYPE", f"{_type_word(have)} becomes text, as the neutral notation has it.", data=False
            )

    def _add_loss(self, path: str, what: str, why: str, *, data: bool = True) -> None:
        self.losses.append(Loss(path, what, why, data))

    def _find_declared(self, kind: Type, model: Model) -> Any:
        return model.types[kind.name] if isinstance(kind, TypeReference) else None


class _FieldIndex:
    """Finds fields by exact name, or by name without case and underscores if that is unique."""

    def __init__(self, fields: Iterable[RecordField]) -> None:
        self._exact = {field.name: field for field in fields}
        self._loose: dict[str, RecordField | None] = {}
        for field in self._exact.values():
            word = _loose_name(field.name)
            self._loose[word] = None if word in self._loose else field

    def find_field(self, wanted: RecordField) -> RecordField | None:
        for name in (wanted.name, *wanted.aliases):
            if name in self._exact:
                return self._exact[name]
        return self._loose.get(_loose_name(wanted.name))


def _loose_name(name: str) -> str:
    return name.replace("_", "").lower()


def _value_family(kind: Any) -> str:
    """Return the family of a type in the neutral notation; most types that are not numbers are text."""
    match kind:
        case Scalar(scalar) if scalar in _NUMBERS:
            return "number"
        case Scalar(ScalarKind.BOOLEAN):
            return "boolean"
        case Decimal():
            return "decimal"
        case Scalar(scalar) if scalar in _TEXTS:
            return "text"
        case Time() | Timestamp() | Duration() | Fixed() | Enumeration():
            return "text"
    return _type_word(kind)


def _type_word(kind: Any) -> str:
    match kind:
        case Scalar(scalar):
            return scalar.value
        case RecordType() | Enumeration() | Fixed():
            return f"{type(kind).__name__.lower()} {kind.name}"
    return type(kind).__name__.lower()


def _keep_value(value: Any) -> Any:
    return value


def _to_whole_number(value: Any) -> Any:
    number = float(value)
    return int(number) if number == int(number) else number


def _map_items(inner: Adapt) -> Adapt:
    return lambda value: [inner(item) for item in value] if isinstance(value, list) else value


def _map_values(inner: Adapt) -> Adapt:
    return lambda value: {key: inner(item) for key, item in value.items()} if isinstance(value, dict) else value


class _FieldMove(NamedTuple):
    """The move of one field; `left_out` is whether the target leaves the member out when it is null."""

    old: str
    new: str
    adapt: Adapt
    left_out: bool


class _RecordMapping:
    """The mapping between two records. It can contain itself."""

    def __init__(self) -> None:
        self.moves: tuple[_FieldMove, ...] = ()
        self.fills: tuple[tuple[str, Any], ...] = ()

    def __call__(self, value: Any) -> Any:
        """Return the target's record."""
        if not isinstance(value, dict):
            return value
        mapped = {}
        for old, new, adapt, left_out in self.moves:
            if old in value:
                adapted = adapt(value[old])
                if adapted is not None or not left_out:
                    mapped[new] = adapted
        return mapped | dict(self.fills)


_HEAD: Final = 5


class TranscodedBatch(NamedTuple):
    """The result for a batch of old records.

    Attributes:
        records: The new records, null where the old one is null or bad, with the id and the error of each old one.
        headers: The new records' headers, None if the wire has none.
    """

    records: Decoded
    headers: Column | None


class Transcoder(Protocol):
    """Turns old records into new ones. Made for one task."""

    def transcode(self, raw: Column, headers: Column | None) -> TranscodedBatch:
        """Return the new records. Raises `RegistryUnreachable`."""
        ...


class ColumnTranscoder:
    """Transcodes within one schema language: decodes towards the new schema by the language's rules, and encodes."""

    def __init__(self, reading: ReadPlan, writing: WritePlan) -> None:
        self._decoder = reading.decoder()
        self._encoder = RecordEncoder(writing)
        self._headed = writing.wire.needs_headers

    def transcode(self, raw: Column, headers: Column | None) -> TranscodedBatch:
        """Return the new records; see `Transcoder.transcode`."""
        decoded = self._decoder.decode(raw, headers)
        is_null = pc.and_(pc.and_(raw.is_valid(), decoded.values.is_null()), pc.invert(decoded.is_bad()))
        records, new_headers, refusals = _encode_values(decoded.values, self._encoder.encode)
        encoded = replace(decoded, values=records).with_errors(ErrorCode.UNWRITABLE_VALUE, refusals)
        null_rows = dict.fromkeys(pc.indices_nonzero(is_null).to_pylist())
        return TranscodedBatch(encoded.with_errors(ErrorCode.NULL_VALUE, null_rows), new_headers)


def _encode_values(
    values: Column, encode: Callable[[Column], list[Column]]
) -> tuple[Column, Column | None, dict[int, str]]:
    """Return records, headers and, by row, why a value cannot be written.

    A batch that cannot be written is halved until each bad value is alone.
    """
    try:
        encoded = encode(values)
        return encoded[0], encoded[1] if len(encoded) > 1 else None, {}
    except (DataError, Invalid, pa.ArrowException) as error:
        if len(values) == 1:
            empty = encode(pa.nulls(1, values.type))
            return empty[0], empty[1] if len(empty) > 1 else None, {0: str(error)}
    middle = len(values) // 2
    first, second = _encode_values(values.slice(0, middle), encode), _encode_values(values.slice(middle), encode)
    headers = None if first[1] is None or second[1] is None else pa.concat_arrays([first[1], second[1]])
    refusals = first[2] | {middle + row: why for row, why in second[2].items()}
    return pa.concat_arrays([first[0], second[0]]), headers, refusals


class ValueTranscoder:
    """Transcodes between schema languages: decodes by the old language's codec, maps fields by name, and encodes."""

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
        self._is_json = writer.format.name == "json"  # JSON data are the neutral notation already
        self._indexes = b""
        if writer.format.name == "protobuf":
            message = writer.parsed.get_message(writing.message).full_name
            self._indexes = encode_indexes(indexes_of(writer.parsed, message))
        self._decoders: dict[tuple[int, str], Callable[[bytes], Any]] = {}

    def transcode(self, raw: Column, headers: Column | None) -> TranscodedBatch:
        """Return the new records; see `Transcoder.transcode`."""
        frames = self._normalizer.normalize(raw, headers)
        payloads: list[bytes | None] = []
        errors = ErrorColumns(len(raw))
        for row, frame in enumerate(frames.frames.to_pylist()):
            payloads.append(None)
            if frame is None:
                continue
            try:
                payloads[row] = self._transcode_record(frame, padded=frames.padded)
            except RecordError as error:
                errors.add_error(row, error)
        records, new_headers = self._framer(pa.array(payloads, pa.binary()), self._indexes)
        transcoded = Decoded(records, frames.schema_ids, *errors.columns())
        return TranscodedBatch(self._normalizer.restore_ids(transcoded, frames), new_headers)

    def _transcode_record(self, frame: bytes, *, padded: bool) -> bytes:
        """Return the payload of the new record. Raises `RecordError`."""
        number = int.from_bytes(frame[1:_HEAD], "big", signed=True)
        try:
            value = neutral.to_json_value(self._source, self._decode_datum(number, frame[_HEAD:], padded=padded))
        except DataError as error:
            raise as_record_error(error) from error
        except (Invalid, ValueError, ArithmeticError) as error:
            raise RecordError(ErrorCode.INVALID_DATA, str(error)) from error
        if value is None:
            raise RecordError(ErrorCode.NULL_VALUE)
        try:
            adapted = self._adapt(value)
            payload: bytes = self._encode(adapted if self._is_json else neutral.from_json_value(self._target, adapted))
        except (DataError, Invalid, ValueError, ArithmeticError) as error:
            raise RecordError(ErrorCode.UNWRITABLE_VALUE, str(error)) from error
        return payload

    def _decode_datum(self, number: int, data: bytes, *, padded: bool) -> Any:
        """Return the datum of a payload, towards the reader's schema. Raises `DataError`, `Invalid`."""
        schema = self._normalizer.find_schema(number)
        if schema is None:
            raise RecordError(ErrorCode.UNKNOWN_SCHEMA_ID)
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
            # zero bytes that a wire puts after a datum are not part of it
            if not padded or not data.endswith(b"\0"):
                raise
            return decode(data.rstrip(b"\0"))


def make_neutral_model(schema: ResolvedSchema, message: str = "") -> Any:
    """Return the neutral model of a schema's data. Raises `EncodeError` for a language that has none."""
    source = parse_schema(schema)
    to_model: Any = getattr(source.format, "to_model", None)
    if to_model is None:
        raise EncodeError(f"data of the format {source.format.name} cannot be turned into others")
    return (to_model(source.parsed, message) if message else to_model(source.parsed))[0]


def _make_codec(writer: ParsedSchema, reader: ParsedSchema | None, message: str) -> Any:
    if writer.format.name == "protobuf":
        return ProtobufCodec(writer.parsed, None if reader is None else reader.parsed, message)
    return writer.format.codec(writer.parsed, None if reader is None else reader.parsed)


def make_transcoder(reading: ReadPlan, writing: WritePlan) -> Transcoder:
    """Return a transcoder of columns within one schema language, which is faster, else one of values."""
    if reading.targets[0].pinned.reader.schema_type == writing.writer.schema_type:
        return ColumnTranscoder(reading, writing)
    return ValueTranscoder(reading, writing)


class HeaderMerger:
    """Merges the headers of old records on a wire with the new ones."""

    def __init__(self, wire: Wire) -> None:
        self._stale = _is_stale_header(wire)

    def merge_headers(self, old: Column | None, new: Column | None, rows: int) -> Column:
        """Return the headers of the new records: the old ones that stay, then the new ones."""
        if old is None:
            return pa.nulls(rows, HEADERS) if new is None else new
        before = old.to_pylist()
        after: list[Any] = [None] * rows if new is None else new.to_pylist()
        return pa.array([self._merge_row(*pair) for pair in zip(before, after, strict=True)], HEADERS)

    def _merge_row(self, old: Any, new: Any) -> Any:
        if old is None:
            return new
        added = new or []
        named = {entry["key"].lower() for entry in added}
        # a map comes as pairs, a list of headers as dicts
        pairs = [each if isinstance(each, tuple) else tuple(each.values()) for each in old if each is not None]
        old_entries = [
            {"key": key, "value": value}
            for key, value in pairs
            if key is None or (key.lower() not in named and not self._stale(key.lower()))
        ]
        return [*old_entries, *added]


def _is_stale_header(wire: Wire) -> Callable[[str], bool]:
    """Return a function that tells whether a header, by its lower-case name, belonged to the old wire.

    Such a header named the schema of a record, or was otherwise needed by the wire.
    """
    if isinstance(wire, HeaderGuid):
        name = HEADER_NAMES[wire.field]
        return lambda key: key == name
    if isinstance(wire, CloudEvents):
        return lambda key: key.startswith(PREFIXES) or key == "content-type"
    return lambda key: False

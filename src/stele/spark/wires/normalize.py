"""Records of any wire as Confluent frames, with numbers assigned here in place of ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from stele.client.serdes.schemas import parse_schema
from stele.client.snapshot import ResolvedSchema
from stele.errors import DataError, FrameError, Invalid
from stele.formats.protobuf import indexes_of
from stele.spark.engines.arrow import Column
from stele.spark.engines.base import Decoded, ErrorColumns
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.spark.registry import SchemaLookup
from stele.spark.wires.base import FrameParts, ResolvedId, Wire
from stele.wire.confluent import encode_indexes, id_prefix

_PADS: Final = 16
"""Maximum number of zero bytes at the end of a datum, if more follow and the engine does not report the datum's end."""


class NormalizedFrames(NamedTuple):
    """A column ready for an engine.

    frames      Confluent frames; null where the record is null or has no usable id
    schema_ids  ids in the wire's own type
    codes       uint8, never null: the `ErrorCode` of a record that cannot go to an engine, 0 for others
    details     string, the details of the codes; see `Decoded`
    id_label    the wire's word for an id in messages
    padded      whether records can end with zero bytes that are not part of them
    """

    frames: Column
    schema_ids: Column
    codes: Column
    details: Column
    id_label: str
    padded: bool = False


class FrameNormalizer:
    """Takes records of a wire apart and looks up their schemas, once per id."""

    def __init__(self, wire: Wire, lookup: SchemaLookup, message: str = "") -> None:
        self._wire, self._lookup, self._message = wire, lookup, message
        self._numbers: dict[Any, int] = {}
        self._known: list[tuple[Any, ResolvedId]] = []

    def normalize(self, values: Column, headers: Column | None) -> NormalizedFrames:
        """Return the records of a batch as Confluent frames. Raises what looking up schemas raises."""
        parts = self._wire.split(values, headers)
        coded = parts.ids.dictionary_encode()
        resolved = [self._look_up(key) for key in coded.dictionary.to_pylist()]
        places = coded.indices.to_pylist()
        errors = _FrameErrors(parts.frame_errors)
        resolved_ids: list[ResolvedId | None] = []
        prefixes: list[bytes | None] = []
        for outcome in resolved:
            resolved_ids.append(None if isinstance(outcome, RecordError) else outcome[0])
            prefixes.append(None if isinstance(outcome, RecordError) else outcome[1])
        if any(resolved_id is None for resolved_id in resolved_ids):
            for row, place in enumerate(places):
                known = None if place is None else resolved[place]
                if isinstance(known, RecordError):
                    errors.add_error(row, known)
        before = pa.array(prefixes, pa.binary()).take(coded.indices)
        payloads = _unpack_payloads(parts.payloads, errors, coded, resolved_ids)
        payloads = _prepend_indexes(parts, payloads, errors, coded, resolved_ids)
        frames = pc.binary_join_element_wise(before, payloads, pa.scalar(b"", pa.binary()))
        padded = any(resolved_id is not None and resolved_id.padded for resolved_id in resolved_ids)
        codes, details, _ = errors.columns()
        good = pc.equal(codes, pa.scalar(0, pa.uint8()))
        good_frames = pc.if_else(good, frames, None)
        return NormalizedFrames(good_frames, parts.ids, codes, details, self._wire.id_label, padded)

    def find_schema(self, number: int) -> ResolvedSchema | None:
        """Return the schema of a number that was assigned here, or None."""
        return self._known[number][1].schema if number < len(self._known) else None

    def restore_ids(self, decoded: Decoded, frames: NormalizedFrames) -> Decoded:
        """Return an engine's result with the wire's ids, and with the errors of frames that were bad before."""
        bad: Column = pc.not_equal(frames.codes, pa.scalar(0, pa.uint8()))
        return replace(
            decoded,
            schema_ids=frames.schema_ids,
            codes=pc.if_else(bad, frames.codes, decoded.codes),
            details=pc.if_else(bad, frames.details, decoded.details),
            id_label=frames.id_label,
        )

    def _look_up(self, key: Any) -> tuple[ResolvedId, bytes] | RecordError:
        """Return the schema of an id and the bytes that go before its payloads, or the error."""
        try:
            return self._find_prefix(key) or RecordError(ErrorCode.UNKNOWN_SCHEMA_ID)
        except DataError as error:
            return RecordError(ErrorCode.UNUSABLE_SCHEMA, str(error))

    def _find_prefix(self, key: Any) -> tuple[ResolvedId, bytes] | None:
        number = self._numbers.get(key)
        if number is None:
            resolved_id = self._wire.resolve_id(key, self._lookup)
            if resolved_id is None:
                return None
            number = self._numbers[key] = len(self._known)
            self._known.append((key, resolved_id))
        resolved_id = self._known[number][1]
        return resolved_id, id_prefix(number) + self._encode_indexes(resolved_id)

    def _encode_indexes(self, resolved: ResolvedId) -> bytes:
        """Return the message indexes for payloads that have none."""
        if resolved.schema.schema_type.upper() != "PROTOBUF" or resolved.message is None:
            return b""
        parsed = parse_schema(resolved.schema).parsed
        try:
            return encode_indexes(indexes_of(parsed, resolved.message or self._message))
        except Invalid as error:
            raise DataError(str(error)) from error


class _FrameErrors(ErrorColumns):
    """The errors of a batch, which begin with those of its frames."""

    def __init__(self, frame_errors: Column) -> None:
        super().__init__(len(frame_errors))
        for row in pc.indices_nonzero(frame_errors.is_valid()).to_pylist():
            self.add(row, ErrorCode.NOT_FRAMED, frame_errors[row].as_py())


def _unpack_payloads(
    payloads: Column, errors: ErrorColumns, coded: Column, resolved_ids: list[ResolvedId | None]
) -> Column:
    """Return the payloads after their codecs. Adds an error if a payload cannot be decompressed."""
    if not any(resolved_id is not None and resolved_id.unpack for resolved_id in resolved_ids):
        return payloads
    contents: list[bytes | None] = []
    for row, (data, place) in enumerate(zip(payloads.to_pylist(), coded.indices.to_pylist(), strict=True)):
        resolved_id = None if place is None else resolved_ids[place]
        if data is None or resolved_id is None or resolved_id.unpack is None:
            contents.append(data)
            continue
        try:
            contents.append(resolved_id.unpack(data))
        except FrameError as error:
            contents.append(None)
            errors.add(row, ErrorCode.CODEC_FAILED, str(error))
    return pa.array(contents, pa.binary())


def _prepend_indexes(
    parts: FrameParts, payloads: Column, errors: ErrorColumns, coded: Column, resolved_ids: list[ResolvedId | None]
) -> Column:
    """Return the payloads with the message indexes that stood apart from them.

    Adds an error for indexes of a record that is not Protobuf.
    """
    if parts.indexes is None:
        return payloads
    protobuf = [
        resolved_id is not None and resolved_id.schema.schema_type.upper() == "PROTOBUF" for resolved_id in resolved_ids
    ]
    known: Column = pa.array(protobuf, pa.bool_()).take(coded.indices)
    mine: Column = known.fill_null(False)
    apart: Column = parts.indexes.fill_null(b"")
    odd: Column = pc.and_(pc.invert(mine), pc.not_equal(apart, pa.scalar(b"")))
    odd_rows: Column = pc.indices_nonzero(odd)
    for row in odd_rows.to_pylist():
        errors.add(row, ErrorCode.NOT_FRAMED, "unexpected bytes after the guid in the record header")
    joined = pc.binary_join_element_wise(apart, payloads, pa.scalar(b"", pa.binary()))
    return pc.if_else(mine, joined, payloads)


def retry_without_padding(decoded: Decoded, frames: Column, decode: Callable[[Column], Decoded]) -> Decoded:
    """Decode records that failed and end in zero bytes again, without these bytes.

    The record is the shortest prefix that decodes completely. A datum of every format here marks its own end, so there
    is never more than one.
    """
    cuts: list[bytes] = []
    owners: list[int] = []
    for row in decoded.bad_rows().to_pylist():
        data = frames[row].as_py()
        if data is None or not data.endswith(b"\0"):
            continue
        core = max(len(data.rstrip(b"\0")), 5)
        place = decoded.offsets[row].as_py()
        ends = {core + more for more in range(_PADS) if core + more < len(data)}
        if place >= 0 and core <= place + 5 < len(data):
            ends.add(place + 5)
        cuts += [data[:end] for end in sorted(ends)]
        owners += [row] * len(ends)
    if not cuts:
        return decoded
    again = decode(pa.array(cuts, pa.binary()))
    good = {}
    for at in range(len(cuts) - 1, -1, -1):
        if not again.codes[at].as_py():
            good[owners[at]] = at
    n = len(frames)
    source = pa.array([n + good[row] if row in good else row for row in range(n)], pa.int64())
    return replace(Decoded.concat([decoded, again]).take(source), schema_ids=decoded.schema_ids)

"""Records of any wire as Confluent frames, with numbers of our own in place of ids."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from stele.client.serdes.schemas import ready
from stele.client.snapshot import ResolvedSchema
from stele.errors import DataError, FrameError, Invalid
from stele.formats.protobuf import indexes_of
from stele.spark.engines.arrow import Column
from stele.spark.engines.base import Decoded
from stele.spark.registry.snapshot import SchemaLookup
from stele.spark.wires.base import Found, Parts, Wire
from stele.wire.confluent import encode_indexes, id_prefix

_PADS: Final = 16
"""Zero bytes a datum may end with when more follow it, unless the engine says itself where it ends."""
_NUMBER: Final = re.compile(r"schema id (\d+)")


class Frames(NamedTuple):
    """A column ready for an engine.

    frames   Confluent frames; null where the record is null or has no usable id
    ids      what the wire calls the schemas
    reasons  why a record cannot go to an engine
    padded   whether records may end with zero bytes that are not theirs
    """

    frames: Column
    ids: Column
    reasons: Column
    padded: bool = False


class Opener:
    """Takes records of a wire apart and finds their schemas, by id once, whatever number of records has it."""

    def __init__(self, wire: Wire, lookup: SchemaLookup, message: str = "") -> None:
        self._wire, self._lookup, self._message = wire, lookup, message
        self._numbers: dict[Any, int] = {}
        self._known: list[tuple[Any, Found]] = []

    def open(self, values: Column, headers: Column | None) -> Frames:
        """The records of a batch. Raises what looking up schemas raises."""
        parts = self._wire.split(values, headers)
        coded = parts.ids.dictionary_encode()
        prefixes: list[bytes | None] = []
        reasons: list[str | None] = []
        founds: list[Found | None] = []
        for key in coded.dictionary.to_pylist():
            found, prefix, why = self._looked_up(key)
            founds.append(found)
            prefixes.append(prefix)
            reasons.append(why)
        before = pa.array(prefixes, pa.binary()).take(coded.indices)
        said = pc.coalesce(parts.reasons, pa.array(reasons, pa.string()).take(coded.indices))
        payloads, said = _unpacked(parts.payloads, said, coded, founds)
        payloads, said = _indexed(parts, payloads, said, coded, founds)
        frames = pc.binary_join_element_wise(before, payloads, pa.scalar(b"", pa.binary()))
        padded = any(found is not None and found.padded for found in founds)
        return Frames(pc.if_else(said.is_null(), frames, None), parts.ids, said, padded)

    def schema(self, number: int) -> ResolvedSchema | None:
        """The schema behind a number of ours."""
        return self._known[number][1].schema if number < len(self._known) else None

    def told(self, decoded: Decoded, frames: Frames) -> Decoded:
        """What an engine says of the frames, in the words of the wire."""
        reasons = decoded.reasons
        if reasons.null_count < len(reasons):
            named = [None if why is None else _NUMBER.sub(self._name, why, count=1) for why in reasons.to_pylist()]
            reasons = pa.array(named, pa.string())
        return replace(decoded, schema_ids=frames.ids, reasons=pc.coalesce(frames.reasons, reasons))

    def _name(self, match: re.Match[str]) -> str:
        number = int(match[1])
        return f"{self._wire.what} {self._known[number][0]}" if number < len(self._known) else match[0]

    def _looked_up(self, key: Any) -> tuple[Found | None, bytes | None, str | None]:
        """What an id stands for, what goes before its payloads, and why neither is known."""
        try:
            found, prefix = self._prefix(key)
        except DataError as error:
            return None, None, f"{self._wire.what} {key} cannot be read: {error}"
        return found, prefix, None if found is not None else f"unknown {self._wire.what} {key}"

    def _prefix(self, key: Any) -> tuple[Found | None, bytes | None]:
        number = self._numbers.get(key)
        if number is None:
            found = self._wire.find(key, self._lookup)
            if found is None:
                return None, None
            number = self._numbers[key] = len(self._known)
            self._known.append((key, found))
        found = self._known[number][1]
        return found, id_prefix(number) + self._indexes(found)

    def _indexes(self, found: Found) -> bytes:
        """Message indexes for payloads that come without."""
        if found.schema.schema_type.upper() != "PROTOBUF" or found.message is None:
            return b""
        parsed = ready(found.schema).parsed
        try:
            return encode_indexes(indexes_of(parsed, found.message or self._message))
        except Invalid as error:
            raise DataError(str(error)) from error


def _unpacked(payloads: Column, said: Column, coded: Column, founds: list[Found | None]) -> tuple[Column, Column]:
    """Payloads after their codecs; reasons where one cannot be undone."""
    if not any(found is not None and found.unpack for found in founds):
        return payloads, said
    made: list[bytes | None] = []
    whys = said.to_pylist()
    for row, (data, place) in enumerate(zip(payloads.to_pylist(), coded.indices.to_pylist(), strict=True)):
        found = None if place is None else founds[place]
        if data is None or found is None or found.unpack is None:
            made.append(data)
            continue
        try:
            made.append(found.unpack(data))
        except FrameError as error:
            made.append(None)
            whys[row] = whys[row] or str(error)
    return pa.array(made, pa.binary()), pa.array(whys, pa.string())


def _indexed(
    parts: Parts, payloads: Column, said: Column, coded: Column, founds: list[Found | None]
) -> tuple[Column, Column]:
    """Message indexes that stood apart go before the payload; beside other formats than Protobuf they are too much."""
    if parts.indexes is None:
        return payloads, said
    protobuf = [found is not None and found.schema.schema_type.upper() == "PROTOBUF" for found in founds]
    known: Column = pa.array(protobuf, pa.bool_()).take(coded.indices)
    mine: Column = known.fill_null(False)
    apart: Column = parts.indexes.fill_null(b"")
    odd = pc.and_(pc.invert(mine), pc.not_equal(apart, pa.scalar(b"")))
    joined = pc.binary_join_element_wise(apart, payloads, pa.scalar(b"", pa.binary()))
    why = pc.if_else(odd, pa.scalar("unexpected bytes after the guid in the record header"), None)
    return pc.if_else(mine, joined, payloads), pc.coalesce(said, why.cast(pa.string()))


def without_padding(decoded: Decoded, frames: Column, decode: Callable[[Column], Decoded]) -> Decoded:
    """Decodes again, without zero bytes at their end, the records that failed with them.

    A record is the shortest beginning that is all datum: a datum of any format here says itself where it ends, so
    there is never more than one.
    """
    rows = [row for row, why in enumerate(decoded.reasons.to_pylist()) if why is not None]
    cuts: list[bytes] = []
    owners: list[int] = []
    for row in rows:
        data = frames[row].as_py()
        if data is None or not data.endswith(b"\0"):
            continue
        core = max(len(data.rstrip(b"\0")), 5)
        place = decoded.places[row].as_py()
        ends = {core + more for more in range(_PADS) if core + more < len(data)}
        if place is not None and core <= place + 5 < len(data):
            ends.add(place + 5)
        cuts += [data[:end] for end in sorted(ends)]
        owners += [row] * len(ends)
    if not cuts:
        return decoded
    again = decode(pa.array(cuts, pa.binary()))
    good = {}
    for at in range(len(cuts) - 1, -1, -1):
        if again.reasons[at].as_py() is None:
            good[owners[at]] = at
    n = len(frames)
    everything = pa.concat_arrays([decoded.values, again.values])
    values = everything.take(pa.array([n + good[row] if row in good else row for row in range(n)], pa.int64()))
    right = pa.array([row in good for row in range(n)], pa.bool_())
    return replace(
        decoded,
        values=values,
        reasons=pc.if_else(right, None, decoded.reasons),
        places=pc.if_else(right, None, decoded.places),
    )

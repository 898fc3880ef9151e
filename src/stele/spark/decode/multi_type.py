"""Topics with records of several types: each record goes to the column of its type.

A record belongs to the subject that holds its schema. One that was registered since, or in another subject, belongs
where its type has the name of the reader's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from stele.client.serdes.schemas import parse_schema
from stele.client.snapshot import ResolvedSchema
from stele.errors import DataError, Invalid
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.decoded import Decoded, ErrorColumns
from stele.spark.engines.error_codes import ErrorCode, RecordError
from stele.spark.registry.snapshot import PinnedSchemas

Decode: TypeAlias = Callable[[Column], Decoded]
Schemas: TypeAlias = Callable[[int], "ResolvedSchema | None"]


class MultiTypeDecoder:
    """Decodes a column of several types into a struct with a column for each, of which one is not null.

    pins   of each type its pinned subject, and its message where a schema has several
    """

    def __init__(
        self,
        names: Sequence[str],
        pins: Sequence[tuple[PinnedSchemas, str]],
        decoders: Sequence[Decode],
        type_: ArrowType,
        schemas: Schemas,
    ) -> None:
        self._names, self._pins, self._decoders = names, pins, decoders
        self._type, self._schemas = type_, schemas
        self._known: dict[int, tuple[int, ...]] = {}

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `engines.base.Decoder.decode`."""
        coded = pc.binary_slice(frames.cast(pa.binary()), 0, 5).dictionary_encode()
        choices = [self._candidate_types(head) for head in coded.dictionary.to_pylist()]
        left = [choices[code] if code is not None else () for code in coded.indices.to_pylist()]
        heads = coded.dictionary.to_pylist()
        n = len(frames)
        values: list[Column] = [pa.nulls(n, field.type) for field in self._type]
        numbers: list[int | None] = [None] * n
        failures: dict[int, RecordError] = {}
        for row, (code, ways) in enumerate(zip(coded.indices.to_pylist(), left, strict=True)):
            if code is not None and not ways:
                numbers[row] = int.from_bytes(heads[code][1:], "big")
                failures[row] = RecordError(ErrorCode.WRONG_SUBJECT, ", ".join(self._names))
        while any(left):
            for place, decode in enumerate(self._decoders):
                rows = [row for row, ways in enumerate(left) if ways and ways[0] == place]
                if not rows:
                    continue
                decoded = decode(frames.take(pa.array(rows, pa.int64())))
                self._put_values(values, place, rows, decoded.values)
                for row, number, error in zip(rows, decoded.schema_ids.to_pylist(), _list_errors(decoded), strict=True):
                    numbers[row] = number
                    failures.pop(row, None)
                    if error is not None:
                        failures[row] = error
                    again = error is not None and error.code is ErrorCode.WRONG_MESSAGE and len(left[row]) > 1
                    left[row] = left[row][1:] if again else ()
        absent = pc.and_(*_split_last([column.is_null() for column in values]))
        column = pa.StructArray.from_arrays(values, fields=list(self._type), mask=absent)
        errors = ErrorColumns(n)
        for row, error in failures.items():
            errors.add_error(row, error)
        return Decoded(column, pa.array(numbers, pa.int32()), *errors.columns())

    @staticmethod
    def _put_values(chosen: list[Column], place: int, rows: Sequence[int], values: Column) -> None:
        """Values into their rows of a column."""
        n = len(chosen[place])
        source = list(range(n))
        for at, row in enumerate(rows):
            source[row] = n + at
        both = pa.concat_arrays([chosen[place], values])
        chosen[place] = both.take(pa.array(source, pa.int64()))

    def _candidate_types(self, head: bytes | None) -> tuple[int, ...]:
        """Return the types a record may be of, likeliest first; what is wrong with a frame the first decoder says."""
        if head is None or len(head) < 5 or head[0] != 0:
            return (0,)
        number = int.from_bytes(head[1:], "big", signed=True)
        if number in self._known:
            return self._known[number]
        try:
            schema = self._schemas(number) if number >= 0 else None
            if schema is None:
                return (0,)
            found = self._types_of_schema(schema)
        except (DataError, Invalid):
            return (0,)
        self._known[number] = found
        return found

    def _types_of_schema(self, schema: ResolvedSchema) -> tuple[int, ...]:
        mine = [
            place
            for place, (pinned, _) in enumerate(self._pins)
            if schema.id
            and any(known.id == schema.id for known in pinned.snapshot.schemas if known.subject == pinned.subject)
        ]
        return tuple(mine or [place for place, pin in enumerate(self._pins) if _is_of(schema, *pin)])


def _list_errors(decoded: Decoded) -> Iterator[RecordError | None]:
    """Return what is wrong with each record."""
    parts = zip(decoded.codes.to_pylist(), decoded.details.to_pylist(), decoded.offsets.to_pylist(), strict=True)
    for code, detail, offset in parts:
        yield RecordError(ErrorCode(code), detail, offset) if code else None


def _is_of(schema: ResolvedSchema, pinned: PinnedSchemas, message: str) -> bool:
    if schema.schema_type.upper() != pinned.reader.schema_type.upper():
        return False
    own, wanted = parse_schema(schema).parsed, parse_schema(pinned.reader).parsed
    name = message or str(wanted.type_name)
    positions: Any = getattr(own, "positions", {})
    return bool(name) and (own.type_name == name or name in positions)


def _split_last(masks: list[Column]) -> tuple[Column, Column]:
    """Return all but the last mask as one, and the last."""
    whole = masks[0]
    for mask in masks[1:-1]:
        whole = pc.and_(whole, mask)
    return whole, masks[-1]

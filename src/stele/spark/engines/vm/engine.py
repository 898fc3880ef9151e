"""The `vm` engine and its decoder: split frames, compile a program per writer, run the kernel twice, make arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stele.errors import DataError
from stele.formats.avro.model import AvroSchema
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoder, Encoder, FindWriter
from stele.spark.engines.decoded import Decoded, error_columns, no_errors
from stele.spark.engines.error_codes import ErrorCode
from stele.spark.engines.resolve import Resolver
from stele.spark.engines.vm.columns import array, counting_columns, sized_columns
from stele.spark.engines.vm.encoder import VmEncoder
from stele.spark.engines.vm.frames import Frames, split_frames
from stele.spark.engines.vm.kernel import decode_rows
from stele.spark.engines.vm.machine import Program, Rows, Scratch
from stele.spark.engines.vm.program import DecodeAssembler
from stele.wire.confluent import id_prefix


class VmDecoder:
    """Decodes batches towards one reader's schema; grows by one program per writer id met."""

    def __init__(self, resolver: Resolver, writers: FindWriter) -> None:
        self._resolver = resolver
        self._writers = writers
        self._slots = list(resolver.root.walk_slots())
        self._assembler = DecodeAssembler(resolver.root)
        self._program: Program | None = None
        self._entries: dict[int, int] = {}
        self._refused: dict[int, str] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._resolver.root.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `Decoder.decode`."""
        parts = split_frames(frames)
        rows = self._prepare_rows(parts)
        if self._program is None:
            self._program = self._assembler.program()
        scratch = Scratch.for_program(self._program, len(self._slots))
        measured = counting_columns(self._slots)
        decode_rows(False, self._program, rows, measured, scratch)
        filled = sized_columns(measured)
        decode_rows(True, self._program, rows, filled, scratch)
        values = array(self._resolver.root, filled)
        return Decoded(values, pa.array(parts.ids, mask=~parts.framed), *self._error_columns(parts, rows))

    def _prepare_rows(self, parts: Frames) -> Rows:
        n = len(parts.ids)
        entries, codes = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        codes[parts.present & ~parts.framed] = ErrorCode.NOT_FRAMED
        for number in np.unique(parts.ids[parts.framed]):
            mine = parts.framed & (parts.ids == number)
            entry = self._find_entry(int(number))
            if isinstance(entry, ErrorCode):
                codes[mine] = entry
            else:
                entries[mine] = entry
        return Rows(parts.source, parts.starts, parts.ends, entries, codes, np.zeros(n, np.int64))

    def _find_entry(self, number: int) -> int | ErrorCode:
        """Return where the program of the writer begins, or why there is none."""
        if number in self._entries:
            return self._entries[number]
        if number in self._refused:
            return ErrorCode.UNUSABLE_SCHEMA
        try:
            writer = self._writers(number) if number >= 0 else None
            if writer is None:
                # not kept: the id may be registered before the next batch
                return ErrorCode.UNKNOWN_SCHEMA_ID
            entry = self._assembler.add(self._resolver.resolve_writer(writer))
        except DataError as error:
            self._refused[number] = str(error)
            return ErrorCode.UNUSABLE_SCHEMA
        self._program = None
        self._entries[number] = entry
        return entry

    def _error_columns(self, parts: Frames, rows: Rows) -> tuple[Column, Column, Column]:
        """Return codes, details and offsets of all rows."""
        if not rows.codes.any():
            return no_errors(len(rows.codes))
        refused: npt.NDArray[np.intp] = np.flatnonzero(rows.codes == ErrorCode.UNUSABLE_SCHEMA)
        details = {int(row): self._refused[int(parts.ids[row])] for row in refused}
        return error_columns(rows.codes, details, np.where(rows.codes == 0, -1, rows.offsets).astype(np.int32))


class VmEngine:
    """Decodes and encodes whole columns with kernels compiled by numba."""

    name = "vm"

    def decoder(
        self, reader: AvroSchema, writers: FindWriter, *, for_spark: bool = False, recursion: int = 0
    ) -> Decoder:
        """See `Engine.decoder`."""
        return VmDecoder(Resolver(reader, for_spark=for_spark, recursion=recursion), writers)

    def encoder(self, schema: AvroSchema, schema_id: int, *, for_spark: bool = False, recursion: int = 0) -> Encoder:
        """See `Engine.encoder`."""
        resolver = Resolver(schema, for_spark=for_spark, recursion=recursion)
        return VmEncoder(resolver.root, resolver.resolve_writer(schema), id_prefix(schema_id))

"""The decoder of the `vm` engine: frames apart, programs per writer, two kernel passes, Arrow arrays."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stele.errors import DataError
from stele.spark.engines.arrow import ArrowType, Column
from stele.spark.engines.base import Decoded, Writers
from stele.spark.engines.reasons import TEXTS, Reason
from stele.spark.engines.resolve import Resolver
from stele.spark.engines.vm.columns import array, blank, exact
from stele.spark.engines.vm.frames import Frames, split
from stele.spark.engines.vm.kernel import run
from stele.spark.engines.vm.memory import Program, Rows, Scratch
from stele.spark.engines.vm.program import Assembler


class VmDecoder:
    """Decodes batches towards one reader's schema; grows by one program per writer id met."""

    def __init__(self, resolver: Resolver, writers: Writers) -> None:
        self._resolver = resolver
        self._writers = writers
        self._slots = list(resolver.root.walk())
        self._assembler = Assembler(resolver.root)
        self._program: Program | None = None
        self._entries: dict[int, int] = {}
        self._refused: dict[int, tuple[Reason, str]] = {}

    @property
    def type(self) -> ArrowType:
        """The type of decoded values."""
        return self._resolver.root.type

    def decode(self, frames: Column) -> Decoded:
        """Decode one batch; see `Decoder.decode`."""
        parts = split(frames)
        rows = self._rows(parts)
        if self._program is None:
            self._program = self._assembler.program()
        scratch = Scratch.sized(self._program, len(self._slots))
        measured = blank(self._slots)
        run(False, self._program, rows, measured, scratch)
        filled = exact(measured)
        run(True, self._program, rows, filled, scratch)
        values = array(self._resolver.root, filled)
        return Decoded(values, pa.array(parts.ids, mask=~parts.framed), *self._reports(parts, rows))

    def _rows(self, parts: Frames) -> Rows:
        n = len(parts.ids)
        entries, reasons = np.zeros(n, np.int64), np.zeros(n, np.uint8)
        reasons[parts.present & ~parts.framed] = Reason.NOT_FRAMED
        for number in np.unique(parts.ids[parts.framed]):
            mine = parts.framed & (parts.ids == number)
            entry = self._entry(int(number))
            if isinstance(entry, Reason):
                reasons[mine] = entry
            else:
                entries[mine] = entry
        return Rows(parts.source, parts.starts, parts.ends, entries, reasons, np.zeros(n, np.int64))

    def _entry(self, number: int) -> int | Reason:
        """Where the program of the writer begins, or why there is none."""
        if number in self._entries:
            return self._entries[number]
        if number in self._refused:
            return self._refused[number][0]
        try:
            writer = self._writers(number) if number >= 0 else None
            if writer is None:
                # not kept: the id may be registered before the next batch
                return Reason.UNKNOWN_ID
            entry = self._assembler.add(self._resolver.steps(writer))
        except DataError as error:
            self._refused[number] = (Reason.UNUSABLE_ID, f"schema id {number} cannot be read: {error}")
            return Reason.UNUSABLE_ID
        self._program = None
        self._entries[number] = entry
        return entry

    def _reports(self, parts: Frames, rows: Rows) -> tuple[Column, Column]:
        """(reasons, places) of all rows; sentences are made for bad rows only."""
        n = len(rows.reasons)
        bad: npt.NDArray[np.intp] = np.flatnonzero(rows.reasons)
        if not len(bad):
            return pa.nulls(n, pa.string()), pa.nulls(n, pa.int32())
        sentences = np.full(n, None, object)
        for row in bad:
            sentences[row] = self._sentence(Reason(int(rows.reasons[row])), int(parts.ids[row]))
        places = pa.array(rows.places.astype(np.int32), mask=rows.reasons == 0)
        return pa.array(sentences, pa.string()), places

    def _sentence(self, reason: Reason, number: int) -> str:
        if reason is Reason.UNKNOWN_ID:
            return f"unknown schema id {number}"
        if reason is Reason.UNUSABLE_ID:
            return self._refused[number][1]
        return TEXTS[reason]

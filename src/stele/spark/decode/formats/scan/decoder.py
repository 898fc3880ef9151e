"""Which records of a batch are scanned, and what comes of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from stele.spark.decode.formats.plans import Struct
from stele.spark.decode.formats.scan.columns import Scan, ScanRefused
from stele.spark.decode.formats.scan.tables import Layout
from stele.spark.engines.arrow import Column
from stele.spark.engines.vm.frames import Frames, split_frames

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor

_TOP = 64
"""Message indexes that take one byte."""


class Scanned(NamedTuple):
    """The records that could be scanned, the numbers of all frames, and the rows that are left to the parser."""

    values: Column
    numbers: Column
    left: list[int]


class Scanner:
    """Scans batches of one message type.

    accepts   whether records with a schema id and message indexes are of that type
    Raises `tables.Unfit` for a message that is left to the parser altogether.
    """

    def __init__(self, message: Descriptor, plan: Struct, accepts: Callable[[int, tuple[int, ...]], bool]) -> None:
        self._layout = Layout(message, plan)
        self._plan = plan
        self._accepts = accepts

    def scan(self, frames: Column) -> Scanned | None:
        """The batch, or None when the parser has to read it all."""
        parts = split_frames(frames)
        starts, status = self._find_starts(parts)
        try:
            scan = Scan(self._layout, parts.source, starts, parts.ends, status)
            values = scan.column(self._plan)
        except ScanRefused:
            return None
        left = np.flatnonzero(status & parts.present).tolist()
        if status.any():
            numbers = pa.array(np.arange(len(status)), pa.int64(), mask=status != 0)
            values = values.take(numbers)
        return Scanned(values, pa.array(parts.ids, mask=~parts.framed), left)

    def _find_starts(self, parts: Frames) -> tuple[Any, Any]:
        """Where messages begin, behind their indexes, and status 1 for records that are not of the type."""
        source, last = parts.source, len(parts.source) - 1
        sizes = parts.ends - parts.starts
        head = source[np.minimum(parts.starts, last)]
        following = source[np.minimum(parts.starts + 1, last)]
        bare = parts.framed & (sizes >= 1) & (head == 0)
        single = parts.framed & (sizes >= 2) & (head == 2) & (following < 2 * _TOP) & (following % 2 == 0)
        index = np.where(bare, 0, np.where(single, following // 2, -1)).astype(np.int64)
        status = np.ones(len(index), np.uint8)
        for number, place in {*zip(parts.ids[index >= 0].tolist(), index[index >= 0].tolist(), strict=True)}:
            if self._accepts(number, (place,)):
                status[(index == place) & (parts.ids == number)] = 0
        return np.where(bare, parts.starts + 1, parts.starts + 2), status

"""Finds the Confluent header of every record of a column at once, without a Python loop."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from stele.errors import DataError
from stele.spark.engines.arrow import Column, as_numbers

HEADER = 5
Ints: TypeAlias = npt.NDArray[np.int64]


class Frames(NamedTuple):
    """A column taken apart: the bytes as they lie in memory, and per record its payload, id and state."""

    source: npt.NDArray[np.uint8]
    starts: Ints
    ends: Ints
    ids: npt.NDArray[np.int32]
    framed: npt.NDArray[np.bool_]
    present: npt.NDArray[np.bool_]


def split_frames(column: Column) -> Frames:
    """Take a binary column apart; an id is meaningful only where `framed`, a null record is not `present`."""
    if pa.types.is_null(column.type):
        column = column.cast(pa.binary())
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        if not (pa.types.is_binary_view(column.type) or pa.types.is_fixed_size_binary(column.type)):
            raise DataError(f"framed records are a binary column, not {column.type}")
        column = column.cast(pa.large_binary())
    width = np.int64 if pa.types.is_large_binary(column.type) else np.int32
    n = len(column)
    _, offset_buffer, data_buffer = column.buffers()
    offsets = as_numbers(offset_buffer, width)[column.offset : column.offset + n + 1].astype(np.int64)
    source = as_numbers(data_buffer, np.uint8)
    if not len(source):
        source = np.zeros(1, np.uint8)
    source.flags.writeable = False
    present = np.ones(n, np.bool_) if not column.null_count else np.asarray(column.is_valid())
    long_enough = present & (np.diff(offsets) >= HEADER)
    # a record too short for a header is looked up at 0 … 4 like any other, and its id is not used
    at = np.where(long_enough, offsets[:-1], 0)
    last = len(source) - 1
    bytes_ = [source[np.minimum(at + k, last)].astype(np.int64) for k in range(HEADER)]
    ids = (bytes_[1] << 24 | bytes_[2] << 16 | bytes_[3] << 8 | bytes_[4]).astype(np.int32)
    framed = long_enough & (bytes_[0] == 0)
    starts = np.where(framed, at + HEADER, 0)
    ends = np.where(framed, offsets[1:], 0)
    return Frames(source, starts, ends, ids, framed, present)

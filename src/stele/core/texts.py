"""Schema texts in memory, packed: many small similar texts per compressed block.

Texts of one registry resemble their neighbours (versions of one subject, subjects of one team), so a block of them
compresses far better than each alone, and one block costs one Python object. A handle is a row number in three columns
(block, start, length), free of meaning for callers.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict
from collections.abc import Sequence

import zstandard

BLOCK_BYTES = 32 * 1024
"""Raw bytes per block: a read decompresses one block, about 20 µs."""

_CACHED_BLOCKS = 64


class Texts:
    """An append-only store of byte strings. `pack` gives handles, `get` the bytes back, `drop` forgets one for good."""

    def __init__(self) -> None:
        self._blocks: list[bytes] = []
        self._block = array("I")
        self._start = array("I")
        self._length = array("I")
        self._compress = zstandard.ZstdCompressor(level=3).compress
        self._decompress = zstandard.ZstdDecompressor().decompress
        self._cache: OrderedDict[int, bytes] = OrderedDict()

    def __len__(self) -> int:
        """Number of handles given out."""
        return len(self._block)

    @property
    def packed_bytes(self) -> int:
        """Bytes the compressed blocks take."""
        return sum(map(len, self._blocks))

    def pack(self, texts: Sequence[bytes]) -> list[int]:
        """Store texts as one block; their handles, in order."""
        first = len(self._block)
        number = len(self._blocks)
        position = 0
        for text in texts:
            self._block.append(number)
            self._start.append(position)
            self._length.append(len(text))
            position += len(text)
        # The compressor returns an oversized buffer; the copy is exact (it halves what a small block takes).
        self._blocks.append(bytes(memoryview(self._compress(b"".join(texts)))))
        return list(range(first, first + len(texts)))

    def get(self, handle: int) -> bytes:
        """The text of a handle. Raises KeyError after `drop`."""
        length = self._length[handle]
        start = self._start[handle]
        if start == _DROPPED:
            raise KeyError(handle)
        return self._raw(self._block[handle])[start : start + length]

    def drop(self, handle: int) -> None:
        """Forget a text: its bytes leave memory at once. Raises KeyError the second time."""
        number = self._block[handle]
        start, length = self._start[handle], self._length[handle]
        if start == _DROPPED:
            raise KeyError(handle)
        raw = bytearray(self._raw(number))
        raw[start : start + length] = bytes(length)
        self._blocks[number] = bytes(memoryview(self._compress(bytes(raw))))
        self._cache.pop(number, None)
        self._start[handle] = _DROPPED

    def dump(self) -> tuple[list[bytes], bytes, bytes, bytes]:
        """The store as plain data, for snapshots."""
        return self._blocks, self._block.tobytes(), self._start.tobytes(), self._length.tobytes()

    @classmethod
    def load(cls, dumped: tuple[list[bytes], bytes, bytes, bytes]) -> Texts:
        """Inverse of `dump`."""
        texts = cls()
        texts._blocks = dumped[0]
        for column, data in zip((texts._block, texts._start, texts._length), dumped[1:], strict=True):
            column.frombytes(data)
        return texts

    def _raw(self, number: int) -> bytes:
        raw = self._cache.get(number)
        if raw is None:
            raw = self._cache[number] = self._decompress(self._blocks[number])
            if len(self._cache) > _CACHED_BLOCKS:
                self._cache.popitem(last=False)
        else:
            self._cache.move_to_end(number)
        return raw


_DROPPED = 2**32 - 1
